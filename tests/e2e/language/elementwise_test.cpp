//===- elementwise_test.cpp - Loads, stores, masks and mathematics ----------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

const char *const vectorAdd = R"(
@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)
)";

/// (elements, block, warps)
class VectorAdd : public KernelTest, public testing::WithParamInterface<std::tuple<int, int, int>> {};

TEST_P(VectorAdd, MatchesEveryElementAndNoMore) {
  auto [n, block, warps] = GetParam();
  std::vector<float> x = randomFloats(n, 1), y = randomFloats(n, 2), expected(n);
  for (int i = 0; i < n; ++i)
    expected[i] = x[i] + y[i];
  Buffer xb = put(x, "x"), yb = put(y, "y"), out = zeros(DataType::F32, n);
  uint32_t blocks = (n + block - 1) / block;
  ASSERT_OK(run(vectorAdd, "add", {.grid = {blocks, 1, 1}, .numWarps = uint32_t(warps)},
                {{xb, yb, out, n}, {{"BLOCK", block}}}));
  expectSame(get<float>(out), expected);
}
INSTANTIATE_TEST_SUITE_P(Sizes, VectorAdd,
                         testing::Combine(testing::Values(1, 127, 1000), testing::Values(32, 128, 1024),
                                          testing::Values(1, 2, 4, 8)),
                         [](const auto &info) {
                           return fmt::format("n{}_block{}_warps{}", std::get<0>(info.param), std::get<1>(info.param),
                                              std::get<2>(info.param));
                         });

class Elementwise : public KernelTest {};

TEST_F(Elementwise, BlockOfOneElement) {
  Buffer x = put<float>({2.5f}, "x"), y = put<float>({4}, "y"), out = zeros(DataType::F32, 1);
  ASSERT_OK(run(vectorAdd, "add", {}, {{x, y, out, 1}, {{"BLOCK", 1}}}));
  expectSame(get<float>(out), {6.5f});
}

TEST_F(Elementwise, UnalignedPointers) {
  std::vector<float> x = randomFloats(101, 3), y = randomFloats(101, 4), expected(100);
  for (int i = 0; i < 100; ++i)
    expected[i] = x[i + 1] + y[i];
  Buffer xb = put(x, "x"), yb = put(y, "y"), out = zeros(DataType::F32, 101);
  ASSERT_OK(run(vectorAdd, "add", {}, {{xb.pointer() + 1, yb, out.pointer() + 1, 100}, {{"BLOCK", 128}}}));
  std::vector<float> actual = get<float>(out);
  EXPECT_EQ(actual[0], 0);
  expectSame(std::vector<float>(actual.begin() + 1, actual.end()), expected);
}

TEST_F(Elementwise, GridsInThreeDimensions) {
  const char *text = R"(
@triton.jit
def grid(out_ptr):
    x = tl.program_id(0)
    y = tl.program_id(1)
    z = tl.program_id(axis=2)
    at = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(out_ptr + at, x + 10 * y + 100 * z + 1000 * tl.num_programs(2))
)";
  Buffer out = zeros(DataType::I32, 3 * 2 * 4);
  ASSERT_OK(run(text, "grid", {.grid = {3, 2, 4}, .numWarps = 1}, {{out}, {}}));
  std::vector<int32_t> expected;
  for (int z = 0; z < 4; ++z)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 3; ++x)
        expected.push_back(x + 10 * y + 100 * z + 4000);
  expectSame(get<int32_t>(out), expected);
}

TEST_F(Elementwise, MaskedLoadsUseOther) {
  const char *text = R"(
@triton.jit
def masked(x_ptr, a_ptr, b_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(a_ptr + i, tl.load(x_ptr + i, mask=i < n, other=-1.5))
    tl.store(b_ptr + i, tl.load(x_ptr + i, mask=(i >= n) & (i % 2 == 0), other=tl.cast(i, tl.float32)), mask=i != 3)
)";
  std::vector<float> x = randomFloats(64, 5), a(64), b(64);
  for (int i = 0; i < 64; ++i) {
    a[i] = i < 20 ? x[i] : -1.5f;
    b[i] = i == 3 ? 0 : i >= 20 && i % 2 == 0 ? x[i] : static_cast<float>(i);
  }
  Buffer xb = put(x), ab = zeros(DataType::F32, 64, "a"), bb = zeros(DataType::F32, 64, "b");
  ASSERT_OK(run(text, "masked", {.numWarps = 2}, {{xb, ab, bb, 20}, {{"N", 64}}}));
  expectSame(get<float>(ab), a, "constant other");
  expectSame(get<float>(bb), b, "computed other");
}

