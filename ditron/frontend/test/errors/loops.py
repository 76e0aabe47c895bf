# RUN: not ditron-import %s:kernel --signature "*fp32, i32, fp32, constexpr NOTHING=None" 2>&1 | FileCheck %s
# Loops and conditions.
import triton
import triton.language as tl


@triton.jit
def kernel(p, n, f, NOTHING: tl.constexpr):
    acc = 0
    for i in range(n):
        acc += 1.5
        # CHECK: loops.py:[[#@LINE-1]]:9: error: Loop-carried variable acc has initial type int32 but is re-assigned to fp32 in loop
        # CHECK-NEXT:         acc += 1.5
        # CHECK-NEXT:         ^~~
        # CHECK-NEXT: loops.py:[[#@LINE-6]]:5: note: its value before the loop comes from here
        # CHECK-NEXT:     acc = 0
        # CHECK-NEXT:     ^~~
        # CHECK-NEXT: note: a variable that changes in a run-time loop must keep its type
    count = 0
    while count < n:
        count = count + f
        # CHECK: loops.py:[[#@LINE-1]]:9: error: Loop-carried variable count has initial type int32 but is re-assigned to fp32 in loop
        # CHECK-NEXT:         count = count + f
        # CHECK-NEXT:         ^~~~~
        # CHECK-NEXT: loops.py:[[#@LINE-6]]:5: note: its value before the loop comes from here
        # CHECK-NEXT:     count = 0
        # CHECK-NEXT:     ^~~~~
        # CHECK-NEXT: note: a variable that changes in a run-time loop must keep its type
    pair = (n, f)
    for i in range(n):
        pair = n
        # CHECK: loops.py:[[#@LINE-1]]:9: error: Loop-carried variable pair has initial type a tuple of 2 but is re-assigned to run-time int32 in loop
        # CHECK-NEXT:         pair = n
        # CHECK-NEXT:         ^~~~
        # CHECK-NEXT: loops.py:[[#@LINE-6]]:5: note: its value before the loop comes from here
        # CHECK-NEXT:     pair = (n, f)
        # CHECK-NEXT:     ^~~~
        # CHECK-NEXT: note: a variable that changes in a run-time loop must keep its type
    maybe = NOTHING
    for i in range(n):
        maybe = n
        # CHECK: loops.py:[[#@LINE-1]]:9: error: Loop-carried variable maybe has initial type None but is re-assigned to run-time int32 in loop
        # CHECK-NEXT:         maybe = n
        # CHECK-NEXT:         ^~~~~
        # CHECK-NEXT: loops.py:[[#@LINE-6]]:5: note: its value before the loop comes from here
        # CHECK-NEXT:     maybe = NOTHING
        # CHECK-NEXT:     ^~~~~
        # CHECK-NEXT: note: a variable that changes in a run-time loop must keep its type
    for i in range(n):
        return
        # CHECK: loops.py:[[#@LINE-1]]:9: error: Cannot have `return` statements inside `while` or `for` statements in triton
        # CHECK-NEXT:         return
        # CHECK-NEXT:         ^~~~~~
    for i in (1, 2, 3):
    # CHECK: loops.py:[[#@LINE-1]]:14: error: a for loop runs over range, tl.range or tl.static_range, not over a tuple of 3
    # CHECK-NEXT:     for i in (1, 2, 3):
    # CHECK-NEXT:              ^~~~~~~~~
        pass
    for i, j in range(n):
    # CHECK: loops.py:[[#@LINE-1]]:9: error: the variable of a for loop must be a name
    # CHECK-NEXT:     for i, j in range(n):
    # CHECK-NEXT:         ^~~~
        pass
    for i in range(n):
    # CHECK: loops.py:[[#@LINE-1]]:5: error: 'for' with 'else' is not part of the kernel language
    # CHECK-NEXT:     for i in range(n):
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~
        pass
    else:
        pass
    for i in range(f):
    # CHECK: loops.py:[[#@LINE-1]]:20: error: the stop of a range must be a scalar int, but got run-time fp32
    # CHECK-NEXT:     for i in range(f):
    # CHECK-NEXT:                    ^
        pass
    for i in range(0, n, 0):
    # CHECK: loops.py:[[#@LINE-1]]:26: error: the step of a range must not be zero
    # CHECK-NEXT:     for i in range(0, n, 0):
    # CHECK-NEXT:                          ^
        pass
    for i in tl.static_range(n):
    # CHECK: loops.py:[[#@LINE-1]]:30: error: argument 'start' of tl.static_range must be a compile-time int, but got run-time int32
    # CHECK-NEXT:     for i in tl.static_range(n):
    # CHECK-NEXT:                              ^
    # CHECK-NEXT: note: the function is tl.static_range(start: int, stop: int=None, step: int=None)
        pass
    for i in tl.range(n, num_stages=-1):
    # CHECK: loops.py:[[#@LINE-1]]:37: error: num_stages must be between 0 and 1024, but is -1
    # CHECK-NEXT:     for i in tl.range(n, num_stages=-1):
    # CHECK-NEXT:                                     ^~
        pass
    for i in tl.range(0, n, cluster_blocks=3):
    # CHECK: loops.py:[[#@LINE-1]]:44: error: cluster_blocks must be 1 or 2, but is 3
        pass
    while True:
    # CHECK: loops.py:[[#@LINE-1]]:11: error: the condition of a while loop must be a run-time int1, but this one is always true
    # CHECK-NEXT:     while True:
    # CHECK-NEXT:           ^~~~
        pass
    while n > 0:
    # CHECK: loops.py:[[#@LINE-1]]:11: error: 'while' with 'else' is not part of the kernel language
    # CHECK-NEXT:     while n > 0:
    # CHECK-NEXT:           ^~~~~
        pass
    else:
        pass
    if "text":
    # CHECK: loops.py:[[#@LINE-1]]:8: error: `if` conditionals can only accept values of type {bool, int, NoneType}, not objects of type str: this is compile-time str 'text'; a run-time condition is a scalar
    # CHECK-NEXT:     if "text":
    # CHECK-NEXT:        ^~~~~~
        pass
    if tl.arange(0, 4) > 2:
    # CHECK: loops.py:[[#@LINE-1]]:8: error: a condition must be a scalar, but got block int1[4]
    # CHECK-NEXT:     if tl.arange(0, 4) > 2:
    # CHECK-NEXT:        ^~~~~~~~~~~~~~~~~~~
    # CHECK-NEXT: note: use tl.where to choose element by element, or reduce the condition with tl.max
        pass
    if n > 0:
    # CHECK: loops.py:[[#@LINE-1]]:8: error: variable 'v' has different types after the two branches of this if: int32 and fp32
    # CHECK-NEXT:     if n > 0:
    # CHECK-NEXT:        ^~~~~
    # CHECK-NEXT: loops.py:[[#@LINE+6]]:9: note: assigned here
    # CHECK-NEXT:         v = 1
    # CHECK-NEXT:         ^
    # CHECK-NEXT: loops.py:[[#@LINE+5]]:9: note: and here
    # CHECK-NEXT:         v = 1.5
    # CHECK-NEXT:         ^
        v = 1
    else:
        v = 1.5
