//===- atomics_test.cpp - Atomics of blocks and scalars ---------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

#include <numeric>

namespace ditron::e2e {
namespace {

class Atomics : public KernelTest {};

/// Many blocks add into few bins; other seeds interleave the blocks differently.
TEST_F(Atomics, HistogramFromManyBlocks) {
  const char *text = R"(
@triton.jit
def histogram(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    bin = tl.load(x_ptr + i, mask=mask, other=0)
    tl.atomic_add(bins_ptr + bin, 1, mask=mask)
)";
  const int n = 1000, bins = 16;
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(n, 81, 0, bins - 1)), expected(bins);
  for (int32_t each : x)
    ++expected[each];
  for (uint64_t seed : {0, 7})
    for (uint32_t warps : {1u, 4u}) {
      start(1, seeded(seed));
      Buffer xb = put(x), out = zeros(DataType::I32, bins);
      ASSERT_OK(run(text, "histogram", {.grid = {8, 1, 1}, .numWarps = warps}, {{xb, out, n}, {{"BLOCK", 128}}}));
      expectSame(get<int32_t>(out), expected);
    }
}

TEST_F(Atomics, EveryOperationOnIntegers) {
  const char *text = R"(
@triton.jit
def operations(out_ptr, old_ptr, x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(old_ptr + i, tl.atomic_add(out_ptr + i, x))
    tl.store(old_ptr + N + i, tl.atomic_max(out_ptr + N + i, x))
    tl.store(old_ptr + 2 * N + i, tl.atomic_min(out_ptr + 2 * N + i, x))
    tl.store(old_ptr + 3 * N + i, tl.atomic_and(out_ptr + 3 * N + i, x))
    tl.store(old_ptr + 4 * N + i, tl.atomic_or(out_ptr + 4 * N + i, x, sem="relaxed", scope="cta"))
    tl.store(old_ptr + 5 * N + i, tl.atomic_xor(out_ptr + 5 * N + i, x, sem="release", scope="sys"))
    tl.store(old_ptr + 6 * N + i, tl.atomic_xchg(out_ptr + 6 * N + i, x, sem="acquire"))
)";
  for (DataType type : {DataType::I32, DataType::U32, DataType::I64}) {
    const int n = 64;
    std::vector<int64_t> x = randomIntegers(n, 82, type == DataType::U32 ? 0 : -1000, 1000),
                         memory = randomIntegers(7 * n, 83, 0, 500), expected(7 * n);
    for (int i = 0; i < n; ++i) {
      auto old = [&](int k) { return memory[k * n + i]; };
      expected[i] = old(0) + x[i];
      expected[n + i] = std::max(old(1), x[i]);
      expected[2 * n + i] = std::min(old(2), x[i]);
      expected[3 * n + i] = old(3) & x[i];
      expected[4 * n + i] = old(4) | x[i];
      expected[5 * n + i] = old(5) ^ x[i];
      expected[6 * n + i] = x[i];
    }
    auto check = [&]<typename T>(T) {
      Buffer xb = put(convertAll<T>(x)), out = put(convertAll<T>(memory), "out"), old = zeros(type, 7 * n, "old");
      ASSERT_OK(run(text, "operations", {.numWarps = 2}, {{out, old, xb}, {{"N", n}}}));
      expectSame(get<T>(out), convertAll<T>(expected), toString(type));
      expectSame(get<T>(old), convertAll<T>(memory), fmt::format("old values, {}", toString(type)));
    };
    type == DataType::I32 ? check(int32_t()) : type == DataType::U32 ? check(uint32_t()) : check(int64_t());
  }
}

TEST_F(Atomics, FloatsAddAndOrder) {
  const char *text = R"(
@triton.jit
def floats(out_ptr, x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * N + i)
    tl.atomic_add(out_ptr + i, x)
    tl.atomic_max(out_ptr + N + i, x)
    tl.atomic_min(out_ptr + 2 * N + i, x)
)";
  const int n = 32, blocks = 4;
  // Multiples of 1/8: sums are exact in any order.
  std::vector<int64_t> random = randomIntegers(n * blocks, 84, -40, 40);
  for (DataType type : {DataType::F32, DataType::F64}) {
    std::vector<float> x(n * blocks), expected(3 * n);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = random[i] / 8.0f;
    for (int i = 0; i < n; ++i)
      for (int b = 0; b < blocks; ++b) {
        expected[i] += x[b * n + i];
        expected[n + i] = std::max(expected[n + i], x[b * n + i]);
        expected[2 * n + i] = std::min(expected[2 * n + i], x[b * n + i]);
      }
    Buffer xb = putAs(type, x), out = zeros(type, 3 * n);
    ASSERT_OK(run(text, "floats", {.grid = {blocks, 1, 1}, .numWarps = 1}, {{out, xb}, {{"N", n}}}));
    expectSame(getFloats(out), expected, toString(type));
  }
  const char *half = R"(
@triton.jit
def half(out_ptr, x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(out_ptr + i // 4, tl.load(x_ptr + i))
)";
  for (DataType type : {DataType::F16, DataType::BF16}) {
    std::vector<float> x(64), expected(16);
    for (int i = 0; i < 64; ++i)
      expected[i / 4] += x[i] = static_cast<float>(random[i] / 4);
    Buffer xb = putAs(type, x), out = zeros(type, 16);
    ASSERT_OK(run(half, "half", {.numWarps = 1}, {{out, xb}, {{"N", 64}}}));
    expectSame(getFloats(out), expected, toString(type));
  }
}

/// A scalar atomic happens once per block and its old value reaches all threads.
TEST_F(Atomics, ScalarsHappenOncePerBlock) {
  const char *text = R"(
@triton.jit
def tickets(counter_ptr, out_ptr, N: tl.constexpr):
    ticket = tl.atomic_add(counter_ptr, 1)
    i = tl.arange(0, N)
    tl.store(out_ptr + ticket * N + i, ticket * 1000 + i)
    tl.atomic_max(counter_ptr + 1, tl.program_id(0))
)";
  const int blocks = 20, n = 128;
  for (uint64_t seed : {1, 2}) {
    start(1, seeded(seed));
    Buffer counter = zeros(DataType::I32, 2, "counter"), out = zeros(DataType::I32, blocks * n);
    ASSERT_OK(run(text, "tickets", {.grid = {blocks, 1, 1}}, {{counter, out}, {{"N", n}}}));
    std::vector<int32_t> expected;
    for (int b = 0; b < blocks; ++b)
      for (int i = 0; i < n; ++i)
        expected.push_back(b * 1000 + i);
    expectSame(get<int32_t>(out), expected);
    expectSame(get<int32_t>(counter), {blocks, blocks - 1});
  }
}