TEST_F(Elementwise, IndirectAndStridedAccess) {
  const char *text = R"(
@triton.jit
def gather_rows(x_ptr, index_ptr, out_ptr, stride, N: tl.constexpr):
    i = tl.arange(0, N)
    where = tl.load(index_ptr + i)
    tl.store(out_ptr + (N - 1 - i) * stride, tl.load(x_ptr + where))
)";
  std::vector<int64_t> random = randomIntegers(128, 6, 0, 255);
  std::vector<int32_t> index(random.begin(), random.end());
  std::vector<double> x(256), expected(128 * 3);
  for (int i = 0; i < 256; ++i)
    x[i] = i * 0.5 - 7;
  for (int i = 0; i < 128; ++i)
    expected[(127 - i) * 3] = x[index[i]];
  Buffer xb = put(x), ib = put(index, "index"), out = zeros(DataType::F64, 128 * 3);
  ASSERT_OK(run(text, "gather_rows", {}, {{xb, ib, out, 3}, {{"N", 128}}}));
  expectSame(get<double>(out), expected);
}

/// Offsets of 32 bits wrap before they are extended to addresses; 64-bit ones do not.
TEST_F(Elementwise, OffsetsWrapIn32Bits) {
  const char *text = R"(
@triton.jit
def wrap(out_ptr, narrow_ptr, big):
    offset = big * 2
    tl.store(out_ptr + offset, 7)
    wide = big.to(tl.int64) * 2
    tl.store(narrow_ptr, wide)
    tl.store(narrow_ptr + 1, offset)
)";
  Buffer out = zeros(DataType::I32, 16), narrow = zeros(DataType::I64, 2, "narrow");
  // 2 * (2^31 - 5 + ...) wraps to a small number.
  const int64_t big = -2147483648ll + 3;
  ASSERT_OK(run(text, "wrap", {.numWarps = 1}, {{out, narrow, big}, {}}));
  EXPECT_EQ(get<int32_t>(out)[6], 7);
  expectSame(get<int64_t>(narrow), {2 * big, 6});
}

