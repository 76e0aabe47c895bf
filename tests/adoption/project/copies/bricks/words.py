import triton
import triton.language as tl


@triton.jit
def twice(x, SCALED: tl.constexpr):
    if SCALED:
        x = x * 2
    return x
