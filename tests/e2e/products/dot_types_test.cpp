//===- dot_types_test.cpp - Matrix products of every type, precision, rank and size ------------------------------------===//
//
// One kernel with the epilogues of Triton's own test of tl.dot; the reference is computed in double from the values that the
// operands have after rounding.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

const char *const productText = R"(
@triton.jit
def product(x_ptr, y_ptr, w_ptr, z_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
            COL_A: tl.constexpr, COL_B: tl.constexpr, PRECISION: tl.constexpr, OUT: tl.constexpr, EPILOGUE: tl.constexpr,
            BATCHED: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    ka = tl.arange(0, K)[None, :]
    kb = tl.arange(0, K)[:, None]
    x_at = m + ka * M if COL_A else m * K + ka
    y_at = kb + n * K if COL_B else kb * N + n
    if BATCHED:
        b = tl.arange(0, B)[:, None, None]
        x = tl.load(x_ptr + b * (M * K) + x_at[None, :, :])
        y = tl.load(y_ptr + b * (K * N) + y_at[None, :, :])
        z = tl.dot(x, y, input_precision=PRECISION, out_dtype=OUT)
        tl.store(z_ptr + b * (M * N) + (m * N + n)[None, :, :], z)
    else:
        x = tl.load(x_ptr + x_at)
        y = tl.load(y_ptr + y_at)
        z = tl.dot(x, y, input_precision=PRECISION, out_dtype=OUT)
        if EPILOGUE == "matrix":
            z += tl.load(z_ptr + m * N + n)
        if EPILOGUE == "rows":
            z += tl.load(z_ptr + tl.arange(0, M))[:, None]
        if EPILOGUE == "columns":
            z += tl.load(z_ptr + tl.arange(0, N))[None, :]
        if EPILOGUE == "softmax":
            z = z.to(tl.float32)
            z = tl.exp(z - tl.max(z, 1)[:, None])
            z = z / tl.sum(z, 1)[:, None]
        if EPILOGUE == "chain":
            w = tl.load(w_ptr + tl.arange(0, N)[:, None] * N + n)
            z = tl.dot(z.to(w.dtype), w, input_precision=PRECISION, out_dtype=OUT)
        if EPILOGUE == "transposed":
            tl.store(z_ptr + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(z).to(z_ptr.dtype.element_ty))
        else:
            tl.store(z_ptr + m * N + n, z.to(z_ptr.dtype.element_ty))
)";

struct Case {
  DataType type = DataType::F16, out = DataType::F32;
  int m = 64, n = 64, k = 64;
  uint32_t warps = 4;
  const char *precision = "tf32", *epilogue = "none";
  int batch = 0; ///< 0: no batch dimension.
  bool columnsA = false, columnsB = false;
  DataType otherType = DataType::I1; ///< Of y, for mixed fp8; I1: the same.
};

void PrintTo(const Case &c, std::ostream *stream) {
  *stream << fmt::format("{} {} to {}, {}x{}x{}, batch {}, {} warps, {}{}{}", toString(c.type), c.precision, toString(c.out),
                         c.m, c.n, c.k, c.batch, c.warps, c.epilogue, c.columnsA ? ", A by columns" : "",
                         c.columnsB ? ", B by columns" : "");
}

class DotTypes : public KernelTest, public testing::WithParamInterface<Case> {};

