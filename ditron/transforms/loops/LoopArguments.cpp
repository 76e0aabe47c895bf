//===- LoopArguments.cpp - Adding and removing values that control flow carries------------------------------------------------===//
//
// See LoopArguments.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/loops/LoopArguments.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace ditron::transforms {

/// An empty loop with the same bounds and attributes, and the body of `loop` moved into it. Arguments and yield are the caller's
/// to match to `inits`.
static scf::ForOp moveToNewLoop(scf::ForOp loop, ValueRange inits) {
  OpBuilder builder(loop);
  auto moved =
      scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits);
  moved->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  moved.setUnsignedCmp(loop.getUnsignedCmp());
  moved.getRegion().takeBody(loop.getRegion());
  return moved;
}

scf::ForOp addLoopArguments(scf::ForOp loop, ValueRange inits) {
  SmallVector<Value> allInits(loop.getInitArgs());
  llvm::append_range(allInits, inits);
  unsigned oldResults = loop.getNumResults();
  scf::ForOp extended = moveToNewLoop(loop, allInits);
  Operation *yield = extended.getBody()->getTerminator();
  SmallVector<Value> yielded(yield->getOperands());
  for (Value init : inits)
    yielded.push_back(extended.getBody()->addArgument(init.getType(), init.getLoc()));
  yield->setOperands(yielded);
  loop->replaceAllUsesWith(extended.getResults().take_front(oldResults));
  loop->erase();
  return extended;
}

/// All operations of the body, and the carried values, that something visible depends on.
static void markNeeded(scf::ForOp loop, bool keepsScalars, llvm::DenseSet<Operation *> &neededOps,
                       llvm::DenseSet<unsigned> &neededArgs) {
  SmallVector<Value> worklist;
  auto need = [&](Operation *op) {
    // Of nested operations the one in the body counts, with everything inside it.
    Operation *inBody = loop.getBody()->findAncestorOpInBlock(*op);
    if (!inBody || inBody == loop.getBody()->getTerminator() || !neededOps.insert(inBody).second)
      return;
    inBody->walk([&](Operation *inner) { worklist.append(inner->operand_begin(), inner->operand_end()); });
  };
  auto needArgument = [&](unsigned index) {
    if (neededArgs.insert(index).second)
      worklist.push_back(loop.getYieldedValues()[index]);
  };
  for (Operation &op : loop.getBody()->without_terminator())
    if (!isMemoryEffectFree(&op))
      need(&op);
  for (OpResult result : loop->getResults())
    if (!result.use_empty() || (keepsScalars && !isa<RankedTensorType>(result.getType())))
      needArgument(result.getResultNumber());
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (Operation *definition = value.getDefiningOp())
      need(definition);
    else if (auto argument = cast<BlockArgument>(value); argument.getOwner() == loop.getBody())
      if (argument.getArgNumber() >= loop.getNumInductionVars())
        needArgument(argument.getArgNumber() - loop.getNumInductionVars());
  }
}

scf::ForOp removeDeadLoopArguments(scf::ForOp loop, bool keepsScalars) {
  llvm::DenseSet<Operation *> neededOps;
  llvm::DenseSet<unsigned> neededArgs;
  markNeeded(loop, keepsScalars, neededOps, neededArgs);
  if (neededArgs.size() == loop.getNumResults())
    return loop;

  SmallVector<Value> inits, yielded;
  for (unsigned index = 0; index < loop.getNumResults(); ++index)
    if (neededArgs.contains(index)) {
      inits.push_back(loop.getInitArgs()[index]);
      yielded.push_back(loop.getYieldedValues()[index]);
    }
  loop.getBody()->getTerminator()->setOperands(yielded);
  SmallVector<Operation *> dead;
  for (Operation &op : loop.getBody()->without_terminator())
    if (!neededOps.contains(&op))
      dead.push_back(&op);
  for (Operation *op : llvm::reverse(dead))
    op->erase();

  unsigned oldResults = loop.getNumResults();
  scf::ForOp slim = moveToNewLoop(loop, inits);
  unsigned kept = 0;
  for (unsigned index = 0; index < oldResults; ++index) {
    if (!neededArgs.contains(index))
      continue;
    loop.getResult(index).replaceAllUsesWith(slim.getResult(kept++));
  }
  for (unsigned index = oldResults; index-- > 0;)
    if (!neededArgs.contains(index))
      slim.getBody()->eraseArgument(index + slim.getNumInductionVars());
  loop->erase();
  return slim;
}

int pipelineStagesOf(scf::ForOp loop) {
  if (auto own = loop->getAttrOfType<IntegerAttr>("tile.num_stages"))
    return static_cast<int>(own.getInt());
  if (auto ofModule = loop->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>(dgpu::numStagesAttrName))
    return static_cast<int>(ofModule.getInt());
  return 1;
}

/// An empty branch on the same condition with the regions of `branch` moved into it.
static scf::IfOp moveToNewBranch(scf::IfOp branch, TypeRange results) {
  OpBuilder builder(branch);
  auto moved = scf::IfOp::create(builder, branch.getLoc(), results, branch.getCondition(), /*withElseRegion=*/false);
  moved->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  moved.getThenRegion().takeBody(branch.getThenRegion());
  moved.getElseRegion().takeBody(branch.getElseRegion());
  return moved;
}

scf::IfOp addBranchResults(scf::IfOp branch, Block *ofBlock, ValueRange values, ValueRange otherwise) {
  SmallVector<Type> types(branch.getResultTypes());
  llvm::append_range(types, values.getTypes());
  const unsigned oldResults = branch.getNumResults();
  scf::IfOp extended = moveToNewBranch(branch, types);
  if (extended.getElseRegion().empty()) {
    OpBuilder builder(extended.getContext());
    builder.createBlock(&extended.getElseRegion());
    scf::YieldOp::create(builder, extended.getLoc());
  }
  for (Region *region : {&extended.getThenRegion(), &extended.getElseRegion()}) {
    Operation *yield = region->front().getTerminator();
    yield->insertOperands(yield->getNumOperands(), &region->front() == ofBlock ? values : otherwise);
  }
  branch->replaceAllUsesWith(extended.getResults().take_front(oldResults));
  branch->erase();
  return extended;
}

scf::IfOp removeDeadBranchResults(scf::IfOp branch) {
  SmallVector<unsigned> kept;
  SmallVector<Type> types;
  for (OpResult result : branch->getResults())
    if (!result.use_empty()) {
      kept.push_back(result.getResultNumber());
      types.push_back(result.getType());
    }
  if (kept.size() == branch.getNumResults())
    return branch;
  scf::IfOp slim = moveToNewBranch(branch, types);
  for (Region *region : {&slim.getThenRegion(), &slim.getElseRegion()}) {
    Operation *yield = region->front().getTerminator();
    SmallVector<Value> yielded;
    for (unsigned index : kept)
      yielded.push_back(yield->getOperand(index));
    yield->setOperands(yielded);
  }
  for (auto [position, index] : llvm::enumerate(kept))
    branch.getResult(index).replaceAllUsesWith(slim.getResult(position));
  branch->erase();
  return slim;
}

} // namespace ditron::transforms
