# RUN: ditron-import %s:kernel --signature "*fp32, *bf16" | FileCheck %s
# RUN: ditron-import %s:deep --signature "*fp32" | FileCheck %s --check-prefix DEEP
# DEEP: func.func @deep
# Python that runs while compiling: constexpr functions, the module level, default arguments.
import itertools
import math
import os

import triton
import triton.language as tl


@triton.constexpr_function
def log2(n):
    result = 0
    while n > 1:
        n //= 2
        result += 1
    return result


@tl.constexpr_function
def collections(n):
    table = {"a": 1, "b": [1, 2, 3]}
    table["c"] = sum(x * y for x in range(n) for y in range(x) if y % 2 == 1)
    names = [f"{key}:{value!r}" for key, value in table.items()]
    first, *rest = names
    rest.append(table.get("missing", "none"))
    names[0] = first.upper().replace(":", "=")
    del_me = names.pop()
    return ",".join([names[0]] + rest + [del_me[-1], str(names.index("b:[1, 2, 3]"))])


@triton.constexpr_function
def control(limit):
    found = []
    for i in range(2, limit):
        for j in range(2, i):
            if i % j == 0:
                break
        else:
            found.append(i)
    total = 0
    for index, prime in enumerate(found):
        if prime == 5:
            continue
        total += index * prime
    return tuple(found), total, [p for p in reversed(found)][:2], found[::-1] == sorted(found, reverse=True)


@triton.constexpr_function
def fibonacci(n, memo=None):
    def inner(k):
        return k if k < 2 else inner(k - 1) + inner(k - 2)
    return inner(n)


@triton.constexpr_function
def kind_of(dtype):
    if dtype.is_floating():
        return f"float{dtype.primitive_bitwidth}"
    return "int" if dtype == tl.int32 else dtype.name


@triton.constexpr_function
def element_of(pointer):
    return pointer.dtype.element_ty


@triton.constexpr_function
def tile(shape, factor=2, *more, scale=1, **names):
    return [s // factor * scale for s in shape] + list(more) + [names["last"]]


def helper(x):
    return x * 3


RATIO = tl.constexpr(math.log2(math.e) * 2)
SIZES = [16, 32]
SIZES.append(64)
for i in range(2):
    SIZES.append(i)
LAST = tl.constexpr(SIZES[-1] + len(SIZES))
A, B = (1, 2)
BOTH = tl.constexpr(A + B)
POWER = tl.constexpr(triton.next_power_of_2(100) + triton.cdiv(7, 2))
PAIRS = tl.constexpr(tuple((x, y) for x, y in itertools.product([1, 2], repeat=2) if x != y))
BY_NAME = {"small": 8, **{"large": 128}}
LARGE = tl.constexpr(BY_NAME["large"])
DEBUG = False
if DEBUG:
    LEVEL = tl.constexpr(1)
else:
    LEVEL = tl.constexpr(2)
COUNT = 1
COUNT += 4
COUNTED = tl.constexpr(COUNT)
if __name__ == "__main__":
    COUNT = os.environ["NOT_READ"]


@triton.jit
def kernel(p, q, N: tl.constexpr = helper(7), dtype: tl.constexpr = tl.float16):
    # CHECK: static_print: 10 A=1,b:[1, 2, 3],c:5,none,5,1
    tl.static_print(log2(1024), collections(4))
    # CHECK-NEXT: static_print: ((2, 3, 5, 7, 11), 68, (11, 7), True) 55
    tl.static_print(control(12), fibonacci(10))
    # CHECK-NEXT: static_print: float16 int uint8 bf16
    tl.static_print(kind_of(dtype), kind_of(tl.int32), kind_of(tl.uint8), element_of(q))
    # CHECK-NEXT: static_print: (32, 16, 5, 9)
    tl.static_print(tile((64, 32), 2, 5, last=9))
    # CHECK-NEXT: static_print: 2.8853900817779268 6 3 132 ((1, 2), (2, 1)) 128 2 5 21
    tl.static_print(RATIO, LAST, BOTH, POWER, PAIRS, LARGE, LEVEL, COUNTED, N)
    SIZE: tl.constexpr = log2(256)
    # CHECK: tile.arange 0, 8
    tl.store(p + tl.arange(0, SIZE), 1.0)


@triton.constexpr_function
def nested(n):
    inner = ()
    chain = last = []
    for _ in range(n):
        inner = (inner,)
        longer = []
        last.append(longer)
        last = longer
    circle = [chain]
    last.append(circle)
    other = [circle]
    return len(inner) + len(str(circle)) // 1000 + (1 if circle == other else 0)


@triton.jit
def deep(p):
    # Deep and circular values neither overflow the stack nor leak.
    tl.static_assert(nested(100000) == 1)
