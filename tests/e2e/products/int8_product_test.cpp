//===- int8_product_test.cpp - Products of int8 are exact int32 ------------------------------------------------------------===//
//
// Values of the whole range, extremes above all, over shapes, tiles and warps, by descriptors and by pointers. On a Hopper those with K
// contiguous in both operands go through warpgroup multiplies; of the others 8-bit elements cannot be read, and single warps multiply
// them.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

const char *const text = R"(
@triton.jit
def by_descriptors(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ALONG_K: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK]) if ALONG_K else \
        tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.full((BM, BN), 7, tl.int32)
    for k in range(0, tl.cdiv(K, BK)):
        a = a_desc.load([m, k * BK])
        if ALONG_K:
            acc = tl.dot(a, b_desc.load([n, k * BK]).T, acc)
        else:
            acc = tl.dot(a, b_desc.load([k * BK, n]), acc)
    c_desc.store([m, n], acc)


@triton.jit
def by_pointers(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ALONG_K: tl.constexpr):
    m = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    n = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    acc = tl.full((BM, BN), 7, tl.int32)
    for k in range(0, K, BK):
        i = k + tl.arange(0, BK)
        a = tl.load(a_ptr + m * K + i[None, :], mask=(m < M) & (i[None, :] < K), other=0)
        at = n * K + i[:, None] if ALONG_K else i[:, None] * N + n
        b = tl.load(b_ptr + at, mask=(n < N) & (i[:, None] < K), other=0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m * N + n, acc, mask=(m < M) & (n < N))
)";

struct Case {
  const char *kernel;
  bool alongK; ///< B is [n, k], else [k, n].
  int m, n, k, blockM, blockN, blockK;
  uint32_t warps, stages;
};

void PrintTo(const Case &c, std::ostream *stream) {
  *stream << fmt::format("{} {}x{}x{}, tiles {}x{}x{}, {} warps, {} stages, B {}", c.kernel, c.m, c.n, c.k, c.blockM,
                         c.blockN, c.blockK, c.warps, c.stages, c.alongK ? "[n, k]" : "[k, n]");
}

class Int8Dots : public KernelTest, public testing::WithParamInterface<Case> {};

TEST_P(Int8Dots, AreExact) {
  const Case &c = GetParam();
  // The extremes make sums as large as they can be.
  auto operand = [&](int count, uint64_t seed) {
    std::vector<int8_t> values = convertAll<int8_t>(randomIntegers(count, seed, -128, 127));
    for (size_t i = 0; i < values.size(); i += 3)
      values[i] = i % 2 ? -128 : 127;
    return values;
  };
  const std::vector<int8_t> a = operand(c.m * c.k, 51), b = operand(c.n * c.k, 52);
  std::vector<int32_t> expected(c.m * c.n);
  for (int m = 0; m < c.m; ++m)
    for (int n = 0; n < c.n; ++n) {
      int32_t sum = 7;
      for (int k = 0; k < c.k; ++k)
        sum += a[m * c.k + k] * b[c.alongK ? n * c.k + k : k * c.n + n];
      expected[m * c.n + n] = sum;
    }
  Buffer x = put(a, "a"), y = put(b, "b"), z = zeros(DataType::I32, expected.size(), "c");
  const LaunchShape shape = {
      {uint32_t((c.m + c.blockM - 1) / c.blockM), uint32_t((c.n + c.blockN - 1) / c.blockN), 1}, c.warps, c.stages};
  for (int round = 0; round < 2; ++round)
    ASSERT_OK(
        run(text, c.kernel, shape,
            {{x, y, z, c.m, c.n, c.k}, {{"BM", c.blockM}, {"BN", c.blockN}, {"BK", c.blockK}, {"ALONG_K", c.alongK}}}));
  expectSame(get<int32_t>(z), expected);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char *kernel : {"by_descriptors", "by_pointers"})
    for (bool alongK : {true, false})
      for (auto [m, n, k, blockM, blockN, blockK, warps, stages] :
           {std::tuple(100, 144, 272, 128, 128, 128, 8u, 3u), std::tuple(72, 272, 80, 64, 256, 64, 4u, 2u),
            std::tuple(200, 32, 160, 128, 32, 32, 8u, 4u), std::tuple(64, 16, 48, 64, 16, 32, 4u, 1u),
            std::tuple(48, 80, 112, 16, 32, 64, 2u, 3u), std::tuple(16, 16, 16, 64, 64, 128, 4u, 2u),
            std::tuple(65, 528, 400, 64, 128, 256, 8u, 2u), std::tuple(1, 16, 32, 64, 64, 64, 4u, 3u)})
        all.push_back({kernel, alongK, m, n, k, blockM, blockN, blockK, warps, stages});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Shapes, Int8Dots, testing::ValuesIn(cases()));

} // namespace
} // namespace ditron::e2e
