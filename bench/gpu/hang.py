"""Kernels that never end by themselves, for `prove waits`."""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld, tid


@triton.jit
def wait_forever(flag):
    dl.wait(flag + 2, 1, "sys", "acquire", waitValue=3, compare="ge")


@triton.jit
def spin_forever(flag):
    if tid(0) == 0:
        while ld(flag + 1, scope="sys", semantic="acquire") != 1:
            pass
