//===- SinkTailWork.cpp - Scalar work under the last multiply of a loop ---------------------------------------------------===//
//
// The pass dgpu-sink-tail-work. When a loop with a warpgroup dot in flight ends, its last multiply still runs, for half a microsecond,
// and the warps wait for it. What a persistent kernel computes before the loop and needs only after it (which tile this is:
// divisions, some hundred cycles) is better done there than before the first multiply, where the tensor cores have nothing to do:
//
//   %row = divisions                     %r = scf.for { dots }
//   %r = scf.for { dots }         ->     %row = divisions
//   warpgroup_wait 0, %r                 warpgroup_wait 0, %r
//   store at %row                        store at %row
//
// A loop may be all of a branch that is taken when there is a turn (nvptx-guard-accumulator-loops makes such): then the work goes to
// both sides of the branch.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_SINKTAILWORK
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// The wait for the loop's dots, if there is nothing but pure operations in between; or null.
dgpu::WarpgroupWaitOp waitBehind(scf::ForOp loop) {
  for (Operation *next = loop->getNextNode(); next; next = next->getNextNode()) {
    if (auto wait = dyn_cast<dgpu::WarpgroupWaitOp>(next))
      return wait.getPending() == 0 ? wait : dgpu::WarpgroupWaitOp();
    if (!isMemoryEffectFree(next))
      return {};
  }
  return {};
}

/// Pure scalar operations before `anchor` in its block of which only what comes behind it makes use, in order.
SmallVector<Operation *> onlyNeededBehind(Operation *anchor) {
  llvm::SmallSetVector<Operation *, 16> found;
  for (Operation *op = anchor->getPrevNode(); op; op = op->getPrevNode()) {
    bool isCandidate = isMemoryEffectFree(op) && op->getNumRegions() == 0 && !op->use_empty() &&
                       !op->hasTrait<OpTrait::ConstantLike>() &&
                       llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndexOrFloat(); });
    if (!isCandidate)
      continue;
    bool isNeededBefore = llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *here = anchor->getBlock()->findAncestorOpInBlock(*user);
      return !here || (!found.contains(here) && !anchor->isBeforeInBlock(here));
    });
    if (!isNeededBefore)
      found.insert(op);
  }
  return llvm::to_vector(llvm::reverse(found));
}

/// Computes the operations in both arms of a branch, in the first of them behind the loop.
void sinkIntoBranch(scf::IfOp branch, scf::ForOp loop, ArrayRef<Operation *> work) {
  SmallVector<Value> needed; // behind the branch
  for (Operation *op : work)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !llvm::is_contained(work, user); }))
        needed.push_back(result);
  SmallVector<Type> types(branch.getResultTypes());
  llvm::append_range(types, ValueRange(needed).getTypes());
  OpBuilder builder(branch);
  auto wider = scf::IfOp::create(builder, branch.getLoc(), types, branch.getCondition(), /*withElseRegion=*/true);
  for (auto [from, to] : llvm::zip_equal(branch->getRegions(), wider->getRegions()))
    to.takeBody(from);
  for (Block *arm : {wider.thenBlock(), wider.elseBlock()}) {
    IRMapping mapping;
    if (arm == wider.thenBlock())
      builder.setInsertionPointAfter(loop);
    else
      builder.setInsertionPoint(arm->getTerminator());
    for (Operation *op : work)
      builder.clone(*op, mapping);
    for (Value value : needed)
      arm->getTerminator()->insertOperands(arm->getTerminator()->getNumOperands(), mapping.lookup(value));
  }
  size_t first = branch.getNumResults();
  branch.replaceAllUsesWith(wider.getResults().take_front(first));
  branch.erase();
  for (auto [value, result] : llvm::zip_equal(needed, wider.getResults().drop_front(first)))
    value.replaceUsesWithIf(result, [&](OpOperand &use) { return !llvm::is_contained(work, use.getOwner()); });
  for (Operation *op : llvm::reverse(work))
    op->erase();
}

class SinkTailWorkPass : public impl::SinkTailWorkBase<SinkTailWorkPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      bool hasDot = loop.walk([](dgpu::WarpgroupDotOp) { return WalkResult::interrupt(); }).wasInterrupted();
      if (hasDot && waitBehind(loop))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      auto branch = dyn_cast<scf::IfOp>(loop->getParentOp());
      bool isGuarded = branch && branch.getNumResults() != 0 && loop->getBlock() == branch.thenBlock();
      for (Operation *before = loop->getPrevNode(); isGuarded && before; before = before->getPrevNode())
        isGuarded = isMemoryEffectFree(before);
      SmallVector<Operation *> work = onlyNeededBehind(isGuarded ? branch.getOperation() : loop.getOperation());
      if (work.empty())
        continue;
      if (isGuarded) {
        sinkIntoBranch(branch, loop, work);
        continue;
      }
      for (Operation *op : llvm::reverse(work))
        op->moveAfter(loop);
    }
  }
};

} // namespace
} // namespace ditron::transforms
