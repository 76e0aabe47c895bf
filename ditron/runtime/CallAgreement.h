//===- CallAgreement.h - What the ranks' calls of an operator have in common --------------------------------*- C++ -*-===//
//
// Every rank makes the same sequence of calls of an operator: the n-th call of each is the n-th of all, of one size. Ranks that do not
// would add up what does not belong together, often without waiting for ever. Where one process runs all ranks in virtual time, in the
// simulator, each call says what it is when its stream comes to it, eagerly or from a graph, and the first that differs ends the
// run. Real GPUs do nothing of this.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CALLAGREEMENT_H
#define DITRON_RUNTIME_CALLAGREEMENT_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace ditron::runtime {

/// Of one operator on all of its ranks.
class CallAgreement {
public:
  CallAgreement(std::string operation, uint32_t numRanks) : operation(std::move(operation)), entered(numRanks) {}

  /// The next call of a rank is `what`: "200 elements". An error where the same call of another rank is something else.
  Status enter(uint32_t rank, const std::string &what);

private:
  struct Call {
    uint32_t firstRank;
    std::string what;
    uint32_t ranks; ///< That have entered it.
  };

  std::string operation;
  std::vector<uint64_t> entered; ///< Calls of each rank.
  std::deque<Call> calls;        ///< Those that some ranks have entered and others not.
  uint64_t firstCall = 0;        ///< Number of the first of them.
};

/// A launch that begins a rank's call.
struct AgreedCall {
  std::shared_ptr<CallAgreement> agreement; ///< Null: it begins none.
  uint32_t rank = 0;
  std::string what;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_CALLAGREEMENT_H
