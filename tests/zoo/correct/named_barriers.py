# Warps 0 and 1 hand rows to warps 2 and 3 through shared memory, with one named barrier for "full" and one for "free".
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld, named_barrier_arrive, named_barrier_sync, st, tid


@triton.jit
def kernel(x_ptr, out_ptr):
    thread = tid(0)
    row = dl.allocate_smem(tl.int32, [64])
    for step in range(3):
        if thread < 64:
            if step > 0:
                named_barrier_sync(2, 128)
            dl.smem_store(row, ld(x_ptr + 64 * step + thread), thread)
            named_barrier_arrive(1, 128)
        else:
            named_barrier_sync(1, 128)
            st(out_ptr + 64 * step + thread - 64, dl.smem_load(row, 127 - thread))
            if step < 2:
                named_barrier_arrive(2, 128)
