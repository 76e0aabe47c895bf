"""Kernels of the thread level for leaves.test and assemble tests: one group of leaves each."""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra.cuda.language_extra import (
    __syncthreads, arrive_inc, atomic_add, atomic_add_per_warp, atomic_cas, fence, globaltimer, ld, ld_vector, load_v2_b64,
    load_v4_u32, membar, num_threads, pack, pack_b32_v2, red_release, smid, st, st_v2_u32, st_v4_b32, st_vector, tid, unpack,
    wait_eq)
from triton_dist.language.extra.cuda.tma_language import (
    bar_warp_sync, cp_async_bulk_commit_group, cp_async_bulk_global_to_shared, cp_async_bulk_shared_to_global,
    cp_async_bulk_wait_group, cvta_generic_to_shared, elect_one_sync, fence_async_shared, fence_proxy_async, mbarrier_arrive,
    mbarrier_arrive_expect_tx, mbarrier_expect_transaction, mbarrier_init, mbarrier_invalidate, mbarrier_try_wait_parity,
    mbarrier_wait_parity, named_barrier_arrive, named_barrier_sync, prefetch_l2, prefetch_tensor_2d_l2, prefetch_tensormap, tma_load_2d,
    tma_load_2d_pred, tma_store_2d, warp_idx)
from triton_dist.language.tma import PipelineState, TmaPipeline, create_tmap_2d, store_and_wait, tmap_update_address


@triton.jit
def wide(x_ptr, out_ptr, half_ptr):
    thread = tid(0)
    a, b, c, d = load_v4_u32(x_ptr + 4 * thread)
    e, f = load_v2_b64(x_ptr + 4 * thread)
    st_v4_b32(out_ptr + 8 * thread, d, c, b, a)
    st_v2_u32(out_ptr + 8 * thread + 4, (e >> 32).to(tl.uint32), f.to(tl.uint32))
    v = ld_vector(x_ptr + 4 * thread, 4, scope="sys", semantic="acquire")
    st_vector(out_ptr + 4 * thread, v + v, scope="sys", semantic="release")
    h = ld_vector(half_ptr + 2 * thread, 2, scope="cta")
    st_vector(half_ptr + 2 * thread, unpack(pack(h, tl.uint32), tl.float16))


@triton.jit
def words(out_ptr, word_ptr):
    thread = tid(0)
    arrive_inc(word_ptr, thread, 5, "gpu")
    wait_eq(word_ptr, thread, 5, "sys")
    red_release(word_ptr + 1, 2)
    old = atomic_add_per_warp(word_ptr + 2, 1, "gpu", "relaxed")
    membar()
    membar("gl")
    membar("sys")
    fence("acq_rel", "sys")
    fence("sc", "agent")
    bar_warp_sync()
    named_barrier_arrive(2, 128)
    named_barrier_sync(1, 128)
    st(out_ptr + thread, old + (globaltimer() + smid()).to(tl.int32))


@triton.jit
def own_shared(x_ptr, out_ptr, N: tl.constexpr):
    buffer = dl.allocate_smem(tl.int32, [2, N])
    counter = dl.allocate_smem(tl.int32, [1])
    thread = tid(0)
    dl.smem_store(buffer, ld(x_ptr + thread), [0, thread])
    if thread == 0:
        dl.smem_store(counter, 7, [0])
    __syncthreads()
    atomic_add(dl.smem_get_ptr(counter), thread, scope="cta")
    atomic_cas(dl.smem_get_ptr(counter), 3, 4, scope="cta", semantic="acq_rel")
    old = tl.atomic_add(dl.smem_get_ptr(counter), 1)
    p = dl.smem_get_ptr(buffer)
    for k in range(0, old):
        p += 1
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(p + i))
    st(out_ptr + thread, dl.smem_load(buffer, [1, thread]) + cvta_generic_to_shared(p).to(tl.int32))


