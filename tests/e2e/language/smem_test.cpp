//===- smem_test.cpp - Shared memory, mbarriers and tensor copies that kernels manage themselves --------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

constexpr std::string_view imports = R"(
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import (__syncthreads, atomic_add, fence, globaltimer, laneid, ld, membar, num_threads,
                                                       smid, st, tid)
from triton_dist.language.extra.cuda.language_extra import arrive_inc, atomic_add_per_warp, red_release, wait_eq
from triton_dist.language.extra.cuda.tma_language import (
    bar_warp_sync, cp_async_bulk_commit_group, cp_async_bulk_global_to_shared, cp_async_bulk_shared_to_global,
    cp_async_bulk_wait_group, elect_one_sync, fence_async_shared, mbarrier_arrive, mbarrier_arrive_expect_tx, mbarrier_init,
    mbarrier_invalidate, mbarrier_try_wait_parity, mbarrier_wait_parity, named_barrier_arrive, named_barrier_sync,
    tensormap_replace_element_stride, tensormap_replace_elemtype, tensormap_replace_interleave_layout, tma_load_2d, warp_idx)
)";

class SharedMemory : public KernelTest {
protected:
  std::string text(std::string_view body) { return std::string(imports) + std::string(body); }
  static bool hasTensorCopies() { return targetUnderTest() == "sim:sm_90a" || targetUnderTest() == "cuda"; }
};

/// Two stages, reached through smem_index, through indices, and through pointers with atomics.
TEST_F(SharedMemory, Elements) {
  std::string kernel = text(R"(
@triton.jit
def elements(x_ptr, out_ptr, N: tl.constexpr):
    buffer = dl.allocate_smem(tl.int32, [2, N])
    counter = dl.allocate_smem(tl.int32, [1])
    thread = tid(0)
    dl.smem_store(buffer, ld(x_ptr + thread), [0, thread])
    if thread == 0:
        dl.smem_store(counter, 7, [0])
    __syncthreads()
    first = dl.smem_index(buffer, 0)
    dl.smem_store(dl.smem_index(buffer, 1), dl.smem_load(first, [N - 1 - thread]) * 10, [thread])
    atomic_add(dl.smem_get_ptr(counter), thread, scope="cta")
    __syncthreads()
    st(out_ptr + thread, dl.smem_load(buffer, [1, (thread + 1) % N]))
    if thread == 0:
        st(out_ptr + N, dl.smem_load(counter, [0]))
        st(out_ptr + N + 1, buffer.nbytes + first.rank * 10000)
    # A tile in the same memory.
    i = tl.arange(0, N)
    tl.store(out_ptr + N + 2 + i, tl.load(dl.smem_get_ptr(buffer) + i))
    dl.smem_dealloc(buffer)
)");
  constexpr int n = 128;
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(n, 21, -100, 100)), expected(n);
  for (int t = 0; t < n; ++t)
    expected[t] = x[n - 1 - (t + 1) % n] * 10;
  expected.push_back(7 + n * (n - 1) / 2);
  expected.push_back(2 * n * 4 + 10000);
  expected.insert(expected.end(), x.begin(), x.end());
  Buffer xb = put(x), out = zeros(DataType::I32, 2 * n + 2);
  ASSERT_OK(run(kernel, "elements", {}, {{xb, out}, {{"N", n}}}));
  expectSame(get<int32_t>(out), expected);
}