TEST_F(Atomics, CompareAndSwapMakesALock) {
  const char *text = R"(
@triton.jit
def locked(lock_ptr, sum_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire") == 1:
        pass
    value = tl.load(sum_ptr + i)
    tl.store(sum_ptr + i, value + tl.program_id(0) + 1)
    tl.atomic_xchg(lock_ptr, 0, sem="release")
)";
  const int blocks = 24, n = 64;
  for (uint64_t seed : {1, 2, 3}) {
    start(1, seeded(seed));
    Buffer lock = zeros(DataType::I32, 1, "lock"), sum = zeros(DataType::I32, n, "sum");
    ASSERT_OK(run(text, "locked", {.grid = {blocks, 1, 1}, .numWarps = 2}, {{lock, sum}, {{"N", n}}}));
    expectSame(get<int32_t>(sum), std::vector<int32_t>(n, blocks * (blocks + 1) / 2));
    expectSame(get<int32_t>(lock), {0});
  }
}

TEST_F(Atomics, CompareAndSwapOfBlocks) {
  const char *text = R"(
@triton.jit
def swap(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    expected = tl.full([N], 5, tl.int64)
    old = tl.atomic_cas(x_ptr + i, expected, i.to(tl.int64) + 100)
    tl.store(out_ptr + i, old)
)";
  std::vector<int64_t> x(64), expected(64);
  for (int i = 0; i < 64; ++i) {
    x[i] = i % 3 == 0 ? 5 : i;
    expected[i] = x[i] == 5 ? i + 100 : x[i];
  }
  Buffer xb = put(x), out = zeros(DataType::I64, 64);
  ASSERT_OK(run(text, "swap", {.numWarps = 1}, {{xb, out}, {{"N", 64}}}));
  expectSame(get<int64_t>(xb), expected);
  expectSame(get<int64_t>(out), x);
}

/// Split-K: blocks meet in atomics and the last one to arrive does the rest.
TEST_F(Atomics, LastBlockFinishes) {
  const char *text = R"(
@triton.jit
def last(x_ptr, partial_ptr, arrived_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    total = tl.sum(tl.load(x_ptr + pid * N + tl.arange(0, N)), axis=0)
    tl.store(partial_ptr + pid, total)
    before = tl.atomic_add(arrived_ptr, 1, sem="acq_rel")
    if before == tl.num_programs(0) - 1:
        result = 0
        for p in range(tl.num_programs(0)):
            result += tl.load(partial_ptr + p)
        tl.store(out_ptr, result)
)";
  const int blocks = 13, n = 64;
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(blocks * n, 85, -100, 100));
  for (uint64_t seed : {1, 2}) {
    start(1, seeded(seed));
    Buffer xb = put(x), partial = zeros(DataType::I32, blocks, "partial"), arrived = zeros(DataType::I32, 1, "arrived"),
           out = zeros(DataType::I32, 1);
    ASSERT_OK(run(text, "last", {.grid = {blocks, 1, 1}}, {{xb, partial, arrived, out}, {{"N", n}}}));
    expectSame(get<int32_t>(out), {std::accumulate(x.begin(), x.end(), 0)});
  }
}

} // namespace
} // namespace ditron::e2e
