//===- gemm_test.cpp - A matrix product through all passes, run on the simulator --------------------------------------------===//
//
// The GEMM of the language's tutorials as the importer writes it (no layouts), through layout assignment, pipelining, shared
// memory and lowering, for shapes that divide nothing, element types, numbers of warps and of stages.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelHarness.h"

#include <bit>
#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace ditron;
using namespace ditron::target::test;

namespace {

struct GemmCase {
  std::string element;
  int blockM, blockN, blockK;
  int m, n, k;
  int numWarps, numStages;
};

/// C = A * B with masks on all sides, pointers advanced in the loop.
std::string gemmSource(const GemmCase &c) {
  auto argument = [](int value) { return value % 16 == 0 ? "i32 {tile.divisibility = 16 : i64}" : "i32"; };
  auto replaceAll = [](std::string text, const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return text;
  };
  std::string text = R"(
module attributes {dgpu.num_warps = @W : i32, dgpu.threads_per_warp = 32 : i32, dgpu.num_stages = @S : i32} {
  func.func @kernel(%a: !tile.ptr<@E> {tile.divisibility = 16 : i64}, %b: !tile.ptr<@E> {tile.divisibility = 16 : i64},
                    %c: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %m: @DM, %n: @DN, %k: @DK) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %cBM = arith.constant @BM : i32
    %cBN = arith.constant @BN : i32
    %cBK = arith.constant @BK : i32
    %zero = arith.constant dense<0.0> : tensor<@BMx@BNxf32>
    %zeroA = arith.constant dense<0.0> : tensor<@BMx@BKx@E>
    %zeroB = arith.constant dense<0.0> : tensor<@BKx@BNx@E>
    %step = arith.constant dense<@BK> : tensor<@BMx@BKxi32>
    %pidm = tile.program_id 0
    %pidn = tile.program_id 1
    %m0 = arith.muli %pidm, %cBM : i32
    %n0 = arith.muli %pidn, %cBN : i32
    %rm = tile.arange 0, @BM : tensor<@BMxi32>
    %rn = tile.arange 0, @BN : tensor<@BNxi32>
    %rk = tile.arange 0, @BK : tensor<@BKxi32>
    %m0s = tile.splat %m0 : i32 -> tensor<@BMxi32>
    %n0s = tile.splat %n0 : i32 -> tensor<@BNxi32>
    %offm = arith.addi %m0s, %rm : tensor<@BMxi32>
    %offn = arith.addi %n0s, %rn : tensor<@BNxi32>
    %offmE = tile.expand_dims %offm axis 1 : tensor<@BMxi32> -> tensor<@BMx1xi32>
    %offnE = tile.expand_dims %offn axis 0 : tensor<@BNxi32> -> tensor<1x@BNxi32>
    %kRow = tile.expand_dims %rk axis 0 : tensor<@BKxi32> -> tensor<1x@BKxi32>
    %kCol = tile.expand_dims %rk axis 1 : tensor<@BKxi32> -> tensor<@BKx1xi32>
    %ks = tile.splat %k : i32 -> tensor<@BMx1xi32>
    %aRow = arith.muli %offmE, %ks : tensor<@BMx1xi32>
    %aRowB = tile.broadcast %aRow : tensor<@BMx1xi32> -> tensor<@BMx@BKxi32>
    %kRowB = tile.broadcast %kRow : tensor<1x@BKxi32> -> tensor<@BMx@BKxi32>
    %aOff = arith.addi %aRowB, %kRowB : tensor<@BMx@BKxi32>
    %aS = tile.splat %a : !tile.ptr<@E> -> tensor<@BMx@BKx!tile.ptr<@E>>
    %aPtr = tile.addptr %aS, %aOff : tensor<@BMx@BKx!tile.ptr<@E>>, tensor<@BMx@BKxi32>
    %ns = tile.splat %n : i32 -> tensor<@BKx1xi32>
    %bRow = arith.muli %kCol, %ns : tensor<@BKx1xi32>
    %bRowB = tile.broadcast %bRow : tensor<@BKx1xi32> -> tensor<@BKx@BNxi32>
    %bColB = tile.broadcast %offnE : tensor<1x@BNxi32> -> tensor<@BKx@BNxi32>
    %bOff = arith.addi %bRowB, %bColB : tensor<@BKx@BNxi32>
    %bS = tile.splat %b : !tile.ptr<@E> -> tensor<@BKx@BNx!tile.ptr<@E>>
    %bPtr = tile.addptr %bS, %bOff : tensor<@BKx@BNx!tile.ptr<@E>>, tensor<@BKx@BNxi32>
    %bStepScalar = arith.muli %n, %cBK : i32
    %bStep = tile.splat %bStepScalar : i32 -> tensor<@BKx@BNxi32>
    %mS = tile.splat %m : i32 -> tensor<@BMx1xi32>
    %nS = tile.splat %n : i32 -> tensor<1x@BNxi32>
    %inM = arith.cmpi slt, %offmE, %mS : tensor<@BMx1xi32>
    %inN = arith.cmpi slt, %offnE, %nS : tensor<1x@BNxi32>
    %inMA = tile.broadcast %inM : tensor<@BMx1xi1> -> tensor<@BMx@BKxi1>
    %inNB = tile.broadcast %inN : tensor<1x@BNxi1> -> tensor<@BKx@BNxi1>
    %r:3 = scf.for %k0 = %c0 to %k step %cBK iter_args(%acc = %zero, %ap = %aPtr, %bp = %bPtr)
        -> (tensor<@BMx@BNxf32>, tensor<@BMx@BKx!tile.ptr<@E>>, tensor<@BKx@BNx!tile.ptr<@E>>) : i32 {
      %left = arith.subi %k, %k0 : i32
      %leftA = tile.splat %left : i32 -> tensor<1x@BKxi32>
      %leftB = tile.splat %left : i32 -> tensor<@BKx1xi32>
      %mA1 = arith.cmpi slt, %kRow, %leftA : tensor<1x@BKxi32>
      %mB1 = arith.cmpi slt, %kCol, %leftB : tensor<@BKx1xi32>
      %mA2 = tile.broadcast %mA1 : tensor<1x@BKxi1> -> tensor<@BMx@BKxi1>
      %mB2 = tile.broadcast %mB1 : tensor<@BKx1xi1> -> tensor<@BKx@BNxi1>
      %mA = arith.andi %mA2, %inMA : tensor<@BMx@BKxi1>
      %mB = arith.andi %mB2, %inNB : tensor<@BKx@BNxi1>
      %av = tile.load %ap mask %mA other %zeroA : tensor<@BMx@BKx!tile.ptr<@E>> mask tensor<@BMx@BKxi1> other tensor<@BMx@BKx@E> -> tensor<@BMx@BKx@E>
      %bv = tile.load %bp mask %mB other %zeroB : tensor<@BKx@BNx!tile.ptr<@E>> mask tensor<@BKx@BNxi1> other tensor<@BKx@BNx@E> -> tensor<@BKx@BNx@E>
      %d = tile.dot %av, %bv, %acc @P: tensor<@BMx@BKx@E>, tensor<@BKx@BNx@E> -> tensor<@BMx@BNxf32>
      %an = tile.addptr %ap, %step : tensor<@BMx@BKx!tile.ptr<@E>>, tensor<@BMx@BKxi32>
      %bn = tile.addptr %bp, %bStep : tensor<@BKx@BNx!tile.ptr<@E>>, tensor<@BKx@BNxi32>
      scf.yield %d, %an, %bn : tensor<@BMx@BNxf32>, tensor<@BMx@BKx!tile.ptr<@E>>, tensor<@BKx@BNx!tile.ptr<@E>>
    }
    %nRow = tile.splat %n : i32 -> tensor<@BMx1xi32>
    %cRow = arith.muli %offmE, %nRow : tensor<@BMx1xi32>
    %cRowB = tile.broadcast %cRow : tensor<@BMx1xi32> -> tensor<@BMx@BNxi32>
    %cColB = tile.broadcast %offnE : tensor<1x@BNxi32> -> tensor<@BMx@BNxi32>
    %cOff = arith.addi %cRowB, %cColB : tensor<@BMx@BNxi32>
    %cS = tile.splat %c : !tile.ptr<f32> -> tensor<@BMx@BNx!tile.ptr<f32>>
    %cPtr = tile.addptr %cS, %cOff : tensor<@BMx@BNx!tile.ptr<f32>>, tensor<@BMx@BNxi32>
    %inMC = tile.broadcast %inM : tensor<@BMx1xi1> -> tensor<@BMx@BNxi1>
    %inNC = tile.broadcast %inN : tensor<1x@BNxi1> -> tensor<@BMx@BNxi1>
    %in = arith.andi %inMC, %inNC : tensor<@BMx@BNxi1>
    tile.store %cPtr, %r#0 mask %in : tensor<@BMx@BNx!tile.ptr<f32>>, tensor<@BMx@BNxf32> mask tensor<@BMx@BNxi1>
    return
  }
}
)";
  text = replaceAll(text, "@DM", argument(c.m));
  text = replaceAll(text, "@DN", argument(c.n));
  text = replaceAll(text, "@DK", argument(c.k));
  text = replaceAll(text, "@P", c.element == "f32" ? "{precision = #tile.precision<ieee>} " : "");
  text = replaceAll(text, "@E", c.element);
  text = replaceAll(text, "@BM", std::to_string(c.blockM));
  text = replaceAll(text, "@BN", std::to_string(c.blockN));
  text = replaceAll(text, "@BK", std::to_string(c.blockK));
  text = replaceAll(text, "@W", std::to_string(c.numWarps));
  return replaceAll(text, "@S", std::to_string(c.numStages));
}

