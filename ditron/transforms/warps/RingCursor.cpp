//===- RingCursor.cpp - The place in a ring of slots that control flow carries --------------------------------------------===//
//
// See RingCursor.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/warps/RingCursor.h"

#include "ditron/transforms/loops/LoopArguments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace ditron::transforms {

static Value number(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}

/// The next slot; after the last one the first, in the next phase.
static RingCursor advance(OpBuilder &builder, Location loc, RingCursor cursor, int64_t slots) {
  Value one = number(builder, loc, 1);
  if (slots == 1)
    return {cursor.slot, arith::XOrIOp::create(builder, loc, cursor.parity, one)};
  Value next = arith::AddIOp::create(builder, loc, cursor.slot, one);
  Value wraps = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, next, number(builder, loc, slots));
  Value flipped = arith::XOrIOp::create(builder, loc, cursor.parity, one);
  return {arith::SelectOp::create(builder, loc, wraps, number(builder, loc, 0), next),
          arith::SelectOp::create(builder, loc, wraps, flipped, cursor.parity)};
}

namespace {

/// Carries one ring's cursor through the operations of a block.
class RingThreading {
public:
  RingThreading(Block *top, ArrayRef<Block *> blocks, int64_t slots, Location loc)
      : top(top), blocks(blocks), slots(slots), loc(loc), cursors(blocks.size()) {}

  /// The cursor behind a block that it enters with.
  RingCursor thread(Block *block, RingCursor cursor) {
    if (llvm::is_contained(blocks, block)) {
      int64_t uses = llvm::count(blocks, block);
      for (auto [member, own] : llvm::zip(blocks, cursors)) {
        if (member != block)
          continue;
        own = cursor;
        if (--uses > 0) {
          // Before all that the block does: where in it the next use stands is not known here.
          OpBuilder builder(block->getParentOp()->getContext());
          builder.setInsertionPointAfterValue(cursor.parity);
          cursor = advance(builder, loc, cursor, slots);
        }
      }
      if (block == top) // runs once
        return cursor;
      OpBuilder builder(block->getTerminator());
      return advance(builder, loc, cursor, slots);
    }
    // Operations are replaced on the way, blocks are not.
    SmallVector<Operation *> around;
    for (Operation &op : *block)
      if (llvm::any_of(blocks, [&](Block *inner) { return op.isAncestor(inner->getParentOp()); }))
        around.push_back(&op);
    for (Operation *op : around)
      cursor =
          isa<scf::ForOp>(op) ? throughLoop(cast<scf::ForOp>(op), cursor) : throughBranch(cast<scf::IfOp>(op), cursor);
    return cursor;
  }

  SmallVector<RingCursor> take() { return std::move(cursors); }

private:
  RingCursor throughLoop(scf::ForOp loop, RingCursor cursor) {
    loop = addLoopArguments(loop, {cursor.slot, cursor.parity});
    auto carried = loop.getRegionIterArgs().take_back(2);
    setYielded(loop.getBody(), thread(loop.getBody(), {carried[0], carried[1]}));
    return {loop.getResults().take_back(2)[0], loop.getResults().take_back(2)[1]};
  }

  RingCursor throughBranch(scf::IfOp branch, RingCursor cursor) {
    Block *thenBlock = branch.thenBlock(), *elseBlock = branch.elseBlock();
    const RingCursor behindThen = thread(thenBlock, cursor);
    branch = addBranchResults(branch, thenBlock, {behindThen.slot, behindThen.parity}, {cursor.slot, cursor.parity});
    if (elseBlock)
      setYielded(elseBlock, thread(elseBlock, cursor));
    return {branch.getResults().take_back(2)[0], branch.getResults().take_back(2)[1]};
  }

  static void setYielded(Block *block, RingCursor cursor) {
    Operation *yield = block->getTerminator();
    yield->setOperand(yield->getNumOperands() - 2, cursor.slot);
    yield->setOperand(yield->getNumOperands() - 1, cursor.parity);
  }

  Block *top;
  ArrayRef<Block *> blocks;
  int64_t slots;
  Location loc;
  SmallVector<RingCursor> cursors;
};

} // namespace

SmallVector<RingCursor> threadRing(Block *top, ArrayRef<Block *> blocks, int64_t slots, Location loc) {
  OpBuilder builder = OpBuilder::atBlockBegin(top);
  RingThreading threading(top, blocks, slots, loc);
  threading.thread(top, {number(builder, loc, 0), number(builder, loc, 0)});
  return threading.take();
}

Value slotBefore(OpBuilder &builder, Location loc, Value slot, int64_t slots) {
  if (slots == 1)
    return slot;
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, slot, number(builder, loc, 0));
  Value less = arith::SubIOp::create(builder, loc, slot, number(builder, loc, 1));
  return arith::SelectOp::create(builder, loc, isFirst, number(builder, loc, slots - 1), less);
}

} // namespace ditron::transforms
