//===- thread_level_test.cpp - Threads, lanes, shuffles, ballots ------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

class ThreadLevel : public KernelTest, public testing::WithParamInterface<uint32_t> {
protected:
  std::vector<int32_t> results(std::string_view text, std::string_view kernel, size_t count,
                               std::vector<Argument> rest = {}) {
    Buffer out = zeros(DataType::I32, count);
    std::vector<Argument> arguments = {out};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    EXPECT_OK(run(text, kernel, {.numWarps = GetParam()}, {arguments, {}}));
    return get<int32_t>(out);
  }
  int threads() const { return int(GetParam()) * 32; }
};
INSTANTIATE_TEST_SUITE_P(Warps, ThreadLevel, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST_P(ThreadLevel, EveryThreadKnowsItsPlace) {
  const char *text = R"(
@triton.jit
def places(out_ptr):
    thread = tid(0)
    st(out_ptr + 4 * thread, thread)
    st(out_ptr + 4 * thread + 1, laneid())
    st(out_ptr + 4 * thread + 2, num_warps())
    st(out_ptr + 4 * thread + 3, threads_per_warp() * 1000 + num_threads())
)";
  std::vector<int32_t> expected;
  for (int t = 0; t < threads(); ++t)
    expected.insert(expected.end(), {t, t % 32, int32_t(GetParam()), 32000 + threads()});
  expectSame(results(text, "places", 4 * threads()), expected);
}

TEST_P(ThreadLevel, DivergentBranches) {
  const char *text = R"(
@triton.jit
def diverge(out_ptr, limit):
    thread = tid(0)
    value = 7
    if thread % 3 == 0:
        value = thread * 2
    elif thread > limit:
        value = -thread
    count = 0
    while count < thread % 5:
        count += 1
    if thread < limit:
        st(out_ptr + thread, value * 100 + count)
)";
  const int limit = threads() - 10;
  std::vector<int32_t> expected(threads());
  for (int t = 0; t < limit; ++t)
    expected[t] = (t % 3 == 0 ? t * 2 : t > limit ? -t : 7) * 100 + t % 5;
  expectSame(results(text, "diverge", threads(), {limit}), expected);
}

TEST_P(ThreadLevel, ScalarStoresOfSingleThreads) {
  const char *text = R"(
@triton.jit
def single(out_ptr):
    thread = tid(0)
    tl.store(out_ptr, 5)
    if thread == 1:
        tl.store(out_ptr + 1, 6)
    if thread >= 2:
        tl.store(out_ptr + thread, thread * 3)
)";
  std::vector<int32_t> expected = {5, 6};
  for (int t = 2; t < threads(); ++t)
    expected.push_back(t * 3);
  expectSame(results(text, "single", threads()), expected);
}

TEST_P(ThreadLevel, ShufflesOfEveryForm) {
  const char *text = R"(
@triton.jit
def shuffles(out_ptr):
    thread = tid(0)
    lane = laneid()
    value = thread * 3 + 1
    st(out_ptr + 4 * thread, __shfl_sync_i32(0xFFFFFFFF, value, (lane + 5) % 32))
    st(out_ptr + 4 * thread + 1, __shfl_up_sync_i32(0xFFFFFFFF, value, 3))
    st(out_ptr + 4 * thread + 2, __shfl_down_sync_i32(0xFFFFFFFF, value, 7))
    st(out_ptr + 4 * thread + 3, __shfl_xor_sync_i32(0xFFFFFFFF, value, 13))
)";
  std::vector<int32_t> expected;
  for (int t = 0; t < threads(); ++t) {
    const int warp = t / 32 * 32, lane = t % 32;
    auto of = [&](int l) { return (warp + l) * 3 + 1; };
    expected.insert(expected.end(), {of((lane + 5) % 32), of(lane < 3 ? lane : lane - 3),
                                     of(lane + 7 > 31 ? lane : lane + 7), of(lane ^ 13)});
  }
  expectSame(results(text, "shuffles", 4 * threads()), expected);
}

