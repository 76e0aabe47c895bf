# All threads store, one thread releases at once: its release orders its own stores, not those of the other threads.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, st, tid


@triton.jit
def buggy(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        tl.store(dl.symm_at(data_ptr, 1) + i, i + 1)  # !store
        if tid(0) == 0:
            st(dl.symm_at(flag_ptr, 1), 1, "sys", "release")  # !release
    else:
        token = dl.wait(flag_ptr, 1, "sys", "acquire")
        data_ptr = dl.consume_token(data_ptr, token)
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
        token = dl.wait(flag_ptr, 1, "sys", "acquire")
        data_ptr = dl.consume_token(data_ptr, token)
        tl.store(out_ptr + i, tl.load(data_ptr + i))
