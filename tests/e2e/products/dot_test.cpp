//===- dot_test.cpp - Matrix products ---------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

const char *const matmul = R"(
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, BLOCK_M: tl.constexpr,
           BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + depth[None, :] * stride_ak
    b_ptrs = b_ptr + depth[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (depth[None, :] < left), other=0)
        b = tl.load(b_ptrs, mask=(depth[:, None] < left) & (columns[None, :] < N), other=0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + rows[:, None] * N + columns[None, :]
    tl.store(c_ptrs, acc, mask=(rows[:, None] < M) & (columns[None, :] < N))
)";

struct Product {
  DataType type = DataType::F16;
  const char *precision = "tf32";
  int m = 64, n = 64, k = 64, blockM = 32, blockN = 32, blockK = 32;
  uint32_t warps = 4, stages = 1;
  bool transposeA = false, transposeB = false;
};

void PrintTo(const Product &p, std::ostream *stream) {
  *stream << fmt::format("{} {} {}x{}x{}, blocks {}x{}x{}, {} warps, {} stages{}{}", toString(p.type), p.precision, p.m,
                         p.n, p.k, p.blockM, p.blockN, p.blockK, p.warps, p.stages,
                         p.transposeA ? ", A transposed" : "", p.transposeB ? ", B transposed" : "");
}

class Dot : public KernelTest, public testing::WithParamInterface<Product> {
protected:
  void check(const Product &p);
};

void Dot::check(const Product &p) {
  const bool integers = p.type == DataType::I8,
             tf32 = p.type == DataType::F32 && std::string_view(p.precision) == "tf32";
  auto operand = [&](int count, uint64_t seed) {
    std::vector<float> values =
        integers ? convertAll<float>(randomIntegers(count, seed, -128, 127)) : randomFloats(count, seed, -1, 1, p.type);
    if (tf32) // so that it does not matter how the hardware rounds
      for (float &value : values)
        value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xFFFFE000u);
    return values;
  };
  std::vector<float> a = operand(p.m * p.k, 51), b = operand(p.k * p.n, 52);
  const int am = p.transposeA ? 1 : p.k, ak = p.transposeA ? p.m : 1, bk = p.transposeB ? 1 : p.n,
            bn = p.transposeB ? p.k : 1;
  std::vector<double> expected(p.m * p.n);
  for (int m = 0; m < p.m; ++m)
    for (int k = 0; k < p.k; ++k)
      for (int n = 0; n < p.n; ++n)
        expected[m * p.n + n] += double(a[m * am + k * ak]) * b[k * bk + n * bn];
  const DataType out = integers ? DataType::I32 : p.type == DataType::F64 ? DataType::F64 : DataType::F32;
  Buffer ab = putAs(p.type, a, "a"), bb = putAs(p.type, b, "b"), c = zeros(out, p.m * p.n, "c");
  const uint32_t gridM = (p.m + p.blockM - 1) / p.blockM, gridN = (p.n + p.blockN - 1) / p.blockN;
  ASSERT_OK(run(matmul, "matmul", {.grid = {gridM, gridN, 1}, .numWarps = p.warps, .numStages = p.stages},
                {{ab, bb, c, p.m, p.n, p.k, am, ak, bk, bn},
                 {{"BLOCK_M", p.blockM},
                  {"BLOCK_N", p.blockN},
                  {"BLOCK_K", p.blockK},
                  {"PRECISION", p.precision},
                  {"ACC", out}}}));
  if (integers)
    expectSame(get<int32_t>(c), convertAll<int32_t>(expected));
  else
    expectClose(getFloats(c), expected, 1e-5, 2e-5);
}

TEST_P(Dot, MatchesTheReference) { check(GetParam()); }

std::vector<Product> tiles() {
  std::vector<Product> all;
  for (DataType type : {DataType::F16, DataType::BF16, DataType::F32, DataType::I8})
    for (auto [m, n, k] :
         {std::tuple(16, 16, 32), std::tuple(32, 64, 32), std::tuple(64, 16, 64), std::tuple(128, 128, 32)})
      for (uint32_t warps : {1u, 4u, 8u})
        if (warps != 8 || m * n >= 1024)
          all.push_back(
              {.type = type, .m = m, .n = n, .k = 2 * k, .blockM = m, .blockN = n, .blockK = k, .warps = warps});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Tiles, Dot, testing::ValuesIn(tiles()));

