# dl.notify of another rank with comm_scope="gpu": a release that only this GPU sees.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)  # !or store
        dl.notify(flag_ptr, 1, signal=1, comm_scope="gpu")  # !store
    else:
        token = dl.wait(flag_ptr, 1, "sys", "acquire")  # !load
        data_ptr = dl.consume_token(data_ptr, token)
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !or load


@triton.jit
def fixed(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)
        dl.notify(flag_ptr, 1, signal=1, comm_scope="inter_node")
    else:
        token = dl.wait(flag_ptr, 1, "sys", "acquire")
        data_ptr = dl.consume_token(data_ptr, token)
        tl.store(out_ptr + i, tl.load(data_ptr + i))
