//===- DistVerifiers.cpp - Checks and folds of the dist operations --------------------------------------*- C++ -*-===//
//
// Hand-written half of the dialect: what a well-formed signal or thread-level access is, and the two folds there are.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ditron::dist;
using ditron::tile::AtomicOp;
using ditron::tile::MemoryOrder;
using ditron::tile::PointerType;

/// A signal word is a 32- or 64-bit integer, and `value` has its type.
static LogicalResult verifySignalWord(Operation *op, PointerType ptr, Type value) {
  Type word = ptr.getPointee();
  if (!word.isInteger(32) && !word.isInteger(64))
    return op->emitOpError() << "needs a pointer to signal words of type i32 or i64, found " << ptr;
  if (value != word)
    return op->emitOpError() << "value has type " << value << ", but the signal word has type " << word;
  return success();
}

static LogicalResult verifyPointee(Operation *op, StringRef what, PointerType ptr, Type type) {
  if (type == ptr.getPointee())
    return success();
  return op->emitOpError() << what << " has type " << type << ", but the pointer is " << ptr;
}

LogicalResult WaitOp::verify() {
  if (failed(verifySignalWord(*this, getPtr().getType(), getValue().getType())))
    return failure();
  if (getOrder() != MemoryOrder::Relaxed && getOrder() != MemoryOrder::Acquire)
    return emitOpError() << "a wait reads: its order is relaxed or acquire, found "
                         << tile::stringifyMemoryOrder(getOrder());
  return success();
}

LogicalResult NotifyOp::verify() { return verifySignalWord(*this, getPtr().getType(), getValue().getType()); }

LogicalResult LdOp::verify() {
  if (getOrder() == MemoryOrder::Release || getOrder() == MemoryOrder::AcquireRelease)
    return emitOpError() << "a load has order relaxed or acquire, found " << tile::stringifyMemoryOrder(getOrder());
  return verifyPointee(*this, "result", getPtr().getType(), getType());
}

LogicalResult StOp::verify() {
  if (getOrder() == MemoryOrder::Acquire || getOrder() == MemoryOrder::AcquireRelease)
    return emitOpError() << "a store has order relaxed or release, found " << tile::stringifyMemoryOrder(getOrder());
  return verifyPointee(*this, "value", getPtr().getType(), getValue().getType());
}

LogicalResult MultimemStOp::verify() {
  if (getValues().size() != 1 && getValues().size() != 4)
    return emitOpError() << "stores 1 or 4 words, found " << getValues().size();
  for (Value value : getValues())
    if (failed(verifyPointee(*this, "value", getPtr().getType(), value.getType())))
      return failure();
  Type element = getPtr().getType().getPointee();
  if (element.isF32() || (getValues().size() == 1 && (element.isInteger(32) || element.isInteger(64) || element.isF64())))
    return success();
  return emitOpError() << "stores one 32 or 64 bit number or four f32, found " << element;
}

LogicalResult MultimemLdReduceOp::verify() {
  if (getResults().size() == 4 && getPtr().getType().getPointee().isF32())
    return success();
  return emitOpError() << "reads four f32, found " << getResults().size() << " of " << getPtr().getType().getPointee();
}

LogicalResult ThreadAtomicRmwOp::verify() {
  Type element = getPtr().getType().getPointee();
  if (failed(verifyPointee(*this, "value", getPtr().getType(), getValue().getType())) ||
      failed(verifyPointee(*this, "result", getPtr().getType(), getType())))
    return failure();
  return tile::verifyAtomicElement(*this, getOp(), element);
}

LogicalResult ThreadAtomicCasOp::verify() {
  if (failed(verifyPointee(*this, "value", getPtr().getType(), getValue().getType())) ||
      failed(verifyPointee(*this, "result", getPtr().getType(), getType())))
    return failure();
  return tile::verifyCompareSwapElement(*this, getPtr().getType().getPointee());
}

//===--------------------------------------------------------------------------------------------------------------===//
// Folds
//===--------------------------------------------------------------------------------------------------------------===//

/// A block has one dimension: the index along the others is zero.
OpFoldResult ThreadIdOp::fold(FoldAdaptor) {
  if (getAxis() == 0)
    return {};
  return IntegerAttr::get(getType(), 0);
}

/// A symmetric object seen from its own rank is where it is.
OpFoldResult SymmAtOp::fold(FoldAdaptor) {
  if (getRank().getDefiningOp<RankOp>())
    return getPtr();
  return {};
}
