# RUN: not ditron-import %s:kernel --signature "*i32, i32, fp32" 2>&1 | FileCheck %s
# Aggregates: construction, fields, immutability, type identity.
import triton
import triton.language as tl


class Plain:
    x = 1


@triton.aggregate
class State:
    x: tl.tensor
    k: tl.constexpr
    parts: tl.tuple = ()

    @triton.jit
    def set(self, other, v):
        other.x = v
        # CHECK: aggregates.py:[[#@LINE-1]]:9: error: cannot assign to field 'x' on immutable aggregate 'State'
        # CHECK-NEXT:         other.x = v
        # CHECK-NEXT:         ^~~~~~~
        # CHECK-NEXT: aggregates.py:[[#@LINE+37]]:5: note: called from here
        # CHECK-NEXT:     s.set(s, n)
        # CHECK-NEXT:     ^~~~~~~~~~~
        # CHECK-NEXT: note: make a changed copy: tl.aggregate_replace(instance, x=...)
        self.y = v
        # CHECK: aggregates.py:[[#@LINE-1]]:14: error: aggregate 'State' has no field 'y'
        # CHECK-NEXT:         self.y = v
        # CHECK-NEXT:              ^
        return self


@triton.aggregate
class Wrong(Plain):
    # CHECK: aggregates.py:[[#@LINE-1]]:13: error: Aggregates can only inherit from other aggregates, but 'Plain' is none
    # CHECK-NEXT: class Wrong(Plain):
    # CHECK-NEXT:             ^~~~~
    y: tl.constexpr


@triton.aggregate
class Unfinished:
    x: tl.tensor
    y: tl.tensor

    def __init__(self, x):
        self.x = x


@triton.must_use_result("It is a value.")
@triton.jit
def moved(p):
    return p + 1


@triton.jit
def kernel(p, n, f):
    s = State(n, 3)
    s.set(s, n)
    w = Wrong(3)
    s.x = n
    # CHECK: aggregates.py:[[#@LINE-1]]:5: error: cannot assign to field 'x' on immutable aggregate 'State'
    # CHECK-NEXT:     s.x = n
    # CHECK-NEXT:     ^~~
    s.x += 1
    # CHECK: aggregates.py:[[#@LINE-1]]:5: error: cannot assign to field 'x' on immutable aggregate 'State'
    a = State(n)
    # CHECK: aggregates.py:[[#@LINE-1]]:9: error: class 'State' needs a value for field 'k'
    # CHECK-NEXT:     a = State(n)
    # CHECK-NEXT:         ^~~~~~~~
    # CHECK-NEXT: aggregates.py:[[#@LINE-60]]:7: note: the class is declared here
    a = State(n, n)
    # CHECK: aggregates.py:[[#@LINE-1]]:18: error: field 'k' of aggregate 'State' expects tl.constexpr, but got run-time int32
    # CHECK-NEXT:     a = State(n, n)
    # CHECK-NEXT:                  ^
    # CHECK-NEXT: aggregates.py:[[#@LINE-63]]:5: note: the field is declared here
    a = State(n, 3, k=4)
    # CHECK: aggregates.py:[[#@LINE-1]]:21: error: field 'k' of class 'State' is given twice
    a = State(n, 3, z=1)
    # CHECK: aggregates.py:[[#@LINE-1]]:21: error: class 'State' has no field 'z'
    a = State(n, 1, (), 4)
    # CHECK: aggregates.py:[[#@LINE-1]]:25: error: class 'State' has 3 fields, but more values are given
    a = Unfinished(n)
    # CHECK: aggregates.py:[[#@LINE-1]]:9: error: '__init__' of class 'Unfinished' leaves field 'y' without a value
    b = tl.aggregate_replace(s, z=99)
    # CHECK: aggregates.py:[[#@LINE-1]]:33: error: aggregate 'State' has no field 'z'
    b = tl.aggregate_replace(42, x=1)
    # CHECK: aggregates.py:[[#@LINE-1]]:30: error: tl.aggregate_replace expects an aggregate instance, but got compile-time int 42
    t = s.nothing
    # CHECK: aggregates.py:[[#@LINE-1]]:11: error: aggregate 'State' has no attribute 'nothing'
    for i in range(n):
        s = State(n, 4)
        # CHECK: aggregates.py:[[#@LINE-1]]:9: error: Loop-carried variable s has initial type aggregate 'State' whose field 'k' is compile-time int 3 but is re-assigned to one whose field 'k' is compile-time int 4 in loop
    if n > 3:
    # CHECK: aggregates.py:[[#@LINE-1]]:8: error: variable 'c' has different types after the two branches of this if: int32 and fp32
        c = State(n, 3)
    else:
        c = State(f, 3)
    if State:
    # CHECK: aggregates.py:[[#@LINE-1]]:8: error: `if` conditionals can only accept values of type {bool, int, NoneType}, not objects of type {{.*}}: this is class 'State'
        pass
    moved(p)
    # CHECK: aggregates.py:[[#@LINE-1]]:5: error: The result of moved is not being used. It is a value.
    # CHECK-NEXT:     moved(p)
    # CHECK-NEXT:     ^~~~~~~~
