"""Rings of buffers that tensor copies fill and drain, and tensor maps that kernels make themselves.

A ring has `num_stages` buffers. Each has two mbarriers: `ready` completes a phase when the buffer has been filled, `empty` when it
has been released. A PipelineState says which stage comes next, and the parity of the phase that its mbarriers are in: producers
wait for the phase before (the release of the round before), which a fresh mbarrier counts as complete.
"""
import triton
import triton.language as tl
from triton_dist.language import SharedMemoryDesc, get_smem_shared_address_u32, smem_get_ptr, smem_index
from triton_dist.language.extra.language_extra import __syncthreads, tid
from triton_dist.language.extra.cuda.tma_language import (
    bar_warp_sync, cp_async_bulk_commit_group, cp_async_bulk_wait_group, cvta_global_to_generic_u64,
    fence_proxy_tensormap_acquire, mbarrier_arrive, mbarrier_arrive_expect_tx, mbarrier_init, mbarrier_invalidate,
    mbarrier_wait_parity, tensormap_cp_fenceproxy, tensormap_replace_box_dim, tensormap_replace_element_stride,
    tensormap_replace_elemtype, tensormap_replace_fill_mode, tensormap_replace_global_address,
    tensormap_replace_global_dim, tensormap_replace_global_stride, tensormap_replace_interleave_layout,
    tensormap_replace_rank, tensormap_replace_swizzle_mode, tensormap_smem_zero_first_warp, tma_load_2d, tma_store_2d)


@triton.aggregate
class PipelineState:
    """A stage of a ring, and the parity of its phase."""
    index: tl.tensor
    phase: tl.tensor
    num_stages: tl.constexpr

    @triton.jit
    def advance(self):
        """The state of the next stage; past the last one the parity changes."""
        following = self.index + 1
        wraps = following == self.num_stages
        self.phase = tl.where(wraps, self.phase ^ 1, self.phase)
        self.index = tl.where(wraps, 0, following)
        return self


@triton.aggregate
class TmaPipeline:
    """The buffers and mbarriers of a ring. Waits are for all threads that go on afterwards, the rest for one thread."""
    ready_bars: SharedMemoryDesc
    empty_bars: SharedMemoryDesc
    bufs: SharedMemoryDesc
    num_stages: tl.constexpr

    @triton.jit
    def init_barriers(self, count):
        """One thread; a block barrier follows. `count` arrivals make a buffer ready, one makes it empty."""
        for stage in tl.static_range(self.num_stages):
            mbarrier_init(smem_get_ptr(self.ready_bars, [stage]), count)
            mbarrier_init(smem_get_ptr(self.empty_bars, [stage]), 1)

    @triton.jit
    def invalidate_barriers(self):
        """One thread, when nobody uses the ring any more."""
        for stage in tl.static_range(self.num_stages):
            mbarrier_invalidate(smem_get_ptr(self.ready_bars, [stage]))
            mbarrier_invalidate(smem_get_ptr(self.empty_bars, [stage]))

    @triton.jit
    def producer_acquire(self, state):
        """Waits until the stage may be filled."""
        mbarrier_wait_parity(smem_get_ptr(self.empty_bars, [state.index]), state.phase ^ 1)

    @triton.jit
    def producer_tma_load(self, state, tmap, coord0, coord1, tile_bytes):
        """Announces the bytes of a box and starts its copy into the stage."""
        ready = smem_get_ptr(self.ready_bars, [state.index])
        mbarrier_arrive_expect_tx(ready, tile_bytes)
        tma_load_2d(tmap, smem_get_ptr(smem_index(self.bufs, state.index)), ready, coord0, coord1)

    @triton.jit
    def consumer_wait(self, state):
        """Waits until the stage has been filled."""
        mbarrier_wait_parity(smem_get_ptr(self.ready_bars, [state.index]), state.phase)

    @triton.jit
    def consumer_tma_store(self, state, tmap, coord0, coord1):
        """Starts copying the stage to a box, as a group of its own."""
        tma_store_2d(tmap, smem_get_ptr(smem_index(self.bufs, state.index)), coord0, coord1)
        cp_async_bulk_commit_group()

    @triton.jit
    def consumer_release(self, state):
        """The stage may be filled again."""
        mbarrier_arrive(smem_get_ptr(self.empty_bars, [state.index]))


@triton.jit
def store_and_wait(tmap_gen, buf_smem, coord0, coord1, pending: tl.constexpr):
    """One thread copies a buffer to a box and waits until all but `pending` of its groups have read their buffers."""
    tma_store_2d(tmap_gen, smem_get_ptr(buf_smem), coord0, coord1)
    cp_async_bulk_commit_group()
    cp_async_bulk_wait_group(pending, read=True)


@triton.jit
def publish(place, tmap_global_ptr):
    """The first warp copies a tensor map from shared to global memory; then the whole block may use it."""
    map_address = tmap_global_ptr.to(tl.uint64)
    __syncthreads()
    if tid(0) < 32:
        tensormap_cp_fenceproxy(map_address, place)
        fence_proxy_tensormap_acquire(map_address)
    __syncthreads()
    return cvta_global_to_generic_u64(map_address)


@triton.jit
def create_tmap_2d(smem_tmap, tmap_global_ptr, data_ptr, N, M, stride_bytes, BN, BM, elemtype: tl.constexpr,
                   swizzle: tl.constexpr):
    place = get_smem_shared_address_u32(smem_tmap)
    tensormap_smem_zero_first_warp(place)
    if tid(0) < 32:
        bar_warp_sync()
    if tid(0) == 0:
        tensormap_replace_global_address(place, data_ptr)
        tensormap_replace_rank(place, 1)
        tensormap_replace_global_dim(place, 0, N)
        tensormap_replace_global_dim(place, 1, M)
        tensormap_replace_global_stride(place, 0, stride_bytes)
        tensormap_replace_box_dim(place, 0, BN)
        tensormap_replace_box_dim(place, 1, BM)
        tensormap_replace_element_stride(place, 0, 1)
        tensormap_replace_element_stride(place, 1, 1)
        tensormap_replace_elemtype(place, elemtype)
        tensormap_replace_interleave_layout(place, 0)
        tensormap_replace_swizzle_mode(place, swizzle)
        tensormap_replace_fill_mode(place, 0)
    return publish(place, tmap_global_ptr)


@triton.jit
def tmap_update_address(smem_tmap, tmap_global_ptr, new_data_ptr):
    place = get_smem_shared_address_u32(smem_tmap)
    if tid(0) == 0:
        tensormap_replace_global_address(place, new_data_ptr)
    return publish(place, tmap_global_ptr)
