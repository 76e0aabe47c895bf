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
    else
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

//===- Over the network -------------------------------------------------------------------------------------------===//

enum class Between { Nothing, Fence, Quiet, PutSignal };

/// PE 0 puts a value and then a flag; PE 1 waits for the flag and reads the value.
void passByPuts(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *data = argument<uint32_t *>(arguments, 0);
  auto *flag = argument<uint64_t *>(arguments, 1);
  if (argument<uint32_t>(arguments, 3) == 1) {
    ditron_sim_wait_until(self, flag, 8, DITRON_SIM_EQ, 1, DITRON_SIM_ACQUIRE, DITRON_SIM_SCOPE_SYSTEM, AT(10));
    *argument<uint32_t *>(arguments, 4) =
        static_cast<uint32_t>(ditron_sim_ld(self, data, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_SYSTEM, 0, AT(11)));
    return;
  }
  const auto between = argument<Between>(arguments, 2);
  auto *source = argument<uint32_t *>(arguments, 5);
  if (between == Between::PutSignal)
    return ditron_sim_shmem_put_signal(self, data, source, 4, flag, 1, 8, DITRON_SIM_SIGNAL_SET, 1, /*nonblocking=*/1,
                                       AT(20));
  ditron_sim_shmem_put(self, data, source, 4, 1, /*nonblocking=*/1, AT(20));
  if (between == Between::Fence)
    ditron_sim_shmem_order(self, DITRON_SIM_SHMEM_FENCE, AT(21));
  else if (between == Between::Quiet)
    ditron_sim_shmem_order(self, DITRON_SIM_SHMEM_QUIET, AT(21));
  ditron_sim_shmem_value(self, flag, 1, 8, 1, AT(22));
}

TEST(LitmusOverTheNetwork, PutsArriveInOrderOnlyBehindFenceQuietOrWithTheirSignal) {
  for (Between between : {Between::Nothing, Between::Fence, Between::Quiet, Between::PutSignal}) {
    uint32_t stale = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
      MachineOptions options;
      options.ranks = 2;
      options.seed = seed;
      options.detectRaces = false; // they would be reported
      auto machine = makeMachine(options);
      auto *data = makeBuffer<uint32_t>(*machine, 1, 1, "data", MemoryKind::Symmetric);
      auto *flag = makeBuffer<uint64_t>(*machine, 1, 1, "flag", MemoryKind::Symmetric);
      auto *source = makeBuffer<uint32_t>(*machine, 0, 1, "source");
      auto *seen = makeBuffer<uint32_t>(*machine, 1, 1, "seen");
      *source = 7;
      for (uint32_t rank = 0; rank < 2; ++rank)
        ASSERT_OK(machine->launch(makeStream(*machine, rank), kernel("pass", passByPuts, {1, 1, 1}, 1, 0, data, flag,
                                                                     between, rank, seen, source)));
      ASSERT_OK(machine->synchronize());
      stale += *seen != 7;
    }
    if (between == Between::Nothing)
      EXPECT_TRUE(stale > 20 && stale < 180) << stale;
    else
      EXPECT_EQ(stale, 0u) << static_cast<int>(between);
  }
}

} // namespace
} // namespace ditron::sim
