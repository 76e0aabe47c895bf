# RUN: ditron-import %s:matmul --signature "*fp16:16, *fp16:16, *fp16:16, i32, i32, i32:16, i32:16, i64" | FileCheck %s --check-prefix=MATMUL
# RUN: ditron-import %s:host --signature "tensordesc<bf16[16,32],nan>:16:8, tensordesc<i8[64]>, *i32" | FileCheck %s --check-prefix=HOST
# RUN: ditron-import %s:held --signature "*fp32, *fp32, i32, i64, i1" | FileCheck %s --check-prefix=HELD
# Tensor descriptors: made in the kernel, made by the host, held by variables, tuples, functions, loops and branches.
import triton
import triton.language as tl
import triton_dist.language as dl


# MATMUL-LABEL: func.func @matmul
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_c):
    # MATMUL: %[[STRIDE:.*]] = arith.extsi %arg6 : i32 to i64
    # MATMUL: %[[A:.*]] = tile.make_descriptor %arg0, [%arg3, %arg5], [%[[STRIDE]], %{{.*}}] : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x32xf16>
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [stride_a, 1], [64, 32])
    # MATMUL: tile.make_descriptor %arg1, {{.*}} {padding = #tile.padding<nan>} : !tile.ptr<f16>, i32, i32 -> !tile.desc<64x32xf16>
    b = tl.make_tensor_descriptor(b_ptr, shape=(N, K), strides=(K, 1), block_shape=(64, 32), padding_option="nan")
    # A size may be a number, a stride 64 bits wide.
    # MATMUL: %[[C:.*]] = tile.make_descriptor %arg2, [%arg3, %{{.*}}], [%arg7, %{{.*}}]
    c = tl.make_tensor_descriptor(c_ptr, [M, 1000], [stride_c, 1], [64, 64])
    tl.static_assert(a.dtype == tl.float16 and isinstance(a, tl.tensor_descriptor) and not isinstance(a, tl.tensor))
    tl.static_assert(a.block_shape[1] == 32 and len(a.shape) == 2 and a.strides[1] == 1)
    tl.static_assert(a.block_type == tl.block_type(tl.float16, [64, 32]))
    acc = tl.zeros((64, 64), dtype=tl.float32)
    # MATMUL: scf.for
    for k in range(0, a.shape[1], 32):
        # MATMUL: tile.descriptor_load %[[A]][%{{.*}}, %{{.*}}] : !tile.desc<64x32xf16> -> tensor<64x32xf16>
        x = a.load([tl.program_id(0) * 64, k])
        # MATMUL: tile.descriptor_load {{.*}} {evict = #tile.evict<evict_first>}
        y = tl.load_tensor_descriptor(b, [0, k], eviction_policy="evict_first")
        acc = tl.dot(x, y.T, acc)
    # The value is converted.
    # MATMUL: %[[V:.*]] = arith.truncf %{{.*}} : tensor<64x64xf32> to tensor<64x64xf16>
    # MATMUL: tile.descriptor_store %[[C]][%{{.*}}, %{{.*}}], %[[V]] : !tile.desc<64x64xf16>, tensor<64x64xf16>
    c.store([tl.program_id(0) * 64, 0], acc)


# A descriptor of the host becomes its base, sizes and strides but the last, which is 1.
# HOST-LABEL: func.func @host(
# HOST-SAME: %arg0: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %arg1: i32, %arg2: i32 {tile.divisibility = 8 : i64},
# HOST-SAME: %arg3: i64 {tile.divisibility = 8 : i64}, %arg4: !tile.ptr<i8>, %arg5: i32, %arg6: !tile.ptr<i32>)
@triton.jit
def host(a, b, signal):
    # HOST: %[[A:.*]] = tile.make_descriptor %arg0, [%arg1, %arg2], [%arg3, %{{.*}}] {padding = #tile.padding<nan>} : {{.*}} -> !tile.desc<16x32xbf16>
    # HOST: %[[B:.*]] = tile.make_descriptor %arg4, [%arg5], [%{{.*}}] : {{.*}} -> !tile.desc<64xi8>
    # HOST: %[[TOKEN:.*]] = dist.wait
    # HOST: %[[AFTER:.*]] = dist.consume_token %[[A]], %[[TOKEN]] : !tile.desc<16x32xbf16>
    a = dl.consume_token(a, dl.wait(signal, 1, "gpu", "acquire"))
    # HOST: tile.descriptor_load %[[AFTER]]
    x = a.load([3, -4])
    # HOST: tile.descriptor_store %[[B]]
    tl.store_tensor_descriptor(b, [0], tl.sum(tl.reshape(x.to(tl.float32), [64, 8]), axis=1).to(tl.int8))


@triton.jit
def double(desc, row):
    desc.store([row, 0], desc.load([row, 0]) * 2)
    return desc


# HELD-LABEL: func.func @held
@triton.jit
def held(p, q, n, stride, flag):
    # HELD: %[[P:.*]] = tile.make_descriptor %arg0
    # HELD: %[[Q:.*]] = tile.make_descriptor %arg1
    a = tl.make_tensor_descriptor(p, [n, 64], [stride, 1], [8, 64])
    pair = (a, tl.make_tensor_descriptor(q, [n, 64], [stride, 1], [8, 64]))
    # HELD: tile.descriptor_load %[[Q]]
    # HELD: tile.descriptor_store %[[Q]]
    b = double(pair[1], 8)
    # A loop that exchanges two descriptors carries their parts.
    # HELD: scf.for {{.*}} iter_args({{.*}}) -> (!tile.ptr<f32>, i32, i32, i64, !tile.ptr<f32>, i32, i32, i64)
    for i in range(n):
        # HELD: tile.make_descriptor
        # HELD: tile.descriptor_store
        a.store([i, 0], tl.zeros((8, 64), tl.float32))
        a, b = b, a
    # A branch chooses between parts; one that is the same on both sides stays.
    # HELD: scf.if %arg4 -> (!tile.ptr<f32>
    if flag:
        c = pair[0]
        d = pair[0]
    else:
        c = pair[1]
        d = pair[0]
    # HELD: %[[C:.*]] = tile.make_descriptor
    # HELD: tile.descriptor_load %[[C]]
    x = c.load([0, 0])
    # HELD: tile.descriptor_store %[[P]]
    d.store([0, 0], x)
