//===- CollectiveProtocol.cpp - What the protocols have in common -----------------------------------------------------===//
#include "ditron/ops/collectives/CollectiveProtocol.h"

#include "ditron/ops/GemmKernels.h"

#include <bit>

namespace ditron::ops {

void CollectiveProtocol::appendReduction(KernelCall &call) const {
  call.arguments.emplace_back("scale", static_cast<double>(options().scale.value_or(1.0f)));
  call.arguments.emplace_back("REDUCTION", static_cast<uint32_t>(options().reduction));
  call.arguments.emplace_back("SCALED", options().scale.has_value());
}

/// On a multiprocessor.
static constexpr uint32_t mostWarps = 64;

Expected<CollectiveCall> CollectiveProtocol::oneLaunch(runtime::Rank &rank, KernelCall call) const {
  CollectiveCall made;
  // More blocks than multiprocessors are meant to run together; one behind the other they would only take longer.
  if (!rank.world().machine())
    call.residentBlocks = std::min(static_cast<uint32_t>(ceilDivide(call.grid[0], rank.attributes().multiprocessors)),
                                   mostWarps / call.numWarps);
  DITRON_ASSIGN_OR_RETURN(made.first, PreparedCall::create(*setting.kernels, rank, call));
  made.last = made.first;
  DITRON_ASSIGN_OR_RETURN(made.in, made.first.pointerParameter("x_ptr"));
  DITRON_ASSIGN_OR_RETURN(made.out, made.last.pointerParameter("out_ptr"));
  made.sequence.launch(runtime::Lane::Main, made.first.prepared());
  return made;
}

DataType CollectiveProtocol::partialSumType() const {
  if (!reduces())
    return options().dtype;
  if (isFloat(options().dtype) && elementBytes() == 1)
    return DataType::F32;
  if (isInteger(options().dtype) && elementBytes() < 4 && options().reduction == Reduction::Average)
    return DataType::I32;
  return options().dtype;
}

int64_t CollectiveProtocol::packetsPerBlock(const CollectivePlan &plan, int64_t packets) const {
  const int64_t threads = plan.numWarps * world().rank(world().localRanks().front()).attributes().warpSize;
  return std::max(ceilDivide(packets, plan.blocks), std::min(threads, packets));
}

CollectiveProtocol::ChunkSpace CollectiveProtocol::chunkSpace(std::span<const SizedPlan> plans) const {
  ChunkSpace space;
  for (const auto &[plan, mostElements] : plans) {
    space.blocks = std::max(space.blocks, plan.blocks);
    space.slotElements = std::max<int64_t>(space.slotElements, plan.chunkBytes / elementBytes());
  }
  return space;
}

std::array<uint32_t, 3> CollectiveProtocol::chunkGrid(const CollectivePlan &plan, int64_t elements, int64_t chunk) {
  return {static_cast<uint32_t>(std::min<int64_t>(plan.blocks, ceilDivide(elements, chunk))), 1, 1};
}

int64_t CollectiveProtocol::chunkElements(const CollectivePlan &plan, int64_t elements) const {
  const int64_t least = 512 / elementBytes(), most = plan.chunkBytes / elementBytes();
  return std::clamp<int64_t>(
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(ceilDivide(elements, plan.blocks)))), least, most);
}

int64_t CollectiveProtocol::partElements(int64_t elements) const {
  const int64_t line = 128 / elementBytes();
  return ceilDivide(ceilDivide(elements, numRanks()), line) * line;
}

} // namespace ditron::ops
