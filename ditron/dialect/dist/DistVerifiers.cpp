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
  Type element = getPtr().getType().getPointee();
  for (Value value : getValues())
    if (failed(verifyPointee(*this, "value", getPtr().getType(), value.getType())))
      return failure();
  size_t count = getValues().size();
  bool isWord = element.isF32() || element.isInteger(32), isWide = element.isF64() || element.isInteger(64);
  if ((isWord && (count == 1 || count == 2 || count == 4)) || (isWide && (count == 1 || count == 2)))
    return success();
  return emitOpError() << "stores 1, 2 or 4 words of 32 bits, or 1 or 2 of 64 bits, found " << count << " of " << element;
}

LogicalResult MultimemLdReduceOp::verify() {
  for (Type result : getResultTypes())
    if (failed(verifyPointee(*this, "result", getPtr().getType(), result)))
      return failure();
  size_t count = getNumResults();
  Type element = getPtr().getType().getPointee();
  if (std::optional<Type> packed = getPacked()) {
    if (!element.isInteger(32) || !(packed->isF16() || packed->isBF16()))
      return emitOpError() << "packed numbers are f16 or bf16 in words of type i32, found " << *packed << " in " << element;
  }
  bool floats = element.isF32() || element.isF64() || getPacked();
  if (count != 1 && !((element.isF32() || getPacked()) && (count == 2 || count == 4)))
    return emitOpError() << "reads one word, or 2 or 4 of f32 or packed numbers, found " << count << " of " << element;
  bool bitwise = getOp() == MultimemReduction::And || getOp() == MultimemReduction::Or || getOp() == MultimemReduction::Xor;
  if (bitwise && floats)
    return emitOpError() << "bitwise reductions are for integers, found " << element;
  return success();
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
