# Two slots with a flag each, which is 1 when the slot is full. Nobody takes the flags down, so from the third step on they say
# nothing: a receiver that is a round behind, or ahead, cannot see it.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(slots_ptr, flags_ptr, out_ptr):
    i = tl.arange(0, 128)
    for step in range(4):
        slot = slots_ptr + step % 2 * 128
        if dl.rank() == 0:
            tl.store(dl.symm_at(slot, 1) + i, 100 * step + i)  # !store
            dl.notify(flags_ptr + step % 2, 1, signal=1, comm_scope="intra_node")
        else:
            token = dl.wait(flags_ptr + step % 2, 1, "sys", "acquire", waitValue=1)
            tl.store(out_ptr + 128 * step + i, tl.load(dl.consume_token(slot, token) + i))  # !load


@triton.jit
def fixed(slots_ptr, flags_ptr, out_ptr):
    i = tl.arange(0, 128)
    for step in range(4):
        slot = slots_ptr + step % 2 * 128
        flag = flags_ptr + step % 2
        if dl.rank() == 0:
            if step >= 2:
                dl.wait(flag, 1, "sys", "acquire", waitValue=step - 1, compare="ge")
            tl.store(dl.symm_at(slot, 1) + i, 100 * step + i)
            dl.notify(flag, 1, signal=step + 1, comm_scope="intra_node")
        else:
            token = dl.wait(flag, 1, "sys", "acquire", waitValue=step + 1, compare="ge")
            tl.store(out_ptr + 128 * step + i, tl.load(dl.consume_token(slot, token) + i))
            dl.notify(flag, 0, signal=step + 1, comm_scope="intra_node")
