# Two ranks send into the same slot of rank 0.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def buggy(slots_ptr, words_ptr, out_ptr):
    rank = dl.rank()
    i = tl.arange(0, 128)
    if rank == 0:
        token = dl.wait(words_ptr + 1, 2, "sys", "acquire")
        tl.store(out_ptr + i, tl.load(dl.consume_token(slots_ptr, token) + i))
    else:
        tl.store(dl.symm_at(slots_ptr, 0) + i, rank + 0 * i)  # !store
        dl.notify(words_ptr + rank, 0, signal=1, comm_scope="intra_node")


@triton.jit
def fixed(slots_ptr, words_ptr, out_ptr):
    rank = dl.rank()
    i = tl.arange(0, 128)
    if rank == 0:
        token = dl.wait(words_ptr + 1, 2, "sys", "acquire")
        tl.store(out_ptr + i, tl.load(dl.consume_token(slots_ptr, token) + 128 + i))
    else:
        tl.store(dl.symm_at(slots_ptr, 0) + 128 * rank + i, rank + 0 * i)
        dl.notify(words_ptr + rank, 0, signal=1, comm_scope="intra_node")
