//===- Channels.cpp - What the collectives' host and device code have in common ---------------------------------------===//
#include "ditron/ops/collectives/Channels.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <span>

namespace ditron::ops {

bool overlap(runtime::Pointer a, uint64_t bytesOfA, runtime::Pointer b, uint64_t bytesOfB) {
  const auto beginA = reinterpret_cast<uintptr_t>(a.address), beginB = reinterpret_cast<uintptr_t>(b.address);
  return beginA < beginB + bytesOfB && beginB < beginA + bytesOfA;
}

DataType bitsOf(DataType type) {
  switch (sizeOf(type)) {
  case 1: return DataType::I8;
  case 2: return DataType::I16;
  case 4: return DataType::I32;
  default: return DataType::I64;
  }
}

int64_t ringLineElements(DataType type) {
  constexpr int64_t lineBytes = 128;
  return lineBytes / static_cast<int64_t>(sizeOf(type));
}

namespace {

/// None where no row is of the form chunks.
std::optional<PairPlan> pairPlanOf(std::span<const CollectivePlanRow> rows) {
  PairPlan plan;
  bool hasRings = false;
  for (const CollectivePlanRow &row : rows) {
    if (row.plan.form == CollectiveForm::Packets)
      plan.packetBytes = row.mostBytes;
    if (row.plan.form == CollectiveForm::Chunks) {
      plan.rings = row.plan;
      hasRings = true;
    }
  }
  return hasRings ? std::optional(plan) : std::nullopt;
}

} // namespace

Expected<PairPlan> readPairPlan(std::string_view gpu, uint32_t numRanks) {
  DITRON_ASSIGN_OR_RETURN(const std::vector<CollectivePlanRow> rows,
                          collectivePlanRows(pairsOperator, gpu, numRanks, DataType::U8));
  if (const std::optional<PairPlan> plan = pairPlanOf(rows))
    return *plan;
  // A user's table may have other forms for all sizes.
  DITRON_ASSIGN_OR_RETURN(const PlanTable library, libraryPlans());
  DITRON_ASSIGN_OR_RETURN(const std::vector<CollectivePlanRow> own,
                          collectivePlanRows(PlanChoice::of(
                              {std::string(pairsOperator), std::string(gpu), numRanks, DataType::U8}, {library})));
  if (const std::optional<PairPlan> plan = pairPlanOf(own))
    return *plan;
  return internalError(fmt::format("plans of collectives: {} has no row of the form chunks on {} with {} ranks",
                                   pairsOperator, gpu, numRanks));
}

void leavePlacesFor(uint32_t concurrentCalls, uint32_t taken, runtime::World &world,
                    std::vector<CollectivePlanRow> &rows) {
  if (concurrentCalls <= 1)
    return;
  const uint32_t multiprocessors = world.rank(world.localRanks().front()).attributes().multiprocessors;
  const uint32_t part = multiprocessors / concurrentCalls, left = part > taken ? part - taken : 0;
  for (CollectivePlanRow &row : rows)
    row.plan.blocks = std::clamp(left, 1u, row.plan.blocks);
}

Expected<std::vector<runtime::Buffer>> allocateCounters(runtime::World &world, uint32_t blocks, std::string_view name) {
  std::vector<runtime::Buffer> counters(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    DITRON_ASSIGN_OR_RETURN(counters[id], world.rank(id).allocate(DataType::I64, blocks, name));
  }
  return counters;
}

} // namespace ditron::ops
