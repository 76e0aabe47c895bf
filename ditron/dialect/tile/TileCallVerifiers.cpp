//===- TileCallVerifiers.cpp - What a well-formed call on elements is ------------------------------------*- C++ -*-===//
//
// The operations of TileCallOps.td. Their tensors are accessed element by element, so shapes and layouts must agree.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ditron::tile;

/// All values are scalars, or tensors of one shape and layout.
static LogicalResult verifyElementwise(Operation *op, TypeRange types) {
  for (Type type : types) {
    bool alike = isa<RankedTensorType>(type) == isa<RankedTensorType>(types.front());
    if (alike && isa<RankedTensorType>(type)) {
      auto tensor = cast<RankedTensorType>(type), first = cast<RankedTensorType>(types.front());
      alike = tensor.getShape() == first.getShape() && tensor.getEncoding() == first.getEncoding();
    }
    if (!alike)
      return op->emitOpError() << "operands and results must be scalars, or tensors of one shape and layout, found "
                               << types.front() << " and " << type;
  }
  return success();
}

static SmallVector<Type> operandAndResultTypes(Operation *op) {
  SmallVector<Type> types(op->getOperandTypes());
  types.append(op->result_type_begin(), op->result_type_end());
  return types;
}

LogicalResult MapElementwiseOp::verify() {
  if (getSources().empty())
    return emitOpError() << "needs at least one source";
  if (failed(verifyElementwise(*this, operandAndResultTypes(*this))))
    return failure();
  auto packed = [&](TypeRange tensors) {
    SmallVector<Type> elements;
    for (Type type : tensors)
      elements.append(getPack(), elementTypeOf(type));
    return elements;
  };
  Block &body = getBody().front();
  SmallVector<Type> arguments = packed(getSources().getTypes()), yields = packed(getResultTypes());
  if (!llvm::equal(body.getArgumentTypes(), arguments))
    return emitOpError() << "region must take (" << arguments << "), found (" << body.getArgumentTypes() << ")";
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield)
    return emitOpError() << "region must end in tile.yield";
  if (!llvm::equal(yield.getOperandTypes(), yields))
    return yield.emitOpError() << "must yield (" << yields << "), found (" << yield.getOperandTypes() << ")";
  if (cast<RankedTensorType>(getSources().front().getType()).getNumElements() % getPack() != 0)
    return emitOpError() << "packs of " << getPack() << " elements do not divide " << getSources().front().getType();
  return success();
}

LogicalResult ExternCallOp::verify() {
  if (getSymbol().empty())
    return emitOpError() << "needs the name of a function";
  return verifyElementwise(*this, operandAndResultTypes(*this));
}

LogicalResult InlineAsmOp::verify() { return verifyElementwise(*this, operandAndResultTypes(*this)); }

LogicalResult PrintOp::verify() {
  if (getIsSigned().size() != getArgs().size())
    return emitOpError() << "has " << getArgs().size() << " values, but says of " << getIsSigned().size()
                         << " whether they have a sign";
  return success();
}

LogicalResult AssertOp::verify() { return verifyElementwise(*this, getOperandTypes()); }

/// Something unknown happens unless the call is pure; a write is what nobody removes, merges or moves.
static void addEffects(bool isPure, SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (isPure)
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

void ExternCallOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  addEffects(getIsPure(), effects);
}

void InlineAsmOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  addEffects(getIsPure(), effects);
}
