"""Kernels with every function of libshmem_device, for shmem.test."""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.kernels.nvidia.common_ops import (barrier_all_intra_node_atomic_cas_block, barrier_all_intra_node_non_atomic,
                                                   barrier_on_this_grid)
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.language.extra.language_extra import (multimem_ld_reduce_p_v4, multimem_ld_reduce_v4, multimem_st_b32,
                                                       multimem_st_b64, multimem_st_p_b32, multimem_st_v2, multimem_st_v4,
                                                       tid)


@triton.jit
def put_block(dest_ptr, src_ptr, bytes):
    shmem.putmem_block(dest_ptr, src_ptr, bytes, 1)


@triton.jit
def put_signal(dest_ptr, src_ptr, signal_ptr, bytes):
    shmem.putmem_signal_block(dest_ptr, src_ptr, bytes, signal_ptr, 3, shmem.NVSHMEM_SIGNAL_ADD, 1)


@triton.jit
def wait(signal_ptr, value):
    shmem.signal_wait_until(signal_ptr, shmem.NVSHMEM_CMP_GE, value)


@triton.jit
def copies(dest_ptr, src_ptr, bytes, pe):
    shmem.putmem_nbi_block(dest_ptr, src_ptr, bytes, pe)
    shmem.putmem_warp(dest_ptr, src_ptr, bytes, pe)
    shmem.putmem_nbi_wave(dest_ptr, src_ptr, bytes, pe)
    shmem.getmem_wg(dest_ptr, src_ptr, bytes, pe)
    shmem.getmem_nbi_warp(dest_ptr, src_ptr, bytes, pe)
    if tid(0) == 0:
        shmem.putmem(dest_ptr, src_ptr, bytes, pe)
        shmem.getmem_nbi(dest_ptr, src_ptr, bytes, pe)
        shmem.putmem_rma(dest_ptr, src_ptr, bytes, pe)
    shmem.fence()
    shmem.quiet()
    shmem.quiet_pe()


@triton.jit
def signals(dest_ptr, src_ptr, cells_ptr, signal_ptr, bytes, pe):
    shmem.putmem_signal_nbi_block(dest_ptr, src_ptr, bytes, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, pe)
    shmem.putmem_signal_warp(dest_ptr, src_ptr, bytes, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_SET, pe)
    shmem.putmem_signal_rma_nbi_block(dest_ptr, src_ptr, bytes, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_ADD, pe)
    if tid(0) == 0:
        shmem.putmem_signal_nbi(dest_ptr, src_ptr, bytes, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_ADD, pe)
        shmem.ulong_put_signal(signal_ptr, signal_ptr, 4, signal_ptr, 1, shmem.NVSHMEM_SIGNAL_ADD, pe)
        shmem.signal_op(signal_ptr, 5, shmem.NVSHMEM_SIGNAL_SET, pe)
        shmem.int_p(cells_ptr, 6, pe)
    for compare in tl.static_range(6):
        shmem.signal_wait_until(signal_ptr, compare, 3)
    shmem.uint64_wait_until_equals(signal_ptr, 3)


@triton.jit
def teams(out_ptr, dest_ptr, src_ptr, team, n):
    shmem.barrier_all_block()
    shmem.barrier_all_warp()
    shmem.barrier_block(team)
    shmem.sync_all_block()
    shmem.team_sync_warp(team)
    if tid(0) == 0:
        shmem.barrier_all()
        shmem.sync_all()
        shmem.barrier(team)
        shmem.broadcast(team, dest_ptr, src_ptr, n, 0)
    shmem.broadcastmem_block(team, dest_ptr, src_ptr, n, 0)
    shmem.fcollect_warp(team, dest_ptr, src_ptr, n)
    shmem.fcollectmem_block(team, dest_ptr, src_ptr, n)
    tl.store(out_ptr, shmem.team_my_pe(team))
    tl.store(out_ptr + 1, shmem.team_n_pes(team))
    tl.store(out_ptr + 2, shmem.team_translate_pe(team, n, shmem.NVSHMEMX_TEAM_NODE))
    tl.store(shmem.remote_ptr(out_ptr, 1), shmem.my_pe() + shmem.n_pes())


@triton.jit
def multicast(f32_ptr, half_ptr, words_ptr, out_ptr):
    thread = tid(0)
    f32_mc = shmem.remote_mc_ptr(shmem.NVSHMEMX_TEAM_NODE, f32_ptr)
    half_mc = shmem.remote_mc_ptr(shmem.NVSHMEMX_TEAM_NODE, half_ptr)
    a, b, c, d = multimem_ld_reduce_v4(half_mc + thread * 8, acc_dtype=tl.float32)
    multimem_st_v4(half_mc + thread * 8, a, b, c, d)
    e, f, g, h = multimem_ld_reduce_p_v4(f32_mc + thread * 4, thread < 7)
    multimem_st_v4(f32_mc + thread * 4, e, f, g, h)
    multimem_st_v2(f32_mc + thread * 4, e, f)
    multimem_st_p_b32(f32_mc + thread, e, thread == 3)
    multimem_st_b32(half_mc + thread * 2, a)
    multimem_st_b64(words_ptr + thread, 7)


@triton.jit
def grid(barrier_ptr, flags_ptr, target):
    barrier_on_this_grid(barrier_ptr, True)
    barrier_all_intra_node_atomic_cas_block(dl.rank(), dl.rank(), dl.num_ranks(), flags_ptr)
    barrier_all_intra_node_non_atomic(dl.rank(), dl.rank(), dl.num_ranks(), flags_ptr, target)
