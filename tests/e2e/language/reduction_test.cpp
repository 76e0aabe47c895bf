//===- reduction_test.cpp - Reductions, scans and what is made of them ------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

#include <numeric>

namespace ditron::e2e {
namespace {

/// (rows, columns, axis, warps); axis 2 stands for None.
using Tile = std::tuple<int, int, int, int>;

std::string tileName(const testing::TestParamInfo<Tile> &info) {
  auto [rows, columns, axis, warps] = info.param;
  return fmt::format("{}x{}_axis{}_warps{}", rows, columns, axis == 2 ? "None" : std::to_string(axis), warps);
}

const char *const reduceTile = R"(
@triton.jit
def reduce_tile(x_ptr, k_ptr, sum_ptr, max_ptr, min_ptr, argmax_ptr, argmin_ptr, ksum_ptr, R: tl.constexpr, C: tl.constexpr,
                AXIS: tl.constexpr):
    rows = tl.arange(0, R)
    columns = tl.arange(0, C)
    at = rows[:, None] * C + columns[None, :]
    x = tl.load(x_ptr + at)
    k = tl.load(k_ptr + at)
    if AXIS is None:
        tl.store(sum_ptr, tl.sum(x))
        tl.store(max_ptr, tl.max(x))
        tl.store(min_ptr, tl.min(x))
        tl.store(ksum_ptr, tl.sum(k))
    else:
        to = rows if AXIS == 1 else columns
        tl.store(sum_ptr + to, tl.sum(x, axis=AXIS))
        tl.store(max_ptr + to, tl.max(x, AXIS))
        tl.store(min_ptr + to, x.min(axis=AXIS))
        tl.store(argmax_ptr + to, tl.argmax(x, axis=AXIS))
        tl.store(argmin_ptr + to, tl.argmin(k, axis=AXIS))
        tl.static_assert(tl.sum(k, axis=AXIS).dtype == tl.int32)
        tl.store(ksum_ptr + to, tl.sum(k, axis=AXIS))
)";

class TileReduction : public KernelTest, public testing::WithParamInterface<Tile> {};

TEST_P(TileReduction, SumsExtremesAndTheirPlaces) {
  auto [rows, columns, axis, warps] = GetParam();
  std::vector<float> x = randomFloats(rows * columns, 21, -10, 10);
  std::vector<int8_t> k =
      convertAll<int8_t>(randomIntegers(rows * columns, 22, -9, 9)); // many ties: the first one wins
  const int results = axis == 2 ? 1 : axis == 1 ? rows : columns;
  const int length = axis == 2 ? rows * columns : axis == 1 ? columns : rows;
  std::vector<double> sums(results);
  std::vector<float> highs(results, -INFINITY), lows(results, INFINITY);
  std::vector<int32_t> places(results), lowPlaces(results), integerSums(results);
  for (int r = 0; r < results; ++r) {
    int lowest = 100;
    for (int i = 0; i < length; ++i) {
      const int at = axis == 2 ? i : axis == 1 ? r * columns + i : i * columns + r;
      sums[r] += x[at];
      integerSums[r] += k[at];
      if (x[at] > highs[r])
        highs[r] = x[at], places[r] = i;
      lows[r] = std::min(lows[r], x[at]);
      if (k[at] < lowest)
        lowest = k[at], lowPlaces[r] = i;
    }
  }
  Buffer xb = put(x), kb = put(k, "k"), sum = zeros(DataType::F32, results, "sum"),
         max = zeros(DataType::F32, results, "max"), min = zeros(DataType::F32, results, "min"),
         argmax = zeros(DataType::I32, results, "argmax"), argmin = zeros(DataType::I32, results, "argmin"),
         ksum = zeros(DataType::I32, results, "ksum");
  Argument axisArgument = axis == 2 ? Argument(runtime::None()) : Argument(axis);
  ASSERT_OK(
      run(reduceTile, "reduce_tile", {.numWarps = uint32_t(warps)},
          {{xb, kb, sum, max, min, argmax, argmin, ksum}, {{"R", rows}, {"C", columns}, {"AXIS", axisArgument}}}));
  expectClose(get<float>(sum), sums, 1e-5, 1e-3, "sum");
  expectSame(get<float>(max), highs, "max");
  expectSame(get<float>(min), lows, "min");
  expectSame(get<int32_t>(ksum), integerSums, "sum of int8");
  if (axis != 2) {
    expectSame(get<int32_t>(argmax), places, "argmax");
    expectSame(get<int32_t>(argmin), lowPlaces, "argmin");
  }
}
INSTANTIATE_TEST_SUITE_P(Tiles, TileReduction,
                         testing::Combine(testing::Values(1, 16, 64), testing::Values(2, 32, 128),
                                          testing::Values(0, 1, 2), testing::Values(1, 4)),
                         tileName);
INSTANTIATE_TEST_SUITE_P(Warps, TileReduction,
                         testing::Combine(testing::Values(32), testing::Values(16), testing::Values(0, 1, 2),
                                          testing::Values(2, 8)),
                         tileName);

class Reduction : public KernelTest {};

TEST_F(Reduction, OneDimension) {
  const char *text = R"(
@triton.jit
def one(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.sum(x, axis=0))
    tl.store(out_ptr + 1, tl.max(x, axis=0))
    value, place = tl.max(x, axis=0, return_indices=True)
    tl.store(out_ptr + 2, value)
    tl.store(out_ptr + 3, place)
    kept = tl.sum(x, axis=0, keep_dims=True)
    tl.static_assert(kept.shape[0] == 1)
    tl.store(out_ptr + 4 + tl.arange(0, 1), kept)
)";
  for (int n : {1, 4, 32, 2048})
    for (uint32_t warps : {1u, 4u, 8u}) {
      std::vector<float> x = randomFloats(n, n);
      double sum = std::accumulate(x.begin(), x.end(), 0.0);
      auto largest = std::max_element(x.begin(), x.end());
      Buffer xb = put(x), out = zeros(DataType::F32, 5);
      ASSERT_OK(run(text, "one", {.numWarps = warps}, {{xb, out}, {{"N", n}}}));
      expectClose(get<float>(out), {sum, *largest, *largest, double(largest - x.begin()), sum}, 1e-5, 1e-4,
                  fmt::format("{} elements, {} warps", n, warps));
    }
}

