"""Kernels that do not compile, each for another reason; and functions that are none."""
import numba
import triton
import triton.language as tl


@triton.jit
def refused_by_name(x):
    tl.store(x, tl.load(x).to(tl.float8e4b8).to(tl.float32))


@triton.jit
def fits_no_type(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.static_assert(BLOCK == 48, "a block of 48")
    tl.store(x + i, tl.load(x + i))


@triton.jit
def needs_a_function(x, combine: tl.constexpr):
    tl.store(x, combine(tl.load(x), 1))


@numba.jit
def of_another_language(x):
    return x + 1