TEST_F(Elementwise, IntegerDivisionIsCLikeAtRunTimeAndPythonLikeBefore) {
  const char *text = R"(
@triton.jit
def divide(out_ptr, a, b, C: tl.constexpr, D: tl.constexpr):
    tl.store(out_ptr + 0, a // b)
    tl.store(out_ptr + 1, a % b)
    tl.store(out_ptr + 2, C // D)
    tl.store(out_ptr + 3, C % D)
    tl.store(out_ptr + 4, a // 2)
    tl.store(out_ptr + 5, a % 2)
    tl.store(out_ptr + 6, tl.cdiv(b, 4))
)";
  Buffer out = zeros(DataType::I32, 7);
  ASSERT_OK(run(text, "divide", {.numWarps = 1}, {{out, -7, 2}, {{"C", -7}, {"D", 2}}}));
  expectSame(get<int32_t>(out), {-3, -1, -4, 1, -3, -1, 1});
}

TEST_F(Elementwise, LiteralsTakeTheTensorsType) {
  const char *text = R"(
@triton.jit
def literals(h_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    h = tl.load(h_ptr + i)
    b = tl.load(b_ptr + i)
    tl.static_assert((h + 2).dtype == tl.float16)
    tl.static_assert((h * 2.5).dtype == tl.float16)
    tl.static_assert((h / 2).dtype == tl.float32)
    tl.static_assert((b + 2).dtype == tl.int8)
    tl.static_assert((b + 2.5).dtype == tl.float32)
    tl.static_assert((3 - b).dtype == tl.int8)
    tl.static_assert((b < 300).dtype == tl.int1)
    tl.store(out_ptr + i, (h * 2.5).to(tl.float32) + (3 - b) + tl.where(b < 300, 1000, 0))
)";
  std::vector<int8_t> b(32);
  std::vector<float> h(32), expected(32);
  for (int i = 0; i < 32; ++i) {
    b[i] = static_cast<int8_t>(i - 16);
    h[i] = i * 0.25f;
    expected[i] = h[i] * 2.5f + (3 - b[i]) + 1000;
  }
  Buffer hb = putAs(DataType::F16, h, "h"), bb = put(b, "b"), out = zeros(DataType::F32, 32);
  ASSERT_OK(run(text, "literals", {.numWarps = 1}, {{hb, bb, out}, {{"N", 32}}}));
  expectSame(get<float>(out), expected);
}

struct MathCase {
  const char *expression; ///< Of x and y.
  double (*reference)(double x, double y);
  float low, high;
};
const MathCase mathCases[] = {
    {"tl.exp(x)", [](double x, double) { return std::exp(x); }, -10, 10},
    {"tl.exp2(x)", [](double x, double) { return std::exp2(x); }, -10, 10},
    {"tl.log(x)", [](double x, double) { return std::log(x); }, 0.01f, 100},
    {"tl.log2(x)", [](double x, double) { return std::log2(x); }, 0.01f, 100},
    {"tl.sqrt(x)", [](double x, double) { return std::sqrt(x); }, 0, 100},
    {"tl.sqrt_rn(x)", [](double x, double) { return std::sqrt(x); }, 0, 100},
    {"tl.rsqrt(x)", [](double x, double) { return 1 / std::sqrt(x); }, 0.01f, 100},
    {"tl.sin(x)", [](double x, double) { return std::sin(x); }, -6, 6},
    {"tl.cos(x)", [](double x, double) { return std::cos(x); }, -6, 6},
    {"tl.erf(x)", [](double x, double) { return std::erf(x); }, -3, 3},
    {"tl.floor(x)", [](double x, double) { return std::floor(x); }, -10, 10},
    {"tl.ceil(x)", [](double x, double) { return std::ceil(x); }, -10, 10},
    {"tl.abs(x)", [](double x, double) { return std::abs(x); }, -10, 10},
    {"abs(x)", [](double x, double) { return std::abs(x); }, -10, 10},
    {"tl.sigmoid(x)", [](double x, double) { return 1 / (1 + std::exp(-x)); }, -10, 10},
    {"tl.minimum(x, y)", [](double x, double y) { return std::min(x, y); }, -10, 10},
    {"tl.maximum(x, y)", [](double x, double y) { return std::max(x, y); }, -10, 10},
    {"max(x, 0.25)", [](double x, double) { return std::max(x, 0.25); }, -10, 10},
    {"tl.clamp(x, -1.0, 1.0)", [](double x, double) { return std::clamp(x, -1.0, 1.0); }, -3, 3},
    {"tl.fma(x, y, x)", [](double x, double y) { return x * y + x; }, -10, 10},
    {"tl.fdiv(x, y)", [](double x, double y) { return x / y; }, 0.5f, 10},
    {"tl.div_rn(x, y)", [](double x, double y) { return x / y; }, 0.5f, 10},
    {"tl.where(x > y, x, y * 2)", [](double x, double y) { return x > y ? x : y * 2; }, -10, 10},
    {"-x + +y", [](double x, double y) { return -x + y; }, -10, 10},
    {"x.exp().log()", [](double x, double) { return x; }, -5, 5},
};

/// All functions in one kernel for each type and number of warps.
class Mathematics : public KernelTest, public testing::WithParamInterface<std::tuple<DataType, int>> {};

TEST_P(Mathematics, MatchesTheHostsFunctions) {
  auto [type, warps] = GetParam();
  const int n = 256;
  std::string body, parameters;
  std::vector<Buffer> inputs, outputs;
  std::vector<Argument> arguments;
  std::vector<std::vector<float>> xs, ys;
  for (size_t k = 0; k < std::size(mathCases); ++k) {
    const MathCase &each = mathCases[k];
    if (type == DataType::F64 && std::string_view(each.expression).find("_rn") != std::string_view::npos) {
      xs.emplace_back(), ys.emplace_back(), inputs.emplace_back(), inputs.emplace_back(), outputs.emplace_back();
      continue; // fp32 only
    }
    parameters += fmt::format("x{0}_ptr, y{0}_ptr, o{0}_ptr, ", k);
    body +=
        fmt::format("    x = tl.load(x{0}_ptr + i)\n    y = tl.load(y{0}_ptr + i)\n    tl.store(o{0}_ptr + i, {1})\n",
                    k, each.expression);
    xs.push_back(randomFloats(n, 10 + k, each.low, each.high));
    ys.push_back(randomFloats(n, 50 + k, each.low, each.high));
    inputs.push_back(putAs(type, xs.back()));
    inputs.push_back(putAs(type, ys.back()));
    outputs.push_back(zeros(type, n));
    arguments.push_back(inputs[2 * k]);
    arguments.push_back(inputs[2 * k + 1]);
    arguments.push_back(outputs[k]);
  }
  arguments.push_back(n);
  std::string text =
      fmt::format("@triton.jit\ndef mathematics({}N: tl.constexpr):\n    i = tl.arange(0, N)\n{}", parameters, body);
  ASSERT_OK(run(text, "mathematics", {.numWarps = uint32_t(warps)}, {arguments, {}}));
  for (size_t k = 0; k < std::size(mathCases); ++k) {
    if (!outputs[k].isValid())
      continue;
    std::vector<double> expected(n);
    for (int i = 0; i < n; ++i)
      expected[i] = mathCases[k].reference(xs[k][i], ys[k][i]);
    expectClose(getFloats(outputs[k]), expected, 2e-6, 1e-6, mathCases[k].expression);
  }
}
INSTANTIATE_TEST_SUITE_P(Types, Mathematics,
                         testing::Combine(testing::Values(DataType::F32, DataType::F64), testing::Values(1, 4)),
                         [](const auto &info) {
                           return fmt::format("{}_warps{}", toString(std::get<0>(info.param)), std::get<1>(info.param));
                         });

TEST_F(Elementwise, MinimumAndMaximumIgnoreNaN) {
  const char *text = R"(
@triton.jit
def extremes(x_ptr, y_ptr, low_ptr, high_ptr, both_ptr):
    i = tl.arange(0, 4)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    tl.store(low_ptr + i, tl.minimum(x, y))
    tl.store(high_ptr + i, tl.maximum(x, y))
    tl.store(both_ptr + i, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL))
)";
  const float nan = std::nanf("");
  Buffer x = put<float>({1, nan, -2, nan}, "x"), y = put<float>({nan, 3, 5, nan}, "y");
  Buffer low = zeros(DataType::F32, 4, "low"), high = zeros(DataType::F32, 4, "high"),
         both = zeros(DataType::F32, 4, "both");
  ASSERT_OK(run(text, "extremes", {.numWarps = 1}, {{x, y, low, high, both}, {}}));
  expectSame(get<float>(low), {1, 3, -2, nan});
  expectSame(get<float>(high), {1, 3, 5, nan});
  expectSame(get<float>(both), {nan, nan, 5, nan});
}

