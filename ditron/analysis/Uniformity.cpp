//===- Uniformity.cpp - Which values differ between the threads of a block ------------------------------*- C++ -*-===//
//
// A fixpoint of whole walks over structured control flow: only loop-carried values need more than one, and marks are
// never taken back, so the number of walks is at most the depth of the longest chain through loops.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/Uniformity.h"

#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace ditron::analysis;
namespace tile = ditron::tile;
namespace dist = ditron::dist;

/// Operations whose result differs whatever their operands are.
bool UniformityAnalysis::isSource(Operation *op) const {
  if (whom != UniformityOf::Threads) {
    if (auto program = dyn_cast<tile::ProgramIdOp>(op))
      return whom == UniformityOf::Blocks || program.getAxis() == 0;
    // What memory holds may have changed from one block's read to the other's.
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    return effects && op->getNumRegions() == 0 && effects.hasEffect<MemoryEffects::Read>();
  }
  if (auto thread = dyn_cast<dist::ThreadIdOp>(op))
    return thread.getAxis() == 0; // the others are zero
  if (auto intrinsic = dyn_cast<dist::IntrinsicOp>(op)) // a block runs on one multiprocessor, and addresses are its own
    return intrinsic.getName() != "smid" && !intrinsic.getName().starts_with("shared_");
  return isa<dist::LaneIdOp, dist::LdOp, dist::LdVectorOp, dist::SignalWaitUntilOp, dist::MultimemLdReduceOp, dist::ThreadAtomicRmwOp,
             dist::ThreadAtomicCasOp, dist::ShuffleOp, dist::BallotOp>(op);
}

/// Operations whose scalar result the whole block gets, whatever their operands are.
bool UniformityAnalysis::isBroadcast(Operation *op) const {
  return whom == UniformityOf::Threads && isa<tile::ReduceOp, tile::AtomicRmwOp, tile::AtomicCasOp, dist::WaitOp>(op);
}

/// The number of a cluster: a program id divided by 2, or a multiple of 2.
static bool isClusterNumber(Operation *op) {
  APInt divisor;
  return isa<arith::DivSIOp, arith::DivUIOp>(op) && op->getOperand(0).getDefiningOp<tile::ProgramIdOp>() &&
         matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) && divisor.isStrictlyPositive() && !divisor[0];
}

UniformityAnalysis::UniformityAnalysis(Operation *root, UniformityOf whom) : whom(whom) {
  do {
    changed = false;
    for (Region &region : root->getRegions())
      visitRegion(region);
  } while (changed);
}

void UniformityAnalysis::visitRegion(Region &region) {
  for (Block &block : region)
    for (Operation &op : block)
      visit(&op);
}

void UniformityAnalysis::mark(Value value, Operation *source) {
  if (!varying.insert(value).second)
    return;
  sources[value] = source;
  changed = true;
}

void UniformityAnalysis::markAll(ValueRange values, Operation *source) {
  for (Value value : values)
    mark(value, source);
}

void UniformityAnalysis::flow(Value from, Value to) {
  if (isVarying(from))
    mark(to, sourceOf(from));
}

Value UniformityAnalysis::firstVarying(ValueRange values) const {
  for (Value value : values)
    if (isVarying(value))
      return value;
  return {};
}

void UniformityAnalysis::visit(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return visitIf(branch);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visitFor(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return visitWhile(loop);
  if (isSource(op))
    return markAll(op->getResults(), op);
  for (Region &region : op->getRegions())
    visitRegion(region);
  if (isBroadcast(op) || (whom == UniformityOf::Clusters && isClusterNumber(op)))
    return;
  if (Value cause = firstVarying(op->getOperands()))
    markAll(op->getResults(), sourceOf(cause));
}

void UniformityAnalysis::visitIf(scf::IfOp op) {
  for (Region *region : {&op.getThenRegion(), &op.getElseRegion()}) {
    visitRegion(*region);
    if (!region->empty() && op.getNumResults() != 0)
      for (auto [yielded, result] : llvm::zip_equal(region->front().getTerminator()->getOperands(), op.getResults()))
        flow(yielded, result);
  }
  if (isVarying(op.getCondition()))
    markAll(op.getResults(), sourceOf(op.getCondition()));
}

void UniformityAnalysis::visitFor(scf::ForOp op) {
  if (Value bound = firstVarying({op.getLowerBound(), op.getUpperBound(), op.getStep()})) {
    // Threads make different numbers of turns: whatever changes from turn to turn differs when they leave.
    mark(op.getInductionVar(), sourceOf(bound));
    markAll(op.getRegionIterArgs(), sourceOf(bound));
    markAll(op.getResults(), sourceOf(bound));
  }
  for (auto [initial, argument] : llvm::zip_equal(op.getInitArgs(), op.getRegionIterArgs()))
    flow(initial, argument);
  visitRegion(op.getRegion());
  for (auto [yielded, argument, result] :
       llvm::zip_equal(op.getYieldedValues(), op.getRegionIterArgs(), op.getResults())) {
    flow(yielded, argument);
    flow(argument, result);
  }
}

void UniformityAnalysis::visitWhile(scf::WhileOp op) {
  for (auto [initial, argument] : llvm::zip_equal(op.getInits(), op.getBeforeArguments()))
    flow(initial, argument);
  visitRegion(op.getBefore());
  scf::ConditionOp condition = op.getConditionOp();
  for (auto [passed, argument, result] :
       llvm::zip_equal(condition.getArgs(), op.getAfterArguments(), op.getResults())) {
    flow(passed, argument);
    flow(passed, result);
  }
  visitRegion(op.getAfter());
  for (auto [yielded, argument] : llvm::zip_equal(op.getYieldOp().getOperands(), op.getBeforeArguments()))
    flow(yielded, argument);
  if (isVarying(condition.getCondition())) {
    Operation *source = sourceOf(condition.getCondition());
    markAll(op.getBeforeArguments(), source);
    markAll(op.getAfterArguments(), source);
    markAll(op.getResults(), source);
  }
}

Value UniformityAnalysis::ownCondition(Operation *op) const {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return firstVarying(branch.getCondition());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return firstVarying({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return firstVarying(loop.getConditionOp().getCondition());
  return {};
}

SmallVector<Value> UniformityAnalysis::divergentConditions(Operation *op) const {
  SmallVector<Value> conditions;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (Value condition = ownCondition(parent))
      conditions.insert(conditions.begin(), condition);
  return conditions;
}

Value UniformityAnalysis::divergentCondition(Operation *op) const {
  SmallVector<Value> conditions = divergentConditions(op);
  return conditions.empty() ? Value() : conditions.front();
}