TEST_F(Reduction, KeepDimsThreeDimensionsAndNarrowTypes) {
  const char *text = R"(
@triton.jit
def shapes(x_ptr, out_ptr, half_ptr):
    i = tl.arange(0, 4)[:, None, None] * 64 + tl.arange(0, 8)[None, :, None] * 8 + tl.arange(0, 8)[None, None, :]
    x = tl.load(x_ptr + i)
    middle = tl.sum(x, axis=1, keep_dims=True)
    tl.static_assert(middle.shape[1] == 1)
    tl.store(out_ptr + i, x - middle)
    h = x.to(tl.float16)
    tl.static_assert(tl.sum(h, axis=2).dtype == tl.float16)
    tl.static_assert(tl.max(h, axis=2).dtype == tl.float32)
    twice = tl.max(tl.sum(h, axis=-1), axis=0)
    tl.store(half_ptr + tl.arange(0, 8), twice)
)";
  std::vector<int64_t> random = randomIntegers(256, 30, -4, 4);
  std::vector<float> x(random.begin(), random.end()), expected(256), half(8, -INFINITY);
  for (int a = 0; a < 4; ++a)
    for (int c = 0; c < 8; ++c) {
      float sum = 0, along = 0;
      for (int b = 0; b < 8; ++b) {
        sum += x[a * 64 + b * 8 + c];
        along += x[a * 64 + c * 8 + b];
      }
      for (int b = 0; b < 8; ++b)
        expected[a * 64 + b * 8 + c] = x[a * 64 + b * 8 + c] - sum;
      half[c] = std::max(half[c], along);
    }
  Buffer xb = put(x), out = zeros(DataType::F32, 256), halfOut = zeros(DataType::F32, 8, "half");
  ASSERT_OK(run(text, "shapes", {}, {{xb, out, halfOut}, {}}));
  expectSame(get<float>(out), expected);
  expectSame(get<float>(halfOut), half);
}

TEST_F(Reduction, BitwiseReductions) {
  const char *text = R"(
@triton.jit
def bits(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.xor_sum(x, axis=0))
    tl.store(out_ptr + 1, tl.reduce_or(x & 0x5555, axis=0))
)";
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(512, 31, INT32_MIN, INT32_MAX));
  int32_t all = 0, any = 0;
  for (int32_t each : x)
    all ^= each, any |= each & 0x5555;
  Buffer xb = put(x), out = zeros(DataType::I32, 2);
  ASSERT_OK(run(text, "bits", {}, {{xb, out}, {{"N", 512}}}));
  expectSame(get<int32_t>(out), {all, any});
}

