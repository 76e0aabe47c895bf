//===- NetworkLitmus.h - Litmus tests of puts, gets and signals between nodes ---------------------------*- C++ -*-===//
//
// The shapes of LitmusPrograms.h where every rank is a node of its own, so that the network carries what the threads tell each other:
// a few threads with two operations each, and the one outcome that operations which arrive in the order of the program do not
// give. Run with nothing, a fence or a quiet between the two operations, and with the second as the signal of the first.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_TEST_NETWORKLITMUS_H
#define DITRON_SIM_TEST_NETWORKLITMUS_H

#include "ditron/support/Status.h"

#include <array>
#include <string>
#include <vector>

namespace ditron::sim {

/// What stands between the two operations of a thread that both go over the network.
enum class NetworkOrder { Nothing, Fence, Quiet, Signal };
inline constexpr NetworkOrder networkOrders[] = {NetworkOrder::Nothing, NetworkOrder::Fence, NetworkOrder::Quiet,
                                                 NetworkOrder::Signal};
std::string toString(NetworkOrder order);

struct NetworkAction {
  enum class Kind : uint8_t {
    None,
    Put,       ///< Of one word, non-blocking.
    PutSignal, ///< A put of some other word, with this word as its signal.
    SignalOp,
    Get,  ///< Blocking.
    Wait, ///< Of this rank's word, until it has the value.
    Load,
    Store
  } kind = Kind::None;
  uint8_t word = 0;
  uint32_t value = 0;
};

struct NetworkTest {
  std::string name, what;
  std::vector<uint32_t> homes;                       ///< Of each word: the rank that has it.
  std::vector<std::array<NetworkAction, 2>> threads; ///< Thread i is on rank i.
  /// What gets and loads give in order of the threads, then each word at the end; -1: anything.
  std::vector<int> weakOutcome;
  /// The orders that forbid the outcome.
  std::vector<NetworkOrder> forbidding;
  /// The second operation of a thread may be the signal of its first.
  bool hasSignalForm = false;

  bool isForbiddenBy(NetworkOrder order) const;
};
const std::vector<NetworkTest> &networkTests();

/// Runs the test once with the seed; whether the outcome was the weak one.
Expected<bool> seesWeakOutcome(const NetworkTest &test, NetworkOrder order, uint64_t seed);

} // namespace ditron::sim

#endif // DITRON_SIM_TEST_NETWORKLITMUS_H
