//===- Litmus_test.cpp - Weak outcomes: the allowed ones are seen, the forbidden ones never ---------------------------===//

#include "ditron/sim/test/Harness.h"
#include "ditron/sim/test/LitmusPrograms.h"

#include <algorithm>
#include <array>
#include <set>

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

/// What holds of a shape holds with updates in it. Outcomes that need an update in front of one that was carried out before are not
/// shown, and not in the list.
class UpdateLitmus : public testing::TestWithParam<std::tuple<size_t, LitmusDistance>> {};

TEST_P(UpdateLitmus, ShowsJustWhatTheModelAllows) {
  const LitmusTest &test = updateLitmusTests()[std::get<0>(GetParam())];
  const LitmusDistance distance = std::get<1>(GetParam());
  for (const LitmusStrength &strength : litmusStrengths()) {
    std::optional<uint64_t> weak;
    for (uint64_t seed = 0; seed <= schedules && !weak; ++seed) {
      Expected<bool> isWeak = seesWeakOutcome(test, strength, distance, seed);
      ASSERT_OK(isWeak.status());
      if (*isWeak)
        weak = seed;
      EXPECT_FALSE(*isWeak && seed == 0);
    }
    EXPECT_EQ(weak.has_value(), !isForbidden(test, strength, distance))
        << test.name << ", " << strength.text() << ": seed " << weak.value_or(0);
  }
}

INSTANTIATE_TEST_SUITE_P(Tests, UpdateLitmus,
                         testing::Combine(testing::Range<size_t>(0, updateLitmusTests().size()),
                                          testing::Values(LitmusDistance::SameBlock, LitmusDistance::SameGpu,
                                                          LitmusDistance::OtherRank)));

/// Blocks 0 to 3 each do something to one word, and note what it was.
void changeOneWord(void **arguments) {
  DitronSimThread *self = ditron_sim_self();
  auto *word = argument<uint32_t *>(arguments, 0);
  auto *results = argument<uint64_t *>(arguments, 1);
  const uint32_t me = self->blockId[0];
  auto update = [&](uint32_t op, uint64_t value) {
    return ditron_sim_atomic_rmw(self, op, DITRON_SIM_I32, word, value, 1, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU,
                                 AT(30));
  };
  switch (me) {
  case 0:
  case 1: results[me] = update(DITRON_SIM_RMW_ADD, 1); break;
  case 2: ditron_sim_st(self, word, 10, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, AT(31)); break;
  case 3: results[me] = update(DITRON_SIM_RMW_EXCHANGE, 20); break;
  case 4:
    results[me] = ditron_sim_atomic_cas(self, word, 10, 30, 4, DITRON_SIM_RELAXED, DITRON_SIM_SCOPE_GPU, AT(32));
    break;
  default: break;
  }
}

// Of one word there is one order, in which no update is lost and each gives what was before it.
TEST(LitmusOfOneWord, UpdatesAreWholeAndInOneOrder) {
  constexpr uint32_t blocks = 5;
  using Outcome = std::array<uint64_t, blocks + 1>; // what each was given, and what is there in the end
  std::set<Outcome> allowed, seen;
  std::array<uint32_t, blocks> order = {0, 1, 2, 3, 4};
  do {
    Outcome outcome = {};
    uint64_t word = 0;
    for (const uint32_t block : order) {
      if (block != 2)
        outcome[block] = word;
      word = block < 2 ? word + 1 : block == 2 ? 10 : block == 3 ? 20 : word == 10 ? 30 : word;
    }
    outcome[blocks] = word;
    allowed.insert(outcome);
  } while (std::ranges::next_permutation(order).found);
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    MachineOptions options;
    options.seed = seed;
    auto machine = makeMachine(options);
    auto *word = makeBuffer<uint32_t>(*machine, 0, 1, "word");
    auto *results = makeBuffer<uint64_t>(*machine, 0, blocks, "results");
    std::fill_n(results, blocks, 0);
    *word = 0;
    ASSERT_OK(runOnce(*machine, kernel("change", changeOneWord, {blocks, 1, 1}, 1, 0, word, results)));
    Outcome outcome;
    std::copy_n(results, blocks, outcome.begin());
    outcome[blocks] = *word;
    EXPECT_TRUE(allowed.contains(outcome)) << seed << ": " << testing::PrintToString(outcome);
    seen.insert(outcome);
  }
  EXPECT_GT(seen.size(), 20u);
}

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
