//===- plan_table_test.cpp - Tables of plans: text, errors, look-up --------------------------------------------------------===//
#include "ditron/ops/plans/PlanTable.h"
#include "ditron/ops/plans/TensorParallelPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace ditron::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

PlanTable tableOf(std::string_view text) {
  auto table = PlanTable::parse(text, "t.plans");
  EXPECT_TRUE(table.isOk()) << table.status().message();
  return table.isOk() ? *table : PlanTable();
}

std::string errorOf(std::string_view text) {
  auto table = PlanTable::parse(text, "t.plans");
  return table.isOk() ? "" : std::string(table.status().message());
}

const std::string *planOf(const PlanChoice &choice, const PlanSizes &sizes) {
  const PlanRow *row = choice.find(sizes);
  return row ? &row->plan : nullptr;
}

TEST(PlanTable, TheLibrarysTablesAreRead) {
  auto plans = libraryPlans();
  ASSERT_TRUE(plans.isOk()) << plans.status().message();
  EXPECT_GT(plans->rows.size(), 20u);
}

TEST(PlanTable, BlanksAndRemarks) {
  const PlanTable table = tableOf("# head\n"
                                  "\n"
                                  "gemm_ar\t* <=4 *\tm<=32 :  one_shot   \r\n"
                                  "all_reduce * * fp32 : chunks   3 4 2048 #\n"
                                  "   # : \n"
                                  "gemm_ar * <=4 * : unfused # no newline: here");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].text(), "gemm_ar * <=4 * m<=32 : one_shot");
  EXPECT_EQ(table.rows[1].text(), "all_reduce * * fp32 : chunks 3 4 2048");
  EXPECT_EQ(table.rows[1].line, 4u);
  EXPECT_EQ(table.rows[2].comment, "no newline: here");
}

TEST(PlanTable, WritesWhatItReads) {
  const PlanTable table =
      tableOf("gemm NVIDIA_H200 1 bf16 m~8192 n~1376 k~4096 : descriptors 128x128x64 warps 8   # 152.8 us\n"
              "gemm_ar * <=4 * m<=32 : one_shot\n"
              "all_reduce * * fp32 bytes=5..70 : chunks 3 4 2048 #\n");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].comment, "152.8 us");
  const PlanTable again = tableOf(table.text());
  ASSERT_EQ(again.rows.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again.rows[i].text(), table.rows[i].text());
    EXPECT_EQ(again.rows[i].comment, table.rows[i].comment);
    EXPECT_TRUE(again.rows[i].hasKeyOf(table.rows[i]));
    EXPECT_EQ(again.rows[i].hasKeyOf(table.rows[0]), i == 0);
  }
  EXPECT_EQ(again.text(), table.text());
}

TEST(PlanTable, ErrorsHavePlaceLineAndCaret) {
  EXPECT_EQ(errorOf("\n\ngem * * * : pointers 64x64x32\n"),
            "t.plans:3:1: there is no operator 'gem'; did you mean 'gemm'?; there are gemm, grouped_gemm, "
            "gathered_gemm, attention, "
            "causal_attention, ag_gemm, gemm_rs, gemm_ar, "
            "expert_parallel, expert_parallel_moe, all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, "
            "all_to_all_v, all_reduce_rms_norm\n"
            "gem * * * : pointers "
            "64x64x32\n^");
  EXPECT_THAT(errorOf("gemm * 0 * : pointers"), StartsWith("t.plans:1:8: '0' ranks; a number from 1, <=N or *"));
  EXPECT_THAT(errorOf("gemm * <=x * : pointers"), StartsWith("t.plans:1:8: '<=x' ranks"));
  EXPECT_THAT(errorOf("gemm * * bf15 : pointers"), StartsWith("t.plans:1:10: 'bf15' is not an element type"));
  EXPECT_THAT(errorOf("gemm * * * bytes<=3 : pointers"),
              StartsWith("t.plans:1:12: 'bytes<=3': gemm has no size 'bytes'"));
  EXPECT_THAT(errorOf("gemm * * * m<=3 m~4 : pointers"), StartsWith("t.plans:1:17: the size m is given twice"));
  for (const char *size : {"m", "m<3", "m=3", "m<=", "m~", "m<=0", "m~-1", "m<=99999999999999999999", "m<=1e3", "m=..3",
                           "m=2..", "m=0..3", "m=4..3", "m=2..3..4", "m>=2"})
    EXPECT_THAT(errorOf(std::string("gemm * * * ") + size + " : pointers"), HasSubstr("is no size")) << size;
  EXPECT_THAT(errorOf("gemm * * *"), StartsWith("t.plans:1:11: a ':' and a plan are missing"));
  EXPECT_THAT(errorOf("gemm * * : pointers"), StartsWith("t.plans:1:10: 3 words before the ':'"));
  EXPECT_THAT(errorOf("gemm * * * :  # nothing"), StartsWith("t.plans:1:13: the plan is missing"));
  EXPECT_THAT(errorOf("gemm * * * : pointers speed 3"), StartsWith("t.plans:1:14: plan 'pointers speed 3'"));
  EXPECT_THAT(errorOf("gemm_ar * * * : two_shot chonks 3"),
              HasSubstr("'chonks' is not understood behind 'two_shot'; did you mean 'chunks'?; accepted are chunks, "
                        "exchange_blocks"));
}

