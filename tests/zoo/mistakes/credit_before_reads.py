# A slot is given back to its sender before it has been read.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(slot_ptr, full_ptr, free_ptr, out_ptr):
    i = tl.arange(0, 128)
    for step in range(4):
        if dl.rank() == 0:
            dl.wait(free_ptr, 1, "sys", "acquire", waitValue=step, compare="ge")
            tl.store(dl.symm_at(slot_ptr, 1) + i, 100 * step + i)  # !store
            dl.notify(full_ptr, 1, signal=step + 1, comm_scope="intra_node")
        else:
            token = dl.wait(full_ptr, 1, "sys", "acquire", waitValue=step + 1, compare="ge")
            dl.notify(free_ptr, 0, signal=step + 1, comm_scope="intra_node")
            tl.store(out_ptr + 128 * step + i, tl.load(dl.consume_token(slot_ptr, token) + i))  # !load


@triton.jit
def fixed(slot_ptr, full_ptr, free_ptr, out_ptr):
    i = tl.arange(0, 128)
    for step in range(4):
        if dl.rank() == 0:
            dl.wait(free_ptr, 1, "sys", "acquire", waitValue=step, compare="ge")
            tl.store(dl.symm_at(slot_ptr, 1) + i, 100 * step + i)
            dl.notify(full_ptr, 1, signal=step + 1, comm_scope="intra_node")
        else:
            token = dl.wait(full_ptr, 1, "sys", "acquire", waitValue=step + 1, compare="ge")
            tl.store(out_ptr + 128 * step + i, tl.load(dl.consume_token(slot_ptr, token) + i))
            dl.notify(free_ptr, 0, signal=step + 1, comm_scope="intra_node")