std::vector<Product> ieee() {
  std::vector<Product> all;
  for (DataType type : {DataType::F32, DataType::F64})
    for (auto [m, n, k] : {std::tuple(16, 16, 16), std::tuple(32, 64, 32)})
      for (uint32_t warps : {1u, 4u})
        all.push_back({.type = type,
                       .precision = "ieee",
                       .m = m,
                       .n = n,
                       .k = k,
                       .blockM = m,
                       .blockN = n,
                       .blockK = k,
                       .warps = warps});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Ieee, Dot, testing::ValuesIn(ieee()));

/// Shapes that nothing divides, depth from less than one block to many, every number of stages.
std::vector<Product> loops() {
  std::vector<Product> all;
  for (DataType type : {DataType::F16, DataType::BF16, DataType::F32, DataType::I8})
    for (uint32_t stages : {1u, 2u, 3u, 4u})
      for (int k : {9, 130})
        all.push_back({.type = type, .m = 77, .n = 45, .k = k, .stages = stages});
  for (uint32_t stages : {1u, 2u, 3u, 4u}) {
    all.push_back({.type = DataType::F32, .precision = "ieee", .m = 33, .n = 50, .k = 70, .stages = stages});
    // Aligned, so that whole vectors can be copied asynchronously.
    all.push_back({.type = DataType::F16, .m = 64, .n = 128, .k = 256, .blockM = 64, .blockN = 64, .stages = stages});
    all.push_back(
        {.type = DataType::BF16, .m = 64, .n = 64, .k = 192, .blockM = 64, .blockN = 64, .warps = 8, .stages = stages});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Loops, Dot, testing::ValuesIn(loops()));

std::vector<Product> transposed() {
  std::vector<Product> all;
  for (DataType type : {DataType::F16, DataType::F32, DataType::I8})
    for (int which = 1; which < 4; ++which)
      for (uint32_t stages : {1u, 3u})
        all.push_back({.type = type,
                       .m = 48,
                       .n = 80,
                       .k = 96,
                       .stages = stages,
                       .transposeA = (which & 1) != 0,
                       .transposeB = (which & 2) != 0});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Transposed, Dot, testing::ValuesIn(transposed()));

class DotForms : public KernelTest {};

TEST_F(DotForms, TransposedInRegistersAndChained) {
  const char *text = R"(
@triton.jit
def chained(q_ptr, k_ptr, v_ptr, out_ptr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, N)
    depth = tl.arange(0, D)
    at = rows[:, None] * D + depth[None, :]
    q = tl.load(q_ptr + at)
    k = tl.load(k_ptr + at)
    v = tl.load(v_ptr + at)
    scores = tl.dot(q, tl.trans(k))
    scores = scores - tl.max(scores, 1)[:, None]
    p = tl.exp(scores)
    p = p / tl.sum(p, 1)[:, None]
    tl.store(out_ptr + at, tl.dot(p.to(v.dtype), v))
)";
  for (auto [n, d, warps] :
       {std::tuple(32, 64, 4u), std::tuple(64, 32, 4u), std::tuple(16, 16, 1u), std::tuple(128, 64, 8u)}) {
    std::vector<float> q = randomFloats(n * d, 61, -1, 1, DataType::F16),
                       k = randomFloats(n * d, 62, -1, 1, DataType::F16),
                       v = randomFloats(n * d, 63, -1, 1, DataType::F16);
    std::vector<double> expected(n * d);
    for (int i = 0; i < n; ++i) {
      std::vector<double> p(n);
      double sum = 0, largest = -INFINITY;
      for (int j = 0; j < n; ++j) {
        for (int e = 0; e < d; ++e)
          p[j] += double(q[i * d + e]) * k[j * d + e];
        largest = std::max(largest, p[j]);
      }
      for (double &each : p)
        sum += each = std::exp(each - largest);
      for (int j = 0; j < n; ++j)
        for (int e = 0; e < d; ++e)
          expected[i * d + e] += p[j] / sum * v[j * d + e];
    }
    Buffer qb = putAs(DataType::F16, q, "q"), kb = putAs(DataType::F16, k, "k"), vb = putAs(DataType::F16, v, "v"),
           out = zeros(DataType::F32, n * d);
    ASSERT_OK(run(text, "chained", {.numWarps = warps}, {{qb, kb, vb, out}, {{"N", n}, {"D", d}}}));
    expectClose(get<float>(out), expected, 2e-3, 1e-3, fmt::format("N={} D={} warps={}", n, d, warps));
  }
}

