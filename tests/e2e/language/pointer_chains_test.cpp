//===- pointer_chains_test.cpp - Loops by pointers that compute between their dots ----------------------------------------===//
//
// The form of attention's backward without its mathematics, in small integers, so that sums are exact: two products of tiles that are known
// before both loops, a row that is taken off one of them, and two sums of which each takes one of the loop's tiles, as it lies or transposed. On a
// Hopper the products start together, sums run into the next turn, blocks whose sums would not fit get a second warpgroup, the tiles that are known
// before come from registers, and the later loop's first copies start before the other loop.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

constexpr std::string_view text = R"(
@triton.jit
def turns(a, b, x, y, k_ptr, v_ptr, row_ptr, begin, end, limit, N: tl.constexpr, D: tl.constexpr):
    columns = tl.arange(0, D)
    k_ptrs = k_ptr + (begin + tl.arange(0, N))[None, :] * D + columns[:, None]
    v_ptrs = v_ptr + (begin + tl.arange(0, N))[:, None] * D + columns[None, :]
    for n in range(begin, end, N):
        keys = n + tl.arange(0, N)
        kT = tl.load(k_ptrs)
        s = tl.dot(x, kT) - tl.load(row_ptr + keys)[None, :]
        s = tl.where(keys[None, :] < limit, s, 0.0)
        v = tl.load(v_ptrs)
        a += tl.dot(s.to(tl.float16), v)
        t = tl.dot(y, tl.trans(v))
        b += tl.dot((s + t).to(tl.float16), tl.trans(kT))
        k_ptrs += N * D
        v_ptrs += N * D
    return a, b

