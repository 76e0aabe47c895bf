# RUN: ditron-import %s:kernel --signature "*i32:16, (i32:16, 3), (*i32, (4, i32)), (x=i64, y=fp16), constexpr T=(8, 'a')" | FileCheck %s
# RUN: not ditron-import %s:kernel --signature "*i32, (i32, 3), (*i32, i32, i32), (x=i64, y=fp16), constexpr T=(8, 'a')" 2>&1 | FileCheck %s --check-prefix=ERROR
# Tuples as parameters: every run-time element is a parameter of the function; an annotation with a class names the fields.
from typing import NamedTuple

import triton
import triton.language as tl


class Inner(NamedTuple):
    a: tl.constexpr
    b: tl.tensor


class Outer(NamedTuple):
    ptr: tl.tensor
    inner: Inner

    @triton.jit
    def get(self):
        return self.inner.b * self.inner.a


# CHECK: func.func @kernel(%arg0: {{.*}}, %arg1: i32 {tile.divisibility = 16 : i64}, %arg2: !tile.ptr<i32>, %arg3: i32, %arg4: i64, %arg5: f16)
@triton.jit
def kernel(out, t, o: Outer, s, T: tl.constexpr):
    # ERROR: tuple_parameters.py:[[#@LINE-1]]:20: error: class 'Outer' has 2 fields, but the argument is a tuple of 3
    # ERROR-NEXT: def kernel(out, t, o: Outer, s, T: tl.constexpr):
    # ERROR-NEXT:                    ^~~~~~~~
    tl.static_assert(t[1] == 3)
    tl.static_assert(T[1] == "a")
    # CHECK: %[[GET:.*]] = arith.muli %arg3
    # CHECK: %[[SUM:.*]] = arith.addi %arg1, %[[GET]]
    # CHECK: tile.store %arg0, %[[SUM]]
    tl.store(out, t[0] + o.get())
    # CHECK: tile.store %arg2
    tl.store(o.ptr, s.x)
