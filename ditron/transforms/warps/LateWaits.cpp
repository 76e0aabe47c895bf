//===- LateWaits.cpp - Dots are waited for where their results are used ---------------------------------------------------===//
//
// dgpu-specialize-warps waits for a dot as soon as it is started, unless it stays in flight through the loop. Where another dot that does not
// need the first one's result comes next, as the two products of scores in the backward of attention, the tensor core then idles between
// them, and the threads idle beside both. Here such a wait goes down to the first use of what it waits for, in its block. Works on the IR
// that dgpu-delay-dots leaves.
//
//   s0 = dot k, q                        becomes       s0 = dot k, q
//   s = warpgroup_wait 0, s0                           d0 = dot v, g
//   d0 = dot v, g                                      s = warpgroup_wait 1, s0
//   d = warpgroup_wait 0, d0                           p = f(s)
//   p = f(s)                                           d = warpgroup_wait 0, d0
//   ... d                                              ... d
// 1. A wait for one dot of a block that has several goes in front of the first use of its result, and leaves as many more dots in flight as
//    it passes. An A in registers is named by the wait, so that it keeps them until then. Waits pass what has no effects, loads, and what
//    belongs to dots: whoever is told of a turn, or waited for, must find its tiles read.
// 2. The releases of its dot's tiles behind the wait go with it. They stay in their turn of the loop, and in a turn nobody waits for a tile whose
//    place the same turn has yet to release: rings have one tile of each turn.
// 3. From the last wait up, and none passes another: that one would complete the dot, and registers would be kept for nothing. So those of
//    results that are only carried stay, for ptxas would start them before what the turn still computes.
// Dots whose sums are promoted stay as they are: each of them is waited for in parts.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/warps/LateWaits.h"
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_LATEWAITS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// The first operation of the wait's block that uses its result, or the block's end.
Operation *firstUse(dgpu::WarpgroupWaitOp wait) {
  Block *block = wait->getBlock();
  Operation *first = &block->back();
  for (Operation *user : wait->getUsers())
    if (Operation *op = block->findAncestorOpInBlock(*user); op && op->isBeforeInBlock(first))
      first = op;
  return first;
}

/// The dots that are started behind `from` and before `to`.
uint32_t dotsBetween(Operation *from, Operation *to) {
  uint32_t count = 0;
  for (Operation *op = from->getNextNode(); op && op != to; op = op->getNextNode())
    count += isa<dgpu::WarpgroupDotOp>(op);
  return count;
}

/// True if a dot may be in flight beside it.
bool mayBePassed(Operation *op) {
  return isMemoryEffectFree(op) || isa<dgpu::WarpgroupDotOp, dgpu::MbarrierWaitOp, dgpu::MbarrierArriveOp,
                                       dgpu::AsyncCopyOp, dgpu::AsyncCommitOp, dgpu::BufferLoadOp, tile::LoadOp>(op);
}

/// True if `op` gives back a slot that the dot reads.
bool givesBack(Operation *op, dgpu::WarpgroupDotOp dot) {
  auto arrive = dyn_cast<dgpu::MbarrierArriveOp>(op);
  return arrive && (arrive.getSlot() == dot.getSlotA() || arrive.getSlot() == dot.getSlotB());
}

/// Moves the wait, where that is allowed, with the releases behind it.
void moveDown(dgpu::WarpgroupWaitOp wait) {
  // Carried sums of the turn before may be waited for with it.
  if (wait.getSources().empty() || !llvm::all_of(wait.getSources().drop_front(), llvm::IsaPred<BlockArgument>))
    return;
  auto dot = wait.getSources().front().getDefiningOp<dgpu::WarpgroupDotOp>();
  if (!dot || dot->getBlock() != wait->getBlock())
    return;
  Operation *use = firstUse(wait);
  if (use == &wait->getBlock()->back())
    return;
  SmallVector<Operation *> releases;
  bool passesMore = false;
  for (Operation *op = wait->getNextNode(); op != use; op = op->getNextNode()) {
    if (!mayBePassed(op))
      return;
    if (givesBack(op, dot))
      releases.push_back(op);
    else
      passesMore = true;
  }
  if (!passesMore)
    return;
  const uint32_t passed = dotsBetween(wait, use);
  OpBuilder builder(use);
  SmallVector<Value> sources(wait.getSources());
  if (isa<RankedTensorType>(dot.getA().getType()))
    sources.push_back(dot.getA());
  auto late = dgpu::WarpgroupWaitOp::create(builder, wait.getLoc(), sources, wait.getPending() + passed);
  wait->replaceAllUsesWith(late.getResults().take_front(wait->getNumResults()));
  for (Operation *release : releases)
    release->moveBefore(use);
  wait.erase();
  if (passed > 0)
    remark::passed(late.getLoc(), remark::RemarkOpts::name("late").category("dgpu-late-waits"))
        << "the next dot starts before this one is complete";
}

} // namespace

void sinkWaits(Block &block) {
  const auto waits = llvm::to_vector(block.getOps<dgpu::WarpgroupWaitOp>());
  for (dgpu::WarpgroupWaitOp wait : llvm::reverse(waits))
    moveDown(wait);
}

namespace {

class LateWaitsPass : public impl::LateWaitsBase<LateWaitsPass> {
  void runOnOperation() override {
    getOperation().walk([](dgpu::WarpSpecializeOp partitions) {
      llvm::SmallVector<Block *> blocks;
      partitions.getConsumer().walk([&](Block *block) {
        auto dots = block->getOps<dgpu::WarpgroupDotOp>();
        if (llvm::range_size(dots) > 1 &&
            llvm::none_of(dots, [](dgpu::WarpgroupDotOp dot) { return dot.getPromoteElems().has_value(); }))
          blocks.push_back(block);
      });
      for (Block *block : blocks)
        sinkWaits(*block);
    });
  }
};

} // namespace
} // namespace ditron::transforms