TEST(PlanTable, ThePrecedenceOfRows) {
  const PlanTable table = tableOf("gemm_ar *    *   *    : unfused\n"
                                  "gemm_ar *    <=8 *    : two_shot chunks 8\n"
                                  "gemm_ar *    <=4 *    : two_shot chunks 4\n"
                                  "gemm_ar *    4   *    : two_shot chunks 1\n"
                                  "gemm_ar *    4   fp16 : two_shot chunks 2\n"
                                  "gemm_ar H200 *   *    : two_shot chunks 3\n");
  const auto on = [&](std::string_view gpu, uint32_t ranks, DataType dtype) {
    return *planOf(PlanChoice::of({"gemm_ar", std::string(gpu), ranks, dtype}, {table}), {{"m", 1}});
  };
  EXPECT_EQ(on("H100", 16, DataType::BF16), "unfused");
  EXPECT_EQ(on("H100", 8, DataType::BF16), "two_shot chunks 8");
  EXPECT_EQ(on("H100", 5, DataType::BF16), "two_shot chunks 8");
  EXPECT_EQ(on("H100", 3, DataType::BF16), "two_shot chunks 4");
  EXPECT_EQ(on("H100", 4, DataType::BF16), "two_shot chunks 1");
  EXPECT_EQ(on("H100", 4, DataType::F16), "two_shot chunks 2");
  EXPECT_EQ(on("NVIDIA H200", 4, DataType::F16), "two_shot chunks 3");
  // A table that stands before another goes before it, however special the other's rows are.
  const PlanTable own = tableOf("gemm_ar * * * m<=10 : one_shot\n");
  const PlanChoice both = PlanChoice::of({"gemm_ar", "NVIDIA H200", 4, DataType::F16}, {own, table});
  EXPECT_EQ(*planOf(both, {{"m", 10}}), "one_shot");
  EXPECT_EQ(*planOf(both, {{"m", 11}}), "two_shot chunks 3");
  EXPECT_EQ(planOf(PlanChoice::of({"gemm", "NVIDIA H200", 4, DataType::F16}, {own, table}), {}), nullptr);
}

TEST(PlanTable, MoreSizesGoBeforeFewer) {
  const PlanTable table = tableOf("gemm * * * m<=8 : pointers 16x16x16\n"
                                  "gemm * * * m=5..8 n~100 : pointers 32x32x32\n"
                                  "gemm * * * : pointers 64x64x32\n");
  const PlanChoice choice = PlanChoice::of({"gemm", "x", 1}, {table});
  EXPECT_EQ(choice.find({{"m", 5}, {"n", 100}})->plan, "pointers 32x32x32");
  EXPECT_EQ(choice.find({{"m", 4}, {"n", 100}})->plan, "pointers 16x16x16");
  EXPECT_EQ(choice.find({{"m", 5}, {"n", 200}})->plan, "pointers 16x16x16");
  EXPECT_EQ(choice.find({{"m", 9}, {"n", 100}})->plan, "pointers 64x64x32");
}

TEST(PlanTable, SizesThatAreNotGivenFitAllRowsOrNone) {
  const PlanTable table =
      *PlanTable::parse("ag_gemm * * * m<=100 n<=16 : unfused\nag_gemm * * * m<=200 : overlapped\n", "f");
  const PlanChoice choice = PlanChoice::of({"ag_gemm", "x", 2}, {table});
  EXPECT_EQ(choice.find({{"m", 50}})->plan, "unfused");
  EXPECT_EQ(choice.find({{"m", 50}}, /*givenOnly=*/true)->plan, "overlapped");
  EXPECT_EQ(choice.find({{"m", 50}, {"n", 8}}, true)->plan, "unfused");
  EXPECT_EQ(choice.find({{"n", 8}}, true), nullptr);
}

TEST(PlanTable, ADevicesNameIsMatchedWithoutBlanks) {
  const PlanTable table = tableOf("gemm H100_80GB 1 * : pointers 64x64x32\n");
  EXPECT_NE(planOf(PlanChoice::of({"gemm", "NVIDIA H100 80GB HBM3", 1}, {table}), {}), nullptr);
  EXPECT_EQ(planOf(PlanChoice::of({"gemm", "NVIDIA H100 PCIe", 1}, {table}), {}), nullptr);
}

