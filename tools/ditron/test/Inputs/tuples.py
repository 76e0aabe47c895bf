from typing import NamedTuple

import triton
import triton.language as tl


class Pair(NamedTuple):
    values: tl.tensor
    scale: tl.tensor


@triton.jit
def nested(out, t, BLOCKS: tl.constexpr):
    i = tl.arange(0, BLOCKS[0])
    (a, n), b = t
    tl.store(out + i, tl.load(a + i) * n + tl.load(b + i) + BLOCKS[1])


@triton.jit
def named(out, p: Pair):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(p.values + i) * p.scale)
    tl.store(p[0] + i, 0.0)
