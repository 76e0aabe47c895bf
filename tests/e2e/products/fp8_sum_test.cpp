//===- fp8_sum_test.cpp - How precisely products of fp8 are added up ---------------------------------------------------------===//
//
// The tensor cores of Hopper keep about 14 bits of a sum of fp8 products, so that long sums lose what is small beside them. tl.dot's
// max_num_imprecise_acc bounds how much of K is added up that way before it goes to the fp32 accumulator. Small integers fit
// into 14 bits, and must come out exact for every limit; fractions must come out the better the lower the limit is.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

const char *const text = R"(
@triton.jit
def by_descriptors(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, LIMIT: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = a_desc.load([m, k * BK])
        b = b_desc.load([n, k * BK])
        acc = tl.dot(a, b.T, acc, max_num_imprecise_acc=LIMIT)
    c_desc.store([m, n], acc)


@triton.jit
def by_pointers(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, LIMIT: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        i = k + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + i[None, :], mask=(m < M)[:, None] & (i < K)[None, :])
        b = tl.load(b_ptr + n[None, :] * K + i[:, None], mask=(n < N)[None, :] & (i < K)[:, None])
        acc = tl.dot(a, b, acc, max_num_imprecise_acc=LIMIT)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])
)";

/// No limit: the tensor core adds up all of K.
constexpr int unlimited = -1;

struct Case {
  const char *kernel = "by_descriptors";
  DataType type = DataType::F8E4NV;
  int m = 128, n = 128, k = 256, blockM = 128, blockN = 128, blockK = 128;
  uint32_t warps = 8, stages = 3;
  int limit = unlimited;
};

void PrintTo(const Case &c, std::ostream *stream) {
  *stream << fmt::format("{} {} {}x{}x{}, tiles {}x{}x{}, {} warps, {} stages, limit {}", c.kernel, toString(c.type),
                         c.m, c.n, c.k, c.blockM, c.blockN, c.blockK, c.warps, c.stages, c.limit);
}

class Fp8Products : public KernelTest {
protected:
  struct Result {
    std::vector<float> actual;
    std::vector<double> exact;
  };
  /// The product of a [m, k] and b [n, k], which are given as what fits into the type.
  Result product(const Case &c, const std::vector<float> &a, const std::vector<float> &b) {
    Buffer x = putAs(c.type, a, "a"), y = putAs(c.type, b, "b"), z = zeros(DataType::F32, uint64_t(c.m) * c.n, "c");
    const LaunchShape shape = {
        {uint32_t((c.m + c.blockM - 1) / c.blockM), uint32_t((c.n + c.blockN - 1) / c.blockN), 1}, c.warps, c.stages};
    jit::CallArguments arguments = {{x, y, z, c.m, c.n, c.k}, {{"BM", c.blockM}, {"BN", c.blockN}, {"BK", c.blockK}}};
    arguments.keywords.push_back({"LIMIT", c.limit == unlimited ? Argument(runtime::None()) : Argument(c.limit)});
    EXPECT_OK(run(text, c.kernel, shape, arguments));
    Result result = {get<float>(z), std::vector<double>(size_t(c.m) * c.n)};
    for (int m = 0; m < c.m; ++m)
      for (int n = 0; n < c.n; ++n)
        for (int k = 0; k < c.k; ++k)
          result.exact[m * c.n + n] += double(a[m * c.k + k]) * b[n * c.k + k];
    return result;
  }
  /// How much too large the results are on average, of their size. Products of positive numbers of several magnitudes, 0.14 on average.
  double meanError(const Case &c) {
    auto operand = [&](int rows, uint64_t seed) {
      std::vector<float> values = randomFloats(size_t(rows) * c.k, seed, 1, 1.25f, c.type);
      const std::vector<int64_t> magnitudes = randomIntegers(values.size(), seed + 10, 0, 5);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = std::ldexp(values[i], -static_cast<int>(magnitudes[i]));
      return values;
    };
    const Result result = product(c, operand(c.m, 7), operand(c.n, 8));
    double error = 0;
    for (size_t i = 0; i < result.exact.size(); ++i)
      error += (result.actual[i] - result.exact[i]) / result.exact[i];
    return error / double(result.exact.size());
  }
};

