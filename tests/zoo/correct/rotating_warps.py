# Warps hand one row of shared memory on in a ring of named barriers, each adding one.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import named_barrier_arrive, named_barrier_sync, st, tid


@triton.jit
def kernel(out_ptr):
    lane = tid(0) % 32
    warp = tid(0) // 32
    row = dl.allocate_smem(tl.int32, [32])
    if warp == 0:
        dl.smem_store(row, lane, lane)
        named_barrier_arrive(1, 64)
    if warp == 1:
        named_barrier_sync(1, 64)
        dl.smem_store(row, dl.smem_load(row, lane) + 1, lane)
        named_barrier_arrive(2, 64)
    if warp == 2:
        named_barrier_sync(2, 64)
        dl.smem_store(row, dl.smem_load(row, lane) + 1, lane)
        named_barrier_arrive(3, 64)
    if warp == 3:
        named_barrier_sync(3, 64)
        st(out_ptr + lane, dl.smem_load(row, lane) + 1)
