//===- turns_test.cpp - Plans that are close to the best are timed in turns -------------------------------------------------===//
#include "tune/Tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ditron::tool {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TunedProblem tunedWith(const std::vector<std::optional<double>> &times) {
  TunedProblem tuned;
  for (size_t i = 0; i < times.size(); ++i) {
    TunedPlan &plan = tuned.plans.emplace_back();
    plan.plan = std::to_string(i);
    plan.result.microseconds = times[i];
  }
  for (TunedPlan &plan : tuned.plans)
    if (plan.result.microseconds && (!tuned.best || *plan.result.microseconds < *tuned.best->result.microseconds))
      tuned.best = &plan;
  return tuned;
}

std::vector<std::string> closeIn(std::vector<std::optional<double>> times) {
  TunedProblem tuned = tunedWith(times);
  std::vector<std::string> names;
  for (const TunedPlan *plan : closeToBest(tuned))
    names.push_back(plan->plan);
  return names;
}

TEST(Turns, AreOfPlansThatAreCloseToTheBest) {
  EXPECT_THAT(closeIn({110, 100, std::nullopt, 116, 114}), ElementsAre("1", "0", "4"));
  EXPECT_THAT(closeIn({105, 104, 103, 102, 101, 100}), ElementsAre("5", "4", "3", "2"));
  EXPECT_THAT(closeIn({100, 200}), ElementsAre("0"));
  EXPECT_THAT(closeIn({std::nullopt}), IsEmpty());
}

TEST(Turns, AreOneRunOfAllTheirPlans) {
  TuneProblem problem;
  problem.op = "gemm";
  problem.m = problem.n = problem.k = 64;
  ASSERT_TRUE(problem.comparesPlans());
  const std::vector<std::string> words = trialWords(problem, {"a b", "c"}, {.program = "ditron", .target = "cuda"});
  EXPECT_THAT(words, testing::IsSupersetOf({"a b", "c"}));
  EXPECT_EQ(std::ranges::count(words, "--plan"), 2);
  problem.op = "all_reduce";
  EXPECT_FALSE(problem.comparesPlans());
}

TEST(Turns, TimesAreReadByPlan) {
  EXPECT_THAT(timesOfPlans(R"({"rows": [{"plans": [{"name": "a", "median_microseconds": 2.5},
                                                   {"name": "b", "median_microseconds": null}]}]})"),
              ElementsAre(Pair("a", 2.5)));
  EXPECT_THAT(timesOfPlans(R"({"rows": []})"), IsEmpty());
  EXPECT_THAT(timesOfPlans("no JSON"), IsEmpty());
}

} // namespace
} // namespace ditron::tool
