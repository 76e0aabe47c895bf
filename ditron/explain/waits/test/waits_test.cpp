//===- waits_test.cpp - Reports of waits as text, graph and JSON ------------------------------------------------------===//
#include "ditron/explain/waits/WaitReport.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

namespace ditron::explain {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Wait waitOf(uint32_t rank, uint32_t wordRank) {
  Wait wait;
  wait.rank = rank;
  wait.who = "kernel k";
  wait.file = "k.py";
  wait.line = 8;
  wait.column = 11;
  wait.blocks = "block (0,0,0)";
  wait.blockCount = 1;
  wait.threads = {0};
  wait.word = "flag[0]";
  wait.wordRank = wordRank;
  wait.has = 0;
  wait.wants = ">= 1";
  wait.lastWritten = "never written";
  wait.knowsRaisers = true;
  return wait;
}

WaitReport reportOf(uint32_t ranks) {
  WaitReport report;
  report.kind = "deadlock";
  report.headline = "deadlock at virtual time 1.000 us: nothing can run and nothing is in flight";
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    report.waits.push_back(waitOf(rank, rank));
    report.waits.back().raisers = {{(rank + 1) % ranks, "kernel k", "which waits itself"}};
    report.ranks.push_back({rank, {"stream default runs kernel k"}});
  }
  return report;
}

TEST(WaitReport, FewRanksAreSaidOneByOne) {
  EXPECT_EQ(textOf(reportOf(2)), "deadlock at virtual time 1.000 us: nothing can run and nothing is in flight\n"
                                 "waiting:\n"
                                 "  rank 0, kernel k at k.py:8:11, block (0,0,0), thread 0\n"
                                 "    waits for flag[0] on rank 0: has 0, wants >= 1; never written\n"
                                 "    could still raise it: kernel k on rank 1, which waits itself\n"
                                 "  rank 1, kernel k at k.py:8:11, block (0,0,0), thread 0\n"
                                 "    waits for flag[0] on rank 1: has 0, wants >= 1; never written\n"
                                 "    could still raise it: kernel k on rank 0, which waits itself\n"
                                 "what the ranks are doing:\n"
                                 "  rank 0:\n"
                                 "    stream default runs kernel k\n"
                                 "  rank 1:\n"
                                 "    stream default runs kernel k");
}

TEST(WaitReport, EqualWaitsOfManyRanksAreOne) {
  WaitReport report = reportOf(8);
  report.waits[5].has = 3;
  report.ranks[6].lines.clear();
  EXPECT_EQ(
      textOf(report),
      "deadlock at virtual time 1.000 us: nothing can run and nothing is in flight\n"
      "waiting:\n"
      "  ranks 0..4, 6, 7, kernel k at k.py:8:11, block (0,0,0), thread 0\n"
      "    waits for flag[0] on rank 0, each of the others for that of its own rank: has 0, wants >= 1; never written\n"
      "    could still raise it: kernel k on ranks 0..5, 7, which waits itself\n"
      "  rank 5, kernel k at k.py:8:11, block (0,0,0), thread 0\n"
      "    waits for flag[0] on rank 5: has 3, wants >= 1; never written\n"
      "    could still raise it: kernel k on rank 6, which waits itself\n"
      "what the ranks are doing:\n"
      "  ranks 0..5, 7:\n"
      "    stream default runs kernel k\n"
      "  rank 6:\n"
      "    idle");
}

TEST(WaitReport, NobodyIsLeft) {
  WaitReport report = reportOf(1);
  report.waits[0].raisers.clear();
  EXPECT_THAT(textOf(report), HasSubstr("nobody is left who could raise it"));
  report.waits[0].knowsRaisers = false;
  EXPECT_THAT(textOf(report), Not(HasSubstr("could")));
}

TEST(WaitReport, TheGraphHasTheCircle) {
  const std::string dot = dotOf(reportOf(2));
  EXPECT_THAT(dot, AllOf(HasSubstr("n0 [label=\"rank 0\\nkernel k\\nk.py:8:11\\nblock (0,0,0)\", shape=box]"),
                         HasSubstr("n1 [label=\"flag[0] on rank 0\\nnever written\", shape=ellipse]"),
                         HasSubstr("n0 -> n1 [label=\"has 0, wants >= 1\"]"), HasSubstr("n1 -> n2 [style=dashed"),
                         HasSubstr("n3 -> n0 [style=dashed")));
}

TEST(WaitReport, JsonSaysAll) {
  const nlohmann::json json = nlohmann::json::parse(jsonOf(reportOf(8)));
  EXPECT_EQ(json["kind"], "deadlock");
  ASSERT_EQ(json["waits"].size(), 8u);
  EXPECT_EQ(json["waits"][3]["word"], "flag[0]");
  EXPECT_EQ(json["waits"][3]["word_rank"], 3);
  EXPECT_EQ(json["waits"][3]["line"], 8);
  EXPECT_EQ(json["waits"][3]["could_be_raised_by"][0]["rank"], 4);
  EXPECT_EQ(json["ranks"][7]["doing"][0], "stream default runs kernel k");
}

TEST(WaitReport, NamesOfTheHostsDoNoHarm) {
  WaitReport report = reportOf(1);
  report.waits[0].who = "kernel \"\xff\"\\";
  EXPECT_THAT(dotOf(report), HasSubstr("kernel \\\""));
  EXPECT_FALSE(nlohmann::json::parse(jsonOf(report)).empty());
}

} // namespace
} // namespace ditron::explain
