# A rank gets a word from each of the others and waits for as many words as there are ranks.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(flags_ptr, out_ptr):
    r = dl.rank()
    n = dl.num_ranks()
    for k in range(1, n):
        peer = (r + k) % n
        dl.notify(flags_ptr + k - 1, peer)
    dl.wait(flags_ptr, n, "sys", "acquire")  # !wait
    tl.store(out_ptr, 1)


@triton.jit
def fixed(flags_ptr, out_ptr):
    r = dl.rank()
    n = dl.num_ranks()
    for k in range(1, n):
        peer = (r + k) % n
        dl.notify(flags_ptr + k - 1, peer)
    dl.wait(flags_ptr, n - 1, "sys", "acquire")
    tl.store(out_ptr, 1)
