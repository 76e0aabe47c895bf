# RUN: ditron-import %s:add_kernel --signature "*fp32:16, *fp32:16, *fp32:16, i32:16, constexpr BLOCK=1024" | FileCheck %s
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Adds two vectors."""
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask, other=0)
    tl.store(out_ptr + offsets, x + y, mask=mask)


# CHECK-LABEL: func.func @add_kernel(
# CHECK-SAME: %[[X:[^:]+]]: !tile.ptr<f32> {tile.divisibility = 16 : i64}
# CHECK-SAME: %[[Y:[^:]+]]: !tile.ptr<f32> {tile.divisibility = 16 : i64}
# CHECK-SAME: %[[O:[^:]+]]: !tile.ptr<f32> {tile.divisibility = 16 : i64}
# CHECK-SAME: %[[N:[^:]+]]: i32 {tile.divisibility = 16 : i64}
# CHECK-SAME: attributes {tile.kernel}
# CHECK: %[[PID:.*]] = tile.program_id 0
# CHECK: %[[BASE:.*]] = arith.muli %[[PID]]
# CHECK: %[[RANGE:.*]] = tile.arange 0, 1024 : tensor<1024xi32>
# CHECK: %[[SPLAT:.*]] = tile.splat %[[BASE]] : i32 -> tensor<1024xi32>
# CHECK: %[[OFFSETS:.*]] = arith.addi %[[SPLAT]], %[[RANGE]]
# CHECK: %[[LIMIT:.*]] = tile.splat %[[N]]
# CHECK: %[[MASK:.*]] = arith.cmpi slt, %[[OFFSETS]], %[[LIMIT]]
# CHECK: %[[XP:.*]] = tile.addptr
# CHECK: %[[XV:.*]] = tile.load %[[XP]] mask %[[MASK]]
# CHECK: %[[YV:.*]] = tile.load {{.*}} mask %[[MASK]] other
# CHECK: %[[SUM:.*]] = arith.addf %[[XV]], %[[YV]]
# CHECK: tile.store {{.*}}, %[[SUM]] mask %[[MASK]]
# CHECK: return
