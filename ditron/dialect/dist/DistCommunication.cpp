//===- DistCommunication.cpp - Checks of puts, signals, wide accesses and intrinsics --------------------*- C++ -*-===//
//
// The operations of DistShmemOps.td and DistThreadOps.td, and the table of the intrinsics.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Intrinsics.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ditron::dist;
using ditron::tile::PointerType;

/// A signal word has 32 or 64 bits, and a value of its type.
static LogicalResult verifySignal(Operation *op, PointerType signal, Type value) {
  Type word = signal.getPointee();
  if (!word.isInteger(32) && !word.isInteger(64))
    return op->emitOpError() << "needs a pointer to signal words of type i32 or i64, found " << signal;
  if (value != word)
    return op->emitOpError() << "value has type " << value << ", but the signal word has type " << word;
  return success();
}

LogicalResult PutSignalOp::verify() { return verifySignal(*this, getSignal().getType(), getValue().getType()); }
LogicalResult SignalOpOp::verify() { return verifySignal(*this, getSignal().getType(), getValue().getType()); }
LogicalResult SignalWaitUntilOp::verify() { return verifySignal(*this, getSignal().getType(), getValue().getType()); }

static LogicalResult verifyVector(Operation *op, PointerType ptr, TypeRange elements) {
  for (Type element : elements)
    if (element != ptr.getPointee())
      return op->emitOpError() << "element has type " << element << ", but the pointer is " << ptr;
  size_t bytes = elements.size() * ptr.getElementBytes();
  if (bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16)
    return op->emitOpError() << "moves 2, 4, 8 or 16 bytes, found " << bytes;
  return success();
}

LogicalResult LdVectorOp::verify() { return verifyVector(*this, getPtr().getType(), getResultTypes()); }
LogicalResult StVectorOp::verify() { return verifyVector(*this, getPtr().getType(), getValues().getTypes()); }

LogicalResult SharedAllocOp::verify() {
  if (!llvm::isPowerOf2_64(getAlignment()))
    return emitOpError() << "alignment must be a power of two, found " << getAlignment();
  return success();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Intrinsics
//===--------------------------------------------------------------------------------------------------------------===//

const Intrinsic *ditron::dist::findIntrinsic(StringRef name) {
  static const llvm::StringMap<Intrinsic> table = [] {
    llvm::StringMap<Intrinsic> result;
#define DITRON_INTRINSIC(name, operands, results, summary)                                                             \
  result.try_emplace(name, Intrinsic{name, operands, results, summary});
#include "ditron/dialect/dist/Intrinsics.def"
    return result;
  }();
  auto it = table.find(name);
  return it == table.end() ? nullptr : &it->second;
}

static bool hasType(Type type, StringRef text) {
  return llvm::StringSwitch<bool>(text)
      .Case("ptr", isa<PointerType>(type))
      .Case("i1", type.isInteger(1))
      .Case("i16", type.isInteger(16))
      .Case("i32", type.isInteger(32))
      .Case("i64", type.isInteger(64))
      .Case("f32", type.isF32())
      .Default(false);
}

static LogicalResult verifyTypes(Operation *op, StringRef what, TypeRange found, StringRef expected) {
  SmallVector<StringRef> texts;
  expected.split(texts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  bool fits = texts.size() == found.size();
  for (size_t i = 0; fits && i < texts.size(); ++i)
    fits = hasType(found[i], texts[i].trim());
  if (fits)
    return success();
  return op->emitOpError() << what << " must be (" << expected << "), found (" << found << ")";
}

LogicalResult IntrinsicOp::verify() {
  const Intrinsic *intrinsic = findIntrinsic(getName());
  if (!intrinsic)
    return emitOpError() << "there is no intrinsic '" << getName() << "'";
  if (failed(verifyTypes(*this, "operands", getArgs().getTypes(), intrinsic->operands)))
    return failure();
  return verifyTypes(*this, "results", getResultTypes(), intrinsic->results);
}
