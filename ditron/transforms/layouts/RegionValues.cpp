//===- RegionValues.cpp - Values that control flow carries ----------------------------------------------------------------===//
//
// See RegionValues.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/layouts/RegionValues.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ditron::transforms {

SmallVector<Value> valuesTiedTo(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned number = use.getOperandNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (number < loop.getNumControlOperands())
      return {};
    unsigned index = number - loop.getNumControlOperands();
    return {loop.getRegionIterArg(index), loop.getResult(index)};
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return {loop.getBeforeArguments()[number]};
  if (auto condition = dyn_cast<scf::ConditionOp>(op)) {
    if (number == 0)
      return {};
    auto loop = cast<scf::WhileOp>(op->getParentOp());
    return {loop.getAfterArguments()[number - 1], loop.getResult(number - 1)};
  }
  if (isa<scf::YieldOp>(op)) {
    Operation *parent = op->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return {loop.getRegionIterArg(number), loop.getResult(number)};
    if (auto loop = dyn_cast<scf::WhileOp>(parent))
      return {loop.getBeforeArguments()[number]};
    if (isa<scf::IfOp>(parent))
      return {parent->getResult(number)};
  }
  if (isa<dgpu::WarpgroupWaitOp>(op))
    return {op->getResult(number)};
  return {};
}

SmallVector<Value> sourcesOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned number = argument.getArgNumber();
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent)) {
      if (number < loop.getNumInductionVars())
        return {};
      unsigned index = number - loop.getNumInductionVars();
      return {loop.getInitArgs()[index], loop.getYieldedValues()[index], loop.getResult(index)};
    }
    if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
      if (argument.getOwner() == loop.getBeforeBody())
        return {loop.getInits()[number], loop.getYieldOp().getOperand(number)};
      return {loop.getConditionOp().getArgs()[number], loop.getResult(number)};
    }
    return {};
  }
  auto result = cast<OpResult>(value);
  unsigned number = result.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(result.getOwner()))
    return {loop.getRegionIterArg(number), loop.getInitArgs()[number], loop.getYieldedValues()[number]};
  if (auto loop = dyn_cast<scf::WhileOp>(result.getOwner()))
    return {loop.getAfterArguments()[number], loop.getConditionOp().getArgs()[number]};
  if (auto wait = dyn_cast<dgpu::WarpgroupWaitOp>(result.getOwner()))
    return {wait.getSources()[number]};
  if (auto branch = dyn_cast<scf::IfOp>(result.getOwner()))
    return {branch.thenYield().getOperand(number), branch.elseYield().getOperand(number)};
  return {};
}

/// True for operations whose tensor results have one layout.
static bool resultsAlike(Operation *op) {
  return op->getNumResults() > 1 &&
         (isElementwise(op) || isa<tile::ReduceOp, tile::ScanOp, tile::SplitOp, tile::MapElementwiseOp>(op));
}

Value carrierOf(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return value;
  if (auto loop = dyn_cast<scf::ForOp>(result.getOwner()))
    return loop.getRegionIterArg(result.getResultNumber());
  if (auto loop = dyn_cast<scf::WhileOp>(result.getOwner()))
    return loop.getAfterArguments()[result.getResultNumber()];
  return resultsAlike(result.getOwner()) ? result.getOwner()->getResult(0) : value;
}

SmallVector<Value> carriedBy(Value carrier) {
  if (auto argument = dyn_cast<BlockArgument>(carrier)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent); loop && argument.getArgNumber() >= loop.getNumInductionVars())
      return {carrier, loop.getResult(argument.getArgNumber() - loop.getNumInductionVars())};
    if (auto loop = dyn_cast<scf::WhileOp>(parent); loop && argument.getOwner() == loop.getAfterBody())
      return {carrier, loop.getResult(argument.getArgNumber())};
    return {carrier};
  }
  Operation *definition = carrier.getDefiningOp();
  if (resultsAlike(definition))
    return SmallVector<Value>(definition->getResults());
  return {carrier};
}

} // namespace ditron::transforms
