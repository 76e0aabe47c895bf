//===- PlanAgreement.h - All ranks make the same plan, or all know that they do not ---------------------------*- C++ -*-===//
//
// Ranks whose tables differ would wait for what the others never send. So prepare() tells the other ranks what a call does, with a hash
// of it, before the first call: where ranks are processes, and where each rank's host code has an operator of its own. An operator that
// all ranks of a process share cannot differ from itself. Calls exchange nothing.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_PLANS_PLANAGREEMENT_H
#define DITRON_OPS_PLANS_PLANAGREEMENT_H

#include "ditron/runtime/World.h"

namespace ditron::ops {

class PlanAgreement {
public:
  PlanAgreement() = default;
  /// Where the operator is created. `operation` is a literal.
  PlanAgreement(runtime::World &world, std::string_view operation)
      : operation(operation), isShared(world.localRanks().size() == world.numRanks() && !world.isInHostCode()) {}

  /// Where the operator is created and its tables have been read, before memory is allocated by them: an error on all processes that names
  /// those whose `tables` say something else.
  Status begin(runtime::World &world, std::string_view tables) const;

  /// Every rank calls this for the same calls in the same order, whether its plan could be `made` or not: where not, the others get an
  /// error that says so instead of waiting. `call` names the sizes in which ranks may not differ, `plan` what of the plan all must have.
  Status reach(const runtime::Rank &rank, const Status &made, std::string_view call, std::string_view plan) const;

private:
  std::string_view operation;
  bool isShared = true;
};

/// FNV-1a, the same in all processes and builds.
uint64_t planHash(std::string_view text);

} // namespace ditron::ops
#endif // DITRON_OPS_PLANS_PLANAGREEMENT_H