TEST_F(DotForms, HalfResultAndEpilogue) {
  const char *text = R"(
@triton.jit
def epilogue(a_ptr, b_ptr, bias_ptr, out_ptr, half_ptr, S: tl.constexpr):
    i = tl.arange(0, S)
    at = i[:, None] * S + i[None, :]
    a = tl.load(a_ptr + at)
    b = tl.load(b_ptr + at)
    acc = tl.dot(a, b)
    acc = tl.maximum(acc * 0.5 + tl.load(bias_ptr + i)[None, :], 0.0)
    tl.store(out_ptr + at, acc.to(tl.float16))
    half = tl.dot(a, b, out_dtype=tl.float16)
    tl.static_assert(half.dtype == tl.float16)
    tl.store(half_ptr + at, half)
)";
  const int s = 32;
  std::vector<float> a = randomFloats(s * s, 64, -1, 1, DataType::F16),
                     b = randomFloats(s * s, 65, -1, 1, DataType::F16), bias = randomFloats(s, 66);
  std::vector<double> product(s * s), expected(s * s);
  for (int i = 0; i < s; ++i)
    for (int j = 0; j < s; ++j) {
      for (int k = 0; k < s; ++k)
        product[i * s + j] += double(a[i * s + k]) * b[k * s + j];
      expected[i * s + j] = std::max(product[i * s + j] * 0.5 + bias[j], 0.0);
    }
  Buffer ab = putAs(DataType::F16, a, "a"), bb = putAs(DataType::F16, b, "b"), biasBuffer = put(bias, "bias"),
         out = zeros(DataType::F16, s * s), half = zeros(DataType::F16, s * s, "half");
  ASSERT_OK(run(text, "epilogue", {}, {{ab, bb, biasBuffer, out, half}, {{"S", s}}}));
  expectClose(getFloats(out), expected, 1e-3, 1e-3);
  expectClose(getFloats(half), product, 1e-2, 1e-2);
}

/// Values that need all 24 bits: tf32 must lose them, ieee must not.
TEST_F(DotForms, PrecisionIsWhatWasAskedFor) {
  const int s = 16;
  std::vector<float> a(s * s), b(s * s);
  for (int i = 0; i < s; ++i)
    a[i * s + i] = 1.0f + std::ldexp(1.0f, -20), b[i * s + i] = 1;
  for (const char *precision : {"tf32", "ieee"}) {
    Buffer ab = put(a, "a"), bb = put(b, "b"), c = zeros(DataType::F32, s * s, "c");
    ASSERT_OK(
        run(matmul, "matmul", {.numWarps = 1},
            {{ab, bb, c, s, s, s, s, 1, s, 1},
             {{"BLOCK_M", s}, {"BLOCK_N", s}, {"BLOCK_K", s}, {"PRECISION", precision}, {"ACC", DataType::F32}}}));
    std::vector<float> actual = get<float>(c);
    EXPECT_EQ(actual[0] == a[0], std::string_view(precision) == "ieee") << precision << " gives " << actual[0] - 1;
    EXPECT_EQ(actual[1], 0);
  }
}

/// A pointer that is followed through an index table inside the pipelined loop.
TEST_F(DotForms, IndirectLoadsInPipelinedLoop) {
  const char *text = R"(
@triton.jit
def indirect(index_ptr, a_ptr, b_ptr, c_ptr, STEPS, S: tl.constexpr, STAGES: tl.constexpr):
    i = tl.arange(0, S)
    at = i[:, None] * S + i[None, :]
    acc = tl.zeros((S, S), tl.float32)
    for step in tl.range(0, STEPS, num_stages=STAGES):
        block = tl.load(index_ptr + step)
        a = tl.load(a_ptr + block * S * S + at)
        b = tl.load(b_ptr + step * S * S + at)
        acc += tl.dot(a, b)
    tl.store(c_ptr + at, acc)
)";
  const int s = 32, steps = 6;
  std::vector<int32_t> index = {4, 0, 5, 5, 1, 2};
  std::vector<float> a = randomFloats(s * s * steps, 67, -1, 1, DataType::F16),
                     b = randomFloats(s * s * steps, 68, -1, 1, DataType::F16);
  std::vector<double> expected(s * s);
  for (int step = 0; step < steps; ++step)
    for (int i = 0; i < s; ++i)
      for (int k = 0; k < s; ++k)
        for (int j = 0; j < s; ++j)
          expected[i * s + j] += double(a[(index[step] * s + i) * s + k]) * b[(step * s + k) * s + j];
  for (int stages : {1, 2, 3, 4}) {
    Buffer indexBuffer = put(index, "index"), ab = putAs(DataType::F16, a, "a"), bb = putAs(DataType::F16, b, "b"),
           c = zeros(DataType::F32, s * s, "c");
    ASSERT_OK(run(text, "indirect", {}, {{indexBuffer, ab, bb, c, steps}, {{"S", s}, {"STAGES", stages}}}));
    expectClose(get<float>(c), expected, 1e-4, 1e-4, fmt::format("{} stages", stages));
  }
}

} // namespace
} // namespace ditron::e2e
