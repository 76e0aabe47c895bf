//===- LateCopies.cpp - A turn's copies start when its threads have time ---------------------------------------------------===//
//
// After dgpu-insert-barriers. In a loop whose turns compute between their dots, the copies of a later turn stand behind the first dots, in front of
// the rows that the computation loads from shared memory: what comes of the first dot waits for all of them to be issued. They move down to the last
// wait of the turn, where the threads have started all dots but those that need that wait's result.
//
//   s0, t0 = dots; copies; s = wait s0        becomes     s0, t0 = dots; s = wait s0
//   p = f(s); u0 = dot p                                  p = f(s); u0 = dot p; copies
//   t = wait t0; ...                                      t = wait t0; ...
//
// Nobody has to wait for each other again: what is passed reads other slots than the copies write, which the numbers of the slots show. The barrier of
// the turn stays in front of all. Loops with fewer waits in a turn stay as they are, those that wait at once for what a turn copies, and kernels of which several blocks reside on a
// multiprocessor (LoopResources.h): while one issues copies, another one computes, and what comes sooner is better (heads of 64 of attention's backward,
// two blocks of four warps on an H200: 344 TFLOP/s, with late copies 332).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/loops/LoopResources.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_LATECOPIES
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// True if `slot` is another one than `other`, whatever that is: a constant more or less, or a choice of such.
bool isAnother(Value slot, Value other) {
  if (auto choice = slot.getDefiningOp<arith::SelectOp>())
    return isAnother(choice.getTrueValue(), other) && isAnother(choice.getFalseValue(), other);
  Operation *op = slot.getDefiningOp();
  return isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) && op->getOperand(0) == other &&
         matchPattern(op->getOperand(1), m_Constant()) && !matchPattern(op->getOperand(1), m_Zero());
}

/// True if the copy writes no slot that `buffer[slot]` is.
bool isOfAnother(dgpu::AsyncCopyOp copy, Value buffer, Value slot) {
  return allocationOf(buffer) != allocationOf(copy.getBuffer()) || isAnother(copy.getSlot(), slot);
}

/// True if copies that stand in front of it may be started behind it.
bool mayBePassed(Operation *op, ArrayRef<dgpu::AsyncCopyOp> copies) {
  if (auto load = dyn_cast<dgpu::BufferLoadOp>(op))
    return llvm::all_of(copies, [&](auto copy) { return isOfAnother(copy, load.getBuffer(), load.getSlot()); });
  if (auto dot = dyn_cast<dgpu::WarpgroupDotOp>(op))
    return llvm::all_of(copies, [&](auto copy) {
      return isOfAnother(copy, dot.getB(), dot.getSlotB()) &&
             (!dot.getSlotA() || isOfAnother(copy, dot.getA(), dot.getSlotA()));
    });
  return isMemoryEffectFree(op) || isa<dgpu::WarpgroupWaitOp, tile::LoadOp>(op);
}

void startLate(scf::ForOp loop) {
  auto waits = llvm::to_vector(loop.getBody()->getOps<dgpu::WarpgroupWaitOp>());
  auto copies = llvm::to_vector(loop.getBody()->getOps<dgpu::AsyncCopyOp>());
  auto commits = llvm::to_vector(loop.getBody()->getOps<dgpu::AsyncCommitOp>());
  auto arrivals = llvm::to_vector(loop.getBody()->getOps<dgpu::AsyncWaitOp>());
  if (waits.size() < 2 || copies.empty() || commits.size() != 1 || arrivals.size() != 1)
    return;
  if (arrivals.front().getPending() == 0) // the next turn needs them
    return;
  dgpu::WarpgroupWaitOp last = waits.back();
  if (waits.front()->isBeforeInBlock(copies.front()) || last->isBeforeInBlock(commits.front()))
    return;
  for (Operation *op = copies.front(); op != last; op = op->getNextNode())
    if (!isa<dgpu::AsyncCopyOp, dgpu::AsyncCommitOp>(op) && !mayBePassed(op, copies))
      return;
  for (dgpu::AsyncCopyOp copy : copies)
    copy->moveBefore(last);
  commits.front()->moveBefore(last);
  remark::passed(copies.front().getLoc(), remark::RemarkOpts::name("copies").category("dgpu-late-copies"))
      << "the copies start in front of the turn's last wait";
}

class LateCopiesPass : public impl::LateCopiesBase<LateCopiesPass> {
public:
  using Base::Base;

private:
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      const DotLoops dots(kernel);
      if (residentBlocks(kernel, dots.registers, dots.bytes, limitBytes) > 1)
        continue;
      for (scf::ForOp loop : dots.loops)
        startLate(loop);
    }
  }
};

} // namespace
} // namespace ditron::transforms
