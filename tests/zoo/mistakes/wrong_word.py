# Rank s raises word s of the others, but they wait for the word with their own number.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(words_ptr, out_ptr):
    rank = dl.rank()
    dl.notify(words_ptr + rank, 1 - rank, signal=1, comm_scope="intra_node")
    dl.wait(words_ptr + rank, 1, "sys", "acquire")  # !wait
    tl.store(out_ptr, 1)


@triton.jit
def fixed(words_ptr, out_ptr):
    rank = dl.rank()
    dl.notify(words_ptr + rank, 1 - rank, signal=1, comm_scope="intra_node")
    dl.wait(words_ptr + 1 - rank, 1, "sys", "acquire")
    tl.store(out_ptr, 1)
