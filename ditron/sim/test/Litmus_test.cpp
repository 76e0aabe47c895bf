//===- Litmus_test.cpp - Weak outcomes: the allowed ones are seen, the forbidden ones never ---------------------------===//

#include "ditron/sim/test/Harness.h"
#include "ditron/sim/test/LitmusPrograms.h"

namespace ditron::sim {
namespace {

constexpr uint64_t schedules = 1000;

class Litmus : public testing::TestWithParam<std::tuple<size_t, LitmusDistance>> {
protected:
  const LitmusTest &test() const { return litmusTests()[std::get<0>(GetParam())]; }
  LitmusDistance distance() const { return std::get<1>(GetParam()); }
  /// The first seed that shows the weak outcome, or none.
  std::optional<uint64_t> firstWeak(const LitmusStrength &strength) {
    for (uint64_t seed = 1; seed <= schedules; ++seed) {
      Expected<bool> weak = seesWeakOutcome(test(), strength, distance(), seed);
      EXPECT_TRUE(weak.isOk()) << weak.status().message();
      if (!weak.isOk() || *weak)
        return seed;
    }
    return std::nullopt;
  }
};

TEST_P(Litmus, ShowsJustWhatTheModelAllows) {
  for (const LitmusStrength &strength : litmusStrengths()) {
    const std::optional<uint64_t> weak = firstWeak(strength);
    if (isForbidden(test(), strength, distance()))
      EXPECT_FALSE(weak) << test().name << ", " << strength.text() << ": forbidden, seen with seed " << *weak;
    else if (isShown(test(), strength))
      EXPECT_TRUE(weak) << test().name << ", " << strength.text() << ": allowed, not seen";
  }
}

TEST_P(Litmus, IsSequentiallyConsistentWithTheSeedZero) {
  for (const LitmusStrength &strength : litmusStrengths()) {
    Expected<bool> weak = seesWeakOutcome(test(), strength, distance(), 0);
    ASSERT_OK(weak.status());
    EXPECT_FALSE(*weak) << test().name << ", " << strength.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Tests, Litmus,
                         testing::Combine(testing::Range<size_t>(0, 9),
                                          testing::Values(LitmusDistance::SameBlock, LitmusDistance::SameGpu,
                                                          LitmusDistance::OtherRank)));

} // namespace
} // namespace ditron::sim
