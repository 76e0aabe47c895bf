# RUN: not ditron-import %s:kernel --signature "*fp32, i32" 2>&1 | FileCheck %s
# Statements that are not part of the language, and wrong assignments.
import triton
import triton.language as tl


@triton.jit
def kernel(p, n):
    a = b = 1
    # CHECK: statements.py:[[#@LINE-1]]:9: error: a kernel assigns to one target at a time; write one statement for each
    # CHECK-NEXT:     a = b = 1
    # CHECK-NEXT:         ^
    p[0] = 1
    # CHECK: statements.py:[[#@LINE-1]]:5: error: cannot assign to an element in a kernel; only to names and tuples of names
    # CHECK-NEXT:     p[0] = 1
    # CHECK-NEXT:     ^~~~
    p.x = 1
    # CHECK: statements.py:[[#@LINE-1]]:5: error: cannot assign to an attribute of run-time pointer<fp32>; only to names and tuples of names
    # CHECK-NEXT:     p.x = 1
    # CHECK-NEXT:     ^~~
    p[0] += 1
    # CHECK: statements.py:[[#@LINE-1]]:5: error: the target of an augmented assignment must be a name
    # CHECK-NEXT:     p[0] += 1
    # CHECK-NEXT:     ^~~~
    (p[0]): int = 1
    # CHECK: statements.py:[[#@LINE-1]]:6: error: only names can have annotations in a kernel
    # CHECK-NEXT:     (p[0]): int = 1
    # CHECK-NEXT:      ^~~~
    x, y = n
    # CHECK: statements.py:[[#@LINE-1]]:5: error: cannot unpack non-iterable value: run-time int32 into 2 names
    # CHECK-NEXT:     x, y = n
    # CHECK-NEXT:     ^~~~
    x, y = n, n, n
    # CHECK: statements.py:[[#@LINE-1]]:5: error: too many values to unpack (expected 2, got 3)
    # CHECK-NEXT:     x, y = n, n, n
    # CHECK-NEXT:     ^~~~
    text = "text"
    # CHECK: statements.py:[[#@LINE-1]]:5: error: a string has no run-time form; declare 'text' as constexpr
    # CHECK-NEXT:     text = "text"
    # CHECK-NEXT:     ^~~~
    # CHECK-NEXT: note: write text: tl.constexpr = ...
    K: tl.constexpr = 3
    K: tl.constexpr = 4
    # CHECK: statements.py:[[#@LINE-1]]:5: error: 'K' is already defined. constexpr cannot be reassigned
    # CHECK-NEXT:     K: tl.constexpr = 4
    # CHECK-NEXT:     ^
    # CHECK-NEXT: statements.py:[[#@LINE-5]]:5: note: declared here
    # CHECK-NEXT:     K: tl.constexpr = 3
    # CHECK-NEXT:     ^
    R: tl.constexpr = n
    if n > 0:
        K = 5
        # CHECK: statements.py:[[#@LINE-1]]:9: error: constexpr 'K' cannot be re-assigned inside of a run-time if or loop
        # CHECK-NEXT:         K = 5
        # CHECK-NEXT:         ^
        # CHECK-NEXT: statements.py:[[#@LINE-14]]:5: note: declared here
        # CHECK-NEXT:     K: tl.constexpr = 3
        # CHECK-NEXT:     ^
    def nested():
    # CHECK: statements.py:[[#@LINE-1]]:5: error: nested function definitions are not allowed inside a @triton.jit kernel
    # CHECK-NEXT:     def nested():
    # CHECK-NEXT:     ^~~~~~~~~~~~~
        pass
    nested()
    # CHECK-NOT: 'nested' is not defined
    del x
    # CHECK: statements.py:[[#@LINE-1]]:5: error: 'del' is not part of the kernel language
    # CHECK-NEXT:     del x
    # CHECK-NEXT:     ^~~~~
    raise ValueError("reached")
    # CHECK: statements.py:[[#@LINE-1]]:5: error: 'raise' is reached in a kernel; it is allowed only in branches that are never taken
    # CHECK-NEXT:     raise ValueError("reached")
    # CHECK-NEXT:     ^~~~~~~~~~~~~~~~~~~~~~~~~~~
    try:
    # CHECK: statements.py:[[#@LINE-1]]:5: error: 'try' is not part of the kernel language
    # CHECK-NEXT:     try:
    # CHECK-NEXT:     ^~~~
        pass
    finally:
        pass
    import os
    # CHECK: statements.py:[[#@LINE-1]]:5: error: imports belong at module level, not into a kernel
    # CHECK-NEXT:     import os
    # CHECK-NEXT:     ^~~~~~~~~
    global G
    # CHECK: statements.py:[[#@LINE-1]]:5: error: 'global' is not part of the kernel language
    # CHECK-NEXT:     global G
    # CHECK-NEXT:     ^~~~~~~~
    with n:
    # CHECK: statements.py:[[#@LINE-1]]:10: error: 'with' takes a context of the kernel language, but got run-time int32
    # CHECK-NEXT:     with n:
    # CHECK-NEXT:          ^
        pass
    break
    # CHECK: statements.py:[[#@LINE-1]]:5: error: 'break' outside of a loop
    # CHECK-NEXT:     break
    # CHECK-NEXT:     ^~~~~
    continue
