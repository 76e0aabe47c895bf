# RUN: ditron-import %s:kernel --signature "*i32"
# Aggregates and named tuples in functions that are executed at compile time.
from typing import NamedTuple
import triton
import triton.language as tl

class Shape(NamedTuple):
    a: int
    b: int = 3

@triton.aggregate
class Cfg:
    n: tl.constexpr
    shape: tl.tuple

    @triton.constexpr_function
    def area(self):
        return self.n * self.shape[0]

    @triton.constexpr_function
    def table(self):
        d = {}
        for i in range(self.n):
            d[i] = i * i
        return sum([d[k] for k in d])

@triton.constexpr_function
def first(s):
    return s[0] + s.b

@triton.constexpr_function
def num(c):
    return c.n + 1

@triton.constexpr_function
def make(n):
    return Shape(n, n + 1)

@triton.jit
def kernel(p):
    s: tl.constexpr = Shape(4)
    tl.static_assert(first(s) == 7)
    c = Cfg(5, (2, 3))
    tl.static_assert(c.area() == 10)
    tl.static_assert(num(c) == 6)
    tl.static_assert(make(3).b == 4)
    tl.static_assert(c.table() == 30)
