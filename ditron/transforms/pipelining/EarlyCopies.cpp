//===- EarlyCopies.cpp - The first copies of a loop start before the loop in front of it -----------------------------------===//
//
// After dgpu-pipeline-loops. Of two loops one after the other, as one that masks its tiles and one that does not, the second waits for its first
// tiles with nothing to do: its copies begin when the first one is done. They need not wait, for the first loop writes no memory:
//
//   copies 0 .. n of A; commits                   becomes     copies 0 .. n of A, those of B in the last group
//   loop A; async_wait 0                                      loop A; async_wait 0
//   copies 0 .. n of B; commits                               loop B
//   loop B
//
// 1. Nothing between the copies of A and those of B writes memory of others, and all that the copies of B need is computed without A.
// 2. They join the last group that A begins with: its first turns do not wait for them, and the counts of its waits stay what they are. The wait behind
//    A is one for all of them, so that the waits in B, which count groups that its turns begin, find what they did.
// 3. Both rings are alive at once: only where shared memory has room for them, and no fewer blocks reside on a multiprocessor for that than registers
//    allow (LoopResources.h).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/loops/LoopResources.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_EARLYCOPIES
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// True for a loop that fetches its tiles by asynchronous copies of its own.
bool isPipelined(scf::ForOp loop) {
  return !loop.getBody()->getOps<dgpu::AsyncWaitOp>().empty() && !loop.getBody()->getOps<dgpu::AsyncCopyOp>().empty();
}

/// True if copies that stand behind it may start before it: it does not write global memory.
bool mayBePassed(Operation *op) {
  return !op->walk([](Operation *inner) {
              const bool isHarmless = inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                                      isMemoryEffectFree(inner) ||
                                      isa<tile::LoadOp, dgpu::AsyncCopyOp, dgpu::AsyncCommitOp, dgpu::AsyncWaitOp,
                                          dgpu::BufferAllocOp, dgpu::BufferLoadOp, dgpu::BufferStoreOp,
                                          dgpu::FenceAsyncOp, dgpu::WarpgroupDotOp, dgpu::WarpgroupWaitOp>(inner);
              return isHarmless ? WalkResult::advance() : WalkResult::interrupt();
            }).wasInterrupted();
}

/// The copies in front of a loop, and how they are grouped.
struct FirstCopies {
  SmallVector<dgpu::AsyncCopyOp> copies;
  SmallVector<dgpu::AsyncCommitOp> commits;
};

FirstCopies firstCopiesOf(scf::ForOp loop) {
  FirstCopies first;
  for (Operation *op = loop->getPrevNode(); op && !isa<dgpu::AsyncWaitOp>(op); op = op->getPrevNode()) {
    if (auto copy = dyn_cast<dgpu::AsyncCopyOp>(op))
      first.copies.push_back(copy);
    else if (auto commit = dyn_cast<dgpu::AsyncCommitOp>(op))
      first.commits.push_back(commit);
  }
  return first;
}

/// The loop in front of another one whose copies may start before it, or null.
scf::ForOp loopBefore(scf::ForOp loop) {
  for (Operation *op = loop->getPrevNode(); op && mayBePassed(op); op = op->getPrevNode())
    if (auto before = dyn_cast<scf::ForOp>(op))
      return isPipelined(before) ? before : scf::ForOp();
  return {};
}

/// The most shared memory that an operation takes for itself in one of the loops or between them, where both rings would be alive.
int64_t scratchBetween(scf::ForOp before, scf::ForOp loop) {
  int64_t most = 0;
  for (Operation *op = before; op != loop->getNextNode(); op = op->getNextNode())
    op->walk([&](Operation *inner) { most = std::max(most, analysis::scratchBytes(inner)); });
  return most;
}

/// Adds what a value needs that is computed behind `first`, operands before users. False if that is not only arithmetic.
bool collect(Value value, Operation *first, llvm::SetVector<Operation *> &needed) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != first->getBlock() || op->isBeforeInBlock(first) || needed.contains(op))
    return true;
  if (op->getNumRegions() != 0 || !(isMemoryEffectFree(op) || isa<dgpu::BufferAllocOp>(op)))
    return false;
  for (Value operand : op->getOperands())
    if (!collect(operand, first, needed))
      return false;
  needed.insert(op);
  return true;
}

class EarlyCopiesPass : public impl::EarlyCopiesBase<EarlyCopiesPass> {
public:
  using Base::Base;

private:
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (isPipelined(loop))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      if (scf::ForOp before = loopBefore(loop))
        startBefore(before, loop);
  }

  void startBefore(scf::ForOp before, scf::ForOp loop) {
    FirstCopies own = firstCopiesOf(loop), others = firstCopiesOf(before);
    if (own.copies.empty() || others.commits.empty())
      return;
    Operation *place = others.commits.front(); // the last one: they are in the order of a walk backward
    llvm::SetVector<Operation *> needed;
    for (dgpu::AsyncCopyOp copy : llvm::reverse(own.copies)) {
      for (Value operand : copy->getOperands())
        if (!collect(operand, place, needed))
          return;
      needed.insert(copy);
    }
    const SmallVector<Value> rings =
        llvm::map_to_vector(own.copies, [](dgpu::AsyncCopyOp copy) -> Value { return copy.getBuffer(); });
    const int64_t bytesApart = std::max(bufferBytesIn(before), bufferBytesIn(loop));
    const int64_t bytes = std::max(bytesApart, bufferBytesIn(before, rings) + scratchBetween(before, loop));
    const int64_t registers = std::max(registersOfTurn(before), registersOfTurn(loop));
    const int64_t blocks = residentBlocks(loop, registers, bytes, limitBytes);
    if (bytes > limitBytes || blocks < residentBlocks(loop, registers, bytesApart, limitBytes)) {
      remark::missed(loop.getLoc(), remark::RemarkOpts::name("copies").category("dgpu-early-copies"))
          << llvm::formatv("the first copies start behind the loop before: both rings would need {0} bytes", bytes)
                 .str();
      return;
    }
    for (Operation *op : needed)
      op->moveBefore(place);
    for (dgpu::AsyncCommitOp commit : own.commits)
      commit->erase();
    remark::passed(loop.getLoc(), remark::RemarkOpts::name("copies").category("dgpu-early-copies"))
        << "the first copies start before the loop in front of this one";
  }
};

} // namespace
} // namespace ditron::transforms
