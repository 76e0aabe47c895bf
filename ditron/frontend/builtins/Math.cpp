//===- Math.cpp - Elementwise mathematics ------------------------------------------------------------------------===//
//
// Handlers of functions that work element by element.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BuiltinHandlers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <bit>
#include <fmt/format.h>

namespace ditron::frontend::builtins {
namespace arith = mlir::arith;
namespace math = mlir::math;
namespace {

/// A tensor of fp32 or fp64, or an error that names what was given.
LangValue floatOperand(Evaluator &evaluator, BuiltinCall &call, const AnyArg &argument) {
  LangValue value = evaluator.emit.toTensor(*argument.given, argument.range);
  if (value.isPoison() || value.type().is(ScalarKind::FP32) || value.type().is(ScalarKind::FP64))
    return value;
  evaluator.emit
      .error(argument.range, fmt::format("{}: Expected dtype ['fp32', 'fp64'] but got {} for argument '{}'",
                                         qualifiedName(*call.builtin), value.type().element().signatureText(), argument.name()))
      .hint("cast it first: x.to(tl.float32)");
  return LangValue::poison();
}

/// Two operands of floating point type brought together without promotion of their types.
bool sameFloats(Evaluator &evaluator, BuiltinCall &call, LangValue &a, LangValue &b) {
  if (!evaluator.emit.promoteOperands(a, b, ArithmeticKind::Plain, call.range))
    return false;
  if (a.type().isFloat())
    return true;
  evaluator.emit.error(call.range, fmt::format("{} needs floating point operands, but got {}",
                                              qualifiedName(*call.builtin), a.type().str()));
  return false;
}

/// An operator as a function, which may do without the check for overflow.
LangValue arithmetic(Evaluator &evaluator, BuiltinCall &call, BinaryOp op, const LangValue &x, const LangValue &y,
                     bool sanitizes) {
  bool &checks = evaluator.emit.checksOverflow, before = checks;
  checks = before && sanitizes;
  LangValue result = evaluator.emit.binary(op, x, y, call.range);
  checks = before;
  return result;
}

LangValue quotient(Evaluator &evaluator, BuiltinCall &call, LangValue x, LangValue y, bool isExact) {
  if (!sameFloats(evaluator, call, x, y))
    return LangValue::poison();
  auto flags = isExact ? arith::FastMathFlags::none : arith::FastMathFlags::afn;
  return evaluator.emit.wrap(evaluator.emit.create<arith::DivFOp>(x.ir(), y.ir(), flags), x.type());
}

bool propagatesNan(const LangValue &value) { return value.isConstant() && value.constant().isTrue(); }

} // namespace

LangValue where(Evaluator &evaluator, BuiltinCall &call, ValueArg condition, ValueArg x, ValueArg y) {
  if (condition->isTensor() && !condition->type().isBool())
    evaluator.emit.warning(
        condition.range,
        fmt::format("tl.where with a condition of type {}, which is no int1: Triton converts it, and calls that "
                    "deprecated; compare it: condition != 0",
                    condition->type().element().str()));
  return evaluator.emit.select(*condition, *x, *y, call.range);
}

LangValue minimum(Evaluator &evaluator, BuiltinCall &call, ValueArg x, ValueArg y, ValueArg propagateNan) {
  return evaluator.emit.minMax(false, *x, *y, propagatesNan(*propagateNan), call.range);
}

LangValue maximum(Evaluator &evaluator, BuiltinCall &call, ValueArg x, ValueArg y, ValueArg propagateNan) {
  return evaluator.emit.minMax(true, *x, *y, propagatesNan(*propagateNan), call.range);
}

LangValue clamp(Evaluator &evaluator, BuiltinCall &call, ValueArg value, ValueArg low, ValueArg high, ValueArg propagateNan) {
  Emitter &emit = evaluator.emit;
  bool propagates = propagatesNan(*propagateNan);
  LangValue x = emit.toTensor(*value, call.range);
  if (x.isPoison())
    return x;
  if (!x.type().isFloat())
    return emit.fail(value.range, fmt::format("tl.clamp needs floating point values, but got {}", x.describe()));
  // min(max(x, lo), hi): maxnum gives lo for a nan.
  LangValue raised = emit.minMax(true, x, *low, propagates, call.range);
  return emit.minMax(false, raised, *high, propagates, call.range);
}

LangValue cdiv(Evaluator &evaluator, BuiltinCall &call, ValueArg x, ValueArg div) {
  Emitter &emit = evaluator.emit;
  auto isInteger = [](const LangValue &value) {
    return value.isTensor() ? value.type().isInt() : value.constant().isIntegral();
  };
  for (const ValueArg *argument : {&x, &div})
    if (!isInteger(**argument))
      return reject(evaluator, call, *argument, "an integer");
  LangValue less = emit.binary(BinaryOp::Sub, *div, LangValue::integer(1), call.range);
  LangValue sum = emit.binary(BinaryOp::Add, *x, less, call.range);
  return emit.binary(BinaryOp::FloorDiv, sum, *div, call.range);
}

LangValue expectZero(Evaluator &evaluator, BuiltinCall &call, ValueArg x, ValueArg mask) { return *x; }

LangValue nextPowerOf2(Evaluator &evaluator, BuiltinCall &call, Arg<int64_t> n) {
  if (*n > (int64_t(1) << 62))
    return evaluator.emit.fail(n.range, fmt::format("{} is too large", *n));
  return LangValue::integer(*n <= 1 ? (*n == 1 ? 1 : 0) : int64_t(std::bit_ceil(uint64_t(*n))));
}

LangValue operatorAdd(Evaluator &evaluator, BuiltinCall &call, ValueArg x, ValueArg y, Arg<bool> sanitizeOverflow) {
  return arithmetic(evaluator, call, BinaryOp::Add, *x, *y, *sanitizeOverflow);
}
LangValue operatorSub(Evaluator &evaluator, BuiltinCall &call, ValueArg x, ValueArg y, Arg<bool> sanitizeOverflow) {
  return arithmetic(evaluator, call, BinaryOp::Sub, *x, *y, *sanitizeOverflow);
}
LangValue operatorMul(Evaluator &evaluator, BuiltinCall &call, ValueArg x, ValueArg y, Arg<bool> sanitizeOverflow) {
  return arithmetic(evaluator, call, BinaryOp::Mult, *x, *y, *sanitizeOverflow);
}

LangValue unaryMath(Evaluator &evaluator, BuiltinCall &call, ValueArg operand) {
  Emitter &emit = evaluator.emit;
  LangValue value = floatOperand(evaluator, call, operand);
  if (value.isPoison())
    return value;
  llvm::StringRef name = call.builtin->name;
  mlir::Value x = value.ir();
  auto done = [&](mlir::Value result) { return emit.wrap(result, value.type()); };
  if (name == "exp" || name == "fast_expf")
    return done(emit.create<math::ExpOp>(x));
  if (name == "exp2")
    return done(emit.create<math::Exp2Op>(x));
  if (name == "log")
    return done(emit.create<math::LogOp>(x));
  if (name == "log2")
    return done(emit.create<math::Log2Op>(x));
  if (name == "sqrt" || name == "sqrt_rn")
    return done(emit.create<math::SqrtOp>(x));
  if (name == "rsqrt")
    return done(emit.create<math::RsqrtOp>(x));
  if (name == "sin")
    return done(emit.create<math::SinOp>(x));
  if (name == "cos")
    return done(emit.create<math::CosOp>(x));
  if (name == "erf")
    return done(emit.create<math::ErfOp>(x));
  if (name == "floor")
    return done(emit.create<math::FloorOp>(x));
  if (name == "ceil")
    return done(emit.create<math::CeilOp>(x));
  if (name == "tanh")
    return done(emit.create<math::TanhOp>(x));
  return done(emit.create<math::RoundEvenOp>(x));
}

LangValue absolute(Evaluator &evaluator, BuiltinCall &call, ValueArg value) {
  Emitter &emit = evaluator.emit;
  if (value->isLiteral()) {
    LangValue isNegative = emit.compare(CompareOp::Lt, *value, LangValue::integer(0), call.range);
    return isNegative.constant().isTrue() ? emit.unary(UnaryOp::USub, *value, call.range) : *value;
  }
  const LangType &type = value->type();
  if (type.isPointer())
    return emit.fail(call.range, fmt::format("{} does not take {}", qualifiedName(*call.builtin), value->describe()));
  if (type.isFloat() && type.bitWidth() == 8) {
    // Bits, so that infinities and NaN keep theirs.
    LangValue bits = emit.bitcast(*value, ScalarKind::UInt8, call.range);
    LangValue magnitude = emit.binary(BinaryOp::BitAnd, bits, LangValue::integer(0x7f), call.range);
    return magnitude.isPoison() ? magnitude : emit.bitcast(magnitude, type.element(), call.range);
  }
  if (type.isFloat())
    return emit.wrap(emit.create<math::AbsFOp>(value->ir()), type);
  return type.isSigned() ? emit.wrap(emit.create<math::AbsIOp>(value->ir()), type) : *value;
}

LangValue fma(Evaluator &evaluator, BuiltinCall &call, ValueArg a, ValueArg b, ValueArg c) {
  LangValue x = *a, y = *b, z = *c;
  Emitter &emit = evaluator.emit;
  if (!emit.promoteOperands(x, y, ArithmeticKind::Plain, call.range) ||
      !emit.promoteOperands(x, z, ArithmeticKind::Plain, call.range) ||
      !emit.promoteOperands(y, z, ArithmeticKind::Plain, call.range) ||
      !emit.promoteOperands(x, y, ArithmeticKind::Plain, call.range))
    return LangValue::poison();
  if (!x.type().isFloat())
    return emit.fail(call.range, fmt::format("{} needs floating point operands, but got {}",
                                             qualifiedName(*call.builtin), x.type().str()));
  return emit.wrap(emit.create<math::FmaOp>(x.ir(), y.ir(), z.ir()), x.type());
}

LangValue fdiv(Evaluator &evaluator, BuiltinCall &call, ValueArg x, ValueArg y, Arg<bool> ieeeRounding) {
  return quotient(evaluator, call, *x, *y, *ieeeRounding);
}

LangValue divRn(Evaluator &evaluator, BuiltinCall &call, ValueArg x, ValueArg y) {
  return quotient(evaluator, call, *x, *y, /*isExact=*/true);
}

LangValue umulhi(Evaluator &evaluator, BuiltinCall &call, ValueArg a, ValueArg b) {
  LangValue x = *a, y = *b;
  Emitter &emit = evaluator.emit;
  if (!emit.promoteOperands(x, y, ArithmeticKind::Plain, call.range))
    return LangValue::poison();
  if (!x.type().isInt() || x.type().bitWidth() < 32)
    return emit.fail(call.range, fmt::format("{} needs 32 or 64 bit integers, but got {}", qualifiedName(*call.builtin),
                                             x.type().str()));
  auto product = emit.create<arith::MulUIExtendedOp>(x.ir(), y.ir());
  return emit.wrap(product.getHigh(), x.type());
}

LangValue sigmoid(Evaluator &evaluator, BuiltinCall &call, ValueArg operand) {
  Emitter &emit = evaluator.emit;
  LangValue x = floatOperand(evaluator, call, operand);
  if (x.isPoison())
    return x;
  LangValue negative = emit.unary(UnaryOp::USub, x, call.range);
  LangValue power = emit.wrap(emit.create<math::ExpOp>(negative.ir()), x.type());
  LangValue one = emit.constantOf(ConstValue::integer(1), x.type());
  LangValue sum = emit.binary(BinaryOp::Add, one, power, call.range);
  return emit.binary(BinaryOp::Div, one, sum, call.range);
}

LangValue logicalAnd(Evaluator &evaluator, BuiltinCall &call, ValueArg self, ValueArg other) {
  return evaluator.emit.logical(true, *self, *other, call.range);
}
LangValue logicalOr(Evaluator &evaluator, BuiltinCall &call, ValueArg self, ValueArg other) {
  return evaluator.emit.logical(false, *self, *other, call.range);
}

} // namespace ditron::frontend::builtins