TEST_F(Elementwise, IntegerFunctions) {
  const char *text = R"(
@triton.jit
def integers(x_ptr, y_ptr, out_ptr, unsigned_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    tl.store(out_ptr + i, tl.abs(x))
    tl.store(out_ptr + N + i, tl.minimum(x, y))
    tl.store(out_ptr + 2 * N + i, tl.maximum(x, 5))
    tl.store(out_ptr + 3 * N + i, ~x)
    tl.store(out_ptr + 4 * N + i, -x)
    tl.store(out_ptr + 5 * N + i, tl.where(x > y, x, y))
    u = x.to(tl.uint32, bitcast=True)
    v = y.to(tl.uint32, bitcast=True)
    tl.store(unsigned_ptr + i, tl.umulhi(u, v))
    tl.store(unsigned_ptr + N + i, tl.maximum(u, v))
)";
  const int n = 64;
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(n, 7, INT32_MIN + 1, INT32_MAX));
  std::vector<int32_t> y = convertAll<int32_t>(randomIntegers(n, 8, -100, 100)), expected(6 * n);
  std::vector<uint32_t> expectedUnsigned(2 * n);
  for (int i = 0; i < n; ++i) {
    expected[i] = std::abs(x[i]);
    expected[n + i] = std::min(x[i], y[i]);
    expected[2 * n + i] = std::max(x[i], 5);
    expected[3 * n + i] = ~x[i];
    expected[4 * n + i] = -x[i];
    expected[5 * n + i] = std::max(x[i], y[i]);
    uint32_t u = x[i], v = y[i];
    expectedUnsigned[i] = static_cast<uint32_t>(uint64_t(u) * v >> 32);
    expectedUnsigned[n + i] = std::max(u, v);
  }
  Buffer xb = put(x, "x"), yb = put(y, "y"), out = zeros(DataType::I32, 6 * n),
         unsignedOut = zeros(DataType::U32, 2 * n, "u");
  ASSERT_OK(run(text, "integers", {.numWarps = 2}, {{xb, yb, out, unsignedOut}, {{"N", n}}}));
  expectSame(get<int32_t>(out), expected);
  expectSame(get<uint32_t>(unsignedOut), expectedUnsigned);
}

