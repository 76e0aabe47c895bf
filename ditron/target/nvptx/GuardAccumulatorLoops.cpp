//===- GuardAccumulatorLoops.cpp - Loops through which a warpgroup dot stays in flight ------------------------------------===//
//
// The pass nvptx-guard-accumulator-loops, a work-around for ptxas. The accumulators of a dot in flight belong to the hardware from its
// issue to the wait, and ptxas gives up (C7515: every multiply is followed by a wait) when any other instruction defines one of them
// in between, on whatever path. A loop that may run no turn has such a path: it leads from the initial values straight to the wait
// behind the loop. So the loop and its wait become the body of a branch that is taken when there is a turn:
//
//   %r = scf.for .. iter_args(%acc = %zero)          %w = scf.if (lb < ub) { %r = scf.for ..; yield wait 0, %r }
//   %w = dgpu.warpgroup_wait 0, %r             ->                   else { yield %zero }
//
// Where the dot does not read the initial value in the first turn, nothing sets registers to it: the loop in the branch starts from
// undefined ones. The values of the other region go through a wait as well, one for nothing, so that LLVM keeps a place for them off the common path.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/nvptx/NvptxHopper.h"
#include "ditron/target/nvptx/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

namespace ditron::target {
#define GEN_PASS_DEF_GUARDACCUMULATORLOOPS
#include "ditron/target/nvptx/NvptxPasses.h.inc"

using namespace mlir;

namespace {

/// The wait for the loop's dots that follows it, with nothing but pure operations in between; or null.
dgpu::WarpgroupWaitOp waitBehind(scf::ForOp loop) {
  for (Operation *next = loop->getNextNode(); next; next = next->getNextNode()) {
    if (auto wait = dyn_cast<dgpu::WarpgroupWaitOp>(next)) {
      bool isOfLoop = wait.getPending() == 0 &&
                      llvm::any_of(wait.getSources(), [&](Value source) { return source.getDefiningOp() == loop; });
      bool isComplete = llvm::all_of(wait.getSources(), [&](Value source) {
        return source.getDefiningOp() == loop || source.getParentRegion()->isAncestor(loop->getParentRegion());
      });
      return isOfLoop && isComplete ? wait : dgpu::WarpgroupWaitOp();
    }
    if (!isMemoryEffectFree(next))
      return {};
  }
  return {};
}

/// True if the loop's first turn does not read the carried value: its only user is a dot that accumulates in later turns.
bool startsUnread(scf::ForOp loop, BlockArgument carried) {
  if (!carried.hasOneUse())
    return false;
  auto dot = dyn_cast<dgpu::WarpgroupDotOp>(*carried.user_begin());
  if (!dot || dot.getC() != carried || !dot.getAccumulate() || dot->getBlock() != loop.getBody())
    return false;
  auto isLater = dot.getAccumulate().getDefiningOp<arith::CmpIOp>();
  return isLater && isLater.getPredicate() == arith::CmpIPredicate::ne && isLater.getLhs() == loop.getInductionVar() &&
         isLater.getRhs() == loop.getLowerBound();
}

void guard(scf::ForOp loop, dgpu::WarpgroupWaitOp wait) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Value hasTurn =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
  SmallVector<Type> types(loop.getResultTypes());
  llvm::append_range(types, wait.getResultTypes());
  auto branch = scf::IfOp::create(builder, loc, types, hasTurn, /*withElseRegion=*/true);
  size_t fromLoop = loop.getNumResults();
  // Without a turn everything is as it was before the loop.
  SmallVector<Value> unchanged(loop.getInitArgs());
  for (Value source : wait.getSources()) {
    auto result = dyn_cast<OpResult>(source);
    unchanged.push_back(result && result.getOwner() == loop ? loop.getInitArgs()[result.getResultNumber()] : source);
  }
  builder.setInsertionPointToEnd(branch.elseBlock());
  // Nothing is in flight here. An instruction that waits would count for ptxas as the end of dots that loops before have started.
  auto kept = dgpu::WarpgroupWaitOp::create(builder, loc, ValueRange(unchanged).drop_front(fromLoop), waitsForNothing);
  llvm::copy(kept.getResults(), unchanged.begin() + fromLoop);
  scf::YieldOp::create(builder, loc, unchanged);
  builder.setInsertionPointToEnd(branch.thenBlock());
  for (BlockArgument carried : loop.getRegionIterArgs())
    if (startsUnread(loop, carried))
      loop.getTiedLoopInit(carried)->set(ub::PoisonOp::create(builder, loc, carried.getType()));
  // Uses behind take the branch's results; pure operations between loop and wait included, which stay behind the branch.
  for (auto [i, result] : llvm::enumerate(loop.getResults()))
    result.replaceAllUsesExcept(branch.getResult(i), wait);
  for (auto [i, result] : llvm::enumerate(wait.getResults()))
    result.replaceAllUsesWith(branch.getResult(fromLoop + i));
  builder.setInsertionPointToEnd(branch.thenBlock());
  loop->remove();
  wait->remove();
  builder.insert(loop);
  builder.insert(wait);
  SmallVector<Value> results(loop.getResults());
  llvm::append_range(results, wait.getResults());
  scf::YieldOp::create(builder, loc, results);
}

class GuardAccumulatorLoopsPass : public impl::GuardAccumulatorLoopsBase<GuardAccumulatorLoopsPass> {
  void runOnOperation() override {
    SmallVector<std::pair<scf::ForOp, dgpu::WarpgroupWaitOp>> loops;
    getOperation().walk([&](scf::ForOp loop) {
      bool hasDot = false;
      loop.walk([&](dgpu::WarpgroupDotOp) { hasDot = true; });
      if (dgpu::WarpgroupWaitOp wait = hasDot ? waitBehind(loop) : dgpu::WarpgroupWaitOp())
        loops.push_back({loop, wait});
    });
    for (auto [loop, wait] : loops)
      guard(loop, wait);
  }
};

} // namespace
} // namespace ditron::target
