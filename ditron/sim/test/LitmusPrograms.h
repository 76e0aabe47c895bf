//===- LitmusPrograms.h - Litmus tests of memory order --------------------------------------------------*- C++ -*-===//
//
// A few threads with at most two strong accesses each of the words x and y, and the one outcome that sequential consistency does not
// allow. The tests of the literature by their names there: message passing (MP), store buffering (SB), load buffering (LB), S, R, 2+2W,
// write to read causality (WRC), independent reads of independent writes (IRIW), coherence of two reads (CoRR). Run in
// every strength of accesses and fences and at every distance.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_TEST_LITMUSPROGRAMS_H
#define DITRON_SIM_TEST_LITMUSPROGRAMS_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/Machine.h"

#include <array>
#include <string>
#include <vector>

namespace ditron::sim {

/// Where the threads of a test are.
enum class LitmusDistance { SameBlock, SameGpu, OtherRank };

struct LitmusAccess {
  enum class Kind : uint8_t { None, Load, Store, Update, Exchange } kind = Kind::None;
  uint8_t word = 0; ///< 0: x, 1: y.
  uint32_t value = 0;
};

struct LitmusTest {
  std::string name;
  std::vector<std::array<LitmusAccess, 2>> threads;
  /// What the loads give in order of the threads, then x and y at the end; -1: anything.
  std::vector<int> weakOutcome;
};
const std::vector<LitmusTest> &litmusTests();
/// The same shapes with atomic read-modify-writes; named after them. Not in the table.
const std::vector<LitmusTest> &updateLitmusTests();

/// How strong the accesses are: at system scope, with or without release and acquire, with or without a fence between the two of each
/// thread.
struct LitmusStrength {
  bool isReleaseAcquire = false;
  uint32_t fence = DITRON_SIM_RELAXED; ///< Relaxed: none.
  uint32_t fenceScope = DITRON_SIM_SCOPE_SYSTEM;

  std::string text() const;
};
const std::vector<LitmusStrength> &litmusStrengths();

/// Whether the PTX memory model forbids the weak outcome.
bool isForbidden(const LitmusTest &test, const LitmusStrength &strength, LitmusDistance distance);

/// Runs the test once with the seed; whether the outcome was the weak one.
Expected<bool> seesWeakOutcome(const LitmusTest &test, const LitmusStrength &strength, LitmusDistance distance,
                               uint64_t seed);

} // namespace ditron::sim

#endif // DITRON_SIM_TEST_LITMUSPROGRAMS_H
