"""The package's own name leads to the copy; a switch is one for the function that it is handed to."""
import triton
import triton.language as tl
from bricks.words import twice
from elsewhere import timed


@timed
@triton.jit
def build(x, n, FP32_SCALE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, twice(tl.load(x + i, i < n), FP32_SCALE), i < n)


@triton.jit
def leaves_a_gap(x, KIND: tl.constexpr):
    if KIND == 7 and KIND > 8:
        size: tl.constexpr = 16
    i = tl.arange(0, size)
    tl.store(x + i, i)
