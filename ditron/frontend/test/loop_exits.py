# RUN: ditron-import %s:kernel --signature "*i32, i32" | FileCheck %s
# RUN: ditron-import %s:whiles --signature "*i32, i32" | FileCheck %s --check-prefix=WHILE
# RUN: ditron-import %s:static --signature "*i32, i32" | FileCheck %s --check-prefix=STATIC
# break and continue: only structured control flow, and nothing at all where they are decided at compile time.
import triton
import triton.language as tl


# CHECK-LABEL: func.func @kernel
@triton.jit
def kernel(p, n):
    total = 0
    # A loop with nothing but `continue` stays a for loop with its options.
    # CHECK: %[[FOR:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[T:.*]] = %c0_i32{{.*}}) -> (i32)
    for i in tl.range(n, num_stages=2):
        # CHECK: %[[ODD:.*]] = arith.cmpi eq
        # CHECK: %[[SKIP:.*]] = scf.if %[[ODD]] -> (i1)
        if i % 2 == 1:
            continue
        # CHECK: %[[R:.*]]:3 = scf.if %[[SKIP]] -> (i32, i1, i32)
        # CHECK: scf.yield %[[T]]
        # CHECK: arith.addi %[[T]]
        x = tl.load(p + i)
        total += x
        # CHECK: scf.yield %[[R]]#0
    # CHECK-NEXT: } {tile.num_stages = 2 : i32}
    # A break that is ruled out at compile time leaves no trace.
    # CHECK: scf.for
    # CHECK-NOT: scf.if
    # CHECK-NOT: scf.while
    # CHECK: scf.yield
    for i in range(n):
        if total is None:
            break
        total += i
    # With a break the loop carries whether it ended.
    # CHECK: %[[W:.*]]:4 = scf.while (%[[A:.*]] = {{.*}}, %[[K:.*]] = {{.*}}, %[[IV:.*]] = {{.*}}, %[[STOP:.*]] = %false)
    # CHECK: %[[IN:.*]] = arith.cmpi slt, %[[IV]], %arg1
    # CHECK: %[[GO:.*]] = arith.xori %[[STOP]]
    # CHECK: %[[BOTH:.*]] = arith.andi %[[IN]], %[[GO]]
    # CHECK: scf.condition(%[[BOTH]])
    # CHECK: do
    # CHECK: scf.if {{.*}} -> (i1, i1)
    # CHECK: scf.if {{.*}} -> (i32, i1, i1)
    for k in range(n):
        if k > total:
            break
        total += 1
    # CHECK: tile.store %arg0, %[[W]]#0
    tl.store(p, total)
    # CHECK: tile.store %arg0, %[[W]]#1
    tl.store(p, k)


# WHILE-LABEL: func.func @whiles
@triton.jit
def whiles(p, n):
    i = 0
    # WHILE: scf.while (%[[I:.*]] = {{.*}}, %[[STOP:.*]] = %false
    # After the break nothing of the condition is evaluated any more.
    # WHILE: scf.if %[[STOP]] -> (i1, i32)
    # WHILE: } else {
    # WHILE: tile.load
    # WHILE: scf.condition
    while tl.load(p + i) != 0:
        i += 1
        if i == n:
            break
    # WHILE: scf.while
    # WHILE-NOT: tile.load
    while True:
        i += 1
        if i > 100:
            break
    tl.store(p, i)


# STATIC-LABEL: func.func @static
@triton.jit
def static(p, n):
    # STATIC-NOT: scf.if
    # STATIC-COUNT-3: tile.load
    # STATIC-NOT: tile.load
    total = 0
    for i in tl.static_range(10):
        if i == 1:
            continue
        if i == 4:
            break
        total += tl.load(p + i)
    tl.static_assert(i == 4)
    # STATIC: scf.if
    # STATIC: scf.if
    for j in tl.static_range(2):
        if total == n:
            break
        total += j
    tl.store(p, total)
