# RUN: ditron-import %s:kernel --signature "*fp32, *i8, *bf16" | FileCheck %s
# Reductions and scans, named ones and with functions of the user.
import triton
import triton.language as tl


@triton.jit
def larger(a, ai, b, bi):
    if a > b:
        return a, ai
    else:
        return b, bi


@triton.jit
def is_floating(x):
    return (x + tl.zeros((1,), tl.int1)).dtype.is_floating()


@triton.jit
def least_known(a, b):
    # Of the block nothing but its type is asked.
    is_less = a < b
    if is_floating(a):
        is_less |= b != b
    return tl.where(is_less, a, b)


@triton.jit
def clipped_sum(a, b):
    total = a + b
    return total if total < 100.0 else 100.0


# CHECK-LABEL: func.func @kernel
@triton.jit
def kernel(p, small, half):
    i = tl.arange(0, 16)
    x = tl.load(p + i[:, None] * 16 + i[None, :])
    n = tl.load(small + i)
    h = tl.load(half + i)

    # CHECK: tile.reduce(%[[X:.*]]) axis 1 {
    # CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
    # CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[B]] : f32
    # CHECK-NEXT: tile.yield %[[S]] : f32
    # CHECK-NEXT: } : (tensor<16x16xf32>) -> tensor<16xf32>
    s = tl.sum(x, axis=1)
    # The order is left open unless it is given: as a member of the enumeration, or as a word that a constexpr parameter can carry.
    # CHECK: tile.reduce(%[[X]]) axis 1 ordering inner_tree {
    o = tl.sum(x, axis=1, reduction_ordering=tl.ReductionOrdering.INNER_TREE)
    # CHECK: tile.reduce(%[[X]]) axis 0 ordering unordered {
    q = tl.reduce(x, 0, clipped_sum, reduction_ordering="unordered")
    # CHECK: tile.reduce(%[[X]]) axis 0 {
    q = x.sum(0, reduction_ordering=None)
    # A negative axis counts from the end; keep_dims keeps the rank.
    # CHECK: tile.reduce(%[[X]]) axis 1
    # CHECK: (tensor<16x16xf32>) -> tensor<16xf32>
    # CHECK: tile.reshape {{.*}} : tensor<16xf32> -> tensor<16x1xf32>
    t = x.sum(axis=-1, keep_dims=True)
    # Without an axis all elements are reduced, to a scalar.
    # CHECK: tile.reshape %[[X]] : tensor<16x16xf32> -> tensor<256xf32>
    # CHECK: arith.maxnumf
    # CHECK: (tensor<256xf32>) -> f32
    u = tl.max(x)
    # Narrow integers are summed in 32 bits, bf16 is compared in fp32.
    # CHECK: arith.extsi %{{.*}} : tensor<16xi8> to tensor<16xi32>
    # CHECK: arith.addi
    # CHECK: (tensor<16xi32>) -> i32
    v = tl.sum(n)
    # CHECK: arith.extf %{{.*}} : tensor<16xbf16> to tensor<16xf32>
    # CHECK: arith.minnumf
    w = tl.min(h, axis=0)
    # CHECK: arith.maxsi
    y = tl.max(n, axis=0)
    # The lower index wins a tie.
    # CHECK: tile.arange 0, 16
    # CHECK: tile.reduce(%{{.*}}, %{{.*}}) axis 0 {
    # CHECK: arith.cmpf ogt
    # CHECK: arith.cmpf oeq
    # CHECK: arith.cmpi slt
    # CHECK: (tensor<16xf32>, tensor<16xi32>) -> (f32, i32)
    best, where = tl.max(s, axis=0, return_indices=True)
    # CHECK: tile.reduce(%{{.*}}, %{{.*}}) axis 0 ordering unordered {
    # CHECK: arith.cmpf olt
    # CHECK-NOT: arith.cmpf oeq
    # CHECK: (tensor<16xf32>, tensor<16xi32>) -> (f32, i32)
    am = tl.argmin(s, axis=0, tie_break_left=False)

    # A branch in a combine function becomes a choice.
    # CHECK: tile.reduce(%{{.*}}, %{{.*}}) axis 0 {
    # CHECK-NEXT: ^bb0(%[[L:.*]]: f32, %[[LI:.*]]: i32, %[[R:.*]]: f32, %[[RI:.*]]: i32):
    # CHECK-NEXT: %[[C:.*]] = arith.cmpf ogt, %[[L]], %[[R]] : f32
    # CHECK-NEXT: %[[V:.*]] = arith.select %[[C]], %[[L]], %[[R]] : f32
    # CHECK-NEXT: %[[I:.*]] = arith.select %[[C]], %[[LI]], %[[RI]] : i32
    # CHECK-NEXT: tile.yield %[[V]], %[[I]] : f32, i32
    value, index = tl.reduce((s, i), 0, larger)
    # CHECK: tile.reduce(%{{.*}}) axis 0 {
    # CHECK-NEXT: ^bb0
    # CHECK-NEXT: arith.cmpf olt
    # CHECK-NEXT: arith.cmpf une
    # CHECK-NEXT: arith.ori
    # CHECK-NEXT: arith.select
    # CHECK-NEXT: tile.yield
    known = tl.reduce(s, 0, least_known)
    # CHECK: tile.scan(%{{.*}}) axis 0 {
    # CHECK: arith.addf
    # CHECK-NOT: scf.if
    # CHECK: arith.select
    # CHECK: } {reverse = true} : (tensor<16xf32>) -> tensor<16xf32>
    c = tl.associative_scan(s, 0, clipped_sum, reverse=True)
    # CHECK: tile.scan(%{{.*}}) axis 1 {
    # CHECK: arith.addf
    # CHECK: (tensor<16x16xf32>) -> tensor<16x16xf32>
    d = tl.cumsum(x, axis=1)
    # CHECK: tile.scan
    # CHECK: arith.mulf
    e = tl.cumprod(s, axis=0)
    # CHECK: math.exp
    # CHECK: arith.divf
    f = tl.softmax(s)
    tl.store(p + i, s + c + e + f + value + best + u + w + known)