TEST_P(DotTypes, MatchesTheReference) {
  const Case &c = GetParam();
  const int batch = std::max(1, c.batch), m = c.m, n = c.n, k = c.k;
  const std::string_view epilogue = c.epilogue;
  const bool integers = c.type == DataType::I8, isTf32 = c.type == DataType::F32 && std::string_view(c.precision) == "tf32";
  const DataType typeB = c.otherType == DataType::I1 ? c.type : c.otherType;
  auto values = [&](int count, uint64_t seed, DataType type) {
    std::vector<float> made =
        integers ? convertAll<float>(randomIntegers(count, seed, -20, 20)) : randomFloats(count, seed, -1, 1, type);
    if (isTf32)
      for (float &value : made)
        value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xFFFFE000u);
    return made;
  };
  const std::vector<float> x = values(batch * m * k, 71, c.type), y = values(batch * k * n, 72, typeB),
                           w = values(n * n, 73, c.type), start = values(std::max(batch * m * n, 256), 74, c.out);
  std::vector<double> product(batch * m * n);
  for (int b = 0; b < batch; ++b)
    for (int i = 0; i < m; ++i)
      for (int l = 0; l < k; ++l)
        for (int j = 0; j < n; ++j)
          product[(b * m + i) * n + j] += double(x[b * m * k + (c.columnsA ? i + l * m : i * k + l)]) *
                                          y[b * k * n + (c.columnsB ? l + j * k : l * n + j)];
  std::vector<double> expected = product;
  for (int i = 0; i < m && batch == 1; ++i) {
    double sum = 0, largest = -INFINITY;
    for (int j = 0; j < n; ++j)
      largest = std::max(largest, product[i * n + j]);
    for (int j = 0; j < n; ++j)
      sum += std::exp(product[i * n + j] - largest);
    for (int j = 0; j < n; ++j) {
      double &value = expected[i * n + j];
      if (epilogue == "matrix")
        value += start[i * n + j];
      else if (epilogue == "rows")
        value += start[i];
      else if (epilogue == "columns")
        value += start[j];
      else if (epilogue == "softmax")
        value = std::exp(value - largest) / sum;
      else if (epilogue == "transposed")
        expected[j * m + i] = product[i * n + j];
      else if (epilogue == "chain") {
        value = 0;
        for (int l = 0; l < n; ++l)
          value += (integers ? double(int8_t(int64_t(product[i * n + l]))) : product[i * n + l]) * w[l * n + j];
      }
    }
  }
  Buffer xb = putAs(c.type, x, "x"), yb = putAs(typeB, y, "y"), wb = putAs(c.type, w, "w"), zb = putAs(c.out, start, "z");
  ASSERT_OK(run(productText, "product", {.numWarps = c.warps},
                {{xb, yb, wb, zb},
                 {{"B", batch}, {"M", m}, {"N", n}, {"K", k}, {"COL_A", c.columnsA}, {"COL_B", c.columnsB},
                  {"PRECISION", c.precision}, {"OUT", c.out}, {"EPILOGUE", c.epilogue}, {"BATCHED", c.batch > 0}}}));
  std::vector<float> actual;
  if (integers)
    actual = convertAll<float>(get<int32_t>(zb));
  else
    actual = getFloats(zb);
  actual.resize(expected.size());
  const bool isHalf = c.out == DataType::F16 || c.type == DataType::BF16 || c.type == DataType::F16;
  const bool isRough = epilogue == "chain" && c.type == DataType::F32; // the second dot rounds its operand to tf32
  // The tensor cores of Hopper keep about 14 bits of a sum of fp8 products.
  const bool isShortSum = (!isSimulated() || targetUnderTest().ends_with("sm_90a")) &&
                          (c.type == DataType::F8E5 || c.type == DataType::F8E4NV);
  expectClose(actual, expected,
              integers               ? 0
              : isHalf || isShortSum ? 0.01
              : isRough              ? 5e-3
                                     : 1e-5,
              integers     ? 0
              : isHalf     ? 0.02
              : isRough    ? 2e-2
              : isShortSum ? 1e-2
                           : 1e-4);
}

