//===- OverlappedTail.cpp - The ragged last wave of a product beside which others copy -------------------------------------===//
#include "ditron/ops/OverlappedTail.h"

#include "ditron/support/TargetName.h"

namespace ditron::ops {

namespace {

int64_t tilesOf(const OverlappedProduct &product) {
  return ceilDivide(product.problem.m, product.tile.blockM) * ceilDivide(product.problem.n, product.tile.blockN);
}

} // namespace

std::optional<SplitTail> OverlappedProduct::tailOn(const runtime::Rank &rank) const {
  if (tailSplits == 1 || !hasTensorCopies(rank.world().target()) || sizeOf(problem.dtype) > 2 ||
      !allowsDescriptors(problem))
    return std::nullopt;
  GemmPlan plan = {.movement = GemmMovement::Descriptors, .tile = tile, .tailSplits = tailSplits};
  if (tailSplits == 0)
    plan.tailSplits = chooseTailSplitsBesideCopies(problem, plan, mostBlocks);
  return splitTailOf(problem, plan, mostBlocks);
}

uint32_t OverlappedProduct::partsOn(const runtime::Rank &rank) const {
  const std::optional<SplitTail> tail = tailOn(rank);
  return tail ? static_cast<uint32_t>(tail->parts) : 0;
}

uint32_t OverlappedProduct::blocksOn(const runtime::Rank &rank) const {
  const std::optional<SplitTail> tail = tailOn(rank);
  return blocksFor(rank, tail ? tail->wholeTiles + tail->splitTiles * tail->parts : tilesOf(*this), mostBlocks);
}

Expected<OperandLaunch> OverlappedProduct::launch(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                                  KernelCall call, GemmWorkspace &workspace,
                                                  const OperandLaunch::Names &names) const {
  call.grid = {blocksOn(rank), 1, 1};
  const std::optional<SplitTail> tail = tailOn(rank);
  if (!tail)
    return OperandLaunch::create(kernels, rank, call, names);
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<const GemmWorkspace::Memory> memory,
                          workspace.atLeast(rank, sumType(problem.dtype),
                                            uint64_t(tail->parts) * tail->splitTiles * tile.blockM * tile.blockN,
                                            tail->splitTiles));
  call.arguments.emplace_back("sums_ptr", memory->sums);
  call.arguments.emplace_back("tile_counter_ptr", memory->counters);
  call.arguments.emplace_back("whole_tiles", tail->wholeTiles);
  call.arguments.emplace_back("parts", tail->parts);
  DITRON_ASSIGN_OR_RETURN(PreparedCall prepared, PreparedCall::create(kernels, rank, call));
  prepared.keep(std::move(memory));
  return OperandLaunch::create(std::move(prepared), names);
}

} // namespace ditron::ops
