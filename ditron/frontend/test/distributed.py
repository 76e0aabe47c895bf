# RUN: ditron-import %s:kernel --signature "*i64, *u32, *fp32, i32, *i32" --num-warps 8 | FileCheck %s
# Ranks, signals and the thread level.
import ditron
import ditron.language as dl
import triton.language as tl
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import (__ballot_sync, __shfl_down_sync_i32, __shfl_sync_i32,
                                                       __shfl_up_sync_i32, __shfl_xor_sync_i32, __syncthreads,
                                                       atomic_add, atomic_cas, ffs, laneid, ld, ld_acquire, num_threads,
                                                       num_warps, st, threads_per_warp, tid)


# CHECK-LABEL: func.func @kernel
@ditron.jit
def kernel(sig, word, p, n, q):
    # CHECK: %[[R:.*]] = dist.rank
    r = dl.rank()
    # CHECK: dist.num_ranks
    w = dl.num_ranks()
    # CHECK: dist.rank
    libshmem_device.my_pe()
    # CHECK: dist.symm_at %arg2, %[[R]] : !tile.ptr<f32>
    peer = dl.symm_at(p, r)
    # CHECK: dist.wait eq gpu acquire %arg0, %arg3, %{{.*}} : !tile.ptr<i64>, i64
    token = dl.wait(sig, n, "gpu", "acquire")
    # The value to wait for takes the type of the words.
    # CHECK: %[[V:.*]] = arith.extsi %arg3 : i32 to i64
    # CHECK: dist.wait ge sys acquire %arg0, %{{.*}}, %[[V]]
    token = dl.wait(sig, 1, "sys", "acquire", waitValue=n, compare="ge")
    # CHECK: dist.wait ne gpu relaxed %arg1, %{{.*}} : !tile.ptr<i32>, i32
    dl.wait(word, 1, scope="gpu", semantic="relaxed", compare="ne")
    # CHECK: dist.consume_token %arg2, %{{.*}} : !tile.ptr<f32>
    p = dl.consume_token(p, token)
    # CHECK: dist.notify set inter_node %arg0, %[[R]], %{{.*}} : !tile.ptr<i64>, i64
    dl.notify(sig, r)
    # CHECK: dist.notify add gpu
    dl.notify(sig, r, signal=2, sig_op="add", comm_scope="gpu")

    # CHECK: %[[T:.*]] = dist.thread_id 0
    t = tid(0)
    # CHECK: dist.lane_id
    lane = laneid()
    # CHECK-NOT: dist
    WARPS: tl.constexpr = num_warps()
    tl.static_assert(WARPS == 8 and num_threads() == 256 and threads_per_warp() == 32)
    # CHECK: dist.sync_threads
    __syncthreads()
    # CHECK: dist.ld relaxed gpu %arg0 : !tile.ptr<i64> -> i64
    ld(sig)
    # CHECK: dist.ld acquire sys %arg0
    ld(sig, scope="sys", semantic="acquire")
    # CHECK: dist.ld acquire gpu %arg1
    ld_acquire(word)
    # CHECK: arith.sitofp %[[T]] : i32 to f32
    # CHECK: dist.st relaxed gpu %{{.*}} : !tile.ptr<f32>, f32
    st(p, t)
    # CHECK: dist.st release sys %arg0
    st(sig, 1, scope="sys", semantic="release")
    # CHECK: dist.thread_atomic_rmw add release sys %arg0
    atomic_add(sig, 1, scope="sys", semantic="release")
    # CHECK: dist.thread_atomic_rmw fadd relaxed gpu
    atomic_add(p, 1.0)
    # CHECK: dist.thread_atomic_cas acq_rel block %arg4
    atomic_cas(q, 0, 1, scope="cta", semantic="acq_rel")
    # CHECK: dist.shuffle idx %c-1_i32{{.*}}, %[[T]]
    a = __shfl_sync_i32(0xFFFFFFFF, t, 0)
    # CHECK: dist.shuffle up
    a = __shfl_up_sync_i32(0xFFFFFFFF, a, 1)
    # CHECK: dist.shuffle down
    a = __shfl_down_sync_i32(0xFFFFFFFF, a, 1)
    # CHECK: dist.shuffle xor
    a = __shfl_xor_sync_i32(0xFFFFFFFF, a, 16)
    # CHECK: %[[BITS:.*]] = dist.ballot
    bits = __ballot_sync(0xFFFFFFFF, a > 0)
    # CHECK: %[[COUNT:.*]] = math.cttz %[[BITS]]
    # CHECK: %[[POS:.*]] = arith.addi %[[COUNT]]
    # CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[BITS]]
    # CHECK: arith.select %[[NONE]], %{{.*}}, %[[POS]]
    first = ffs(bits)
    # CHECK: scf.for %{{.*}} = %[[T]] to %arg3 step %c256_i32
    for i in range(t, n, num_threads()):
        st(q + i, first)