TEST_F(Reduction, UserCombineFunctions) {
  const char *text = R"(
@triton.jit
def larger_magnitude(a, b):
    return tl.where(tl.abs(a) > tl.abs(b), a, b)

@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    return mean_a + delta * (n_b / n), m2_a + m2_b + delta * delta * n_a * n_b / n, n

@triton.jit
def users(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    rows = tl.arange(0, R)
    x = tl.load(x_ptr + rows[:, None] * C + tl.arange(0, C)[None, :])
    tl.store(out_ptr + rows, tl.reduce(x, 1, larger_magnitude))
    mean, m2, n = tl.reduce((x, tl.zeros_like(x), tl.full((R, C), 1.0, tl.float32)), 1, welford)
    tl.store(out_ptr + R + rows, mean)
    tl.store(out_ptr + 2 * R + rows, m2 / n)
)";
  const int rows = 8, columns = 64;
  std::vector<float> x = randomFloats(rows * columns, 32, -3, 5);
  std::vector<double> expected(3 * rows);
  for (int r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int c = 0; c < columns; ++c) {
      float each = x[r * columns + c];
      if (std::abs(each) > std::abs(expected[r]))
        expected[r] = each;
      mean += each / columns;
    }
    for (int c = 0; c < columns; ++c)
      variance += (x[r * columns + c] - mean) * (x[r * columns + c] - mean) / columns;
    expected[rows + r] = mean;
    expected[2 * rows + r] = variance;
  }
  for (uint32_t warps : {1u, 4u}) {
    Buffer xb = put(x), out = zeros(DataType::F32, 3 * rows);
    ASSERT_OK(run(text, "users", {.numWarps = warps}, {{xb, out}, {{"R", rows}, {"C", columns}}}));
    expectClose(get<float>(out), expected, 1e-5, 1e-5);
  }
}

/// (rows, columns, axis, warps)
class Scan : public KernelTest, public testing::WithParamInterface<Tile> {};

TEST_P(Scan, RunningSumsForwardsAndBackwards) {
  const char *text = R"(
@triton.jit
def scan(x_ptr, k_ptr, sum_ptr, reverse_ptr, integer_ptr, product_ptr, R: tl.constexpr, C: tl.constexpr, AXIS: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + at)
    k = tl.load(k_ptr + at)
    tl.store(sum_ptr + at, tl.cumsum(x, axis=AXIS))
    tl.store(reverse_ptr + at, tl.cumsum(x, axis=AXIS, reverse=True))
    tl.store(integer_ptr + at, tl.cumsum(k, axis=AXIS))
    tl.store(product_ptr + at, tl.cumprod(1 + x * 0.01, axis=AXIS))
)";
  auto [rows, columns, axis, warps] = GetParam();
  const int count = rows * columns, lines = axis == 0 ? columns : rows, length = axis == 0 ? rows : columns;
  std::vector<float> x = randomFloats(count, 33, -1, 2);
  std::vector<int32_t> k = convertAll<int32_t>(randomIntegers(count, 34, -100, 100)), integers(count);
  std::vector<double> sums(count), reversed(count), products(count);
  for (int line = 0; line < lines; ++line) {
    auto at = [&](int i) { return axis == 0 ? i * columns + line : line * columns + i; };
    double sum = 0, product = 1;
    int32_t integer = 0;
    for (int i = 0; i < length; ++i) {
      sums[at(i)] = sum += x[at(i)];
      integers[at(i)] = integer += k[at(i)];
      products[at(i)] = product *= 1 + x[at(i)] * 0.01;
    }
    sum = 0;
    for (int i = length - 1; i >= 0; --i)
      reversed[at(i)] = sum += x[at(i)];
  }
  Buffer xb = put(x), kb = put(k, "k"), sumOut = zeros(DataType::F32, count, "sum"),
         reverseOut = zeros(DataType::F32, count, "reverse"), integerOut = zeros(DataType::I32, count, "integer"),
         productOut = zeros(DataType::F32, count, "product");
  ASSERT_OK(run(text, "scan", {.numWarps = uint32_t(warps)},
                {{xb, kb, sumOut, reverseOut, integerOut, productOut}, {{"R", rows}, {"C", columns}, {"AXIS", axis}}}));
  expectClose(get<float>(sumOut), sums, 1e-4, 1e-4, "cumsum");
  expectClose(get<float>(reverseOut), reversed, 1e-4, 1e-4, "reverse");
  expectSame(get<int32_t>(integerOut), integers, "integers");
  expectClose(get<float>(productOut), products, 1e-4, 1e-4, "cumprod");
}
INSTANTIATE_TEST_SUITE_P(Tiles, Scan,
                         testing::Combine(testing::Values(2, 32), testing::Values(8, 64), testing::Values(0, 1),
                                          testing::Values(1, 4)),
                         tileName);

