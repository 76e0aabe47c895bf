//===- LoopArguments.cpp - Adding and removing values that a loop carries -------------------------------------------------===//
//
// See LoopArguments.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/LoopArguments.h"

#include "mlir/IR/Builders.h"
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
static void markNeeded(scf::ForOp loop, llvm::DenseSet<Operation *> &neededOps, llvm::DenseSet<unsigned> &neededArgs) {
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
    if (!result.use_empty())
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

scf::ForOp removeDeadLoopArguments(scf::ForOp loop) {
  llvm::DenseSet<Operation *> neededOps;
  llvm::DenseSet<unsigned> neededArgs;
  markNeeded(loop, neededOps, neededArgs);
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

} // namespace ditron::transforms
