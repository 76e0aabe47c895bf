//===- ScalarOps.cpp - Elementwise operations applied to one element ------------------------------------------------------===//
//
// See ScalarOps.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/ScalarOps.h"

#include "ditron/target/common/FloatFormats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace ditron::target {

bool isScalarizable(Operation *op) {
  if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) || op->getNumRegions() != 0)
    return false;
  return isa<arith::ConstantOp>(op) || op->hasTrait<OpTrait::Elementwise>();
}

/// The float type of a value if the target does not compute in it, else null.
static FloatType emulatedFloat(TargetInfo &target, Type type) {
  auto floatType = dyn_cast<FloatType>(tile::elementTypeOf(type));
  return floatType && !target.isNativeFloat(floatType) ? floatType : FloatType();
}

Value emitConstant(Emitter &e, TargetInfo &target, TypedAttr attribute) {
  Type storage = target.storageType(attribute.getType());
  if (auto number = dyn_cast<FloatAttr>(attribute); number && storage != attribute.getType())
    return e.constant(storage, number.getValue().bitcastToAPInt().getZExtValue());
  return arith::ConstantOp::create(e, attribute);
}

Value widenFloat(Emitter &e, TargetInfo &target, Value bits, FloatType format) {
  if (format.getWidth() == 8)
    if (const SmallVector<Value> pair = target.widenPair(e, format, e.zextOrTrunc(bits, e.getIntegerType(16)));
        !pair.empty())
      return pair.front();
  return extendToF32(e, bits, format);
}

Value narrowFloat(Emitter &e, TargetInfo &target, Value value, FloatType format) {
  if (format.getWidth() == 8)
    if (Value pair = target.narrowPair(e, format, value, e.zero(e.getF32Type())))
      return e.zextOrTrunc(pair, e.getI8Type());
  return truncateFromF32(e, value, format);
}

Value convertScalar(Emitter &e, TargetInfo &target, Value value, Type from, Type to) {
  if (from == to)
    return value;
  if (isa<IntegerType>(from))
    return e.sextOrTrunc(value, to);
  auto source = cast<FloatType>(from), result = cast<FloatType>(to);
  if (!target.isNativeFloat(source))
    return convertScalar(e, target, widenFloat(e, target, value, source), e.getF32Type(), to);
  if (!target.isNativeFloat(result))
    return narrowFloat(e, target, convertScalar(e, target, value, from, e.getF32Type()), result);
  if (source.getWidth() < result.getWidth())
    return arith::ExtFOp::create(e, to, value);
  return arith::TruncFOp::create(e, to, value);
}