@triton.jit
def region(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    with dl.simt_exec_region() as (thread, count):
        for k in range(thread, N, count):
            x[k] = x[k] * 2 + k
    tl.store(out_ptr + i, x)


@triton.jit
def bulk(x_ptr, out_ptr, N: tl.constexpr):
    buffer = dl.allocate_smem(tl.int32, [2, N])
    bars = dl.allocate_smem(tl.int64, [2])
    thread = tid(0)
    if thread == 0:
        mbarrier_init(dl.smem_get_ptr(bars, [0]), 1)
        mbarrier_init(dl.smem_get_ptr(bars, [1]), 1)
    __syncthreads()
    if thread == 0:
        for stage in tl.static_range(2):
            bar = dl.smem_get_ptr(bars, [stage])
            mbarrier_arrive_expect_tx(bar, N * 4)
            cp_async_bulk_global_to_shared(dl.get_smem_shared_address_u32(buffer, [stage, 0]), x_ptr + stage * N, N * 4,
                                           dl.get_smem_shared_address_u32(bars, [stage]))
    mbarrier_wait_parity(dl.smem_get_ptr(bars, [0]), 0)
    while mbarrier_try_wait_parity(dl.smem_get_ptr(bars, [1]), 0) == 0:
        pass
    for k in range(thread, N, num_threads()):
        dl.smem_store(buffer, dl.smem_load(buffer, [0, k]) + dl.smem_load(buffer, [1, k]), [0, k])
    fence_async_shared()
    __syncthreads()
    if thread == 0:
        cp_async_bulk_shared_to_global(out_ptr, dl.smem_get_ptr(buffer), N * 4)
        cp_async_bulk_commit_group()
        cp_async_bulk_wait_group(0)
        mbarrier_invalidate(dl.smem_get_ptr(bars, [0]))
        mbarrier_invalidate(dl.smem_get_ptr(bars, [1]))



@triton.jit
def copy(x_ptr, y_ptr, out_ptr, map_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr):
    workspace = dl.allocate_smem(tl.int8, [128])
    x_map = create_tmap_2d(workspace, map_ptr, x_ptr, columns, rows, columns * 4, COLUMNS, ROWS, 7, 0)
    y_map = tmap_update_address(workspace, map_ptr + 128, y_ptr)
    out_map = tmap_update_address(workspace, map_ptr + 256, out_ptr)
    ready = dl.allocate_smem(tl.int64, [STAGES])
    empty = dl.allocate_smem(tl.int64, [STAGES])
    ring = dl.allocate_smem(tl.float32, [STAGES, ROWS, COLUMNS])
    pipeline = TmaPipeline(ready, empty, ring, STAGES)
    thread = tid(0)
    if thread == 0:
        pipeline.init_barriers(1)
    __syncthreads()
    tiles = tl.cdiv(rows, ROWS)
    if warp_idx() == 0:
        state = PipelineState(0, 0, STAGES)
        for tile in range(0, 2 * tiles):
            pipeline.producer_acquire(state)
            if elect_one_sync():
                if tile % 2 == 0:
                    pipeline.producer_tma_load(state, x_map, 0, tile // 2 * ROWS, ROWS * COLUMNS * 4)
                else:
                    pipeline.producer_tma_load(state, y_map, 0, tile // 2 * ROWS, ROWS * COLUMNS * 4)
            state = state.advance()
    else:
        state = PipelineState(0, 0, STAGES)
        sums = dl.allocate_smem(tl.float32, [ROWS, COLUMNS])
        for tile in range(0, tiles):
            pipeline.consumer_wait(state)
            first = state.index
            state = state.advance()
            pipeline.consumer_wait(state)
            for k in range(thread - 32, ROWS * COLUMNS, num_threads() - 32):
                a = dl.smem_load(ring, [first, k // COLUMNS, k % COLUMNS])
                b = dl.smem_load(ring, [state.index, k // COLUMNS, k % COLUMNS])
                dl.smem_store(sums, a * 2 + b, [k // COLUMNS, k % COLUMNS])
            fence_async_shared()
            named_barrier_sync(1, num_threads() - 32)
            if thread == 32:
                mbarrier_arrive(dl.smem_get_ptr(empty, [first]))
                pipeline.consumer_release(state)
                store_and_wait(out_map, sums, 0, tile * ROWS, 0)
            named_barrier_sync(1, num_threads() - 32)
            state = state.advance()
    __syncthreads()
    if thread == 0:
        pipeline.invalidate_barriers()


@triton.jit
def rest(map_ptr, out_ptr, flag):
    buffer = dl.allocate_smem(tl.float32, [16, 32])
    bar = dl.smem_get_ptr(dl.allocate_smem(tl.int64, [1]))
    if tid(0) == 0:
        mbarrier_init(bar, 2)
        prefetch_tensormap(map_ptr)
        prefetch_tensor_2d_l2(map_ptr, 0, 16)
        prefetch_l2(out_ptr)
        mbarrier_expect_transaction(bar, 2048)
        mbarrier_arrive(bar)
        mbarrier_arrive(bar)
        tma_load_2d_pred(map_ptr, dl.smem_get_ptr(buffer), bar, 0, 0, flag)
        tma_store_2d(map_ptr, dl.smem_get_ptr(buffer), 0, 0)
    fence_proxy_async()


@triton.jit
def message(data_ptr, flag_ptr):
    tl.store(data_ptr + tl.arange(0, 128), tl.arange(0, 128))
    dl.notify(flag_ptr, 0, signal=1, sig_op="set", comm_scope="intra_node")
    token = dl.wait(flag_ptr, 1, "sys", "acquire")
    tl.store(dl.consume_token(data_ptr, token) + tl.arange(0, 128), tl.arange(0, 128))
