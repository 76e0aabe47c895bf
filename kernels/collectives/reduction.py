"""How contributions of ranks are combined.

Sums are made in fp32 (fp64: in fp64; integers: in 32 or 64 bits, signed or not as they are) in ascending order of the ranks, so that all ranks get the same bits.
"""
import triton
import triton.language as tl

# How contributions are combined; average is a sum that is divided at the end.
SUM = tl.constexpr(0)
MAX = tl.constexpr(1)
MIN = tl.constexpr(2)
AVERAGE = tl.constexpr(3)


@triton.jit
def accumulator_type(element: tl.constexpr):
    if element.primitive_bitwidth == 64:
        return element
    elif element.is_floating():
        return tl.float32
    elif element.is_int_unsigned():
        return tl.uint32
    else:
        return tl.int32


@triton.jit
def combine(total, value, REDUCTION: tl.constexpr):
    """Of two scalars or two tiles."""
    if REDUCTION == MAX:
        return tl.maximum(total, value)
    elif REDUCTION == MIN:
        return tl.minimum(total, value)
    else:
        return total + value


@triton.jit
def finish(total, REDUCTION: tl.constexpr, WORLD: tl.constexpr):
    if REDUCTION == AVERAGE:
        if total.dtype.is_floating():
            return total / WORLD
        else:
            return total // WORLD
    else:
        return total
