# RUN: ditron-import %s:branches --signature "*i32, i32, fp32, constexpr STATIC=True" | FileCheck %s --check-prefix=IF
# RUN: ditron-import %s:early_return --signature "*i32, i32" | FileCheck %s --check-prefix=RET
# RUN: ditron-import %s:for_loops --signature "*i32, i32, i64, u32" | FileCheck %s --check-prefix=FOR
# RUN: ditron-import %s:specialised --signature "*i32, 1" | FileCheck %s --check-prefix=SPEC
# RUN: ditron-import %s:while_loops --signature "*i32, i32" | FileCheck %s --check-prefix=WHILE
# RUN: ditron-import %s:endless --signature "*i32, i32" | FileCheck %s --check-prefix=ENDLESS
# Structured control flow out of if, for, while and early returns.
import triton
import triton.language as tl


# IF-LABEL: func.func @branches
@triton.jit
def branches(p, n, f, STATIC: tl.constexpr):
    # Only the taken side of a compile-time branch is visited, and its names live on.
    # IF-NOT: scf.if
    if STATIC:
        a = n
    else:
        undefined_function(raise_me)
    if not STATIC and undefined_name:
        pass
    # A value that differs becomes a result; one that is the same on both sides does not.
    # IF: %[[C:.*]] = arith.cmpi sgt
    # IF: %[[R:.*]]:2 = scf.if %[[C]] -> (i32, i32) {
    # IF: scf.yield %{{.*}}, %c1_i32{{.*}} : i32, i32
    # IF: } else {
    # IF: scf.yield %arg1, %{{.*}} : i32, i32
    if n > 3:
        a = n + 1
        b = 1
        only_here = 3
    else:
        b = 2
    # IF: arith.addi %[[R]]#0, %[[R]]#1
    c = a + b
    # elif is an if in the else branch.
    # IF: scf.if
    # IF: } else {
    # IF: scf.if
    if n == 1:
        c = 1
    elif n == 2:
        c = 2
    # Without results and else branch.
    # IF: scf.if %{{.*}} {
    # IF-NEXT: tile.store
    # IF-NEXT: }
    # IF-NOT: else
    if f > 1.0:
        tl.store(p, c)
    # Conditional expressions: compile-time and run-time.
    # IF: scf.if %{{.*}} -> (f32)
    v = f if f > 0 else -f
    w = n if STATIC else undefined_name
    # An int is a condition by not being zero; so is a pointer.
    # IF: arith.cmpi ne, %arg1
    # IF: tile.ptr_to_int %arg0
    # IF: arith.cmpi ne
    if n:
        tl.store(p, w)
    if p:
        tl.store(p, 0)


# RET-LABEL: func.func @early_return
@triton.jit
def early_return(p, n):
    pid = tl.program_id(0)
    # RET: scf.if
    # RET-NEXT: } else {
    if pid >= n:
        return
    # Only one branch returns: the rest of the function follows the other one.
    # RET: arith.addi
    # RET: scf.if
    # RET: tile.store
    # RET-NEXT: } else {
    # RET: tile.store
    value = pid + 1
    if value == 7:
        tl.store(p, 7)
        return
    tl.store(p + pid, value)
    return
    this_is_never_visited()


# FOR-LABEL: func.func @for_loops
@triton.jit
def for_loops(p, n, wide, unsigned):
    # Carried: what lives before the loop and is assigned in it, and nothing else.
    # FOR: %[[R:.*]]:2 = scf.for %[[I:.*]] = %{{.*}} to %arg1 step %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (i32, f32) : i32
    total = 0
    scale = 1.0
    fixed = 5
    for i in range(n):
        total += i * fixed
        scale *= 2.0
        local = i
    tl.store(p, total)
    # The type of the loop variable is the common type of the bounds.
    # FOR: scf.for {{.*}} : i64
    for long in range(0, wide):
        tl.store(p + long, 1)
    # FOR: scf.for {{.*}} : i32
    for u in range(unsigned):
        tl.store(p + u, 1)
    # A negative compile-time step counts down from the start.
    # FOR: scf.for %[[J:.*]] = %[[STOP:.*]] to %[[START:.*]] step
    # FOR-NEXT: %[[D:.*]] = arith.subi %[[J]], %[[STOP]]
    # FOR-NEXT: %[[V:.*]] = arith.subi %[[START]], %[[D]]
    for j in range(n, 0, -1):
        tl.store(p + j, 2)
    # The options of tl.range.
    # FOR: } {tile.cluster_blocks = 2 : i32, tile.disallow_acc_multi_buffer, tile.flatten, tile.loop_unroll_factor = 2 : i32, tile.num_stages = 3 : i32, tile.warp_specialize}
    for k in tl.range(0, n, 2, num_stages=3, loop_unroll_factor=2, flatten=True, warp_specialize=True,
                      disallow_acc_multi_buffer=True, cluster_blocks=2):
        tl.store(p + k, 3)
    # tl.static_range is unrolled; its variable is a compile-time int.
    # FOR-NOT: scf.for
    # FOR: tile.arange 0, 4
    # FOR: tile.arange 0, 8
    # FOR-NOT: tile.arange
    for s in tl.static_range(2, 4):
        SIZE: tl.constexpr = 2**s
        tl.store(p + tl.arange(0, SIZE), s)
    # The loop variable keeps its last value; tuples are carried element by element.
    # FOR: %[[T:.*]]:3 = scf.for {{.*}} -> (i32, i32, i32)
    # FOR: arith.addi %[[T]]#0, %[[T]]#1
    # FOR: arith.addi %{{.*}}, %[[T]]#2
    pair = (n, 0)
    for last in range(n):
        pair = (pair[1], pair[0] + 1)
    tl.store(p, pair[0] + pair[1] + last)


# WHILE-LABEL: func.func @while_loops
@triton.jit
def while_loops(p, n):
    # WHILE: %[[R:.*]] = scf.while (%[[A:.*]] = %{{.*}}) : (i32) -> i32 {
    # WHILE: %[[C:.*]] = arith.cmpi slt, %[[A]], %arg1
    # WHILE: scf.condition(%[[C]]) %[[A]] : i32
    # WHILE: } do {
    # WHILE: arith.muli
    # WHILE: scf.yield
    count = 1
    while count < n:
        count = count * 2
    tl.store(p, count)
    # A loop that waits carries nothing.
    # WHILE: scf.while : () -> () {
    # WHILE: tile.load %arg0 {isVolatile = true}
    # WHILE: scf.condition
    # WHILE: } do {
    # WHILE-NEXT: scf.yield
    while tl.load(p, volatile=True) != 0:
        pass


# An argument that is specialised to 1 may change in a loop like any other.
# SPEC-LABEL: func.func @specialised
@triton.jit
def specialised(p, n):
    # SPEC: scf.for {{.*}} iter_args(%{{.*}} = %c1_i32{{.*}}) -> (i32)
    for i in range(10):
        n = n * 2
    tl.store(p, n)


# A loop that has no effect is kept, since it may never end; one that has an effect needs no help.
# ENDLESS-LABEL: func.func @endless
@triton.jit
def endless(p, n):
    # ENDLESS: scf.while
    # ENDLESS: } do {
    # ENDLESS: tile.keep_loop
    i = n
    while i > 0:
        i = tl.maximum(i, 1)
    # ENDLESS: scf.while
    # ENDLESS-NOT: tile.keep_loop
    # ENDLESS: return
    while tl.load(p) > 0:
        tl.store(p, n)
