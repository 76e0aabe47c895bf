# The flag goes from one block to another with the scope of a block.
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import __syncthreads, ld, st, tid


@triton.jit
def buggy(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if tl.program_id(0) == 0:
        tl.store(data_ptr + i, i + 1)  # !or store
        __syncthreads()
        if tid(0) == 0:
            st(flag_ptr, 1, "cta", "release")  # !store
    else:
        if tid(0) == 0:
            while ld(flag_ptr, "gpu", "acquire") != 1:  # !load
                pass
        __syncthreads()
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !or load


@triton.jit
def fixed(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if tl.program_id(0) == 0:
        tl.store(data_ptr + i, i + 1)
        __syncthreads()
        if tid(0) == 0:
            st(flag_ptr, 1, "gpu", "release")
    else:
        if tid(0) == 0:
            while ld(flag_ptr, "gpu", "acquire") != 1:
                pass
        __syncthreads()
        tl.store(out_ptr + i, tl.load(data_ptr + i))
