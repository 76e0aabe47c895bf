# A flag that a peer raises is acquired at gpu scope.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)  # !or store
        dl.notify(flag_ptr, 1, signal=1, comm_scope="intra_node")  # !store
    else:
        token = dl.wait(flag_ptr, 1, "gpu", "acquire")  # !load
        data_ptr = dl.consume_token(data_ptr, token)
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !or load


@triton.jit
def fixed(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)
        dl.notify(flag_ptr, 1, signal=1, comm_scope="intra_node")
    else:
        token = dl.wait(flag_ptr, 1, "sys", "acquire")
        data_ptr = dl.consume_token(data_ptr, token)
        tl.store(out_ptr + i, tl.load(data_ptr + i))