TEST_F(Elementwise, BitcastsAndRounding) {
  const char *text = R"(
@triton.jit
def casts(x_ptr, bits_ptr, nearest_ptr, truncated_ptr, scalar_ptr, half_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(bits_ptr + i, x.to(tl.int32, bitcast=True))
    tl.store(nearest_ptr + i, x.to(tl.bfloat16))
    tl.store(truncated_ptr + i, tl.cast(x, tl.bfloat16, fp_downcast_rounding="rtz"))
    tl.store(half_ptr + i, (x * 1000).to(tl.float16, fp_downcast_rounding="rtz"))
    for k in range(N):
        tl.store(scalar_ptr + k, tl.load(x_ptr + k).to(tl.float16, fp_downcast_rounding="rtz"))
)";
  const int n = 128;
  std::vector<float> x = randomFloats(n, 9, -100, 100);
  std::vector<int32_t> bits(n);
  std::vector<float> nearest(n), truncated(n), scalars(n), halves(n);
  auto halfTowardZero = [](float value) {
    uint16_t nearestHalf = floatToHalf(value);
    return halfToFloat(std::abs(halfToFloat(nearestHalf)) > std::abs(value) ? nearestHalf - 1 : nearestHalf);
  };
  for (int i = 0; i < n; ++i) {
    bits[i] = std::bit_cast<int32_t>(x[i]);
    nearest[i] = bfloat16ToFloat(floatToBfloat16(x[i]));
    truncated[i] = std::bit_cast<float>(bits[i] & int32_t(0xFFFF0000));
    scalars[i] = halfTowardZero(x[i]);
    halves[i] = halfTowardZero(x[i] * 1000); // many are beyond the largest fp16, which they become
  }
  Buffer xb = put(x), bitsOut = zeros(DataType::I32, n, "bits"), nearestOut = zeros(DataType::BF16, n, "nearest"),
         truncatedOut = zeros(DataType::BF16, n, "truncated"), scalarOut = zeros(DataType::F16, n, "scalar"),
         halfOut = zeros(DataType::F16, n, "half");
  ASSERT_OK(
      run(text, "casts", {.numWarps = 4}, {{xb, bitsOut, nearestOut, truncatedOut, scalarOut, halfOut}, {{"N", n}}}));
  expectSame(getFloats(scalarOut), scalars, "scalars towards zero");
  expectSame(getFloats(halfOut), halves, "fp16 towards zero");
  expectSame(get<int32_t>(bitsOut), bits);
  expectSame(getFloats(nearestOut), nearest, "nearest");
  expectSame(getFloats(truncatedOut), truncated, "towards zero");
}

/// Every bit pattern of the 8-bit floats to fp32 and back; fp32 values beyond the range saturate.
TEST_F(Elementwise, EightBitFloats) {
  const char *text = R"(
@triton.jit
def eight(x_ptr, wide_ptr, back_ptr, y_ptr, narrow_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(wide_ptr + i, x.to(tl.float32))
    tl.store(back_ptr + i, x.to(tl.float16).to(x.dtype))
    tl.store(narrow_ptr + i, tl.load(y_ptr + i).to(x.dtype))
)";
  for (DataType type : {DataType::F8E5, DataType::F8E4NV}) {
    auto widen = [&](int bits) { return type == DataType::F8E5 ? float8E5ToFloat(bits) : float8E4NVToFloat(bits); };
    const float limit = type == DataType::F8E5 ? 57344.0f : 448.0f;
    std::vector<uint8_t> patterns(256);
    std::vector<float> wide(256), y = randomFloats(256, 11, -100, 100), narrow(256), back(256);
    y[0] = 1e6f, y[1] = -1e6f, y[2] = INFINITY;
    for (int i = 0; i < 256; ++i) {
      patterns[i] = static_cast<uint8_t>(i);
      wide[i] = widen(i);
      back[i] = std::isnan(wide[i]) ? wide[i] : std::clamp(wide[i], -limit, limit);
      float saturated = std::clamp(y[i], -limit, limit);
      narrow[i] = widen(type == DataType::F8E5 ? floatToFloat8E5(saturated) : floatToFloat8E4NV(saturated));
    }
    Buffer x = zeros(type, 256, "x"), wideOut = zeros(DataType::F32, 256, "wide"), backOut = zeros(type, 256, "back"),
           yb = put(y, "y"), narrowOut = zeros(type, 256, "narrow");
    ASSERT_OK(x.upload(patterns.data(), 256));
    ASSERT_OK(run(text, "eight", {}, {{x, wideOut, backOut, yb, narrowOut}, {{"N", 256}}}));
    expectSame(get<float>(wideOut), wide, toString(type));
    expectSame(getFloats(backOut), back, "through fp16");
    expectSame(getFloats(narrowOut), narrow, "from fp32");
  }
}

