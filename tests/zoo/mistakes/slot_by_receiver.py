# All send to all, into the slot that has the number of the receiver instead of their own.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(box_ptr, flags_ptr, out_ptr):
    r = dl.rank()
    n = dl.num_ranks()
    i = tl.arange(0, 32)
    for k in range(n):
        p = (r + k) % n
        tl.store(dl.symm_at(box_ptr, p) + 32 * p + i, r)  # !store
        dl.notify(flags_ptr + r, p)
    for p in range(n):
        token = dl.wait(flags_ptr + p, 1, "sys", "acquire")
        b = dl.consume_token(box_ptr, token)
        tl.store(out_ptr + 32 * p + i, tl.load(b + 32 * p + i))


@triton.jit
def fixed(box_ptr, flags_ptr, out_ptr):
    r = dl.rank()
    n = dl.num_ranks()
    i = tl.arange(0, 32)
    for k in range(n):
        p = (r + k) % n
        tl.store(dl.symm_at(box_ptr, p) + 32 * r + i, r)
        dl.notify(flags_ptr + r, p)
    for p in range(n):
        token = dl.wait(flags_ptr + p, 1, "sys", "acquire")
        b = dl.consume_token(box_ptr, token)
        tl.store(out_ptr + 32 * p + i, tl.load(b + 32 * p + i))