TEST_F(Reduction, ScansOfOneDimensionAndUserFunctions) {
  const char *text = R"(
@triton.jit
def affine(a_scale, a_shift, b_scale, b_shift):
    return a_scale * b_scale, a_shift * b_scale + b_shift

@triton.jit
def scan(scale_ptr, shift_ptr, out_ptr, count_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    scale = tl.load(scale_ptr + i)
    shift = tl.load(shift_ptr + i)
    _, state = tl.associative_scan((scale, shift), 0, affine)
    tl.store(out_ptr + i, state)
    tl.store(count_ptr + i, tl.cumsum((shift > 0).to(tl.int32), 0))
)";
  for (int n : {32, 256})
    for (uint32_t warps : {1u, 2u, 8u}) {
      std::vector<float> scale = randomFloats(n, 35, -0.9f, 0.9f), shift = randomFloats(n, 36);
      std::vector<double> expected(n);
      std::vector<int32_t> counts(n);
      double state = 0;
      int32_t count = 0;
      for (int i = 0; i < n; ++i) {
        expected[i] = state = state * scale[i] + shift[i];
        counts[i] = count += shift[i] > 0;
      }
      Buffer a = put(scale, "scale"), b = put(shift, "shift"), out = zeros(DataType::F32, n),
             countOut = zeros(DataType::I32, n, "count");
      ASSERT_OK(run(text, "scan", {.numWarps = warps}, {{a, b, out, countOut}, {{"N", n}}}));
      expectClose(get<float>(out), expected, 1e-5, 1e-5);
      expectSame(get<int32_t>(countOut), counts);
    }
}

TEST_F(Reduction, SoftmaxOfRows) {
  const char *text = R"(
@triton.jit
def softmax_rows(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < columns, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    numerator = tl.exp(x)
    tl.store(out_ptr + row * stride + i, numerator / tl.sum(numerator, axis=0), mask=i < columns)
)";
  const int rows = 5, columns = 781;
  std::vector<float> x = randomFloats(rows * columns, 37, -20, 20);
  std::vector<double> expected(rows * columns);
  for (int r = 0; r < rows; ++r) {
    double largest = *std::max_element(&x[r * columns], &x[r * columns] + columns), sum = 0;
    for (int c = 0; c < columns; ++c)
      sum += expected[r * columns + c] = std::exp(x[r * columns + c] - largest);
    for (int c = 0; c < columns; ++c)
      expected[r * columns + c] /= sum;
  }
  Buffer xb = put(x), out = zeros(DataType::F32, rows * columns);
  ASSERT_OK(run(text, "softmax_rows", {.grid = {rows, 1, 1}}, {{xb, out, columns, columns}, {{"BLOCK", 1024}}}));
  expectClose(get<float>(out), expected, 1e-5, 1e-7);
}

TEST_F(Reduction, LayerNormInHalfPrecision) {
  const char *text = R"(
@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * columns
    out_ptr += row * columns
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + i, mask=i < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < columns, other=0.0).to(tl.float32)
        x = tl.where(i < columns, x - mean, 0.0)
        squares += x * x
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + epsilon)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = i < columns
        x = tl.load(x_ptr + i, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * scale * tl.load(weight_ptr + i, mask=mask) + tl.load(bias_ptr + i, mask=mask)
        tl.store(out_ptr + i, y, mask=mask)
)";
  const int rows = 3, columns = 300;
  std::vector<float> x = randomFloats(rows * columns, 38, -2, 3, DataType::F16), weight = randomFloats(columns, 39),
                     bias = randomFloats(columns, 40);
  std::vector<double> expected(rows * columns);
  for (int r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int c = 0; c < columns; ++c)
      mean += x[r * columns + c] / double(columns);
    for (int c = 0; c < columns; ++c)
      variance += (x[r * columns + c] - mean) * (x[r * columns + c] - mean) / columns;
    for (int c = 0; c < columns; ++c)
      expected[r * columns + c] = (x[r * columns + c] - mean) / std::sqrt(variance + 1e-5) * weight[c] + bias[c];
  }
  Buffer xb = putAs(DataType::F16, x), wb = put(weight, "weight"), bb = put(bias, "bias"),
         out = zeros(DataType::F16, rows * columns);
  ASSERT_OK(run(text, "layer_norm", {.grid = {rows, 1, 1}}, {{xb, wb, bb, out, columns, 1e-5}, {{"BLOCK", 128}}}));
  expectClose(getFloats(out), expected, 2e-3, 2e-3);
}

} // namespace
} // namespace ditron::e2e