TEST_F(Elementwise, ScalarArgumentsOfEveryKind) {
  const char *text = R"(
@triton.jit
def scalars(out_ptr, flag, small, big, real, wide, nothing, one, COUNT: tl.constexpr, NAME: tl.constexpr, T: tl.constexpr):
    tl.static_assert(nothing is None)
    tl.static_assert(one + 1 == 2)
    tl.static_assert(NAME == "gelu")
    tl.static_assert(T == tl.float16)
    tl.static_assert(flag.dtype == tl.int1)
    tl.static_assert(small.dtype == tl.int32)
    tl.static_assert(big.dtype == tl.int64)
    tl.static_assert(real.dtype == tl.float32)
    tl.static_assert(wide.dtype == tl.float64)
    tl.store(out_ptr, tl.where(flag, 1.0, 0.0))
    tl.store(out_ptr + 1, small)
    tl.store(out_ptr + 2, big)
    tl.store(out_ptr + 3, real)
    tl.store(out_ptr + 4, wide)
    tl.store(out_ptr + 5, COUNT)
)";
  Buffer out = zeros(DataType::F64, 6);
  ASSERT_OK(run(text, "scalars", {.numWarps = 1},
                {{out, true, -5, int64_t(1) << 40, 2.5, Argument::typed(DataType::F64, 0.1), runtime::None(), 1},
                 {{"COUNT", 12}, {"NAME", "gelu"}, {"T", DataType::F16}}}));
  expectSame(get<double>(out), {1, -5, std::ldexp(1.0, 40), 2.5, 0.1, 12});
}

TEST_F(Elementwise, BoolsInMemory) {
  const char *text = R"(
@triton.jit
def bools(x_ptr, out_ptr, not_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.static_assert(x.dtype == tl.int1)
    tl.store(out_ptr + i, x & (i % 2 == 0))
    tl.store(not_ptr + i, tl.where(~x, 3, 4))
)";
  std::vector<uint8_t> x(32), both(32);
  std::vector<int32_t> inverse(32);
  for (int i = 0; i < 32; ++i) {
    x[i] = i % 3 == 0;
    both[i] = x[i] && i % 2 == 0;
    inverse[i] = x[i] ? 4 : 3;
  }
  Buffer xb = zeros(DataType::I1, 32, "x"), out = zeros(DataType::I1, 32), inverseOut = zeros(DataType::I32, 32, "not");
  ASSERT_OK(xb.upload(x.data(), 32));
  ASSERT_OK(run(text, "bools", {.numWarps = 1}, {{xb, out, inverseOut}, {{"N", 32}}}));
  expectSame(get<uint8_t>(out), both);
  expectSame(get<int32_t>(inverseOut), inverse);
}

TEST_F(Elementwise, VariantsAreCachedAndSpecialised) {
  const jit::JitCounters before = sharedJit().counters();
  const char *text = R"(
@triton.jit
def cached(out_ptr, n, B: tl.constexpr):
    tl.store(out_ptr, n + B)
)";
  Buffer out = zeros(DataType::I32, 1);
  for (int n : {3, 5, 7, 9}) // all i32
    ASSERT_OK(run(text, "cached", {.numWarps = 1}, {{out, n}, {{"B", 2}}}));
  EXPECT_EQ(sharedJit().counters().compilations - before.compilations, 1u);
  EXPECT_EQ(sharedJit().counters().cacheHits - before.cacheHits, 3u);
  ASSERT_OK(run(text, "cached", {.numWarps = 1}, {{out, 16}, {{"B", 2}}})); // divisible by 16
  ASSERT_OK(run(text, "cached", {.numWarps = 1}, {{out, 1}, {{"B", 2}}}));  // 1 is compile-time
  ASSERT_OK(run(text, "cached", {.numWarps = 1}, {{out, 3}, {{"B", 4}}}));
  EXPECT_EQ(sharedJit().counters().compilations - before.compilations, 4u);
  EXPECT_EQ(get<int32_t>(out)[0], 7);
}