bool isUnguardedDivision(const TargetInfo &target, Operation *op) {
  if (!target.divisionTraps() || !isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
    return false;
  Attribute divisor;
  if (!matchPattern(op->getOperand(1), m_Constant(&divisor)))
    return true;
  if (auto dense = dyn_cast<DenseElementsAttr>(divisor))
    divisor = dense.isSplat() ? dense.getSplatValue<Attribute>() : Attribute();
  auto number = dyn_cast_or_null<IntegerAttr>(divisor);
  return !number || number.getValue().isZero() || number.getValue().isAllOnes();
}

/// Divides by 1 where the divisor is zero; a signed division by -1 is a subtraction.
static Value emitGuardedDivision(Emitter &e, Operation *op, Value dividend, Value divisor) {
  bool isSigned = isa<arith::DivSIOp, arith::RemSIOp>(op);
  Value traps = e.isZero(divisor), isMinusOne;
  if (isSigned) {
    isMinusOne = e.compare(LLVM::ICmpPredicate::eq, divisor, e.constant(divisor.getType(), -1));
    traps = e.bitOr(traps, isMinusOne);
  }
  Value safe = e.select(traps, e.constant(divisor.getType(), 1), divisor);
  if (isa<arith::RemSIOp>(op))
    return LLVM::SRemOp::create(e, dividend, safe);
  if (isa<arith::RemUIOp>(op))
    return LLVM::URemOp::create(e, dividend, safe);
  if (isa<arith::DivUIOp>(op))
    return LLVM::UDivOp::create(e, dividend, safe);
  Value quotient = LLVM::SDivOp::create(e, dividend, safe);
  return e.select(isMinusOne, e.sub(e.constant(dividend.getType(), 0), dividend), quotient);
}

bool isTruncationTowardZero(Operation *op) {
  auto truncation = dyn_cast<arith::TruncFOp>(op);
  return truncation && truncation.getRoundingmode() == arith::RoundingMode::toward_zero;
}

bool isIntegerToHalf(Operation *op) {
  return isa<arith::SIToFPOp, arith::UIToFPOp>(op) && tile::elementTypeOf(op->getResult(0).getType()).isF16();
}

/// Narrows towards zero: rounds to nearest and, where that has gone away from zero, takes the pattern before, which is the next
/// value towards zero in every sign-and-magnitude format (and the largest finite one when rounding has overflowed).
static Value truncateTowardZero(Emitter &e, TargetInfo &target, Value value, Type from, Type to) {
  if (auto source = cast<FloatType>(from); !target.isNativeFloat(source)) {
    value = widenFloat(e, target, value, source);
    from = e.getF32Type();
  }
  Value nearest = convertScalar(e, target, value, from, to);
  Value back = convertScalar(e, target, nearest, to, from);
  Value isTooFar = arith::CmpFOp::create(e, arith::CmpFPredicate::OGT, math::AbsFOp::create(e, back),
                                         math::AbsFOp::create(e, value));
  Value bits = e.toBits(nearest);
  Value before = e.sub(bits, e.constant(bits.getType(), 1));
  return e.fromBits(e.select(isTooFar, before, bits), nearest.getType());
}

SmallVector<Value> emitScalarOp(Emitter &e, TargetInfo &target, Operation *op, ValueRange operands) {
  auto elementOf = [](Value value) { return tile::elementTypeOf(value.getType()); };
  // Operations that move bits and do not compute work on storage types as they are.
  if (isa<arith::SelectOp>(op))
    return {e.select(operands[0], operands[1], operands[2])};
  if (isa<arith::BitcastOp>(op))
    return {e.bitcast(operands[0], target.storageType(elementOf(op->getResult(0))))};
  if (isTruncationTowardZero(op))
    return {truncateTowardZero(e, target, operands[0], elementOf(op->getOperand(0)), elementOf(op->getResult(0)))};
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return {convertScalar(e, target, operands[0], elementOf(op->getOperand(0)), elementOf(op->getResult(0)))};

  if (isUnguardedDivision(target, op))
    return {emitGuardedDivision(e, op, operands[0], operands[1])};

  if (isIntegerToHalf(op)) {
    Operation *single = e.create(e.getLoc(), op->getName().getIdentifier(), operands, e.getF32Type(), op->getAttrs());
    return {convertScalar(e, target, single->getResult(0), e.getF32Type(), e.getF16Type())};
  }

  SmallVector<Value> arguments;
  for (auto [original, lowered] : llvm::zip(op->getOperands(), operands)) {
    FloatType emulated = emulatedFloat(target, original.getType());
    arguments.push_back(emulated ? widenFloat(e, target, lowered, emulated) : lowered);
  }
  SmallVector<Type> types;
  for (Value result : op->getResults())
    types.push_back(emulatedFloat(target, result.getType()) ? e.getF32Type() : elementOf(result));
  Operation *applied = e.create(e.getLoc(), op->getName().getIdentifier(), arguments, types, op->getAttrs());
  SmallVector<Value> results;
  for (auto [original, computed] : llvm::zip(op->getResults(), applied->getResults())) {
    FloatType emulated = emulatedFloat(target, original.getType());
    results.push_back(emulated ? narrowFloat(e, target, computed, emulated) : computed);
  }
  return results;
}

bool isCommutative(Region &combine) {
  Block &block = combine.front();
  if (block.getNumArguments() != 2 || block.getOperations().size() != 2)
    return false;
  Operation &op = block.front();
  bool takesBoth = op.getNumOperands() == 2 && op.getOperand(0) != op.getOperand(1) &&
                   llvm::all_of(op.getOperands(), [&](Value v) { return isa<BlockArgument>(v); });
  // minnum and maxnum may return either of +0 and -0, so they are commutative in value but not in bits.
  bool symmetric = op.hasTrait<OpTrait::IsCommutative>() && !isa<arith::MaxNumFOp, arith::MinNumFOp>(op);
  return takesBoth && symmetric && block.getTerminator()->getOperand(0) == op.getResult(0);
}

} // namespace ditron::target
