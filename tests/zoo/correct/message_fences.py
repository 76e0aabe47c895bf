# Relaxed flags between fences: fence, store of the flag; load of the flag, fence.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, fence, ld, st, tid


@triton.jit
def kernel(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)
        __syncthreads()
        if tid(0) == 0:
            fence("acq_rel", "sys")
            st(dl.symm_at(flag_ptr, 1), 1, "sys", "relaxed")
    else:
        if tid(0) == 0:
            while ld(flag_ptr, "sys", "relaxed") != 1:
                pass
            fence("acq_rel", "sys")
        __syncthreads()
        tl.store(out_ptr + i, tl.load(data_ptr + i))
