# Rank 0 tells rank 1, rank 1 tells rank 2, which reads what rank 0 stored: orders add up along the chain.
import triton
import triton.language as tl
import triton_dist.language as dl


@triton.jit
def kernel(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    rank = dl.rank()
    if rank == 0:
        tl.store(dl.symm_at(data_ptr, 2) + i, i + 1)
    else:
        dl.wait(flag_ptr, 1, "sys", "acquire")
    if rank < 2:
        dl.notify(flag_ptr, rank + 1, signal=1, comm_scope="intra_node")
    else:
        tl.store(out_ptr + i, tl.load(data_ptr + i))
