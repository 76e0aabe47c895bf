//===- collective_plans_test.cpp - The table that says how collectives are carried out --------------------------------===//
#include "ditron/ops/collectives/CollectivePlans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

namespace ditron::ops {
namespace {

using testing::HasSubstr;

TEST(CollectivePlans, TheLibrarysTableHasEverySizeOfEveryKind) {
  for (CollectiveKind kind : allCollectiveKinds())
    for (uint32_t ranks : {1u, 2u, 3u, 4u, 8u, 16u, 17u, 64u})
      for (std::string_view gpu : {"NVIDIA H200", "NVIDIA H100 80GB HBM3", "simulated sm_80", "something else"}) {
        auto rows = collectivePlanRows(kind, gpu, ranks, DataType::BF16);
        ASSERT_TRUE(rows.isOk()) << rows.status().message();
        for (size_t i = 0; i < rows->size(); ++i) {
          EXPECT_TRUE((*rows)[i].plan.verify(kind, ranks).isOk()) << (*rows)[i].plan.text();
          if (i > 0) {
            EXPECT_LT((*rows)[i - 1].mostBytes, (*rows)[i].mostBytes);
          }
        }
        EXPECT_EQ(rows->back().mostBytes, std::numeric_limits<uint64_t>::max());
      }
}

TEST(CollectivePlans, TheLibrarysTableHasEverySizeOfWhatHasFewForms) {
  for (std::string_view op : {pairsOperator, rmsNormOperator})
    for (uint32_t ranks : {1u, 2u, 3u, 4u, 8u, 16u, 17u, 64u})
      for (std::string_view gpu : {"NVIDIA H200", "simulated sm_80", "something else"}) {
        auto rows = collectivePlanRows(op, gpu, ranks, DataType::BF16);
        ASSERT_TRUE(rows.isOk()) << rows.status().message();
        for (const CollectivePlanRow &row : *rows)
          EXPECT_TRUE(verifyPlanOf(op, row.plan, ranks).isOk()) << row.plan.text();
        EXPECT_EQ(rows->back().mostBytes, std::numeric_limits<uint64_t>::max());
        EXPECT_EQ(rows->back().plan.form, CollectiveForm::Chunks);
      }
  EXPECT_THAT(std::string(verifyPlanOf(rmsNormOperator, {CollectiveForm::Packets, 8, 4, 0}, 2).message()),
              HasSubstr("all_reduce_rms_norm by packets; its forms are lamport, two_shot_lamport, chunks"));
}

TEST(CollectivePlans, WorldsOfSeveralNodesHaveFormsOfTheirOwn) {
  for (CollectiveKind kind : allCollectiveKinds())
    for (std::string_view gpu : {"NVIDIA H200", "simulated sm_80"}) {
      auto rows = collectivePlanRows(kind, gpu, 8, DataType::BF16, 2);
      EXPECT_EQ(rows.isOk(), hasFormForNodes(kind)) << toString(kind);
      if (rows.isOk())
        for (const CollectivePlanRow &row : *rows)
          EXPECT_TRUE(row.plan.verify(kind, 8, 2).isOk()) << row.plan.text();
    }
}

Expected<std::vector<CollectivePlanRow>> rowsOf(std::string_view table, uint32_t ranks,
                                                std::string_view gpu = "NVIDIA H200") {
  DITRON_ASSIGN_OR_RETURN(PlanTable parsed, PlanTable::parse(table, "t.plans"));
  return collectivePlanRows(PlanChoice::of({"all_reduce", std::string(gpu), ranks, DataType::BF16}, {parsed}));
}

TEST(CollectivePlans, BucketsOfTheMostSpecificRows) {
  constexpr std::string_view table = "all_reduce H200 4 * bytes<=100 : packets 8 4\n"
                                     "all_reduce H200 4 *            : chunks 8 4 1024\n"
                                     "all_gather *    * *            : chunks 1 1 512   # another kind\n"
                                     "all_reduce *    * * bytes<=200 : two_shot_packets 2 4\n"
                                     "all_reduce *    * *            : chunks 3 4 2048\n";
  auto on4 = rowsOf(table, 4);
  ASSERT_TRUE(on4.isOk()) << on4.status().message();
  ASSERT_EQ(on4->size(), 2u);
  EXPECT_EQ((*on4)[0].mostBytes, 100u);
  EXPECT_EQ((*on4)[0].plan, (CollectivePlan{CollectiveForm::Packets, 8, 4, 0}));
  EXPECT_EQ((*on4)[1].mostBytes, std::numeric_limits<uint64_t>::max());
  auto on8 = rowsOf(table, 8);
  ASSERT_TRUE(on8.isOk());
  EXPECT_EQ((*on8)[0].plan.form, CollectiveForm::TwoShotPackets);
  // More ranks than packets are for: the row is left out, and the next has its sizes.
  auto on32 = rowsOf(table, 32);
  ASSERT_TRUE(on32.isOk());
  ASSERT_EQ(on32->size(), 1u);
  EXPECT_EQ((*on32)[0].plan.blocks, 3u);
  // Rows for some sizes of a GPU leave the others to the rows for all.
  auto some = rowsOf("all_reduce * * * : chunks 3 4 2048\nall_reduce H200 * * bytes<=100 : packets 8 4\n", 4);
  ASSERT_TRUE(some.isOk());
  ASSERT_EQ(some->size(), 2u);
  EXPECT_EQ((*some)[0].plan.form, CollectiveForm::Packets);
  EXPECT_EQ((*some)[1].plan.form, CollectiveForm::Chunks);
}

TEST(CollectivePlans, ErrorsNameWhatIsMissing) {
  const auto errorOf = [](std::string_view table) {
    auto rows = rowsOf(table, 4);
    return rows.isOk() ? "" : std::string(rows.status().message());
  };
  EXPECT_THAT(errorOf("all_reduce * * * : packets 1 1 512"), HasSubstr("t.plans:1:20: 'packets 1 1 512' is no plan"));
  EXPECT_THAT(errorOf("all_reduce * * * : chunks 1 3 512"), HasSubstr("3 warps; powers of two up to 32"));
  EXPECT_THAT(errorOf("all_gather * * * : two_shot_packets 1 1"), HasSubstr("all_gather by two_shot_packets on 1 node; its forms there are: packets, lamport, chunks, ring"));
  EXPECT_THAT(errorOf("all_reduce * * * bytes<=100 : chunks 1 1 512"), HasSubstr("no row of the tables of plans fits"));
  EXPECT_THAT(errorOf("all_to_all * * * : ring 1 1 512"), HasSubstr("all_to_all by ring on 1 node; its forms there are: packets, lamport, chunks"));
  EXPECT_THAT(errorOf("all_reduce * 64 * : chunks 1 1 512"), HasSubstr("with 1 warps on 64 ranks; at least 2 warps"));
  EXPECT_THAT(errorOf(""), HasSubstr("no row"));
}

TEST(CollectivePlans, TextAndBack) {
  for (const CollectivePlan &plan :
       {CollectivePlan{CollectiveForm::Packets, 8, 4, 0}, CollectivePlan{CollectiveForm::TwoShotPackets, 1, 32, 0},
        CollectivePlan{CollectiveForm::Lamport, 264, 8, 0}, CollectivePlan{CollectiveForm::TwoShotLamport, 132, 4, 0},
        CollectivePlan{CollectiveForm::Chunks, 132, 16, 8192}, CollectivePlan{CollectiveForm::Ring, 16, 8, 512}}) {
    auto read = parseCollectivePlan(plan.text());
    ASSERT_TRUE(read.isOk()) << read.status().message();
    EXPECT_EQ(*read, plan);
  }
  for (std::string_view text : {"", "chunks", "chunks 1 1", "chunks 1 1 -", "packets 1", "packets 1 1 1", "packets x 1",
                                "ring 1 1", "packets 1 1 - 2", "packets 99999999999 1"})
    EXPECT_FALSE(parseCollectivePlan(text).isOk()) << text;
}

} // namespace
} // namespace ditron::ops