/// Integers beyond the largest fp16 become infinite, also where the compiler could see that 16 bits hold the source (found by
/// random_kernels_test).
TEST_F(Elementwise, LargeIntegersOverflowToInfinity) {
  const char *text = R"(
@triton.jit
def overflow(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i).to(tl.uint32)
    h = tl.full([N], -1, tl.float16)
    tl.store(out_ptr + i, tl.where(x > h, x, h)) # promotes to fp16
)";
  std::vector<int8_t> x = convertAll<int8_t>(randomIntegers(256, 12, -100, 100));
  std::vector<float> expected;
  for (int8_t each : x)
    expected.push_back(each < 0 ? INFINITY : static_cast<float>(each));
  Buffer xb = put(x), out = zeros(DataType::F16, x.size());
  ASSERT_OK(run(text, "overflow", {.numWarps = 1}, {{xb, out}, {{"N", 256}}}));
  expectSame(getFloats(out), expected);
}

/// On the simulator straight code of this length becomes several functions (CutBlocks.h): the same bits as in a loop.
TEST_F(Elementwise, LongStraightCode) {
  const char *text = R"(
@triton.jit
def turn(x_ptr, out_ptr, i, k, total, product):
    x = tl.load(x_ptr + k * 64 + i)
    total = total * 0.7 + x
    product = product * x + total
    tl.store(out_ptr + k * 64 + i, total - product)
    return total, product

@triton.jit
def chain(x_ptr, out_ptr, TURNS: tl.constexpr, STRAIGHT: tl.constexpr):
    i = tl.arange(0, 64)
    total = tl.zeros([64], tl.float32)
    product = total + 1
    if STRAIGHT:
        for k in tl.static_range(TURNS):
            total, product = turn(x_ptr, out_ptr, i, k, total, product)
    else:
        for k in range(TURNS):
            total, product = turn(x_ptr, out_ptr, i, k, total, product)
    tl.store(out_ptr + TURNS * 64 + i, product)
)";
  constexpr int turns = 500;
  std::vector<float> expected;
  for (bool isStraight : {false, true}) {
    Buffer x = put(randomFloats(turns * 64, 5)), out = zeros(DataType::F32, (turns + 1) * 64);
    ASSERT_OK(run(text, "chain", {.numWarps = 1}, {{x, out}, {{"TURNS", turns}, {"STRAIGHT", isStraight}}}));
    if (isStraight)
      expectSame(get<float>(out), expected);
    expected = get<float>(out);
  }
}

/// Shifts by the width and more move all bits out, on GPUs and so on the simulator, whose host takes amounts modulo the width.
TEST_F(Elementwise, ShiftsBeyondTheWidth) {
  const char *text = R"(
@triton.jit
def shift(x_ptr, n_ptr, left_ptr, right_ptr, logical_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    n = tl.load(n_ptr + i)
    tl.store(left_ptr + i, x << n)
    tl.store(right_ptr + i, x >> n)
    tl.store(logical_ptr + i, x.to(tl.uint32) >> n)
)";
  std::vector<int32_t> x, amounts, left, right, logical;
  for (int32_t value : {5, -7})
    for (int32_t amount : {0, 1, 31, 32, 33, 40, 64, 1000}) {
      x.push_back(value);
      amounts.push_back(amount);
      left.push_back(amount < 32 ? static_cast<int32_t>(static_cast<uint32_t>(value) << amount) : 0);
      right.push_back(value >> std::min(amount, 31));
      logical.push_back(amount < 32 ? static_cast<int32_t>(static_cast<uint32_t>(value) >> amount) : 0);
    }
  Buffer xb = put(x), nb = put(amounts), results[3];
  for (Buffer &each : results)
    each = zeros(DataType::I32, x.size());
  ASSERT_OK(run(text, "shift", {.numWarps = 1}, {{xb, nb, results[0], results[1], results[2]}, {{"N", 16}}}));
  expectSame(get<int32_t>(results[0]), left);
  expectSame(get<int32_t>(results[1]), right);
  expectSame(get<int32_t>(results[2]), logical);
}

} // namespace
} // namespace ditron::e2e
