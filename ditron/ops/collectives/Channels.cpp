//===- Channels.cpp - What the collectives' host and device code have in common ---------------------------------------===//
#include "ditron/ops/collectives/Channels.h"

namespace ditron::ops {

Expected<std::vector<runtime::Buffer>> allocateCounters(runtime::World &world, uint32_t blocks, std::string_view name) {
  std::vector<runtime::Buffer> counters(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    DITRON_ASSIGN_OR_RETURN(counters[id], world.rank(id).allocate(DataType::I64, blocks, name));
  }
  return counters;
}

} // namespace ditron::ops