TEST(PlanTable, TheNearestSizesThatFit) {
  const PlanTable table = tableOf("gemm * * * m<=1000 n~100 k~100 : pointers 16x16x16\n"
                                  "gemm * * * m<=8 n~100 k~100 : pointers 32x32x32\n"
                                  "gemm * * * m<=8 n~110 k~100 : pointers 64x64x64\n"
                                  "gemm * * * m<=8 n~110 k~100 : pointers 128x128x64\n");
  const PlanChoice choice = PlanChoice::of({"gemm", "x", 1}, {table});
  const auto at = [&](int64_t m, int64_t n, int64_t k) { return choice.find({{"m", m}, {"n", n}, {"k", k}}); };
  EXPECT_EQ(at(8, 100, 100)->plan, "pointers 32x32x32");
  EXPECT_EQ(at(9, 100, 100)->plan, "pointers 16x16x16");
  EXPECT_EQ(at(1, 109, 100)->plan, "pointers 64x64x64") << "of equals the first";
  EXPECT_EQ(at(1, 104, 100)->plan, "pointers 32x32x32");
  EXPECT_EQ(at(1, 88, 112)->plan, "pointers 32x32x32") << "an eighth is near";
  EXPECT_EQ(at(1, 87, 100), nullptr);
  EXPECT_EQ(at(1001, 100, 100), nullptr);
  EXPECT_EQ(at(1, 100, 113), nullptr);
  EXPECT_EQ(choice.find({{"m", 3}})->plan, "pointers 32x32x32") << "what is not known fits";
}

/// The plans change nowhere but behind the limits, whatever the other sizes are.
TEST(PlanTable, LimitsAreAllThereAre) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t most) { return static_cast<int64_t>(random() % most) + 1; };
  for (int trial = 0; trial < 300; ++trial) {
    PlanTable table;
    for (int64_t row = 0; row < 6; ++row) {
      PlanRow one;
      one.op = "gemm";
      if (draw(3) > 1)
        one.sizes.push_back({"m", draw(200), draw(2) == 1});
      if (!one.sizes.empty() && !one.sizes[0].isNear)
        one.sizes[0].least = draw(one.sizes[0].value);
      if (draw(3) > 1)
        one.sizes.push_back({"n", draw(40) + 80, draw(2) == 1});
      if (draw(4) == 1)
        one.gpu = "x";
      one.plan = "pointers 16x16x16 group " + std::to_string(row + 1);
      table.rows.push_back(one);
    }
    const PlanChoice choice = PlanChoice::of({"gemm", "x", 1}, {table});
    const int64_t n = draw(40) + 80;
    const std::vector<int64_t> limits = choice.limitsOf("m", {{"n", n}});
    EXPECT_TRUE(std::ranges::is_sorted(limits));
    for (int64_t m = 1; m < 300; ++m)
      if (choice.find({{"n", n}, {"m", m}}) != choice.find({{"n", n}, {"m", m + 1}})) {
        EXPECT_TRUE(std::ranges::binary_search(limits, m)) << table.text() << "n " << n << " m " << m;
      }
  }
}

TEST(TensorParallelPlan, TextAndBack) {
  const std::pair<const char *, const char *> plans[] = {
      {"ag_gemm", "overlapped"},
      {"ag_gemm", "overlapped 128x256x64 warps 8 stages 3 group 4 chunks 2"},
      {"ag_gemm", "unfused chunks 4"},
      {"ag_gemm", "one_launch 16x64x128 warps 4 stages 5 splits 2"},
      {"gemm_rs", "one_launch"},
      {"gemm_rs", "unfused 64x64x32 warps 4 stages 3 group 8"},
      {"gemm_ar", "one_shot 16x64x128 warps 4 stages 5 splits 2"},
      {"gemm_ar", "fused_two_shot"},
      {"gemm_ar", "two_shot 128x128x64 warps 8 stages 5 group 8 chunks 8 exchange_blocks 12"},
      {"gemm_ar", "pushed 128x128x64 warps 8 stages 5 group 8 chunks 4"},
      {"gemm_rs", "pushed chunks 2"},
  };
  for (const auto &[op, text] : plans) {
    auto plan = parseTensorParallelPlan(op, text);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    EXPECT_EQ(plan->text(), text);
  }
  auto order = parseTensorParallelPlan("gemm_ar", "two_shot 128x128x64 chunks 8 stages 5");
  ASSERT_TRUE(order.isOk());
  EXPECT_EQ(order->text(), "two_shot 128x128x64 warps 4 stages 5 group 8 chunks 8");
}

