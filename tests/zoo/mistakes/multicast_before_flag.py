# Rank 0 sends to all ranks at once, and then a flag in the same way: multicast stores are relaxed, nothing orders the two.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, fence, ld, multimem_st_b32, st, tid


@triton.jit
def buggy(box_ptr, flag_ptr, out_ptr):
    t = tid(0)
    if dl.rank() == 0:
        multimem_st_b32(box_ptr + t, t + 1)  # !store
        __syncthreads()
        if t == 0:
            multimem_st_b32(flag_ptr, 1)
    if t == 0:
        while ld(flag_ptr, "sys", "acquire") != 1:
            pass
    __syncthreads()
    st(out_ptr + t, ld(box_ptr + t))  # !load


@triton.jit
def fixed(box_ptr, flag_ptr, out_ptr):
    t = tid(0)
    if dl.rank() == 0:
        multimem_st_b32(box_ptr + t, t + 1)
        fence("acq_rel", "sys")
        __syncthreads()
        if t == 0:
            fence("acq_rel", "sys")
            multimem_st_b32(flag_ptr, 1)
    if t == 0:
        while ld(flag_ptr, "sys", "acquire") != 1:
            pass
    __syncthreads()
    st(out_ptr + t, ld(box_ptr + t))
