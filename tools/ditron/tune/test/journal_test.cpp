//===- journal_test.cpp - What has been measured survives what may happen ---------------------------------------------------===//
#include "tune/Tuner.h"

#include "ditron/support/InputFile.h"
#include "ditron/support/OutputFile.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace ditron::tool {
namespace {

using testing::HasSubstr;

class JournalTest : public testing::Test {
protected:
  JournalTest()
      : path((std::filesystem::temp_directory_path() / ("journal_test_" + std::to_string(getpid()))).string()) {
    std::filesystem::remove(path);
  }
  ~JournalTest() override { std::filesystem::remove(path); }

  Journal open(const std::string &version = "v1", bool startOver = false) {
    Expected<Journal> journal = Journal::open(path, version, startOver);
    EXPECT_TRUE(journal.isOk()) << journal.status().message();
    return std::move(journal).value();
  }
  std::string content() { return *readWholeFile(path, "journal", 1 << 20); }

  static ops::PlanRow row(int64_t bytes) {
    ops::PlanRow row;
    row.op = "all_reduce";
    row.gpu = "simulated_sm_80";
    row.ranks = 2;
    row.dtype = DataType::BF16;
    row.sizes = {{"bytes", bytes, false, bytes}};
    row.plan = "packets 8 4 -";
    return row;
  }

  std::string path;
};

TEST_F(JournalTest, KnowsWhatItWasTold) {
  {
    Journal journal = open();
    EXPECT_EQ(journal.find(row(1)), nullptr);
    ASSERT_TRUE(journal.add(row(1), {12.5, ""}).isOk());
    ASSERT_TRUE(journal.add(row(2), {std::nullopt, "rank 1: a deadlock"}).isOk());
    ASSERT_NE(journal.find(row(1)), nullptr);
  }
  Journal journal = open();
  EXPECT_EQ(journal.size(), 2u);
  EXPECT_EQ(journal.find(row(1))->microseconds, 12.5);
  EXPECT_FALSE(journal.find(row(2))->microseconds);
  EXPECT_EQ(journal.find(row(2))->failure, "rank 1: a deadlock");
  EXPECT_EQ(journal.find(row(3)), nullptr);
}

TEST_F(JournalTest, KnowsAllPlansOfTheSameSizes) {
  const auto withPlan = [](int64_t bytes, const std::string &plan) {
    ops::PlanRow changed = row(bytes);
    changed.plan = plan;
    return changed;
  };
  Journal journal = open();
  ASSERT_TRUE(journal.add(withPlan(1, "ring 2 4 -"), {3.0, ""}).isOk());
  ASSERT_TRUE(journal.add(withPlan(10, "ring 2 4 -"), {2.0, ""}).isOk());
  ASSERT_TRUE(journal.add(withPlan(1, "packets 8 4 -"), {std::nullopt, "a deadlock"}).isOk());
  const auto plans = journal.plansOf(row(1));
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].first, "packets 8 4 -");
  EXPECT_EQ(plans[0].second.failure, "a deadlock");
  EXPECT_EQ(plans[1].first, "ring 2 4 -");
  EXPECT_EQ(plans[1].second.microseconds, 3.0);
  EXPECT_TRUE(journal.plansOf(row(2)).empty());
}

/// Runs that tune into one file at the same time.
TEST_F(JournalTest, SeveralMayAdd) {
  {
    Journal first = open(), second = open();
    ASSERT_TRUE(first.add(row(1), {1.0, ""}).isOk());
    Journal third = open();
    ASSERT_TRUE(second.add(row(2), {2.0, ""}).isOk());
    ASSERT_TRUE(third.add(row(3), {3.0, ""}).isOk());
    ASSERT_TRUE(first.add(row(4), {4.0, ""}).isOk());
  }
  EXPECT_EQ(open().size(), 4u);
}

TEST_F(JournalTest, EveryBeginningOfItIsOne) {
  {
    Journal journal = open();
    for (int64_t bytes = 1; bytes <= 3; ++bytes)
      ASSERT_TRUE(journal.add(row(bytes), {static_cast<double>(bytes), ""}).isOk());
  }
  const std::string whole = content();
  size_t lines = 0;
  for (size_t length = 0; length <= whole.size(); ++length) {
    ASSERT_TRUE(writeWholeFile(path, whole.substr(0, length)).isOk());
    lines = static_cast<size_t>(std::ranges::count(whole.substr(0, length), '\n'));
    {
      Journal journal = open();
      EXPECT_EQ(journal.size(), lines == 0 ? 0 : lines - 1) << length; // less the head
      // What comes next is not glued to the rest of a line.
      ASSERT_TRUE(journal.add(row(9), {9.0, ""}).isOk());
    }
    Journal again = open();
    EXPECT_EQ(again.size(), lines == 0 ? 1 : lines) << length;
    ASSERT_NE(again.find(row(9)), nullptr) << length;
    EXPECT_EQ(again.find(row(9))->microseconds, 9.0);
  }
}

TEST_F(JournalTest, LinesWithoutSenseAreMeasuredAgain) {
  {
    open();
  }
  const std::string head = content();
  ASSERT_TRUE(writeWholeFile(path, head + "all_reduce * * * : packets 8 4 -  # fast\n" + "\n\x01\xff\n# 3 us\n" +
                                       "all_reduce * * * : packets 8 4 -  # -3 us\n" +
                                       "all_reduce * * * : packets  # 3 us\n" + row(5).text() + "  # 3 us\n")
                  .isOk());
  Journal journal = open();
  EXPECT_EQ(journal.size(), 1u);
  EXPECT_EQ(journal.find(row(5))->microseconds, 3.0);
}

TEST_F(JournalTest, AnotherVersionBeginsAnew) {
  {
    ASSERT_TRUE(open().add(row(1), {1.0, ""}).isOk());
  }
  EXPECT_EQ(open("v2").size(), 0u);
  EXPECT_THAT(content(), HasSubstr("v2"));
  {
    ASSERT_TRUE(open("v2").add(row(1), {1.0, ""}).isOk());
  }
  EXPECT_EQ(open("v2").size(), 1u);
  EXPECT_EQ(open("v2", /*startOver=*/true).size(), 0u);
}

TEST(Buckets, ReachDownToTheNextOrAQuarter) {
  std::vector<TuneProblem> all;
  for (const int64_t m : {1, 8, 32, 64, 8192})
    all.push_back({.op = "gemm_rs", .ranks = 4, .m = m, .n = 100, .k = 4096});
  const auto textOf = [&](size_t i) {
    std::string text;
    for (const ops::PlanSize &size : bucketOf(all[i], all))
      text += size.text() + " ";
    return text;
  };
  EXPECT_EQ(textOf(0), "m<=1 n~100 k~1024 ");
  EXPECT_EQ(textOf(1), "m=3..8 n~100 k~1024 ");
  EXPECT_EQ(textOf(2), "m=9..32 n~100 k~1024 ");
  EXPECT_EQ(textOf(3), "m=33..64 n~100 k~1024 ");
  EXPECT_EQ(textOf(4), "m=2049..8192 n~100 k~1024 ");
}

} // namespace
} // namespace ditron::tool
