# RUN: ditron-import %s:kernel --signature "*i32, i32" | FileCheck %s
# RUN: ditron-import %s:named --signature "*i32, i32" | FileCheck %s --check-prefix=NAMED
# Aggregates are their fields: constructors, methods, inheritance, copies, loops and branches. Named tuples are tuples.
import collections
from typing import NamedTuple

import triton
import triton.language as tl
from triton.language import core
from triton.language.core import _aggregate as aggregate

DEFAULT = tl.constexpr(2)


@triton.aggregate
class Pair:
    """Documentation is allowed."""
    first: tl.tensor
    second: tl.tensor
    scale: tl.constexpr = DEFAULT
    LIMIT = 10

    @triton.jit
    def swapped(self):
        return Pair(self.second, self.first, self.scale)

    # The form of Triton-distributed: a method changes its own copy and gives it back.
    @triton.jit
    def bump(self, by=1):
        for i in range(3):
            self.first = self.first + by
        if self.first > self.LIMIT:
            self.first -= 10
        return self

    def __getitem__(self, i):
        if i == 0:
            return self.first
        assert i == 1
        return self.second

    @triton.jit
    def __call__(self, x):
        return self.first * x

    @staticmethod
    def make(x):
        return Pair(x, second=x + 1)

    @classmethod
    def zero(cls, x):
        return cls(x - x, x - x, tl.constexpr(1))


@core._aggregate
class Triple(Pair):
    third: "tl.tensor" = 5

    def __init__(self, x, n):
        self.first = x
        self.second = x * 2
        m = n * 2
        if m > 2:
            self.scale = tl.constexpr(m)
        else:
            self.scale = 1
        self.third = x * 3


@triton.aggregate
class Quad(Triple):
    fourth: tl.constexpr

    def __init__(self, x):
        super().__init__(x, 2)
        self.fourth = self.scale + 1


@triton.aggregate
class Tagged(Pair):
    tag: tl.constexpr

    def __init__(self, x):
        super().__init__(x, second=x)
        self.tag = "tag"


@aggregate
class Holder:
    pair: "Pair"
    shape: tl.tuple
    kind: tl.constexpr

    @triton.constexpr_function
    def area(self):
        total = 1
        for size in self.shape:
            total *= size
        while total > 32:
            total //= 2
            if total == 1:
                break
        return total

    @triton.jit
    def get(self):
        return self.pair


@triton.jit
def total(pair):
    return (pair.first + pair.second) * pair.scale


# CHECK-LABEL: func.func @kernel
@triton.jit
def kernel(p, n):
    # CHECK: %[[SECOND:.*]] = arith.addi %arg1, %c1_i32
    a = Pair.make(n)
    tl.static_assert(a.scale == 2)
    tl.static_assert(Pair.LIMIT == 10)
    # The fields that change go through the loop one by one; `scale` does not exist at run time.
    # CHECK: %[[A:.*]]:2 = scf.for {{.*}} iter_args(%[[X:.*]] = %arg1, %[[Y:.*]] = %[[SECOND]]) -> (i32, i32)
    for i in range(n):
        # CHECK-NEXT: scf.yield %[[Y]], %[[X]]
        a = a.swapped()
    # CHECK: %[[B:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[A]]#1, %{{.*}} = %[[A]]#0)
    # CHECK: %[[IF:.*]] = scf.if
    # CHECK-NEXT: arith.constant 10
    # CHECK-NEXT: arith.subi %[[B]]#0
    b = a.swapped().bump(by=2)
    # CHECK: %[[SUM:.*]] = arith.addi %[[IF]], %[[B]]#1
    # CHECK: %[[TWO:.*]] = arith.constant 2
    # CHECK: %[[TOTAL:.*]] = arith.muli %[[SUM]], %[[TWO]]
    # CHECK: tile.store %arg0, %[[TOTAL]]
    tl.store(p, total(b))
    t = Triple(n, 3)
    tl.static_assert(t.scale == 6)
    tl.static_assert(Triple(n, 1).scale == 1)
    tl.static_assert(isinstance(t, Pair))
    tl.static_assert(Quad(n).fourth == 5)
    tl.static_assert(Tagged(n).tag == "tag" and Tagged(n).scale == 2)
    tl.static_assert(not isinstance(a, Triple))
    # CHECK: %[[THIRD:.*]] = arith.addi %arg1, %c5_i32
    u = tl.aggregate_replace(t, third=n + 5)
    # CHECK: tile.store {{.*}}, %[[THIRD]]
    tl.store(p + 1, u.third)
    # CHECK: arith.addi %[[IF]], %[[B]]#1
    tl.store(p + 2, b[0] + b[1])
    # CHECK: arith.muli %[[IF]], %arg1
    tl.store(p + 3, b(n))
    # Which of two is known at run time only: each field is chosen.
    # CHECK: %[[C:.*]]:2 = scf.if {{.*}} -> (i32, i32)
    # CHECK: scf.yield %[[IF]], %[[B]]#1
    # CHECK: scf.yield %[[A]]#0, %[[A]]#1
    if n > 3:
        c = b
    else:
        c = a
    h = Holder(c, (4, 8), "kind")
    tl.static_assert(h.kind == "kind")
    BLOCK: tl.constexpr = h.area()
    # CHECK: tile.arange 0, 32
    tl.store(p + tl.arange(0, BLOCK), 0)
    # CHECK: tile.store %arg0, %[[C]]#1
    tl.store(p, h.get().second)
    # CHECK: tile.store %arg0, %[[C]]#0
    tl.store(p, Holder.get(h).first)
    z = Pair.zero(n)
    tl.static_assert(z.scale == 1)


class Shape(NamedTuple):
    rows: int
    cols: int = 4

    @triton.jit
    def size(self):
        return self.rows * self.cols


class Box(Shape):
    pass


Point = collections.namedtuple("Point", ["x", "y"])
Spaced = collections.namedtuple("Spaced", "a b")


# NAMED-LABEL: func.func @named
@triton.jit
def named(p, n):
    s: tl.constexpr = Shape(2)
    tl.static_assert(s.cols == 4)
    tl.static_assert(s[1] == 4)
    tl.static_assert(len(s) == 2)
    tl.static_assert(s.size() == 8)
    tl.static_assert(s == (2, 4))
    tl.static_assert(s + (1, ) == (2, 4, 1))
    tl.static_assert(s._fields[0] == "rows")
    tl.static_assert(isinstance(s, tuple))
    tl.static_assert(s._replace(cols=8) == (2, 8))
    r, c = Point(y=n, x=n + 1)
    # NAMED: %[[X:.*]] = arith.addi %arg1, %c1_i32
    # NAMED: arith.subi %[[X]], %arg1
    tl.store(p, r - c)
    q = Spaced(n, n)
    # NAMED: scf.for {{.*}} iter_args(%[[A:.*]] = %arg1, %[[B:.*]] = %arg1) -> (i32, i32)
    for i in range(n):
        # NAMED: %[[NEXT:.*]] = arith.addi %[[A]], %{{.*}}
        # NAMED: scf.yield %[[B]], %[[NEXT]]
        q = Spaced(q.b, q.a + 1)
    tl.store(p, q.a)
