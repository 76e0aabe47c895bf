# A ring of two slots whose sender never asks whether the receiver has read a slot before it fills it again.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(slots_ptr, full_ptr, free_ptr, out_ptr):
    i = tl.arange(0, 128)
    for step in range(4):
        slot = slots_ptr + step % 2 * 128
        if dl.rank() == 0:
            tl.store(dl.symm_at(slot, 1) + i, 100 * step + i)  # !store
            dl.notify(full_ptr, 1, signal=step + 1, comm_scope="intra_node")
        else:
            token = dl.wait(full_ptr, 1, "sys", "acquire", waitValue=step + 1, compare="ge")
            tl.store(out_ptr + 128 * step + i, tl.load(dl.consume_token(slot, token) + i))  # !load


@triton.jit
def fixed(slots_ptr, full_ptr, free_ptr, out_ptr):
    i = tl.arange(0, 128)
    for step in range(4):
        slot = slots_ptr + step % 2 * 128
        if dl.rank() == 0:
            dl.wait(free_ptr, 1, "sys", "acquire", waitValue=step - 1, compare="ge")
            tl.store(dl.symm_at(slot, 1) + i, 100 * step + i)
            dl.notify(full_ptr, 1, signal=step + 1, comm_scope="intra_node")
        else:
            token = dl.wait(full_ptr, 1, "sys", "acquire", waitValue=step + 1, compare="ge")
            tl.store(out_ptr + 128 * step + i, tl.load(dl.consume_token(slot, token) + i))
            dl.notify(free_ptr, 0, signal=step + 1, comm_scope="intra_node")
