//===- OverlappedTail.cpp - The ragged last wave of a product beside which others copy -------------------------------------===//
#include "ditron/ops/tensor_parallel/OverlappedTail.h"

#include "ditron/support/TargetName.h"

namespace ditron::ops {

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

Expected<OperandLaunch> OverlappedProduct::launch(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                                  KernelCall call, GemmWorkspace &workspace,
                                                  const OperandLaunch::Names &names) const {
  const std::optional<SplitTail> tail = tailOn(rank);
  call.grid = {blocksFor(rank, tail ? tail->items() : tilesOf(tile, problem.m, problem.n), mostBlocks), 1, 1};
  if (!tail)
    return OperandLaunch::create(kernels, rank, call, names);
  DITRON_ASSIGN_OR_RETURN(PreparedCall prepared,
                          prepareSplitTail(kernels, rank, std::move(call), *tail, tile, problem.dtype, workspace));
  return OperandLaunch::create(std::move(prepared), names);
}

} // namespace ditron::ops
