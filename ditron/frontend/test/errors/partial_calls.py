# RUN: not ditron-import %s:kernel --signature "*fp32" 2>&1 | FileCheck %s
# A function of the file that stops at what is not known has not done what it is called for: what depends on that is not known either.
import math

import triton
import triton.language as tl


def fill(values):
    try:
        length = math.dist([0], [1])
    except Exception:
        length = -1
    values.append(length)


def filled():
    values = []
    fill(values)
    return len(values)


COUNT = tl.constexpr(filled())


@triton.jit
def kernel(x_ptr):
    # CHECK: partial_calls.py:[[#@LINE+1]]:21: error: the value of 'COUNT' depends on `math.dist([0], [1])`, which is not known at compile time
    tl.static_print(COUNT)