std::vector<Case> types() {
  std::vector<Case> all;
  for (auto [type, out] : {std::pair(DataType::F16, DataType::F32), std::pair(DataType::F16, DataType::F16),
                           std::pair(DataType::BF16, DataType::F32), std::pair(DataType::F32, DataType::F32),
                           std::pair(DataType::F64, DataType::F64), std::pair(DataType::I8, DataType::I32),
                           std::pair(DataType::F8E5, DataType::F32), std::pair(DataType::F8E4NV, DataType::F32),
                           std::pair(DataType::F8E4NV, DataType::F16)})
    for (auto [m, n, k, warps] : {std::tuple(128, 64, 32, 4u), std::tuple(64, 128, 64, 8u), std::tuple(32, 32, 128, 16u),
                                  std::tuple(64, 64, 64, 1u), std::tuple(16, 8, 32, 2u)})
      for (int columns = 0; columns < 4; columns += 3)
        all.push_back({.type = type, .out = out, .m = m, .n = n, .k = k, .warps = warps, .columnsA = columns != 0,
                       .columnsB = columns != 0});
  // A result that no shared memory holds.
  all.push_back({.type = DataType::F64, .out = DataType::F64, .m = 128, .n = 256, .k = 32, .warps = 8});
  all.push_back({.type = DataType::F8E5, .m = 64, .n = 64, .k = 32, .columnsB = true, .otherType = DataType::F8E4NV});
  all.push_back({.type = DataType::F8E4NV, .m = 32, .n = 32, .k = 32, .otherType = DataType::F8E5});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Types, DotTypes, testing::ValuesIn(types()));

std::vector<Case> precisions() {
  std::vector<Case> all;
  for (const char *precision : {"ieee", "tf32x3", "bf16x6"})
    for (auto [m, n, k, warps] : {std::tuple(64, 64, 64, 4u), std::tuple(16, 16, 16, 1u), std::tuple(128, 128, 64, 2u),
                                  std::tuple(2, 4, 8, 4u), std::tuple(16, 64, 128, 8u)})
      all.push_back({.type = DataType::F32, .m = m, .n = n, .k = k, .warps = warps, .precision = precision});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Precisions, DotTypes, testing::ValuesIn(precisions()));

/// Tiles too small for one instruction in M or N.
std::vector<Case> small() {
  std::vector<Case> all;
  for (auto [type, out] : {std::pair(DataType::F16, DataType::F32), std::pair(DataType::F32, DataType::F32),
                           std::pair(DataType::I8, DataType::I32), std::pair(DataType::F64, DataType::F64),
                           std::pair(DataType::F8E5, DataType::F32)})
    for (auto [m, n, k] : {std::tuple(1, 2, 32), std::tuple(1, 64, 128), std::tuple(8, 1, 32), std::tuple(2, 128, 64),
                           std::tuple(128, 2, 64), std::tuple(1, 1, 32)})
      for (uint32_t warps : {1u, 4u})
        all.push_back({.type = type, .out = out, .m = m, .n = n, .k = k, .warps = warps});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Small, DotTypes, testing::ValuesIn(small()));

std::vector<Case> batches() {
  std::vector<Case> all;
  for (auto [type, out] :
       {std::pair(DataType::F16, DataType::F32), std::pair(DataType::F16, DataType::F16), std::pair(DataType::F32, DataType::F32),
        std::pair(DataType::I8, DataType::I32), std::pair(DataType::F64, DataType::F64)})
    for (int batch : {1, 2, 4, 8})
      for (auto [m, n, k, warps] : {std::tuple(32, 32, 32, 4u), std::tuple(32, 16, 64, 1u), std::tuple(16, 32, 32, 8u)})
        all.push_back({.type = type, .out = out, .m = m, .n = n, .k = k, .warps = warps, .batch = batch});
  for (auto [m, n, k] : {std::tuple(1, 4, 32), std::tuple(8, 8, 32)})
    all.push_back({.m = m, .n = n, .k = k, .batch = 4});
  all.push_back({.type = DataType::F32, .m = 32, .n = 32, .k = 32, .precision = "ieee", .batch = 4});
  all.push_back({.type = DataType::F32, .m = 32, .n = 32, .k = 32, .precision = "tf32x3", .batch = 2});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Batches, DotTypes, testing::ValuesIn(batches()));

