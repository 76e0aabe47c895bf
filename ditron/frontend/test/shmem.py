# RUN: ditron-import %s:kernel --signature "*fp16, *fp16, *i64, i32" | FileCheck %s
# OpenSHMEM: the ending of a name is the scope, `nbi` the non-blocking form; sizes of collectives become bytes.
import triton
import triton.language as tl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def kernel(dest, src, signal, n):
    # CHECK: %[[RANK:.+]] = dist.rank
    me = shmem.my_pe()
    # CHECK: dist.put thread %{{.*}}, %{{.*}}, %{{.*}}, %[[RANK]] : !tile.ptr<f16>, !tile.ptr<f16>
    shmem.putmem(dest, src, 64, me)
    # CHECK: dist.put warp nonblocking
    shmem.putmem_nbi_warp(dest, src, n, me, qp_id=3)
    # CHECK: dist.put block
    shmem.putmem_wg(dest, src, n, me)
    # CHECK: dist.put block nonblocking
    shmem.putmem_rma_nbi_block(dest, src, n, me)
    # CHECK: dist.get warp
    shmem.getmem_wave(dest, src, n, me)
    # CHECK: dist.put_signal block set nonblocking {{.*}} : !tile.ptr<f16>, !tile.ptr<f16>, !tile.ptr<i64>, i64
    shmem.putmem_signal_nbi_block(dest, src, n, signal, 1, shmem.NVSHMEM_SIGNAL_SET, me)
    # CHECK: dist.put_signal thread add
    shmem.putmem_signal(dest, src, n, signal, 1, sig_op=shmem.ROCSHMEM_SIGNAL_ADD, pe=me)
    # CHECK: dist.signal_op add
    shmem.signal_op(signal, n, 1, me)
    # CHECK: %[[SEEN:.+]] = dist.signal_wait_until ge
    seen = shmem.signal_wait_until(signal, shmem.ROCSHMEM_CMP_GE, 5)
    # CHECK: tile.store %{{.*}}, %[[SEEN]]
    tl.store(signal + 1, seen)
    # CHECK: dist.order fence
    shmem.fence()
    # CHECK: dist.order quiet
    shmem.quiet()
    # CHECK: %[[WORLD:.+]] = arith.constant 0 : i32
    # CHECK: dist.team_barrier block %[[WORLD]]
    shmem.barrier_all_block()
    # CHECK: dist.team_barrier warp sync
    shmem.team_sync_warp(n)
    # CHECK: %[[BYTES:.+]] = arith.muli
    # CHECK: dist.collective broadcast block %{{.*}}, %{{.*}}, %{{.*}}, %[[BYTES]]
    shmem.broadcast_block(shmem.NVSHMEMX_TEAM_NODE, dest, src, n, 0)
    # CHECK: dist.collective collect thread
    shmem.fcollectmem(0, dest, src, 32)
    # CHECK: dist.team_translate
    pe = shmem.team_translate_pe(0, me, shmem.NVSHMEMX_TEAM_SAME_MYPE_NODE)
    # CHECK: dist.symm_at
    shmem.putmem_block(shmem.remote_ptr(dest, pe), src, 2, me)
    # CHECK: dist.multicast_ptr
    shmem.remote_mc_ptr(shmem.NVSHMEMX_TEAM_NODE, dest)