/// A swizzled tile: what is stored by indices is loaded by indices, and lies where the swizzle says.
TEST_F(SharedMemory, Swizzle) {
  std::string kernel = text(R"(
@triton.jit
def swizzled(out_ptr, R: tl.constexpr, C: tl.constexpr):
    tile = dl.allocate_smem(tl.int32, [R, C], vec=4, per_phase=2, max_phase=4)
    thread = tid(0)
    for k in range(thread, R * C, num_threads()):
        dl.smem_store(tile, k, [k // C, k % C])
    __syncthreads()
    plain = dl.smem_get_ptr(tile)
    for k in range(thread, R * C, num_threads()):
        st(out_ptr + k, ld(plain + k))
        if dl.smem_load(tile, [k // C, k % C]) != k:
            st(out_ptr + k, -1)
)");
  constexpr int rows = 16, columns = 32;
  std::vector<int32_t> expected(rows * columns);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      expected[r * columns + ((c / 4) ^ (r / 2 % 4)) * 4 + c % 4] = r * columns + c;
  Buffer out = zeros(DataType::I32, rows * columns);
  ASSERT_OK(run(kernel, "swizzled", {}, {{out}, {{"R", rows}, {"C", columns}}}));
  expectSame(get<int32_t>(out), expected);
}

/// Arrivals with release, waits, one atomic per warp, barriers of half the block, clocks.
TEST_F(SharedMemory, ArrivalsAndNamedBarriers) {
  std::string kernel = text(R"(
@triton.jit
def arrivals(out_ptr, word_ptr):
    thread = tid(0)
    begin = globaltimer()
    st(out_ptr + thread, thread)
    arrive_inc(word_ptr, thread, 5, "gpu")
    wait_eq(word_ptr, thread, 5, "gpu")
    red_release(word_ptr + 1, 2)
    old = atomic_add_per_warp(word_ptr + 2, 1, "gpu", "relaxed")
    scratch = dl.allocate_smem(tl.int32, [64])
    if warp_idx() < 2:
        dl.smem_store(scratch, old, [thread])
        named_barrier_sync(1, 64)
        st(out_ptr + thread, dl.smem_load(scratch, [63 - thread]) * 0 + thread * 2)
    membar("gl")
    fence("acq_rel", "sys")
    bar_warp_sync()
    if thread == 0:
        st(word_ptr + 3, (globaltimer() >= begin).to(tl.int32) + (smid() < 1000).to(tl.int32))
)");
  Buffer out = zeros(DataType::I32, 128), words = zeros(DataType::I32, 4, "words");
  ASSERT_OK(run(kernel, "arrivals", {}, {{out, words}, {}}));
  std::vector<int32_t> expected(128);
  for (int t = 0; t < 128; ++t)
    expected[t] = t < 64 ? 2 * t : t;
  expectSame(get<int32_t>(out), expected);
  expectSame(get<int32_t>(words), {5, 256, 4, 2});
}

/// Bulk copies in and out, with an mbarrier that is polled and one that is waited for.
TEST_F(SharedMemory, BulkCopies) {
  if (!hasTensorCopies())
    GTEST_SKIP() << "no tensor copies on " << targetUnderTest();
  std::string kernel = text(R"(
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
)");
  constexpr int n = 1204; // four times a prime: pieces of different sizes
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(2 * n, 23, -1000, 1000)), expected(n);
  for (int i = 0; i < n; ++i)
    expected[i] = x[i] + x[n + i];
  Buffer xb = put(x), out = zeros(DataType::I32, n);
  ASSERT_OK(run(kernel, "bulk", {}, {{xb, out}, {{"N", n}}}));
  expectSame(get<int32_t>(out), expected);
}

/// A ring that the first thread of warp 0 fills by tensor copies and the other warps drain, by a tensor map made in the kernel.
TEST_F(SharedMemory, PipelineWithOwnTensorMap) {
  if (!hasTensorCopies())
    GTEST_SKIP() << "no tensor copies on " << targetUnderTest();
  std::string kernel = text(R"(
from triton_dist.language.tma import PipelineState, TmaPipeline, create_tmap_2d, tmap_update_address, store_and_wait

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
)");
  constexpr int rows = 72, columns = 32, count = rows * columns; // the last tile is half outside
  std::vector<float> x = randomFloats(count, 31), y = randomFloats(count, 32), expected(count);
  for (int i = 0; i < count; ++i)
    expected[i] = x[i] * 2 + y[i];
  Buffer xb = put(x), yb = put(y, "y"), out = zeros(DataType::F32, count), maps = zeros(DataType::I8, 384, "maps");
  ASSERT_OK(run(kernel, "copy", {}, {{xb, yb, out, maps, rows, columns}, {{"ROWS", 16}, {"COLUMNS", columns}, {"STAGES", 3}}}));
  expectSame(get<float>(out), expected);
}

TEST_F(SharedMemory, Refusals) {
  if (!isSimulated())
    GTEST_SKIP() << "reports of the simulator";
  struct Case {
    const char *body, *message;
  };
  std::vector<Case> cases = {
      {"buffer = dl.allocate_smem(tl.float32, [4, 8])\n    dl.smem_store(buffer, 1.0, [0])", "1 indices for shared memory of rank 2"},
      {"buffer = dl.allocate_smem(tl.float32, [4, 8])\n    x = dl.smem_index(buffer, 4)", "index 4 is outside of an extent of 4"},
      {"buffer = dl.allocate_smem(tl.float32, [65536])\n    dl.smem_store(buffer, 1.0, [0])", "shared memory that the kernel reserves itself needs 262144 bytes"},
      {"named_barrier_sync(16, 32)", "named barriers are 1 to 15"},
      {"named_barrier_sync(1, 48)", "a named barrier is for whole warps"},
      {"dl.smem_load(p, [0])", "must be shared memory from allocate_smem"}};
  if (targetUnderTest() == "sim:sm_90a") {
    constexpr const char *map = "place = dl.smem_get_ptr(dl.allocate_smem(tl.int8, [128]))\n    ";
    static const std::string layouts = fmt::format("{}tensormap_replace_interleave_layout(place, 1)", map),
                             strides = fmt::format("{}tensormap_replace_element_stride(place, 0, 2)", map),
                             types = fmt::format("{}tensormap_replace_elemtype(place, 13)", map),
                             unset = fmt::format("{}cp_async_bulk_shared_to_global(p, place, 24)", map);
    cases.push_back({layouts.c_str(), "interleave layout 1 of a tensor map is not simulated; accepted is 0 (none)"});
    cases.push_back({strides.c_str(), "element stride 2 of a tensor map is not simulated"});
    cases.push_back({types.c_str(), "element type 13 of a tensor map is not simulated"});
    cases.push_back({unset.c_str(), "a bulk copy of 24 bytes"});
    cases.push_back({"buffer = dl.allocate_smem(tl.int64, [1])\n    mbarrier_arrive(dl.smem_get_ptr(buffer))", "which is no mbarrier"});
  } else
    cases.push_back({"buffer = dl.allocate_smem(tl.int64, [1])\n    mbarrier_init(dl.smem_get_ptr(buffer), 1)",
                     "target sim:sm_80 has no 'mbarrier_init': it came with compute capability 9.0"});
  for (const Case &each : cases) {
    start(1); // an error while it runs ends a world
    Buffer p = zeros(DataType::I32, 4);
    std::string kernel = text(fmt::format("\n@triton.jit\ndef wrong(p):\n    {}\n", each.body));
    EXPECT_THAT(run(kernel, "wrong", {}, {{p}, {}}).message(), testing::HasSubstr(each.message)) << each.body;
  }
}

} // namespace
} // namespace ditron::e2e
