# RUN: ditron-import %s:kernel --signature "*fp32, *i8, *i32" | FileCheck %s
# Functions that move elements around, sorting, functions of the user on elements.
import triton
import triton.language as tl


@triton.jit
def collatz(x, limit):
    steps = 0
    while x != 1 and steps < limit:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    return steps, x


@triton.jit
def guarded(p, x):
    if x > 0:
        tl.atomic_add(p, 1)
    return x * 2


@triton.jit
def both(x0, x1):
    return x0 + 1, x1 + 1, x0 > 0, x1 > 0


@triton.jit
def counted(a, p, b, q):
    tl.atomic_add(p, 1)
    return a + b, q


# CHECK-LABEL: func.func @kernel
@triton.jit
def kernel(p, small, words):
    i = tl.arange(0, 64)
    x = tl.load(p + i)
    n = tl.load(small + i)
    w = tl.load(words + i)

    # CHECK: %[[J:.*]] = tile.join %[[X:.*]], %{{.*}} : tensor<64xf32> -> tensor<64x2xf32>
    j = tl.join(x, 1)
    # CHECK: tile.split %[[J]] : tensor<64x2xf32> -> tensor<64xf32>
    a, b = j.split()
    # CHECK: tile.join %{{.*}}, %{{.*}} : i32 -> tensor<2xi32>
    # CHECK-NEXT: tile.split %{{.*}} : tensor<2xi32> -> i32
    c, d = tl.split(tl.interleave(tl.program_id(0), 5))
    # CHECK: tile.join
    # CHECK-NEXT: tile.reshape %{{.*}} : tensor<64x2xf32> -> tensor<128xf32>
    woven = tl.interleave(a, b)
    # CHECK: tile.join
    # CHECK-NEXT: tile.trans %{{.*}} [1, 0] : tensor<64x2xf32> -> tensor<2x64xf32>
    # CHECK-NEXT: tile.reshape %{{.*}} : tensor<2x64xf32> -> tensor<128xf32>
    behind = tl.cat(a, b, can_reorder=True)
    # CHECK: tile.trans %{{.*}} [0, 2, 1] : tensor<8x8x2xf32> -> tensor<8x2x8xf32>
    # CHECK-NEXT: tile.reshape %{{.*}} : tensor<8x2x8xf32> -> tensor<8x16xf32>
    wide = tl.cat(a.reshape(8, 8), b.reshape(8, 8), dim=-1)
    # CHECK: tile.gather %{{.*}}[%{{.*}}] axis 1 {tile.exchange_mask = 15 : i32} : tensor<8x16xf32>, tensor<8x16xi32> -> tensor<8x16xf32>
    back = tl.flip(wide, 1)
    # CHECK: tile.gather %{{.*}}[%{{.*}}] axis 0 : tensor<8x16xf32>, tensor<4x16xi8> -> tensor<4x16xf32>
    few = back.gather(n.reshape(4, 16), 0)
    # A signed number of 8 bits is not a bin above 127.
    # CHECK: arith.extsi %{{.*}} : tensor<64xi8> to tensor<64xi32>
    # CHECK: tile.histogram %{{.*}} mask %{{.*}} : tensor<64xi32> mask tensor<64xi1> -> tensor<256xi32>
    counts = tl.histogram(n, 256, mask=x > 0)

    # CHECK: tile.bitonic %{{.*}} stages 1 to 6 descending : tensor<64xi32>
    s = tl.sort(w, descending=True)
    # Blocks of four, up and down in turns; four are kept of each eight, in 32 bits.
    # CHECK: tile.bitonic %{{.*}} stages 1 to 2 alternating : tensor<64xi8>
    # CHECK: arith.extsi
    # CHECK-COUNT-3: tile.bitonic %{{.*}} stages 2 to 2 alternating : tensor
    # CHECK: tile.split
    # CHECK: arith.maxsi
    # CHECK: tile.bitonic %{{.*}} stages 2 to 2 descending : tensor<4xi32>
    t = tl.topk(n, 4)
    # Without signs; and floats that are bytes to the IR.
    # CHECK: tile.bitonic %{{.*}} stages 1 to 6 ascending {key = #tile.key<unsigned>} : tensor<64xi8>
    tl.device_print("u", tl.sort(n.to(tl.uint8, bitcast=True)))
    # CHECK: tile.bitonic %{{.*}} stages 6 to 6 ascending {key = #tile.key<sign_magnitude>} : tensor<64xi8>
    tl.device_print("m", tl.bitonic_merge(n.to(tl.float8e4b15, bitcast=True)).to(tl.float16))
    tl.static_assert(t.dtype == tl.int32 and t.shape[0] == 4)

    # CHECK: %[[M:.*]]:2 = tile.map_elementwise(%{{.*}}, %{{.*}}) pack 1 {
    # CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: i32):
    # CHECK: scf.while
    # CHECK: tile.yield %{{.*}}, %{{.*}} : i32, i32
    # CHECK-NEXT: } : (tensor<64xi32>, tensor<64xi32>) -> (tensor<64xi32>, tensor<64xi32>)
    steps, last = tl.map_elementwise(collatz, w, 20)
    # CHECK: tile.map_elementwise(%{{.*}}) pack 2 {
    # CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: i32):
    # CHECK: tile.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : i32, i32, i1, i1
    # CHECK-NEXT: } : (tensor<64xi32>) -> (tensor<64xi32>, tensor<64xi1>)
    next, positive = tl.map_elementwise(both, w, pack=2)
    # CHECK: tile.map_elementwise
    # CHECK: scf.if
    # CHECK: tile.atomic_rmw
    doubled = tl.map_elementwise(guarded, words + i, w)
    # CHECK: tile.reduce(%{{.*}}, %{{.*}}) axis 0 {
    # CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: !tile.ptr<i32>, %{{.*}}: i32, %{{.*}}: !tile.ptr<i32>):
    # CHECK: tile.atomic_rmw
    total, _ = tl.reduce((w, words + i), 0, counted)

    tl.store(p + tl.arange(0, 128), woven + behind)
    tl.store(p + tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :], few)
    tl.store(words + tl.arange(0, 256), counts)
    tl.store(words + i, s + steps + last + next + positive + doubled + total + c + d)
    tl.store(words + tl.arange(0, 4), t)
