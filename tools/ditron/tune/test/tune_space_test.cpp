//===- tune_space_test.cpp - The model that leaves plans out ----------------------------------------------------------------===//
#include "tune/TuneSpace.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

namespace ditron::tool {
namespace {

TuneMachine machineOf(const char *target, const char *name, uint32_t multiprocessors) {
  runtime::DeviceAttributes gpu;
  gpu.name = name;
  gpu.multiprocessors = multiprocessors;
  gpu.sharedBytesPerBlock = 227 << 10;
  auto machine = tuneMachine(*parseTargetName(target), gpu);
  EXPECT_TRUE(machine.isOk()) << machine.status().message();
  return std::move(machine).value();
}
const TuneMachine &h200() {
  static const TuneMachine machine = machineOf("cuda:sm_90a", "NVIDIA H200", 132);
  return machine;
}

double predicted(const TuneProblem &problem, const char *plan, const TuneMachine &machine = h200()) {
  auto time = predictedMicroseconds(problem, machine, plan);
  EXPECT_TRUE(time.isOk()) << time.status().message();
  return time.isOk() ? *time : 0;
}

TEST(TuneSpace, EachOperatorHasTensOfRightPlansForEveryShape) {
  std::vector<TuneProblem> problems;
  for (const ops::PlannedOperator &op : ops::plannedOperators())
    for (const uint32_t ranks : {1u, 2u, 3u, 8u, 64u}) {
      if (!op.isSearched)
        continue;
      if (std::ranges::count(op.sizes, "bytes")) {
        const int64_t columns = std::ranges::count(op.sizes, "columns") ? 8 : 0;
        for (const int64_t bytes : {1, 16, 4096, 1 << 20, 1 << 30})
          problems.push_back({.op = op.name, .ranks = ranks, .bytes = bytes, .columns = columns});
      } else if (std::ranges::count(op.sizes, "experts")) {
        for (const int64_t tokens : {1, 64, 8192})
          if (ranks == 1)
            problems.push_back({.op = op.name, .m = tokens, .n = 1024, .k = 4096, .experts = 16, .topK = 2});
      } else if (std::ranges::count(op.sizes, "queries")) {
        for (const int64_t dim : {64, 96, 128, 256})
          if (ranks == 1)
            problems.push_back({.op = op.name, .queries = 2048, .heads = 8, .kvHeads = 2, .dim = dim});
      } else if (op.name != "gemm" || ranks == 1) {
        for (const int64_t m : {1, 7, 64, 129, 8192})
          for (const DataType dtype : {DataType::BF16, DataType::F32})
            problems.push_back({.op = op.name, .ranks = ranks, .dtype = dtype, .m = m, .n = 1001, .k = 4096});
      }
    }
  for (const TuneMachine &machine : {h200(), machineOf("sim:sm_80", "simulated sm_80", 8)})
    for (const TuneProblem &problem : problems) {
      auto candidates = candidatesFor(problem, machine, 40);
      ASSERT_TRUE(candidates.isOk()) << problem.op << " " << problem.text() << ": " << candidates.status().message();
      ASSERT_GE(candidates->size(), 1u);
      EXPECT_LE(candidates->size(), 40u);
      EXPECT_GE(candidates->size(), 10u) << problem.op << " " << problem.text();
      const auto op = std::ranges::find(ops::plannedOperators(), problem.op, &ops::PlannedOperator::name);
      std::set<std::string> plans;
      for (const Candidate &each : *candidates) {
        EXPECT_TRUE(op->verify(problem.op, each.plan, problem.ranks, 1).isOk()) << each.plan;
        EXPECT_EQ(*canonicalPlan(problem.op, each.plan), each.plan);
        EXPECT_TRUE(plans.insert(each.plan).second) << each.plan << " twice";
        EXPECT_GT(each.predictedMicroseconds, 0) << each.plan;
      }
      EXPECT_TRUE(
          std::ranges::is_sorted(candidates->begin() + 1, candidates->end(), {}, &Candidate::predictedMicroseconds));
    }
}

TEST(TuneSpace, EveryFormIsTried) {
  const TuneProblem problem = {.op = "gemm_ar", .ranks = 4, .m = 64, .n = 8192, .k = 28672};
  auto candidates = candidatesFor(problem, h200(), 30);
  ASSERT_TRUE(candidates.isOk());
  std::set<std::string> forms;
  for (const Candidate &each : *candidates)
    forms.insert(each.plan.substr(0, each.plan.find(' ')));
  EXPECT_EQ(forms, (std::set<std::string>{"one_shot", "fused_two_shot", "two_shot", "pushed", "unfused"}));
}

TEST(TuneSpace, WavesCount) {
  // 8192 x 1376: 64 x 6 tiles of 128 x 256 are 384 on 132 multiprocessors, 3 waves, of which a tenth is empty; 8192 x 1152 are 320.
  const TuneProblem three = {.op = "gemm", .m = 8192, .n = 1376, .k = 4096},
                    two = {.op = "gemm", .m = 4096, .n = 1024, .k = 4096};
  const char *wide = "descriptors 128x256x64 warps 8 stages 3 group 8";
  EXPECT_NEAR(predicted(three, wide) / predicted(two, wide), 3, 0.4); // 128 tiles: one wave
}

TEST(TuneSpace, TallTilesOfFewRowsAreNobodys) {
  const TuneProblem few = {.op = "grouped_gemm", .m = 256, .n = 4096, .k = 4096, .experts = 64, .topK = 2}; // 8 of each
  EXPECT_LT(predicted(few, "descriptors 64x128x64 warps 4 stages 4 group 1"),
            predicted(few, "descriptors 128x128x64 warps 8 stages 4 group 1"));
}

TEST(TuneSpace, RowsOfAttentionAreFoundByWhatItsCallsKnow) {
  const TuneProblem problem = {.op = "attention", .queries = 4096, .batch = 2, .heads = 16, .kvHeads = 4, .dim = 128};
  EXPECT_EQ(problem.sizes(), (ops::PlanSizes{{"queries", 4096}, {"dim", 128}, {"heads", 32}}));
  EXPECT_LT(predicted(problem, "128x128 warps 8 stages 2 descriptors"), predicted(problem, "64x32 warps 4 stages 2"));
}

TEST(TuneSpace, SmallTilesReadMore) {
  const TuneProblem large = {.op = "gemm", .m = 8192, .n = 8192, .k = 8192};
  EXPECT_GT(predicted(large, "descriptors 64x64x64 warps 4 stages 4 group 8"),
            predicted(large, "descriptors 128x256x64 warps 8 stages 3 group 8"));
}

TEST(TuneSpace, OverlapHidesWhatUnfusedDoesNot) {
  for (const char *op : {"ag_gemm", "gemm_rs"})
    EXPECT_LT(predicted({.op = op, .ranks = 4, .m = 8192, .n = 8192, .k = 28672},
                        "overlapped 128x256x64 warps 8 stages 3 group 4"),
              predicted({.op = op, .ranks = 4, .m = 8192, .n = 8192, .k = 28672},
                        "unfused 128x256x64 warps 8 stages 3 group 4"));
}

TEST(TuneSpace, CommunicationTakesMultiprocessors) {
  const TuneProblem problem = {.op = "gemm_ar", .ranks = 2, .m = 8192, .n = 8192, .k = 65536};
  EXPECT_GT(predicted(problem, "two_shot 128x128x64 warps 8 stages 5 group 8 chunks 8 exchange_blocks 66"),
            predicted(problem, "two_shot 128x128x64 warps 8 stages 5 group 8 chunks 8 exchange_blocks 8"));
}

TEST(TuneSpace, OneShotIsForFewBytesAndTwoShotForMany) {
  const auto twoIsBetter = [&](int64_t bytes) {
    const TuneProblem problem = {.op = "all_reduce", .ranks = 8, .bytes = bytes};
    return predicted(problem, "two_shot_packets 64 16") < predicted(problem, "packets 64 16");
  };
  EXPECT_FALSE(twoIsBetter(4096));
  EXPECT_TRUE(twoIsBetter(1 << 20));
  // And bytes of flags are worth it only while a flight is.
  const TuneProblem large = {.op = "all_gather", .ranks = 4, .bytes = 64 << 20};
  EXPECT_LT(predicted(large, "chunks 132 16 32768"), predicted(large, "packets 132 16"));
}

TEST(TuneSpace, FewBlocksDoNotFillTheLink) {
  const TuneProblem large = {.op = "all_gather", .ranks = 4, .bytes = 64 << 20};
  EXPECT_LT(predicted(large, "chunks 64 16 32768"), predicted(large, "chunks 1 16 32768"));
}

} // namespace
} // namespace ditron::tool