std::vector<Case> epilogues() {
  std::vector<Case> all;
  for (const char *epilogue : {"matrix", "rows", "columns", "softmax", "chain", "transposed"})
    for (auto [type, out] : {std::pair(DataType::F16, DataType::F32), std::pair(DataType::F16, DataType::F16),
                             std::pair(DataType::F32, DataType::F32), std::pair(DataType::I8, DataType::I32)}) {
      if (out == DataType::I32 && std::string_view(epilogue) == "softmax")
        continue;
      for (auto [m, n, k, warps] : {std::tuple(64, 64, 64, 4u), std::tuple(32, 64, 32, 2u)})
        all.push_back({.type = type, .out = out, .m = m, .n = n, .k = k, .warps = warps, .epilogue = epilogue});
    }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Epilogues, DotTypes, testing::ValuesIn(epilogues()));

class DotForms2 : public KernelTest {};

/// Operands that nobody loads, and four dimensions.
TEST_F(DotForms2, WithoutLoadsAndFlattened) {
  const char *text = R"(
@triton.jit
def forms(x_ptr, y_ptr, out_ptr, flat_ptr):
    i = tl.arange(0, 32)
    ones = tl.full((32, 32), 1.0, tl.float32)
    steps = (i[:, None] + i[None, :]).to(tl.float32)
    tl.store(out_ptr + i[:, None] * 32 + i[None, :], tl.dot(ones, steps))
    at = tl.arange(0, 4 * 32 * 32)
    x = tl.load(x_ptr + at).reshape(2, 2, 32, 32)
    y = tl.load(y_ptr + at).reshape(2, 2, 32, 32)
    z = tl.dot(x, y)
    tl.static_assert(z.shape[0] == 2 and len(z.shape) == 4)
    tl.store(flat_ptr + at, z.reshape(4 * 32 * 32))
)";
  const int s = 32;
  std::vector<float> x = randomFloats(4 * s * s, 81, -1, 1, DataType::F16), y = randomFloats(4 * s * s, 82, -1, 1, DataType::F16);
  Buffer xb = putAs(DataType::F16, x, "x"), yb = putAs(DataType::F16, y, "y"), out = zeros(DataType::F32, s * s),
         flat = zeros(DataType::F32, 4 * s * s);
  ASSERT_OK(run(text, "forms", {}, {{xb, yb, out, flat}, {}}));
  std::vector<double> sums(s * s), expected(4 * s * s);
  for (int i = 0; i < s; ++i)
    for (int j = 0; j < s; ++j)
      for (int k = 0; k < s; ++k) {
        sums[i * s + j] += k + j;
        for (int b = 0; b < 4; ++b)
          expected[(b * s + i) * s + j] += double(x[(b * s + i) * s + k]) * y[(b * s + k) * s + j];
      }
  expectClose(get<float>(out), sums, 1e-5, 1e-5);
  expectClose(get<float>(flat), expected, 1e-4, 1e-4);
}

