//===- FloatFormats.cpp - Floats that a target has no instructions for ----------------------------------------------------===//
//
// All formats are described by (exponent bits, mantissa bits, bias). A format whose largest exponent is an ordinary one
// (e4m3fn) has one NaN pattern, all ones; the others follow IEEE.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/FloatFormats.h"

#include <bit>
#include <cmath>

using namespace mlir;
using LLVM::ICmpPredicate;

namespace ditron::target {

namespace {
struct SmallFloat {
  int mantissaBits, bias;
  uint32_t maxFinite; ///< Pattern of the largest finite value, without the sign.
  uint32_t nan;       ///< A NaN pattern.
  bool hasInfinity;
};
} // namespace

static SmallFloat describe(FloatType format) {
  if (isa<Float8E5M2Type>(format))
    return {2, 15, 0x7b, 0x7f, true};
  return {3, 7, 0x7e, 0x7f, false}; // Float8E4M3FN
}

static Value constantF32(Emitter &e, float value) {
  return LLVM::ConstantOp::create(e, e.getF32Type(), e.getF32FloatAttr(value));
}

static Value extendSmall(Emitter &e, Value bits, const SmallFloat &f) {
  Type i32 = e.getI32Type();
  Value wide = e.zextOrTrunc(bits, i32);
  Value magnitude = e.bitAnd(wide, e.i32(0x7f));
  Value sign = e.shl(e.bitAnd(wide, e.i32(0x80)), 24);
  // Normal numbers: move the fields and rebias. Subnormal ones: the magnitude is an integer count of the smallest step.
  Value normal = e.add(e.shl(magnitude, 23 - f.mantissaBits), e.i32((127 - f.bias) << 23));
  Value steps = LLVM::UIToFPOp::create(e, e.getF32Type(), magnitude);
  Value subnormal = LLVM::FMulOp::create(e, steps, constantF32(e, std::ldexp(1.0f, 1 - f.bias - f.mantissaBits)));
  Value isSubnormal = e.compare(ICmpPredicate::ult, magnitude, e.i32(1 << f.mantissaBits));
  Value result = e.select(isSubnormal, e.toBits(subnormal), normal);
  if (f.hasInfinity) {
    Value special = e.bitOr(e.shl(magnitude, 23 - f.mantissaBits), e.i32(0x7f800000));
    result = e.select(e.compare(ICmpPredicate::ugt, magnitude, e.i32(f.maxFinite)), special, result);
  } else {
    result = e.select(e.compare(ICmpPredicate::eq, magnitude, e.i32(f.nan)), e.i32(0x7fc00000), result);
  }
  return e.fromBits(e.bitOr(result, sign), e.getF32Type());
}

static Value truncateSmall(Emitter &e, Value value, const SmallFloat &f) {
  Value bits = e.toBits(value);
  Value magnitude = e.bitAnd(bits, e.i32(0x7fffffff));
  Value sign = e.bitAnd(e.lshr(bits, 24), e.i32(0x80));
  int dropped = 23 - f.mantissaBits;
  // Normal: round the dropped bits to nearest even (a carry goes into the exponent, as it should), then rebias.
  Value odd = e.bitAnd(e.lshr(magnitude, dropped), e.i32(1));
  Value rounded = e.add(e.add(magnitude, e.i32((1 << (dropped - 1)) - 1)), odd);
  Value normal = e.sub(e.lshr(rounded, dropped), e.i32((127 - f.bias) << f.mantissaBits));
  // Subnormal: adding a power of two whose last place is the smallest step lets the adder do the rounding.
  float aligner = std::ldexp(1.0f, 23 + 1 - f.bias - f.mantissaBits);
  Value aligned = LLVM::FAddOp::create(e, e.fromBits(magnitude, e.getF32Type()), constantF32(e, aligner));
  Value subnormal = e.sub(e.toBits(aligned), e.i32(std::bit_cast<int32_t>(aligner)));
  Value isSubnormal = e.compare(ICmpPredicate::ult, magnitude, e.i32((127 - f.bias + 1) << 23));
  Value result = e.select(isSubnormal, subnormal, normal);
  result = e.select(e.compare(ICmpPredicate::sgt, result, e.i32(f.maxFinite)), e.i32(f.maxFinite), result);
  // As the instruction of GPUs has it, a NaN loses its sign.
  result = e.select(e.compare(ICmpPredicate::ugt, magnitude, e.i32(0x7f800000)), e.i32(f.nan), e.bitOr(result, sign));
  return e.zextOrTrunc(result, e.getI8Type());
}

Value extendToF32(Emitter &e, Value bits, FloatType format) {
  if (!isa<BFloat16Type>(format))
    return extendSmall(e, bits, describe(format));
  return e.fromBits(e.shl(e.zextOrTrunc(bits, e.getI32Type()), 16), e.getF32Type());
}

Value truncateFromF32(Emitter &e, Value value, FloatType format) {
  if (!isa<BFloat16Type>(format))
    return truncateSmall(e, value, describe(format));
  Value bits = e.toBits(value);
  Value odd = e.bitAnd(e.lshr(bits, 16), e.i32(1));
  Value rounded = e.lshr(e.add(e.add(bits, e.i32(0x7fff)), odd), 16);
  // NaN: keep the sign and payload's top, set the quiet bit, so that rounding cannot turn it into infinity.
  Value isNan = LLVM::FCmpOp::create(e, LLVM::FCmpPredicate::uno, value, value);
  Value nan = e.bitOr(e.lshr(bits, 16), e.i32(0x40));
  return e.zextOrTrunc(e.select(isNan, nan, rounded), e.getIntegerType(16));
}

} // namespace ditron::target
