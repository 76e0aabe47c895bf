# RUN: ditron-import %s:kernel --signature "*i32, i32, constexpr None, i64, u32" | FileCheck %s
# Rules of names, tuples, calls and conditions (spec 1.2-1.10) that are decided at compile time, as static assertions; what
# is left for run time is checked in the IR.
import triton
import triton.language as tl

@triton.jit
def anchor(v):
    pass

@triton.jit
def forward(x):
    return x

@triton.jit
def double(x):
    return x * 2

@triton.jit
def apply_all(x, fns: tl.constexpr):
    for i in tl.static_range(len(fns)):
        x = fns[i](x)
    return x

@triton.jit
def varargs(first, *rest):
    tl.static_assert(len(rest) == 2)
    return forward(rest[0]) + first

@triton.jit
def pass_on(*args):
    return varargs(*args)

@triton.jit
def signbit(x):
    if x < 0:
        return 1
    else:
        return 0

@triton.jit
def tuple_return(x):
    if x < 0:
        return 1, x
    else:
        return 0, x

@triton.jit
def constant():
    return tl.constexpr(42)

@triton.jit
def nothing():
    return

@triton.jit
def recursive(x, N: tl.constexpr):
    if N == 0:
        return x
    return recursive(x + 1, N - 1)

@triton.jit
def poison(x):
    if x > 3:
        return x

@triton.jit
def kernel(p, n, q, N64, U):
    # tuples
    t: tl.constexpr = (1, 2, (3, 4))
    tl.static_assert(t == (1, 2, (3, 4)))
    tl.static_assert(t != (1, 2))
    tl.static_assert(t + (5, ) == (1, 2, (3, 4), 5))
    tl.static_assert((1, 2) * 2 == (1, 2, 1, 2))
    tl.static_assert(2 * (1, 2) == (1, 2, 1, 2))
    tl.static_assert(t[-1][0] == 3)
    tl.static_assert(t[::-1] == ((3, 4), 2, 1))
    tl.static_assert(len(t[1:]) == 2)
    a, (b, c) = n, (n + 1, 3)
    [d, e] = b, c
    x = (n, 1)[:-1] + (1, )
    y: tl.constexpr
    xx, y = 0, 0
    tl.static_assert(xx.dtype == tl.int32)
    tl.static_assert(y == 0)
    z: tl.constexpr
    if (z := 10) != 10:
        tl.static_assert(False)
    tl.static_assert(z == 10)
    vals: tl.constexpr = [x for x in (10, 20, 30, 40) if x >= 30]
    tl.static_assert(len(vals) == 2)
    sums: tl.constexpr = [a + b + c for a, (b, c) in ((1, (2, 3)), (4, (5, 6)))]
    tl.static_assert(sums[1] == 15)
    # CHECK: %[[D1:.*]] = arith.muli %arg1
    # CHECK: %[[D2:.*]] = arith.muli %[[D1]]
    # CHECK: tile.store %arg0, %[[D2]]
    tl.store(p, apply_all(n, (double, forward, double)))
    tl.store(p, pass_on(n, 1, n))
    s: tl.constexpr = signbit(-1)
    tl.static_assert(s == 1)
    tmp = -1
    tl.static_assert(signbit(tmp).type == tl.int32)
    bb: tl.constexpr = tuple_return(-1)
    tl.static_assert(bb[0] == 1 and bb[1] == -1)
    # The numbers become run-time values where they differ; the argument is the same on both sides.
    # CHECK: arith.cmpi slt, %c-1_i32
    # CHECK: %[[CC:.*]] = scf.if
    cc = tuple_return(tmp)
    tl.static_assert(cc[0].dtype == tl.int32)
    ca: tl.constexpr = constant()
    tl.static_assert(ca == 42)
    tl.static_assert(nothing() is None)
    # CHECK-COUNT-5: arith.addi
    # CHECK-NOT: arith.addi
    tl.store(p, recursive(n, 5))
    # A path without a value gives any value.
    # CHECK: %[[POISON:.*]] = scf.if {{.*}} -> (i32)
    # CHECK: tile.store %arg0, %[[POISON]]
    tl.store(p, poison(n))
    # pointer truthiness
    # CHECK: %[[ADDRESS:.*]] = tile.ptr_to_int %arg0
    # CHECK: %[[ISSET:.*]] = arith.cmpi ne, %[[ADDRESS]]
    # CHECK: scf.if %[[ISSET]]
    if p:
        tl.store(p, 3)
    if q:
        tl.store(q, undefined_name)
    v = n if n > 3 else 7
    w = n if q is None else undefined_thing
    tl.static_assert((True and None) is None)
    tl.static_assert((0 or 5) == 5)
    tl.static_assert(y.type == tl.constexpr_type(0))
    tl.static_assert(isinstance(z.type, tl.constexpr_type))
    tl.static_assert(z.type != tl.constexpr_type(11))
    tl.static_assert(cc.type == tl.tuple_type([tl.int32, tl.int32]))
    tl.static_assert(t.type == (1, 2, (3, 4)).type)
    tl.static_assert(((3, 4) or (5, 6)) == (3, 4))
    tl.static_assert(((1, 2) and (3, 4) and (5, 6)) == (5, 6))
    tl.static_assert((() or (5, 6)) == (5, 6))
    tl.static_assert((() and tl.program_id(0)) == ())
    ok = n > 3 and n < 10 or n == 12
    ok2 = True and n > 3
    tl.static_assert(not (q is not None and q.dtype.element_ty == tl.float16))
    for i in range(N64):
        tl.static_assert(i.dtype == tl.int64)
    for i in range(U, 10):
        tl.static_assert(i.dtype == tl.uint32)
    # CHECK: scf.for %[[IV:.*]] = %{{.*}} to %arg1
    # CHECK: %[[BACK:.*]] = arith.subi %[[IV]]
    # CHECK: %[[DOWN:.*]] = arith.subi %arg1, %[[BACK]]
    # CHECK: tile.store %arg0, %[[DOWN]]
    for i in range(n, 0, -2):
        tl.store(p, i)
    for i in tl.range(0, n, disable_licm=True):
        tl.store(p, i)
    # The variable of a loop keeps its last value.
    # CHECK: %[[LAST:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args
    # CHECK: scf.yield %[[I]]
    # CHECK: tile.store %arg0, %[[LAST]]
    tl.store(p, i)
    i2 = 0
    while tl.condition(i2 < n, disable_licm=True):
        i2 += 1
    while (k := tl.load(p)) < 3:
        tl.store(p, 1)
    big = 3000000000
    tl.static_assert(big.dtype == tl.uint32)
    tl.static_assert(f"{t[0]}-{'a'}" == "1-a")
    assert n > 3, "message"
    tl.static_assert(min(1, 2, -3) == -3)
    def_ = tl.arange(0, 4)[None, :]
    xs = (n, n)
    tl.static_assert(len(xs) == 2)
    eq = xs == (n, n)