/// Batched loads that run ahead of the loop, and precisions in pieces there.
TEST_F(DotForms2, InPipelinedLoops) {
  const char *text = R"(
@triton.jit
def loops(x_ptr, y_ptr, out_ptr, plain_ptr, STEPS, S: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr):
    b = tl.arange(0, 2)[:, None, None]
    i = tl.arange(0, S)[None, :, None]
    j = tl.arange(0, S)[None, None, :]
    at = b * (S * S) + i * S + j
    acc = tl.zeros((2, S, S), tl.float32)
    flat = tl.zeros((S, S), tl.float32)
    row = tl.arange(0, S)[:, None] * S + tl.arange(0, S)[None, :]
    for step in tl.range(0, STEPS, num_stages=STAGES):
        x = tl.load(x_ptr + step * (2 * S * S) + at)
        y = tl.load(y_ptr + step * (2 * S * S) + at)
        acc = tl.dot(x, y, acc, input_precision=PRECISION)
        u = tl.load(x_ptr + step * (2 * S * S) + row)
        v = tl.load(y_ptr + step * (2 * S * S) + row)
        flat = tl.dot(u, v, flat, input_precision=PRECISION)
    tl.store(out_ptr + at, acc)
    tl.store(plain_ptr + row, flat)
)";
  const int s = 64, steps = 5;
  for (auto [type, precision] : {std::pair(DataType::F16, "tf32"), std::pair(DataType::F32, "tf32x3"),
                                 std::pair(DataType::F32, "ieee"), std::pair(DataType::F8E4NV, "tf32")}) {
    std::vector<float> x = randomFloats(2 * s * s * steps, 85, -1, 1, type), y = randomFloats(2 * s * s * steps, 86, -1, 1, type);
    std::vector<double> expected(2 * s * s);
    for (int step = 0; step < 2 * steps; ++step)
      for (int i = 0; i < s; ++i)
        for (int k = 0; k < s; ++k)
          for (int j = 0; j < s; ++j)
            expected[(step % 2 * s + i) * s + j] += double(x[(step * s + i) * s + k]) * y[(step * s + k) * s + j];
    for (int stages : {1, 3}) {
      Buffer xb = putAs(type, x, "x"), yb = putAs(type, y, "y"), out = zeros(DataType::F32, 2 * s * s), plain = zeros(DataType::F32, s * s);
      ASSERT_OK(run(text, "loops", {}, {{xb, yb, out, plain, steps}, {{"S", s}, {"STAGES", stages}, {"PRECISION", precision}}}));
      const std::string what = fmt::format("{} {}, {} stages", toString(type), precision, stages);
      expectClose(get<float>(out), expected, 1e-4, 1e-3, what);
      expectClose(get<float>(plain), std::vector<double>(expected.begin(), expected.begin() + s * s), 1e-4, 1e-3, what);
    }
  }
}

/// Every limit gives the same numbers, up to what Hopper's tensor cores lose, which have 14 bits for sums (fp8_sum_test.cpp).
TEST_F(DotForms2, ImpreciseAccumulation) {
  const char *text = R"(
@triton.jit
def imprecise(x_ptr, y_ptr, out_ptr, S: tl.constexpr, K: tl.constexpr, LIMIT: tl.constexpr):
    i = tl.arange(0, S)
    acc = tl.zeros((S, S), tl.float32)
    for k in range(0, 2 * K, K):
        d = k + tl.arange(0, K)
        x = tl.load(x_ptr + i[:, None] * (2 * K) + d[None, :])
        y = tl.load(y_ptr + i[None, :] * (2 * K) + d[:, None])
        acc = tl.dot(x, y, acc, max_num_imprecise_acc=LIMIT)
    tl.store(out_ptr + i[:, None] * S + i[None, :], acc)
)";
  const int s = 64, k = 128;
  std::vector<float> x = randomFloats(s * 2 * k, 83, -1, 1, DataType::F8E5), y = randomFloats(s * 2 * k, 84, -1, 1, DataType::F8E5);
  std::vector<double> expected(s * s);
  for (int i = 0; i < s; ++i)
    for (int j = 0; j < s; ++j)
      for (int l = 0; l < 2 * k; ++l)
        expected[i * s + j] += double(x[i * 2 * k + l]) * y[j * 2 * k + l];
  Buffer xb = putAs(DataType::F8E5, x, "x"), yb = putAs(DataType::F8E5, y, "y");
  for (int limit : {0, 32, 64, 128}) {
    Buffer out = zeros(DataType::F32, s * s);
    ASSERT_OK(run(text, "imprecise", {}, {{xb, yb, out}, {{"S", s}, {"K", k}, {"LIMIT", limit}}}));
    const bool isExact = isSimulated() && targetUnderTest().find("sm_90") == std::string::npos;
    const double tolerance = isExact ? 1e-4 : 1e-2;
    expectClose(get<float>(out), expected, tolerance, tolerance, fmt::format("limit {}", limit));
  }
}

} // namespace
} // namespace ditron::e2e