TEST_P(ThreadLevel, BallotsAndBits) {
  const char *text = R"(
@triton.jit
def ballots(out_ptr):
    thread = tid(0)
    votes = __ballot_sync(0xFFFFFFFF, (thread * 7) % 11 < 4)
    st(out_ptr + 3 * thread, votes)
    st(out_ptr + 3 * thread + 1, ffs(votes))
    st(out_ptr + 3 * thread + 2, ffs(thread - thread))
)";
  std::vector<int32_t> expected;
  for (int t = 0; t < threads(); ++t) {
    uint32_t votes = 0;
    for (int lane = 0; lane < 32; ++lane)
      votes |= uint32_t((t / 32 * 32 + lane) * 7 % 11 < 4) << lane;
    expected.insert(expected.end(), {int32_t(votes), __builtin_ffs(votes), 0});
  }
  expectSame(results(text, "ballots", 3 * threads()), expected);
}

/// A prefix sum over the block: shuffles inside warps, memory and barriers between them.
TEST_P(ThreadLevel, PrefixSumOfABlock) {
  const char *text = R"(
@triton.jit
def prefix(out_ptr, x_ptr, sums_ptr):
    thread = tid(0)
    lane = laneid()
    value = ld(x_ptr + thread)
    delta = 1
    while delta < 32:
        below = __shfl_up_sync_i32(0xFFFFFFFF, value, delta)
        if lane >= delta:
            value += below
        delta = delta * 2
    warp = thread // 32
    if lane == 31:
        st(sums_ptr + warp, value, scope="cta", semantic="relaxed")
    __syncthreads()
    for w in range(0, warp):
        value += ld(sums_ptr + w, scope="cta", semantic="acquire")
    st(out_ptr + thread, value)
)";
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(threads(), 91, -50, 100)), expected(threads());
  int32_t sum = 0;
  for (int t = 0; t < threads(); ++t)
    expected[t] = sum += x[t];
  Buffer xb = put(x), sums = zeros(DataType::I32, 32, "sums");
  expectSame(results(text, "prefix", threads(), {xb, sums}), expected);
}

TEST_P(ThreadLevel, AtomicsOfThreads) {
  const char *text = R"(
@triton.jit
def atomics(out_ptr):
    thread = tid(0)
    ticket = atomic_add(out_ptr, 1, scope="gpu", semantic="relaxed")
    st(out_ptr + 2 + ticket, 1)
    # One thread of all wins.
    if atomic_cas(out_ptr + 1, 0, thread + 1, scope="sys", semantic="acq_rel") == 0:
        st(out_ptr + 2 + num_threads(), thread + 1)
)";
  std::vector<int32_t> actual = results(text, "atomics", threads() + 3);
  EXPECT_EQ(actual[0], threads());
  EXPECT_EQ(actual[1], actual.back());
  EXPECT_GE(actual[1], 1);
  EXPECT_LE(actual[1], threads());
  expectSame(std::vector<int32_t>(actual.begin() + 2, actual.end() - 1), std::vector<int32_t>(threads(), 1));
}

/// Threads and blocks together: a block's store is seen by single threads after a barrier.
TEST_P(ThreadLevel, BlockStoresThenThreadLoads) {
  const char *text = R"(
@triton.jit
def mixed(out_ptr, buffer_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(buffer_ptr + i, i * i)
    __syncthreads()
    thread = tid(0)
    opposite = ld(buffer_ptr + (N - 1 - thread))
    st(out_ptr + thread, opposite)
    __syncthreads()
    total = tl.sum(tl.load(out_ptr + i), axis=0)
    tl.store(out_ptr + N, total)
)";
  const int n = threads();
  std::vector<int32_t> expected;
  int32_t total = 0;
  for (int t = 0; t < n; ++t) {
    expected.push_back((n - 1 - t) * (n - 1 - t));
    total += expected.back();
  }
  expected.push_back(total);
  Buffer buffer = zeros(DataType::I32, n, "buffer");
  expectSame(results(text, "mixed", n + 1, {buffer, n}), expected);
}

} // namespace
} // namespace ditron::e2e
