//===- EarlyDots.cpp - Dots start as soon as their operands are there -----------------------------------------------------===//
//
// In loops that fetch their tiles by asynchronous copies, after dgpu-pipeline-loops. A turn that computes between its dots finds some of them behind
// the computation that do not need it; the tensor core idles meanwhile. They move up to the turn's first dot, and waits go down to the uses of
// their results (LateWaits.h).
//
//   s0 = dot k, q                        becomes       s0 = dot k, q
//   s = warpgroup_wait 0, s0                           d0 = dot v, g
//   p = f(s)                                           s = warpgroup_wait 1, s0
//   d0 = dot v, g                                      p = f(s)
//   d = warpgroup_wait 0, d0                           d = warpgroup_wait 0, d0
//
// 1. A dot moves if all that it takes is known at the first dot, and nothing in between stores what it reads: asynchronous copies in between go to
//    other slots of its rings.
// 2. Its sums then live beside the computation: it stays if all sums of the turn would take more than `mostSums` registers of a thread.
// Loops of consumers are scheduled by dgpu-delay-dots and dgpu-late-waits.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/warps/LateWaits.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_EARLYDOTS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Of 255 that a thread can have; operands that are computed from the sums, and addresses, need the others.
constexpr int64_t mostSums = 200;

bool isKnownAt(Value value, Operation *op) {
  Operation *definition = op->getBlock()->findAncestorOpInBlock(
      value.getDefiningOp() ? *value.getDefiningOp() : *value.getParentBlock()->getParentOp());
  return !definition || definition->isBeforeInBlock(op);
}

/// True if a dot may be started before it: it writes nothing that the dot reads.
bool mayBeStartedBefore(Operation *op) {
  return isMemoryEffectFree(op) || isa<dgpu::WarpgroupDotOp, dgpu::WarpgroupWaitOp, dgpu::AsyncCopyOp,
                                       dgpu::AsyncCommitOp, dgpu::BufferLoadOp, tile::LoadOp>(op);
}

/// Registers of a thread for the sums of all dots.
int64_t sumsOf(ArrayRef<dgpu::WarpgroupDotOp> dots) {
  int64_t registers = 0;
  for (dgpu::WarpgroupDotOp dot : dots)
    registers += dgpu::layoutOf(dot.getType()).numRegs();
  return registers;
}

/// Moves a dot up to behind `last`. A wait that it passes may leave it in flight, unless it is for a dot that now starts later: who waits for that has
/// waited for this one.
void moveUp(dgpu::WarpgroupDotOp dot, Operation *last) {
  uint32_t passed = 0;
  const auto startsLater = [&](Value value) {
    Operation *started = value.getDefiningOp<dgpu::WarpgroupDotOp>();
    return started && started->getBlock() == dot->getBlock() && last->isBeforeInBlock(started);
  };
  for (Operation *op = last->getNextNode(); op != dot; op = op->getNextNode()) {
    passed += isa<dgpu::WarpgroupDotOp>(op);
    if (auto wait = dyn_cast<dgpu::WarpgroupWaitOp>(op); wait && llvm::none_of(wait.getSources(), startsLater))
      wait.setPending(wait.getPending() + 1);
  }
  for (Operation *user : dot->getUsers())
    if (auto wait = dyn_cast<dgpu::WarpgroupWaitOp>(user); wait && wait->getBlock() == dot->getBlock())
      wait.setPending(wait.getPending() + passed);
  dot->moveAfter(last);
}

void startEarly(ArrayRef<dgpu::WarpgroupDotOp> dots) {
  Operation *last = dots.front();
  for (dgpu::WarpgroupDotOp dot : dots.drop_front()) {
    if (!llvm::all_of(dot->getOperands(), [&](Value operand) { return isKnownAt(operand, dots.front()); }))
      continue;
    bool isFree = true;
    for (Operation *op = last->getNextNode(); op != dot && isFree; op = op->getNextNode())
      isFree = mayBeStartedBefore(op);
    if (!isFree)
      continue;
    if (last->getNextNode() != dot) {
      moveUp(dot, last);
      remark::passed(dot.getLoc(), remark::RemarkOpts::name("early").category("dgpu-early-dots"))
          << "the dot starts with the turn's first one";
    }
    last = dot;
  }
}

class EarlyDotsPass : public impl::EarlyDotsBase<EarlyDotsPass> {
  void runOnOperation() override {
    getOperation().walk([](scf::ForOp loop) {
      if (loop->getParentOfType<dgpu::WarpSpecializeOp>() || loop.getBody()->getOps<dgpu::AsyncCopyOp>().empty())
        return;
      const auto dots = llvm::to_vector(loop.getBody()->getOps<dgpu::WarpgroupDotOp>());
      if (dots.size() < 2 || llvm::any_of(dots, [](auto dot) { return dot.getPromoteElems().has_value(); }))
        return;
      if (sumsOf(dots) <= mostSums)
        startEarly(dots);
      sinkWaits(*loop.getBody());
    });
  }
};

} // namespace
} // namespace ditron::transforms
