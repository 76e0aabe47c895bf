# Peterson's lock by acquire and release: without sequentially consistent fences both ranks may be given old values and enter. One behind both
# stores is not enough: the stores of `turn` may still come in the other order than the fences.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import fence, ld, st, tid


@triton.jit
def buggy(want_ptr, turn_ptr, sum_ptr):
    me = dl.rank()
    w = dl.symm_at(want_ptr, 0)
    turn = dl.symm_at(turn_ptr, 0)
    s = dl.symm_at(sum_ptr, 0)
    if tid(0) == 0:
        for k in range(3):
            st(w + me, 1, "sys", "release")
            st(turn, 1 - me, "sys", "release")
            while (ld(w + 1 - me, "sys", "acquire") == 1) & (ld(turn, "sys", "acquire") == 1 - me):  # !poll
                pass
            st(s, ld(s, "sys") + 1, "sys")
            st(w + me, 0, "sys", "release")


@triton.jit
def fixed(want_ptr, turn_ptr, sum_ptr):
    me = dl.rank()
    w = dl.symm_at(want_ptr, 0)
    turn = dl.symm_at(turn_ptr, 0)
    s = dl.symm_at(sum_ptr, 0)
    if tid(0) == 0:
        for k in range(3):
            st(w + me, 1, "sys", "release")
            fence("sc", "sys")
            st(turn, 1 - me, "sys", "release")
            fence("sc", "sys")
            while (ld(w + 1 - me, "sys", "acquire") == 1) & (ld(turn, "sys", "acquire") == 1 - me):
                pass
            st(s, ld(s, "sys") + 1, "sys")
            st(w + me, 0, "sys", "release")
