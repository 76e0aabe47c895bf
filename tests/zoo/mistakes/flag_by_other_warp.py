# The first warp stores the payload, the second one raises the flag, and nothing puts the one behind the other.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads, laneid, st, tid, warp_idx


@triton.jit
def buggy(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        if warp_idx() == 0:
            st(dl.symm_at(data_ptr, 1) + laneid(), laneid() + 1, "sys")  # !store
        if tid(0) == 32:
            st(dl.symm_at(flag_ptr, 1), 1, "sys", "release")
    else:
        token = dl.wait(flag_ptr, 1, "sys", "acquire")
        data_ptr = dl.consume_token(data_ptr, token)
        tl.store(out_ptr + i, tl.load(data_ptr + i, mask=i < 32, other=0))  # !load


@triton.jit
def fixed(data_ptr, flag_ptr, out_ptr):
    i = tl.arange(0, 128)
    if dl.rank() == 0:
        if warp_idx() == 0:
            st(dl.symm_at(data_ptr, 1) + laneid(), laneid() + 1, "sys")
        __syncthreads()
        if tid(0) == 32:
            st(dl.symm_at(flag_ptr, 1), 1, "sys", "release")
    else:
        token = dl.wait(flag_ptr, 1, "sys", "acquire")
        data_ptr = dl.consume_token(data_ptr, token)
        tl.store(out_ptr + i, tl.load(data_ptr + i, mask=i < 32, other=0))