TEST(TensorParallelPlan, RefusesWhatTheOperatorHasNot) {
  const auto error = [](const char *op, const char *text) {
    auto plan = parseTensorParallelPlan(op, text);
    return plan.isOk() ? "" : std::string(plan.status().message());
  };
  EXPECT_EQ(error("ag_gemm", "two_shot"),
            "'two_shot' is no form of ag_gemm; one_launch, overlapped, unfused are accepted");
  EXPECT_EQ(error("gemm_ar", ""),
            "'' is no form of gemm_ar; unfused, one_shot, fused_two_shot, two_shot, pushed are accepted");
  EXPECT_THAT(error("gemm_rs", "overlapped chunks 2"), HasSubstr("'chunks' is not understood"));
  EXPECT_THAT(error("ag_gemm", "overlapped chunks 65"), HasSubstr("chunks is 65; 1 to 64 are accepted"));
  EXPECT_THAT(error("ag_gemm", "overlapped chunks"), HasSubstr("chunks is missing"));
  EXPECT_THAT(error("ag_gemm", "overlapped chunks 2 chunks 2"), HasSubstr("'chunks' is given twice"));
  EXPECT_THAT(error("ag_gemm", "overlapped warps 4"), HasSubstr("'warps' is not understood"));
  EXPECT_THAT(error("ag_gemm", "overlapped 128x128"), HasSubstr("'128x128' is no tile"));
  EXPECT_THAT(error("ag_gemm", "overlapped 128x96x64"), HasSubstr("blockN is 96"));
  EXPECT_THAT(error("gemm_ar", "one_shot 16x64x128 group 2"), HasSubstr("'group' is not understood"));
}

/// Where a rank's product is small beside its result, tiles are pushed; few rows are not.
TEST(LibraryPlans, SmallProductsOfManyRowsArePushed) {
  const auto formOf = [](uint32_t ranks, int64_t m, int64_t n, int64_t k) {
    const PlanChoice choice = PlanChoice::of({"gemm_ar", "NVIDIA H200", ranks, DataType::BF16}, {*libraryPlans()});
    return *planOf(choice, {{"m", m}, {"n", n}, {"k", k}});
  };
  EXPECT_EQ(formOf(2, 8192, 4096, 14336 / 8), "pushed chunks 2");
  EXPECT_EQ(formOf(2, 8192, 4096, 14336 / 2), "two_shot chunks 8");
  EXPECT_EQ(formOf(2, 4096, 4096, 14336 / 2), "two_shot chunks 4");
  EXPECT_EQ(formOf(2, 2048, 4096, 14336 / 8), "unfused");
  EXPECT_EQ(formOf(4, 8192, 4096, 11008 / 4), "pushed chunks 2");
  EXPECT_EQ(formOf(4, 4096, 4096, 14336 / 4), "pushed chunks 2");
  EXPECT_EQ(formOf(4, 8192, 4096, 14336 / 4), "two_shot chunks 4");
  EXPECT_EQ(formOf(4, 2048, 4096, 14336 / 4), "unfused");
  EXPECT_EQ(formOf(4, 8192, 8192, 28672 / 4), "two_shot chunks 4");
  EXPECT_EQ(formOf(8, 8192, 8192, 28672 / 8), "pushed chunks 2");
  EXPECT_EQ(formOf(8, 2048, 8192, 28672 / 8), "unfused");
  EXPECT_EQ(formOf(8, 8192, 4096, 14336 / 8), "unfused");
  EXPECT_EQ(formOf(8, 512, 8192, 28672 / 8), "unfused");
  EXPECT_EQ(formOf(8, 8, 8192, 28672 / 8), "one_shot");
  EXPECT_EQ(formOf(8, 8192, 16384, 53248 / 4), "two_shot chunks 8");
}

TEST(TensorParallelPlan, PlansByRowsAreBuckets) {
  const PlanTable table = tableOf("gemm_ar * * * m<=32 : one_shot\n"
                                  "gemm_ar * * * m<=64 : one_shot\n"
                                  "gemm_ar * * * m=65..128 n~4096 : fused_two_shot\n"
                                  "gemm_ar * * * m<=1000 : two_shot chunks 2\n");
  const PlanChoice choice = PlanChoice::of({"gemm_ar", "x", 4}, {table});
  std::vector<std::string> texts;
  for (const RowsPlan &each : plansByRows(choice, {{"n", 4096}}))
    texts.push_back(std::to_string(each.mostRows) + " " + (each.plan ? each.plan->text() : "-"));
  EXPECT_THAT(texts, ElementsAre("64 one_shot", "128 fused_two_shot", "1000 two_shot chunks 2",
                                 std::to_string(std::numeric_limits<int64_t>::max()) + " -"));
  EXPECT_EQ(plansByRows(choice, {{"n", 100}}).size(), 3u);
}

} // namespace
} // namespace ditron::ops
