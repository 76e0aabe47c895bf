//===- hopper_gemm_test.cpp - A warp-specialised matrix product on sim:sm_90a ---------------------------------------------===//
//
// Tensor copies, mbarrier rings, warpgroup dots and the two partitions, lowered and run: for element types, both orders of
// both operands, numbers of warps and stages, and shapes that divide nothing. Operands are small integers, so that every
// product is exact.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "HopperGemm.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace ditron;
using namespace ditron::target::test;

namespace {

struct GemmRun {
  const char *name;
  HopperGemm gemm;
  int m, n, k;
  uint32_t programs;
};

void PrintTo(const GemmRun &run, std::ostream *stream) { *stream << run.name; }

/// The bits of a small integer in an element type.
uint32_t encode(const std::string &type, int value) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint32_t sign = bits >> 31, exponent = bits >> 23 & 255, fraction = bits & 0x7fffff;
  if (type == "f32")
    return bits;
  if (type == "bf16")
    return bits >> 16;
  if (type == "i8" || type == "i32")
    return static_cast<uint32_t>(value);
  const int exponentBits = type == "f16" || type == "f8E5M2" ? 5 : 4;
  const int fractionBits = type == "f16" ? 10 : type == "f8E5M2" ? 2 : 3;
  if (value == 0)
    return 0;
  const int bias = (1 << (exponentBits - 1)) - 1;
  return (sign << exponentBits | (exponent - 127 + bias)) << fractionBits | fraction >> (23 - fractionBits);
}

float decode(const std::string &type, uint32_t bits) {
  if (type == "f32")
    return std::bit_cast<float>(bits);
  if (type == "i32")
    return static_cast<float>(static_cast<int32_t>(bits));
  return std::bit_cast<float>(bits << 16);
}

ArrayArgument encodeAll(const std::string &type, int bytes, const std::vector<int> &values) {
  ArrayArgument array;
  array.bytes.resize(values.size() * bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = encode(type, values[i]);
    std::memcpy(array.bytes.data() + i * bytes, &bits, bytes);
  }
  return array;
}

/// Runs the kernel after `passes` and compares the product exactly.
void expectProduct(const GemmRun &gemmRun, const std::string &passes) {
  const auto &[name, gemm, m, n, k, programs] = gemmRun;
  const int stored = k ? k : 64;
  std::mt19937 random(7);
  auto numbers = [&](int count) {
    std::vector<int> values(count);
    for (int &value : values)
      value = static_cast<int>(random() % 5) - 2;
    return values;
  };
  const std::vector<int> a = numbers(m * stored), b = numbers(stored * n);
  std::vector<ArrayArgument> arrays = {encodeAll(gemm.element, gemm.elementBytes(), a),
                                       encodeAll(gemm.element, gemm.elementBytes(), b),
                                       encodeAll(gemm.output, gemm.outputBytes(), std::vector<int>(m * n, 99))};
  KernelRun run;
  run.source = gemm.text();
  run.target = "sim:sm_90a";
  run.passes = passes;
  run.gridX = programs;
  run.numWarps = static_cast<uint32_t>(gemm.numWarps) + 4;
  run.sharedBytes = gemm.sharedBytes();
  run.integers = {m, n, k};
  run.maps = gemm.maps(m, n, stored); // a map of nothing cannot be made
  Status status = runKernel(run, arrays);
  ASSERT_TRUE(status.isOk()) << status.message();
  int wrong = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int l = 0; l < k; ++l)
        sum += a[gemm.isAColumnMajor ? l * m + i : i * k + l] * b[gemm.isBRowMajor ? l * n + j : j * k + l];
      uint32_t bits = 0;
      std::memcpy(&bits, arrays[2].bytes.data() + (int64_t(i) * n + j) * gemm.outputBytes(), gemm.outputBytes());
      const float got = decode(gemm.output, bits);
      if (got != static_cast<float>(sum) && ++wrong < 10)
        ADD_FAILURE() << "C[" << i << "," << j << "] is " << got << ", not " << sum;
    }
  EXPECT_EQ(wrong, 0);
}

class HopperGemmTest : public testing::TestWithParam<GemmRun> {};

TEST_P(HopperGemmTest, ComputesTheProduct) { expectProduct(GetParam(), ""); }

/// What ptxas wants otherwise computes the same: a loop without a turn among it.
TEST_P(HopperGemmTest, ComputesTheProductInGuardedLoops) { expectProduct(GetParam(), "nvptx-guard-accumulator-loops"); }

HopperGemm small(std::string element, std::string output, int blockK) {
  return {.element = std::move(element),
          .output = std::move(output),
          .blockM = 64,
          .blockN = 64,
          .blockK = blockK,
          .numWarps = 4,
          .stages = 2};
}

HopperGemm with(HopperGemm gemm, void (*change)(HopperGemm &)) {
  change(gemm);
  return gemm;
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, HopperGemmTest,
    testing::Values(
        GemmRun{"Full", {}, 320, 520, 200, 3}, //
        GemmRun{"TwoStages", with({}, [](HopperGemm &g) { g.stages = 2; }), 128, 256, 320, 1},
        GemmRun{"WaitsForSignals", with(small("bf16", "f32", 64), [](HopperGemm &g) { g.waitsForSignal = true; }), 200,
                68, 136, 1},
        GemmRun{"NothingToSum", small("bf16", "bf16", 64), 64, 64, 0, 1},
        GemmRun{"F16", small("f16", "f32", 64), 100, 136, 136, 2},
        GemmRun{"TF32", small("f32", "f32", 32), 100, 132, 68, 2},
        GemmRun{"E4M3", small("f8E4M3FN", "f32", 128), 100, 132, 144, 2},
        GemmRun{"E5M2", small("f8E5M2", "f32", 64), 100, 132, 144, 2},
        GemmRun{"I8", small("i8", "i32", 128), 100, 132, 144, 2},
        GemmRun{"BRowMajor", with({}, [](HopperGemm &g) { g.isBRowMajor = true; }), 200, 264, 72, 2},
        GemmRun{"AColumnMajor", with({}, [](HopperGemm &g) { g.isAColumnMajor = true; }), 200, 264, 72, 2},
        GemmRun{"AInRegisters", with(small("bf16", "f32", 64), [](HopperGemm &g) { g.isAInRegisters = true; }), 72, 68,
                136, 1},
        GemmRun{"TF32InRegisters", with(small("f32", "f32", 32), [](HopperGemm &g) { g.isAInRegisters = true; }), 72,
                68, 36, 1},
        GemmRun{"NarrowSwizzle", small("bf16", "f32", 32), 72, 68, 136, 1},
        GemmRun{"TwoTilesPerWarpgroup", with(small("bf16", "f32", 64), [](HopperGemm &g) { g.blockM = 128; }), 200, 68,
                136, 1},
        GemmRun{"WarpgroupsOnColumns",
                with(small("bf16", "f32", 64), [](HopperGemm &g) { g.blockN = 128, g.numWarps = 8; }), 72, 260, 136, 1},
        GemmRun{"WideK", with(small("bf16", "f32", 128), [](HopperGemm &g) { g.blockN = 32; }), 72, 68, 136, 1}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
