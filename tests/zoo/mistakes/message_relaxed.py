# The payload, then a flag, both without an order: neither side says that the flag comes after the payload.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, ld, st, tid


@triton.jit
def buggy(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)  # !store
        __syncthreads()
        if tid(0) == 0:
            st(dl.symm_at(flag_ptr, 1), 1, "sys", "relaxed")
    else:
        if tid(0) == 0:
            while ld(flag_ptr, "sys", "relaxed") != 1:
                pass
        __syncthreads()
        tl.store(out_ptr + i, tl.load(data_ptr + i))  # !load


@triton.jit
def fixed(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)
        __syncthreads()
        if tid(0) == 0:
            st(dl.symm_at(flag_ptr, 1), 1, "sys", "release")
    else:
        if tid(0) == 0:
            while ld(flag_ptr, "sys", "acquire") != 1:
                pass
        __syncthreads()
        tl.store(out_ptr + i, tl.load(data_ptr + i))
