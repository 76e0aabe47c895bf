# Additions, maxima and exchanges of all blocks and ranks on the same words, relaxed: no order, and no race; the results are the same.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def kernel(sum_ptr, most_ptr, out_ptr):
    i = tl.arange(0, 128)
    number = dl.rank() * tl.num_programs(0) + tl.program_id(0)
    tl.atomic_add(dl.symm_at(sum_ptr, 0) + i, number + 0 * i, sem="relaxed", scope="sys")
    tl.atomic_max(dl.symm_at(most_ptr, 0) + i, number + 0 * i, sem="relaxed", scope="sys")
    shmem.barrier_all_block()
    if number == 0:
        tl.store(out_ptr + i, tl.load(sum_ptr + i) + tl.load(most_ptr + i))
