//===- tf32_test.cpp - fp32 operands of tl.dot are rounded to tf32, not cut -------------------------------------------------===//
//
// Tensor cores ignore the 13 low bits of fp32 operands, so that who hands them over as they are computes with numbers that are too
// small by half a unit in the last place on average: every product of positive numbers comes out too small. Here each way of an
// operand to the multiply is taken, and results must be those of operands rounded to nearest, without bias.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::e2e {
namespace {

const char *const text = R"(
@triton.jit
def by_pointers(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TURNED: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    n = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        i = k + tl.arange(0, BK)
        a = tl.load(a_ptr + m * K + i[None, :], mask=(m < M) & (i[None, :] < K), other=0.0)
        at = n * K + i[:, None] if TURNED else i[:, None] * N + n
        b = tl.load(b_ptr + at, mask=(n < N) & (i[:, None] < K), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m * N + n, acc, mask=(m < M) & (n < N))


@triton.jit
def by_descriptors(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TURNED: tl.constexpr,
                   COMPUTED: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK]) if TURNED else \
        tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        if COMPUTED:
            rows = m + tl.arange(0, BM)[:, None]
            i = k * BK + tl.arange(0, BK)[None, :]
            a = tl.load(a_ptr + rows * K + i, mask=(rows < M) & (i < K), other=0.0)
            a = tl.where(rows < M, a, a + 1.0)
        else:
            a = a_desc.load([m, k * BK])
        if TURNED:
            acc = tl.dot(a, b_desc.load([n, k * BK]).T, acc)
        else:
            acc = tl.dot(a, b_desc.load([k * BK, n]), acc)
    c_desc.store([m, n], acc)
)";

/// To nearest. Where it is a tie the hardware's ways differ, so that operands have none.
float toTf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x1000u) & ~0x1fffu);
}
bool isTie(float value) { return (std::bit_cast<uint32_t>(value) & 0x1fffu) == 0x1000u; }

struct Case {
  const char *kernel;
  int m, n, k, blockM, blockN, blockK;
  uint32_t warps, stages;
  bool turned, computed = false;
};

void PrintTo(const Case &c, std::ostream *stream) {
  *stream << fmt::format("{} {}x{}x{}, tiles {}x{}x{}, {} warps, {} stages{}{}", c.kernel, c.m, c.n, c.k, c.blockM,
                         c.blockN, c.blockK, c.warps, c.stages, c.turned ? ", B turned" : "",
                         c.computed ? ", A computed" : "");
}

class Tf32 : public KernelTest, public testing::WithParamInterface<Case> {
protected:
  /// The product of a [m, k] and b, [n, k] if turned; c is padded by nothing.
  std::vector<float> product(const Case &c, const std::vector<float> &a, const std::vector<float> &b) {
    Buffer x = put(a, "a"), y = put(b, "b"), z = zeros(DataType::F32, uint64_t(c.m) * c.n, "c");
    const LaunchShape shape = {
        {uint32_t((c.m + c.blockM - 1) / c.blockM), uint32_t((c.n + c.blockN - 1) / c.blockN), 1}, c.warps, c.stages};
    jit::CallArguments arguments = {{x, y, z, c.m, c.n, c.k},
                                    {{"BM", c.blockM}, {"BN", c.blockN}, {"BK", c.blockK}, {"TURNED", c.turned}}};
    if (std::string_view(c.kernel) == "by_descriptors")
      arguments.keywords.push_back({"COMPUTED", c.computed});
    EXPECT_OK(run(text, c.kernel, shape, arguments));
    return get<float>(z);
  }
};

TEST_P(Tf32, OperandsAreRoundedToNearest) {
  const Case &c = GetParam();
  auto operand = [&](int count, uint64_t seed) {
    std::vector<float> values = randomFloats(count, seed, 0.5f, 2);
    for (float &value : values)
      if (isTie(value))
        value = std::nextafter(value, 4.0f);
    return values;
  };
  const std::vector<float> a = operand(c.m * c.k, 5), b = operand(c.n * c.k, 6);
  const std::vector<float> actual = product(c, a, b);
  std::vector<double> rounded(actual.size());
  double error = 0;
  for (int m = 0; m < c.m; ++m)
    for (int n = 0; n < c.n; ++n) {
      double exact = 0, sum = 0;
      for (int k = 0; k < c.k; ++k) {
        const float x = a[m * c.k + k], y = b[c.turned ? n * c.k + k : k * c.n + n];
        exact += double(x) * y;
        sum += double(toTf32(x)) * toTf32(y);
      }
      rounded[m * c.n + n] = sum;
      error += (actual[m * c.n + n] - exact) / exact;
    }
  expectClose(actual, rounded, 1e-5, 0, "product of rounded operands");
  // Cut operands lose 2^-11 of a number of [1, 2) and more of smaller ones: 7e-4 of a product.
  EXPECT_LT(std::abs(error / double(actual.size())), 5e-5) << "mean relative error";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (bool turned : {false, true})
    for (auto [m, n, k, blockM, blockN, blockK, warps] :
         {std::tuple(100, 132, 68, 64, 64, 32, 4u), std::tuple(128, 64, 96, 128, 64, 32, 8u),
          std::tuple(64, 48, 64, 64, 16, 16, 4u), std::tuple(40, 36, 40, 16, 32, 16, 2u),
          std::tuple(72, 132, 64, 64, 128, 8, 8u)})
      for (uint32_t stages : {1u, 3u}) {
        all.push_back({"by_pointers", m, n, k, blockM, blockN, blockK, warps, stages, turned});
        for (bool computed : {false, true})
          all.push_back({"by_descriptors", m, n, k, blockM, blockN, blockK, warps, stages, turned, computed});
      }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Ways, Tf32, testing::ValuesIn(cases()));

TEST_P(Tf32, InfinitiesAndNanStayAndTheLargestNumbersOverflow) {
  Case c = GetParam();
  c.m = 16, c.n = 16, c.k = 32;
  // One number a row of A against a column of ones and twos elsewhere.
  const std::vector<float> special = {INFINITY,
                                      -INFINITY,
                                      NAN,
                                      std::numeric_limits<float>::max(),
                                      std::numeric_limits<float>::denorm_min(),
                                      std::bit_cast<float>(0x7fffffffu),
                                      0.0f,
                                      -1.0f};
  std::vector<float> a(c.m * c.k, 0.0f), b(c.n * c.k, 1.0f);
  for (size_t row = 0; row < special.size(); ++row)
    a[row * c.k + row] = special[row];
  const std::vector<float> actual = product(c, a, b);
  const std::vector<float> expected = {INFINITY, -INFINITY, NAN, INFINITY, 0, NAN, 0, -1};
  for (int row = 0; row < c.m; ++row)
    for (int column = 0; column < c.n; ++column) {
      const float want = row < int(expected.size()) ? expected[row] : 0.0f, got = actual[row * c.n + column];
      EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << row << ", " << column << ": " << got;
    }
}

} // namespace
} // namespace ditron::e2e