ArrayArgument arrayOf(const std::string &element, const std::vector<int> &values) {
  std::vector<uint16_t> halves;
  std::vector<float> floats(values.begin(), values.end());
  for (float value : floats)
    halves.push_back(element == "bf16" ? uint16_t(std::bit_cast<uint32_t>(value) >> 16)
                                       : std::bit_cast<uint16_t>(static_cast<_Float16>(value)));
  return element == "f32" ? ArrayArgument::of(floats) : ArrayArgument::of(halves);
}

class SimGemm : public testing::TestWithParam<GemmCase> {};

TEST_P(SimGemm, IsExactOnIntegers) {
  const GemmCase &c = GetParam();
  std::vector<int> a(c.m * c.k), b(c.k * c.n);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = int(i * 5 % 7) - 3;
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = int(i * 3 % 5) - 2;
  std::vector<float> expected(c.m * c.n);
  for (int i = 0; i < c.m; ++i)
    for (int l = 0; l < c.k; ++l)
      for (int j = 0; j < c.n; ++j)
        expected[i * c.n + j] += float(a[i * c.k + l] * b[l * c.n + j]);

  KernelRun run;
  run.source = gemmSource(c);
  run.passes =
      "canonicalize,cse,dist-lower-world,dgpu-assign-layouts,dgpu-remove-conversions,dgpu-pipeline-loops,canonicalize,"
      "cse,dgpu-verify-layouts,dgpu-allocate-shared,dgpu-insert-barriers,dgpu-verify-allocation";
  run.numWarps = c.numWarps;
  run.gridX = (c.m + c.blockM - 1) / c.blockM;
  run.gridY = (c.n + c.blockN - 1) / c.blockN;
  run.integers = {c.m, c.n, c.k};
  std::vector<ArrayArgument> arrays{arrayOf(c.element, a), arrayOf(c.element, b),
                                    ArrayArgument::of(std::vector<float>(c.m * c.n))};
  Status status = runKernel(run, arrays);
  ASSERT_TRUE(status.isOk()) << status.message();
  EXPECT_EQ(arrays[2].as<float>(), expected);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SimGemm,
    testing::Values(GemmCase{"bf16", 64, 64, 32, 128, 128, 128, 4, 3}, GemmCase{"f16", 64, 32, 64, 100, 50, 130, 4, 2},
                    GemmCase{"bf16", 128, 64, 32, 160, 72, 96, 8, 4}, GemmCase{"f16", 32, 32, 32, 37, 41, 43, 1, 1},
                    GemmCase{"bf16", 16, 16, 16, 48, 32, 16, 4, 3}, GemmCase{"f32", 32, 32, 16, 50, 60, 70, 4, 3}),
    [](const testing::TestParamInfo<GemmCase> &info) {
      const GemmCase &c = info.param;
      return fmt::format("{}_{}x{}x{}_of_{}x{}x{}_w{}_s{}", c.element, c.m, c.n, c.k, c.blockM, c.blockN, c.blockK,
                         c.numWarps, c.numStages);
    });

} // namespace