@triton.jit
def kernel(x_ptr, y_ptr, k_ptr, v_ptr, row_ptr, a_ptr, b_ptr, middle, keys, limit, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    places = (tl.program_id(0) * M + tl.arange(0, M))[:, None] * D + tl.arange(0, D)[None, :]
    x = tl.load(x_ptr + places)
    y = tl.load(y_ptr + places)
    a = tl.zeros((M, D), dtype=tl.float32)
    b = tl.zeros((M, D), dtype=tl.float32)
    a, b = turns(a, b, x, y, k_ptr, v_ptr, row_ptr, 0, middle, keys, N // 2, D)
    a, b = turns(a, b, x, y, k_ptr, v_ptr, row_ptr, middle, keys, limit, N, D)
    tl.store(a_ptr + places, a)
    tl.store(b_ptr + places, b)
)";

struct Chain {
  int64_t middleTurns, laterTurns; ///< The former have half as many keys.
  uint32_t stages;
  int64_t m, n, d;
};
void PrintTo(const Chain &c, std::ostream *stream) {
  *stream << fmt::format("{} and {} turns, {} stages, {}x{}x{}", c.middleTurns, c.laterTurns, c.stages, c.m, c.n, c.d);
}

std::vector<float> digits(int64_t count, uint64_t seed) {
  return convertAll<float>(randomIntegers(count, seed, -1, 1));
}

class PointerChains : public KernelTest, public testing::WithParamInterface<Chain> {};

TEST_P(PointerChains, areExact) {
  const Chain &c = GetParam();
  constexpr int64_t blocks = 2, unusedKeys = 3;
  const int64_t middle = c.middleTurns * c.n / 2, keys = middle + c.laterTurns * c.n, limit = keys - unusedKeys;
  const std::vector<float> x = digits(blocks * c.m * c.d, 1), y = digits(blocks * c.m * c.d, 2),
                           k = digits(keys * c.d, 3), v = digits(keys * c.d, 4), row = digits(keys, 5);

  std::vector<float> a(x.size(), 0.0f), b(x.size(), 0.0f);
  for (int64_t i = 0; i < blocks * c.m; ++i)
    for (int64_t key = 0; key < keys; ++key) {
      float s = -row[key], t = 0;
      for (int64_t d = 0; d < c.d; ++d) {
        s += x[i * c.d + d] * k[key * c.d + d];
        t += y[i * c.d + d] * v[key * c.d + d];
      }
      if (key >= middle && key >= limit)
        s = 0;
      for (int64_t d = 0; d < c.d; ++d) {
        a[i * c.d + d] += s * v[key * c.d + d];
        b[i * c.d + d] += (s + t) * k[key * c.d + d];
      }
    }

  for (uint64_t seed : {1, 2}) {
    start(1, seeded(seed));
    Buffer xBuffer = putAs(DataType::F16, x, "x"), yBuffer = putAs(DataType::F16, y, "y"),
           kBuffer = putAs(DataType::F16, k, "k"), vBuffer = putAs(DataType::F16, v, "v"), rows = put(row, "row");
    Buffer aBuffer = zeros(DataType::F32, a.size(), "a"), bBuffer = zeros(DataType::F32, b.size(), "b");
    ASSERT_OK(run(text, "kernel", {.grid = {blocks, 1, 1}, .numWarps = 4, .numStages = c.stages},
                  {{xBuffer, yBuffer, kBuffer, vBuffer, rows, aBuffer, bBuffer, middle, keys, limit},
                   {{"M", c.m}, {"N", c.n}, {"D", c.d}}}));
    expectSame(getFloats(aBuffer), a, "a");
    expectSame(getFloats(bBuffer), b, "b");
  }
}

/// A sum that is scaled in each turn is waited for in it, behind a dot that starts with the turn's first one.
TEST_F(KernelTest, ScaledSumsOfAPointerChainAreWaitedFor) {
  constexpr std::string_view scaled = R"(
@triton.jit
def kernel(x_ptr, k_ptr, v_ptr, a_ptr, b_ptr, keys, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    columns = tl.arange(0, D)
    places = tl.arange(0, M)[:, None] * D + columns[None, :]
    x = tl.load(x_ptr + places)
    a = tl.zeros((M, D), dtype=tl.float32)
    b = tl.zeros((M,), dtype=tl.float32)
    for n in range(0, keys, N):
        rows = n + tl.arange(0, N)
        kT = tl.load(k_ptr + rows[None, :] * D + columns[:, None])
        v = tl.load(v_ptr + rows[:, None] * D + columns[None, :])
        s = tl.dot(x, kT)
        s = tl.minimum(tl.maximum(s, -2.0), 2.0)
        a = tl.dot(s.to(tl.float16), v, a * 0.5)
        b += tl.sum(tl.dot(x, tl.trans(v)), 1)
    tl.store(a_ptr + places, a)
    tl.store(b_ptr + tl.arange(0, M), b)
)";
  constexpr int64_t m = 64, n = 32, d = 64, keys = 3 * n;
  const std::vector<float> x = digits(m * d, 1), k = digits(keys * d, 2), v = digits(keys * d, 3);
  std::vector<float> a(m * d, 0.0f), b(m, 0.0f);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t key = 0; key < keys; ++key) {
      float s = 0, t = 0;
      for (int64_t e = 0; e < d; ++e) {
        s += x[i * d + e] * k[key * d + e];
        t += x[i * d + e] * v[key * d + e];
      }
      b[i] += t;
      for (int64_t e = 0; e < d; ++e)
        a[i * d + e] = a[i * d + e] * (key % n == 0 ? 0.5f : 1.0f) + std::clamp(s, -2.0f, 2.0f) * v[key * d + e];
    }
  for (uint64_t seed : {1, 2}) {
    start(1, seeded(seed));
    Buffer xBuffer = putAs(DataType::F16, x, "x"), kBuffer = putAs(DataType::F16, k, "k"),
           vBuffer = putAs(DataType::F16, v, "v");
    Buffer aBuffer = zeros(DataType::F32, a.size(), "a"), bBuffer = zeros(DataType::F32, b.size(), "b");
    ASSERT_OK(run(scaled, "kernel", {.grid = {1, 1, 1}, .numWarps = 4, .numStages = 3},
                  {{xBuffer, kBuffer, vBuffer, aBuffer, bBuffer, keys}, {{"M", m}, {"N", n}, {"D", d}}}));
    expectSame(getFloats(aBuffer), a, "a");
    expectSame(getFloats(bBuffer), b, "b");
  }
}

INSTANTIATE_TEST_SUITE_P(All, PointerChains,
                         testing::Values(Chain{2, 6, 5, 128, 32, 64}, Chain{4, 7, 5, 128, 32, 128},
                                         Chain{0, 1, 4, 64, 32, 64}, Chain{1, 0, 3, 64, 64, 64},
                                         Chain{3, 3, 2, 64, 32, 64}, Chain{9, 9, 4, 128, 32, 128},
                                         Chain{1, 2, 1, 64, 32, 64}));

} // namespace
} // namespace ditron::e2e
