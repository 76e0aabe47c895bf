//===- RingCursor.cpp - The place in a ring of slots that control flow carries --------------------------------------------===//
//
// See RingCursor.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/RingCursor.h"

#include "ditron/transforms/LoopArguments.h"
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

RingCursor threadRing(Block *top, Block *block, int64_t slots, Location loc) {
  // Operations are replaced on the way, blocks are not. Innermost first.
  SmallVector<Block *> path;
  for (Block *inner = block; inner != top; inner = inner->getParentOp()->getBlock())
    path.push_back(inner);

  OpBuilder builder = OpBuilder::atBlockBegin(top);
  RingCursor cursor{number(builder, loc, 0), number(builder, loc, 0)};
  SmallVector<RingCursor> entering; // at the operation whose region is path[i]; outermost first
  for (Block *inner : llvm::reverse(path)) {
    entering.push_back(cursor);
    if (auto loop = dyn_cast<scf::ForOp>(inner->getParentOp())) {
      loop = addLoopArguments(loop, {cursor.slot, cursor.parity});
      auto carried = loop.getRegionIterArgs().take_back(2);
      cursor = {carried[0], carried[1]};
    }
  }
  if (path.empty())
    return cursor;
  builder.setInsertionPoint(block->getTerminator());
  RingCursor leaving = advance(builder, loc, cursor, slots);
  for (Block *inner : path) {
    RingCursor before = entering.pop_back_val();
    Operation *parent = inner->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent)) {
      Operation *yield = inner->getTerminator();
      yield->setOperand(yield->getNumOperands() - 2, leaving.slot);
      yield->setOperand(yield->getNumOperands() - 1, leaving.parity);
    } else {
      parent = addBranchResults(cast<scf::IfOp>(parent), inner, {leaving.slot, leaving.parity},
                                {before.slot, before.parity});
    }
    auto results = parent->getResults().take_back(2);
    leaving = {results[0], results[1]};
  }
  return cursor;
}

Value slotBefore(OpBuilder &builder, Location loc, Value slot, int64_t slots) {
  if (slots == 1)
    return slot;
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, slot, number(builder, loc, 0));
  Value less = arith::SubIOp::create(builder, loc, slot, number(builder, loc, 1));
  return arith::SelectOp::create(builder, loc, isFirst, number(builder, loc, slots - 1), less);
}

} // namespace ditron::transforms
