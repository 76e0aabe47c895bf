"""Kernels at which the stand-in for the compiler misbehaves (stand_in.py)."""
import triton
import triton.language as tl


@triton.jit
def makes_it_crash(x):
    tl.store(x, 0)


@triton.jit
def meets_a_bug(x):
    tl.store(x, 0)


@triton.jit
def never_ends(x):
    tl.store(x, 0)


@triton.jit
def is_fine(x):
    tl.store(x, 0)
