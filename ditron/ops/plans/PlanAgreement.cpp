//===- PlanAgreement.cpp - All ranks make the same plan, or all know that they do not -------------------------------------===//
#include "ditron/ops/plans/PlanAgreement.h"

#include <fmt/format.h>

namespace ditron::ops {

uint64_t planHash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

Status PlanAgreement::begin(runtime::World &world, std::string_view tables) const {
  if (world.localRanks().size() == world.numRanks())
    return Status::ok(); // ranks of one process have one table
  return world.agree(world.rank(world.localRanks().front()), fmt::format("{}: the tables of the ranks", operation),
                     fmt::format("{} (tables {:016x})", tables, planHash(tables)));
}

Status PlanAgreement::reach(const runtime::Rank &rank, const Status &made, std::string_view call,
                            std::string_view plan) const {
  if (isShared)
    return made;
  const std::string what = fmt::format("{} by '{}'", call, plan);
  const std::string said =
      made.isOk() ? fmt::format("{} (plan {:016x})", what, planHash(what)) : fmt::format("nothing: {}", made.message());
  const Status agreed = rank.world().agree(rank, fmt::format("{}: the plans of the ranks", operation), said);
  return made.isOk() ? agreed : made; // the own error says more
}

} // namespace ditron::ops
