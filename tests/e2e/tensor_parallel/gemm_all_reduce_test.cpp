//===- gemm_all_reduce_test.cpp - GEMM+AllReduce against a plain reference --------------------------------------------===//
//
// Every form over types, ranks, rows that nothing divides, and depths that differ between ranks; all ranks have the same bits.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "tensor_parallel/GemmAllReduceOperands.h"

namespace ditron::e2e {
namespace {

using ops::AllReduceForm;
using ops::MultiplyPrecision;
using Problem = GemmAllReduceProblem;

class GemmAllReduceOperatorResults : public GemmAllReduceOperator, public testing::WithParamInterface<Problem> {};

TEST_P(GemmAllReduceOperatorResults, AreRight) {
  if (GetParam().tailSplits && !hasTensorCopies(sharedJit().target()))
    GTEST_SKIP() << "needs tensor copies";
  run(GetParam());
}

constexpr AllReduceForm fused = AllReduceForm::FusedTwoShot;
constexpr AllReduceForm oneShot = AllReduceForm::OneShot, twoShot = AllReduceForm::TwoShot,
                        unfused = AllReduceForm::Unfused;
constexpr ops::OneLaunchTile split3 = {
    .tile = {.blockM = 16, .blockN = 64, .blockK = 32, .groupM = 1, .numWarps = 4, .numStages = 3}, .splits = 3};
constexpr ops::OneLaunchTile rowTiles = {
    .tile = {.blockM = 32, .blockN = 64, .blockK = 64, .groupM = 1, .numWarps = 4, .numStages = 2}, .splits = 2};
const Problem problems[] = {
    {.name = "one_shot_1_row", .m = 1},
    {.name = "one_shot_1_row_slow", .m = 1, .seed = 2, .slowRank = 3},
    {.name = "one_shot_5_rows", .m = 5, .n = 77, .k = 51, .unequalDepths = true, .seed = 3},
    {.name = "one_shot_8_rows", .m = 8, .n = 128, .k = 256},
    {.name = "one_shot_32_rows", .m = 32, .seed = 4},
    {.name = "one_shot_33_rows_slow", .m = 33, .n = 300, .k = 70, .seed = 2, .slowRank = 0},
    {.name = "one_shot_128_rows", .m = 128, .n = 256, .k = 130, .seed = 5},
    {.name = "one_shot_200_rows", .m = 200, .n = 100, .seed = 6},
    {.name = "one_shot_fp16", .dtype = DataType::F16, .m = 17},
    {.name = "one_shot_fp16_transposed",
     .dtype = DataType::F16,
     .m = 17,
     .k = 100,
     .order = ops::MatrixOrder::Transposed},
    {.name = "one_shot_tf32", .dtype = DataType::F32, .m = 9, .seed = 2},
    {.name = "one_shot_tf32_transposed",
     .dtype = DataType::F32,
     .m = 40,
     .order = ops::MatrixOrder::Transposed,
     .seed = 2},
    {.name = "one_shot_ieee",
     .dtype = DataType::F32,
     .m = 9,
     .k = 33,
     .precision = MultiplyPrecision::Ieee,
     .slowRank = 2},
    {.name = "one_shot_fp32_partials", .m = 20, .partialType = DataType::F32},
    {.name = "one_shot_split", .m = 7, .k = 200, .oneLaunchTile = split3, .seed = 2},
    {.name = "one_shot_split_unequal",
     .m = 13,
     .n = 50,
     .k = 31,
     .oneLaunchTile = split3,
     .unequalDepths = true,
     .seed = 3,
     .slowRank = 1},
    {.name = "one_shot_split_row_tiles", .m = 100, .n = 64, .k = 130, .oneLaunchTile = rowTiles, .seed = 4},
    {.name = "one_shot_1_rank", .ranks = 1, .m = 5},
    {.name = "one_shot_2_ranks", .ranks = 2, .m = 31, .n = 33, .k = 70, .seed = 2},
    {.name = "one_shot_3_ranks", .ranks = 3, .m = 16, .n = 50, .k = 40, .seed = 3, .slowRank = 0},
    {.name = "one_shot_8_ranks", .ranks = 8, .m = 12, .n = 64, .k = 64, .seed = 2, .slowRank = 6},
    {.name = "one_shot_calls", .m = 3, .n = 40, .k = 40, .seed = 2, .slowRank = 1, .calls = 8},

    {.name = "fused", .form = fused, .m = 64},
    {.name = "fused_1_row", .form = fused, .m = 1, .seed = 2, .slowRank = 1},
    {.name = "fused_5_rows", .form = fused, .m = 5, .n = 77, .k = 51, .unequalDepths = true, .seed = 3},
    {.name = "fused_33_rows_slow", .form = fused, .m = 33, .n = 300, .k = 70, .seed = 2, .slowRank = 0},
    {.name = "fused_128_rows", .form = fused, .m = 128, .n = 256, .k = 130, .seed = 5},
    {.name = "fused_many_tiles", .form = fused, .m = 300, .n = 500, .k = 64, .seed = 2, .slowRank = 2},
    {.name = "fused_fp16_transposed",
     .form = fused,
     .dtype = DataType::F16,
     .m = 40,
     .k = 100,
     .order = ops::MatrixOrder::Transposed},
    {.name = "fused_tf32", .form = fused, .dtype = DataType::F32, .m = 20, .seed = 2},
    {.name = "fused_ieee",
     .form = fused,
     .dtype = DataType::F32,
     .m = 50,
     .precision = MultiplyPrecision::Ieee,
     .seed = 2},
    {.name = "fused_fp32_partials", .form = fused, .m = 20, .partialType = DataType::F32},
    {.name = "fused_split", .form = fused, .m = 40, .k = 200, .oneLaunchTile = rowTiles, .seed = 2, .slowRank = 3},
    {.name = "fused_1_rank", .form = fused, .ranks = 1, .m = 20},
    {.name = "fused_2_ranks", .form = fused, .ranks = 2, .m = 31, .n = 33, .k = 70, .seed = 2},
    {.name = "fused_3_ranks", .form = fused, .ranks = 3, .m = 50, .n = 50, .k = 40, .seed = 3, .slowRank = 0},
    {.name = "fused_8_ranks", .form = fused, .ranks = 8, .m = 100, .n = 64, .k = 64, .seed = 2, .slowRank = 6},
    {.name = "fused_calls", .form = fused, .m = 30, .n = 40, .k = 40, .seed = 2, .slowRank = 1, .calls = 8},

    {.name = "two_shot", .form = twoShot, .m = 200},
    {.name = "two_shot_1_row", .form = twoShot, .m = 1, .seed = 2},
    {.name = "two_shot_5_rows_slow", .form = twoShot, .m = 5, .n = 20, .k = 17, .seed = 2, .slowRank = 3},
    {.name = "two_shot_chunks", .form = twoShot, .m = 250, .chunks = 2, .seed = 3},
    {.name = "two_shot_chunks_slow",
     .form = twoShot,
     .m = 333,
     .n = 70,
     .k = 51,
     .chunks = 4,
     .unequalDepths = true,
     .seed = 2,
     .slowRank = 1},
    {.name = "two_shot_short_chunk", .form = twoShot, .m = 98, .n = 300, .k = 40, .chunks = 3, .seed = 4},
    {.name = "two_shot_fp16",
     .form = twoShot,
     .dtype = DataType::F16,
     .m = 129,
     .chunks = 2,
     .order = ops::MatrixOrder::Transposed},
    {.name = "two_shot_tf32", .form = twoShot, .dtype = DataType::F32, .m = 90, .chunks = 2, .seed = 2},
    {.name = "two_shot_ieee",
     .form = twoShot,
     .dtype = DataType::F32,
     .m = 70,
     .precision = MultiplyPrecision::Ieee,
     .slowRank = 2},
    {.name = "two_shot_fp32_partials", .form = twoShot, .m = 100, .chunks = 2, .partialType = DataType::F32},
    {.name = "two_shot_1_rank", .form = twoShot, .ranks = 1, .m = 200, .chunks = 2},
    {.name = "two_shot_2_ranks",
     .form = twoShot,
     .ranks = 2,
     .m = 129,
     .n = 33,
     .k = 70,
     .chunks = 2,
     .seed = 2,
     .slowRank = 1},
    {.name = "two_shot_3_ranks",
     .form = twoShot,
     .ranks = 3,
     .m = 200,
     .n = 50,
     .k = 40,
     .chunks = 3,
     .seed = 2,
     .slowRank = 0},
    {.name = "two_shot_8_ranks",
     .form = twoShot,
     .ranks = 8,
     .m = 1000,
     .n = 64,
     .k = 64,
     .chunks = 4,
     .tile = wideTile,
     .seed = 2,
     .slowRank = 6},
    {.name = "two_shot_calls",
     .form = twoShot,
     .m = 100,
     .n = 40,
     .k = 40,
     .chunks = 2,
     .seed = 2,
     .slowRank = 1,
     .calls = 8},

    {.name = "unfused", .form = unfused, .m = 200},
    {.name = "unfused_slow", .form = unfused, .ranks = 3, .m = 100, .n = 33, .k = 70, .seed = 2, .slowRank = 1},
    {.name = "auto_1_row", .form = AllReduceForm::Auto, .m = 1},
    {.name = "auto_1000_rows", .form = AllReduceForm::Auto, .m = 1000, .n = 64, .tile = wideTile},
};
INSTANTIATE_TEST_SUITE_P(Problems, GemmAllReduceOperatorResults, testing::ValuesIn(problems),
                         [](const auto &info) { return info.param.name; });
/// What two_shot does the pushed form does.
std::vector<Problem> pushedProblems() {
  std::vector<Problem> pushed;
  for (Problem each : problems)
    if (each.form == twoShot) {
      each.form = AllReduceForm::Pushed;
      pushed.push_back(each);
    }
  return pushed;
}
INSTANTIATE_TEST_SUITE_P(Pushed, GemmAllReduceOperatorResults, testing::ValuesIn(pushedProblems()),
                         [](const auto &info) { return std::string(info.param.name) + "_pushed"; });

/// And with the tiles of the last wave in two to five parts.
std::vector<Problem> tailProblems() {
  std::vector<Problem> tails;
  for (Problem each : problems)
    if (each.form == twoShot && each.dtype != DataType::F32 && !each.partialType && each.m < 1000) {
      each.tailSplits = 2 + tails.size() % 4;
      tails.push_back(each);
    }
  return tails;
}
INSTANTIATE_TEST_SUITE_P(Tails, GemmAllReduceOperatorResults, testing::ValuesIn(tailProblems()),
                         [](const auto &info) { return std::string(info.param.name) + "_tail"; });

/// All forms have the same bits where they round alike, whatever the interleaving: one order of ranks, one rounding of each part.
TEST_F(GemmAllReduceOperator, EverySeedAndFormGivesTheSameBits) {
  Problem p = {.name = "bits", .m = 50, .n = 70, .k = 96, .chunks = 2};
  std::map<AllReduceForm, std::vector<std::byte>> bits;
  for (uint64_t seed : {1, 2, 3, 4, 5}) {
    p.seed = seed;
    p.slowRank = seed == 4 ? std::optional<uint32_t>(2) : std::nullopt;
    for (AllReduceForm form : {oneShot, fused, twoShot, AllReduceForm::Pushed, unfused}) {
      p.form = form;
      std::vector<std::byte> &first = bits[form];
      const std::vector<std::byte> now = run(p);
      if (first.empty())
        first = now;
      EXPECT_TRUE(now == first) << toString(form) << ", seed " << seed;
    }
  }
  EXPECT_TRUE(bits[oneShot] == bits[fused]) << "one-shot and fused two-shot";
  EXPECT_TRUE(bits[twoShot] == bits[unfused]) << "two-shot and unfused";
  EXPECT_TRUE(bits[twoShot] == bits[AllReduceForm::Pushed]) << "two-shot and pushed";
}

} // namespace
} // namespace ditron::e2e
