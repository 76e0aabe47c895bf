//===- Casts.cpp - Conversions between element types ------------------------------------------------------------------===//
//
// The table of casts. Integers carry their sign in the language type only, so the choice
// between signed and unsigned conversions is made here and nowhere later.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Emitter.h"

#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <fmt/format.h>

namespace ditron::frontend {
namespace arith = mlir::arith;

LangValue Emitter::toBool(const LangValue &value, SourceRange range) {
  if (value.isPoison())
    return value;
  if (value.isLiteral())
    return constantOf(ConstValue::boolean(value.constant().isTrue()), ScalarKind::Int1);
  LangValue tensor = toTensor(value, range);
  return tensor.isPoison() ? tensor : cast(tensor, ScalarKind::Int1, range);
}

/// Pointers convert to each other, to and from 64-bit integers, and to bool.
static LangValue castPointer(Emitter &emit, const LangValue &value, const LangType &element, SourceRange range) {
  const LangType source = value.type(), from = source.element(), target = element.withShape(source.shape());
  mlir::Type type = emit.ir(target);
  mlir::Value input = value.ir();
  auto isInt64 = [](const LangType &t) { return t.is(ScalarKind::Int64) || t.is(ScalarKind::UInt64); };
  if (from.isPointer() && element.isPointer())
    return emit.wrap(emit.ir(from) == emit.ir(element) ? input : emit.create<tile::PtrCastOp>(type, input), target);
  if (element.isPointer()) {
    if (isInt64(from))
      return emit.wrap(emit.create<tile::IntToPtrOp>(type, input), target);
    return emit.fail(range, fmt::format("cannot cast {} to {}: only int64 converts to a pointer", source.str(), element.str()));
  }
  if (isInt64(element))
    return emit.wrap(emit.create<tile::PtrToIntOp>(type, input), target);
  if (element.isBool()) {
    mlir::Type int64 = emit.ir(LangType(ScalarKind::Int64).withShape(source.shape()));
    mlir::Value address = emit.create<tile::PtrToIntOp>(int64, input);
    return emit.wrap(emit.create<arith::CmpIOp>(arith::CmpIPredicate::ne, address, emit.integerConstant(0, int64)), target);
  }
  return emit.fail(range, fmt::format("cannot cast {} to {}: pointers convert to int64 and to other pointers only",
                                      source.str(), element.str()));
}

/// fp8e4b15 as fp16: that is fp16 with the upper bit of the exponent taken away.
static LangValue widenE4B15(Emitter &emit, const LangValue &value) {
  const LangType half = LangType(ScalarKind::FP16).withShape(value.type().shape());
  mlir::Type bits16 = emit.ir(LangType(ScalarKind::Int16).withShape(value.type().shape()));
  auto number = [&](int64_t n) { return emit.integerConstant(n, bits16); };
  mlir::Value code = emit.create<arith::ExtUIOp>(bits16, value.ir());
  mlir::Value sign = emit.create<arith::ShLIOp>(emit.create<arith::AndIOp>(code, number(0x80)), number(8));
  mlir::Value magnitude = emit.create<arith::ShLIOp>(emit.create<arith::AndIOp>(code, number(0x7f)), number(7));
  mlir::Value pattern = emit.create<arith::OrIOp>(sign, magnitude);
  return emit.wrap(emit.create<arith::BitcastOp>(emit.ir(half), pattern), half);
}

/// fp16 as fp8e4b15: magnitudes up to 1.75, rounded to nearest with ties away from zero.
static LangValue narrowE4B15(Emitter &emit, const LangValue &half) {
  const LangType target = LangType(ScalarKind::FP8E4B15).withShape(half.type().shape());
  mlir::Type bits16 = emit.ir(LangType(ScalarKind::Int16).withShape(half.type().shape()));
  auto number = [&](int64_t n) { return emit.integerConstant(n, bits16); };
  mlir::Value pattern = emit.create<arith::BitcastOp>(bits16, half.ir());
  mlir::Value magnitude =
      emit.create<arith::MinUIOp>(emit.create<arith::AndIOp>(pattern, number(0x7fff)), number(0x3f00));
  mlir::Value code = emit.create<arith::ShRUIOp>(emit.create<arith::AddIOp>(magnitude, number(0x40)), number(7));
  mlir::Value sign = emit.create<arith::AndIOp>(emit.create<arith::ShRUIOp>(pattern, number(8)), number(0x80));
  return emit.wrap(emit.create<arith::TruncIOp>(emit.ir(target), emit.create<arith::OrIOp>(sign, code)), target);
}

/// Integers (bool among them) from and to each other, and to floats.
static LangValue castInteger(Emitter &emit, const LangValue &value, const LangType &element, SourceRange range) {
  const LangType source = value.type(), from = source.element(), target = element.withShape(source.shape());
  mlir::Type type = emit.ir(target);
  mlir::Value input = value.ir();
  if (element.isInt()) {
    if (from.bitWidth() == element.bitWidth())
      return emit.wrap(input, target);
    if (from.bitWidth() > element.bitWidth())
      return emit.wrap(emit.create<arith::TruncIOp>(type, input), target);
    if (from.isSigned())
      return emit.wrap(emit.create<arith::ExtSIOp>(type, input), target);
    return emit.wrap(emit.create<arith::ExtUIOp>(type, input), target);
  }
  if (element.bitWidth() == 8)
    return emit.fail(range, fmt::format("cannot cast {} to {} directly; cast to fp32 first", source.str(), element.str()));
  if (from.isSigned())
    return emit.wrap(emit.create<arith::SIToFPOp>(type, input), target);
  return emit.wrap(emit.create<arith::UIToFPOp>(type, input), target);
}

LangValue Emitter::cast(const LangValue &value, const LangType &element, SourceRange range, CastRounding rounding) {
  if (value.isPoison())
    return value;
  At at(*this, range);
  const LangType source = value.type();
  const LangType from = source.element();
  const LangType target = element.withShape(source.shape());
  if (from == element)
    return value;
  if (from.isPointer() || element.isPointer())
    return castPointer(*this, value, element, range);
  if (from.isVoid() || element.isVoid())
    return fail(range, fmt::format("cannot cast {} to {}", source.str(), element.str()));
  mlir::Type type = ir(target);
  mlir::Value input = value.ir();
  if (from.is(ScalarKind::FP8E4B15))
    return cast(widenE4B15(*this, value), element, range, rounding);
  if (element.is(ScalarKind::FP8E4B15) && from.isFloat())
    return narrowE4B15(*this, from.is(ScalarKind::FP16) ? value
                                                        : cast(cast(value, ScalarKind::FP32, range), ScalarKind::FP16, range,
                                                               CastRounding::TowardZero));
  if (element.isBool()) {
    if (from.isFloat())
      return wrap(create<arith::CmpFOp>(arith::CmpFPredicate::UNE, input, floatConstant(0, input.getType())), target);
    return wrap(create<arith::CmpIOp>(arith::CmpIPredicate::ne, input, integerConstant(0, input.getType())), target);
  }
  if (from.isInt())
    return castInteger(*this, value, element, range);
  if (element.isInt()) {
    // Narrow integers come from int32. A direct conversion lets LLVM rely on the value being in range: when it is not, the bits
    // beyond the width spoil the elements with which the result is packed into a word, and not only the result.
    if (element.bitWidth() < 32)
      return cast(cast(value, ScalarKind::Int32, range), element, range);
    if (element.isSigned())
      return wrap(create<arith::FPToSIOp>(type, input), target);
    return wrap(create<arith::FPToUIOp>(type, input), target);
  }

  // Floating point to floating point. Formats that do not contain each other meet in fp32.
  auto isHalf = [](const LangType &t) { return t.is(ScalarKind::FP16) || t.is(ScalarKind::BF16); };
  bool goesThroughSingle = (isHalf(from) && !element.is(ScalarKind::FP32)) ||
                           (isHalf(element) && !from.is(ScalarKind::FP32)) || (from.isFP8() && element.isFP8());
  // fp8 widens exactly into fp16, fp32 and fp64, and all of these narrow into fp8 in one step.
  if (goesThroughSingle)
    return cast(cast(value, ScalarKind::FP32, range, rounding), element, range, rounding);
  if (from.bitWidth() < element.bitWidth())
    return wrap(create<arith::ExtFOp>(type, input), target);
  auto truncated = create<arith::TruncFOp>(type, input);
  if (rounding == CastRounding::TowardZero)
    truncated.setRoundingmode(arith::RoundingMode::toward_zero);
  return wrap(truncated, target);
}

LangValue Emitter::bitcast(const LangValue &value, const LangType &element, SourceRange range) {
  if (value.isPoison())
    return value;
  At at(*this, range);
  const LangType from = value.type().element();
  const LangType target = element.withShape(value.type().shape());
  if (from.isPointer() || element.isPointer())
    return cast(value, element, range);
  if (from.isVoid() || element.isVoid() || from.bitWidth() != element.bitWidth())
    return fail(range, fmt::format("Cannot bitcast data-type of size {} ({}) to data-type of size {} ({})",
                                   from.bitWidth(), value.type().str(), element.bitWidth(), element.str()));
  if (ir(from) == ir(element))
    return wrap(value.ir(), target);
  return wrap(create<arith::BitcastOp>(ir(target), value.ir()), target);
}

} // namespace ditron::frontend