class Fp8DotSums : public Fp8Products, public testing::WithParamInterface<Case> {};

TEST_P(Fp8DotSums, AreExactOfSmallIntegers) {
  const Case &c = GetParam();
  auto operand = [&](int rows, uint64_t seed) {
    return convertAll<float>(randomIntegers(size_t(rows) * c.k, seed, -2, 2));
  };
  const Result result = product(c, operand(c.m, 3), operand(c.n, 4));
  expectClose(result.actual, result.exact, 0, 0);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char *kernel : {"by_descriptors", "by_pointers"})
    for (DataType type : {DataType::F8E4NV, DataType::F8E5})
      for (int limit : {unlimited, 0, 16, 32, 64, 96, 100, 128})
        all.push_back({.kernel = kernel, .type = type, .m = 100, .n = 144, .k = 272, .limit = limit});
  for (int limit : {unlimited, 32, 64}) {
    all.push_back({.m = 64, .n = 272, .k = 144, .blockM = 64, .blockN = 256, .blockK = 64, .warps = 4, .limit = limit});
    all.push_back({.m = 200,
                   .n = 48,
                   .k = 48,
                   .blockM = 256,
                   .blockN = 32,
                   .blockK = 64,
                   .warps = 8,
                   .stages = 1,
                   .limit = limit});
    all.push_back({.m = 72,
                   .n = 144,
                   .k = 528,
                   .blockM = 64,
                   .blockN = 128,
                   .blockK = 256,
                   .warps = 8,
                   .stages = 2,
                   .limit = limit});
    all.push_back({.m = 16, .n = 16, .k = 16, .blockM = 64, .blockN = 16, .blockK = 64, .warps = 4, .limit = limit});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Limits, Fp8DotSums, testing::ValuesIn(cases()));

class Fp8DotErrors : public Fp8Products {};

TEST_F(Fp8DotErrors, AreSmallerTheLowerTheLimit) {
  for (const char *kernel : {"by_descriptors", "by_pointers"}) {
    SCOPED_TRACE(kernel);
    const bool isShort =
        targetUnderTest().ends_with("sm_90a") || !isSimulated(); // else instructions multiply fp16 and add in fp32
    std::vector<double> lost;
    for (int limit : {0, 32, 64, 128, unlimited})
      lost.push_back(-meanError(
          {.kernel = kernel, .m = 64, .n = 64, .k = 2048, .blockM = 64, .blockN = 64, .warps = 4, .limit = limit}));
    EXPECT_LT(std::abs(lost[0]), 1e-6);
    // Each product loses half a unit on average, which is 2^-13 of the largest of 32 products and the sum before them.
    EXPECT_LT(lost[1], 1e-3);
    EXPECT_LT(lost[2], 4e-3);
    EXPECT_LT(lost[3], 1e-2);
    if (isShort) {
      for (size_t i = 1; i < lost.size(); ++i)
        EXPECT_GT(lost[i], lost[i - 1]) << i;
      EXPECT_GT(lost.back(), 2e-2);
    } else {
      EXPECT_LT(std::abs(lost.back()), 1e-6);
    }
  }
}

TEST_F(Fp8DotErrors, KeepInfinitiesAndNan) {
  const Case c = {
      .type = DataType::F8E5, .m = 64, .n = 16, .k = 128, .blockM = 64, .blockN = 16, .warps = 4, .limit = 64};
  std::vector<float> a(c.m * c.k, 1.0f), b(c.n * c.k, 1.0f);
  a[0] = INFINITY;
  a[c.k] = -INFINITY;
  a[2 * c.k + 100] = NAN;
  a[3 * c.k] = INFINITY, a[3 * c.k + 127] = -INFINITY;
  const Result result = product(c, a, b);
  const float expected[] = {INFINITY, -INFINITY, NAN, NAN, 128};
  for (int row = 0; row < 5; ++row)
    for (int column = 0; column < c.n; ++column) {
      const float got = result.actual[row * c.n + column];
      EXPECT_TRUE(got == expected[row] || (std::isnan(got) && std::isnan(expected[row])))
          << row << ", " << column << ": " << got;
    }
}

} // namespace
} // namespace ditron::e2e
