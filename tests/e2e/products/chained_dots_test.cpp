//===- chained_dots_test.cpp - Loops whose last dot takes what was computed from another one ------------------------------===//
//
// The form of attention without its mathematics, in small integers, so that sums are exact: two loops over tiles of one kind, in a loop
// over heads, with none, one or several turns. On a Hopper a producer fetches for both loops through one ring, the last dot of a turn
// runs beside the next turn, and warpgroups take turns.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

constexpr std::string_view text = R"(
@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, out_ptr, totals_ptr, heads, keys, middle, limit, q_stride, kv_stride, M: tl.constexpr, N: tl.constexpr,
           D: tl.constexpr):
    q_desc = tl.make_tensor_descriptor(q_ptr, [heads, M, D], [q_stride, D, 1], [1, M, D])
    k_desc = tl.make_tensor_descriptor(k_ptr, [heads, keys, D], [kv_stride, D, 1], [1, N, D])
    v_desc = tl.make_tensor_descriptor(v_ptr, [heads, keys, D], [kv_stride, D, 1], [1, N, D])
    rows = tl.arange(0, M)
    columns = tl.arange(0, D)
    for head in tl.range(tl.program_id(0), heads, tl.num_programs(0), warp_specialize=True):
        q = q_desc.load([head, 0, 0]).reshape([M, D])
        acc = tl.zeros((M, D), dtype=tl.float32)
        total = tl.zeros((M,), dtype=tl.float32)
        for n in range(0, middle, N):
            s = tl.dot(q, k_desc.load([head, n, 0]).reshape([N, D]).T)
            total += tl.sum(s, axis=1)
            acc = tl.dot(s.to(tl.bfloat16), v_desc.load([head, n, 0]).reshape([N, D]), -acc)
        for n in range(middle, keys, N):
            s = tl.dot(q, k_desc.load([head, n, 0]).reshape([N, D]).T)
            s = tl.where(n + tl.arange(0, N)[None, :] < limit, s, 0.0)
            total -= tl.sum(s, axis=1)
            acc = tl.dot(s.to(tl.bfloat16), v_desc.load([head, n, 0]).reshape([N, D]), acc + 1.0)
        tl.store(out_ptr + head * q_stride + rows[:, None] * D + columns[None, :], acc)
        tl.store(totals_ptr + head * M + rows, total)
)";

struct Chain {
  int64_t middleTurns, laterTurns;
  uint32_t warps, stages;
  int64_t m, n, d;
};
void PrintTo(const Chain &c, std::ostream *stream) {
  *stream << fmt::format("{} and {} turns, {} warps, {} stages, {}x{}x{}", c.middleTurns, c.laterTurns, c.warps,
                         c.stages, c.m, c.n, c.d);
}

class ChainedDots : public KernelTest, public testing::WithParamInterface<Chain> {};

TEST_P(ChainedDots, areExact) {
  const Chain &c = GetParam();
  constexpr int64_t heads = 5, blocks = 2, unusedKeys = 3;
  const int64_t middle = c.middleTurns * c.n, keys = middle + c.laterTurns * c.n, limit = keys - unusedKeys;
  auto digits = [](int64_t count, uint64_t seed) { return convertAll<float>(randomIntegers(count, seed, -1, 1)); };
  const std::vector<float> q = digits(heads * c.m * c.d, 1), k = digits(heads * keys * c.d, 2),
                           v = digits(heads * keys * c.d, 3);

  std::vector<float> expected(q.size(), 0.0f), totals(heads * c.m, 0.0f);
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t row = 0; row < c.m; ++row) {
      float *out = &expected[(head * c.m + row) * c.d];
      for (int64_t first = 0; first < keys; first += c.n) {
        const bool isLater = first >= middle;
        for (int64_t d = 0; d < c.d; ++d)
          out[d] = isLater ? out[d] + 1 : -out[d];
        for (int64_t key = first; key < first + c.n; ++key) {
          float s = 0;
          for (int64_t d = 0; d < c.d; ++d)
            s += q[(head * c.m + row) * c.d + d] * k[(head * keys + key) * c.d + d];
          if (isLater && key >= limit)
            s = 0;
          totals[head * c.m + row] += isLater ? -s : s;
          for (int64_t d = 0; d < c.d; ++d)
            out[d] += s * v[(head * keys + key) * c.d + d];
        }
      }
    }

  for (uint64_t seed : {1, 2}) {
    start(1, seeded(seed));
    Buffer qBuffer = putAs(DataType::BF16, q, "q"), kBuffer = putAs(DataType::BF16, k, "k"),
           vBuffer = putAs(DataType::BF16, v, "v");
    Buffer out = zeros(DataType::F32, q.size()), sums = zeros(DataType::F32, totals.size(), "totals");
    LaunchShape shape = {.grid = {blocks, 1, 1}, .numWarps = c.warps, .numStages = c.stages};
    ASSERT_OK(run(text, "kernel", shape,
                  {{qBuffer, kBuffer, vBuffer, out, sums, heads, keys, middle, limit, c.m * c.d, keys * c.d},
                   {{"M", c.m}, {"N", c.n}, {"D", c.d}}}));
    expectSame(getFloats(out), expected, "sums");
    expectSame(getFloats(sums), totals, "totals");
  }
}

INSTANTIATE_TEST_SUITE_P(All, ChainedDots,
                         testing::Values(Chain{3, 2, 8, 2, 128, 64, 64}, Chain{1, 0, 8, 2, 128, 64, 64},
                                         Chain{0, 1, 8, 3, 128, 64, 64}, Chain{2, 5, 4, 3, 64, 64, 64},
                                         Chain{1, 1, 4, 2, 64, 32, 128}, Chain{4, 3, 8, 1, 128, 64, 64},
                                         Chain{2, 2, 8, 4, 128, 128, 64}));

} // namespace
} // namespace ditron::e2e
