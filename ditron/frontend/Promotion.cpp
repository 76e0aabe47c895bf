//===- Promotion.cpp - Which type two operands meet in ----------------------------------------------------------------===//
//
// Triton's rules of promotion: a compile-time number adapts to the tensor beside it, two tensors meet in a
// common element type, and both are then brought to one shape.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Emitter.h"

#include <fmt/format.h>

namespace ditron::frontend {
namespace {

/// bool < int < float: whether a literal adapts to a tensor or brings its own type.
unsigned kindOrder(const LangType &type) { return type.isBool() ? 0 : type.isInt() ? 1 : 2; }
unsigned kindOrder(const ConstValue &value) { return value.isBool() ? 0 : value.isInt() ? 1 : 2; }

} // namespace

std::optional<LangType> Emitter::promote(const LangType &a, const LangType &b, ArithmeticKind kind, SourceRange range) {
  bool divides = kind == ArithmeticKind::DivisionLike;
  auto either = [&](ScalarKind k) { return a.is(k) || b.is(k); };
  if (a.isPointer() || b.isPointer() || a.isVoid() || b.isVoid()) {
    error(range, fmt::format("operands of types {} and {} cannot be combined", a.str(), b.str()));
    return std::nullopt;
  }
  if (either(ScalarKind::FP64))
    return ScalarKind::FP64;
  if (either(ScalarKind::FP32))
    return ScalarKind::FP32;
  if (either(ScalarKind::FP16))
    return divides ? ScalarKind::FP32 : ScalarKind::FP16;
  if (either(ScalarKind::BF16))
    return a.is(ScalarKind::BF16) && b.is(ScalarKind::BF16) && !divides ? ScalarKind::BF16 : ScalarKind::FP32;
  auto isByte = [](const LangType &type) { return type.isFloat() && type.bitWidth() == 8; };
  if (isByte(a) && isByte(b))
    return a == b && !a.is(ScalarKind::FP8E4B15) ? a : LangType(ScalarKind::FP16);
  if (isByte(a) || isByte(b)) {
    error(range,
          fmt::format("operands of types {} and {} cannot be combined; cast one of them first", a.str(), b.str()));
    return std::nullopt;
  }
  if (a.isSigned() == b.isSigned())
    return a.bitWidth() >= b.bitWidth() ? a : b;
  if (divides) {
    error(range, fmt::format("Cannot use /, //, or % with {} and {} because they have different signedness", a.str(), b.str()))
        .hint("cast one of them, for example x.to(tl.int32)");
    return std::nullopt;
  }
  const LangType &unsignedType = a.isUnsigned() ? a : b;
  const LangType &signedType = a.isUnsigned() ? b : a;
  return unsignedType.bitWidth() >= signedType.bitWidth() ? unsignedType : signedType;
}

bool Emitter::promoteOperands(LangValue &a, LangValue &b, ArithmeticKind kind, SourceRange range) {
  if (a.isPoison() || b.isPoison())
    return false;
  bool divides = kind == ArithmeticKind::DivisionLike;
  // A literal beside a tensor of its own or a higher kind is built in the tensor's type and shape.
  auto adapt = [&](LangValue &literal, LangValue &tensor) -> std::optional<bool> {
    LangType element = tensor.type().element();
    if (element.isPointer() || kindOrder(literal.constant()) > kindOrder(element))
      return std::nullopt;
    if (divides && (element.is(ScalarKind::FP16) || element.is(ScalarKind::BF16)))
      element = ScalarKind::FP32;
    if (element.is(ScalarKind::FP8E4B15))
      element = ScalarKind::FP16;
    if (!checkLiteralFits(literal.constant(), element, range))
      return false;
    tensor = cast(tensor, element, range);
    literal = constantOf(literal.constant(), tensor.type());
    return true;
  };
  if (a.isLiteral() && b.isTensor())
    if (auto done = adapt(a, b))
      return *done;
  if (b.isLiteral() && a.isTensor())
    if (auto done = adapt(b, a))
      return *done;
  a = toTensor(a, range);
  b = toTensor(b, range);
  if (a.isPoison() || b.isPoison())
    return false;
  auto common = promote(a.type().element(), b.type().element(), kind, range);
  if (!common)
    return false;
  a = cast(a, *common, range);
  b = cast(b, *common, range);
  LangValue pair[] = {a, b};
  if (!broadcastTogether(pair, range))
    return false;
  a = pair[0];
  b = pair[1];
  return true;
}

bool Emitter::promoteAsTensors(LangValue &a, LangValue &b, SourceRange range) {
  if (a.isPoison() || b.isPoison())
    return false;
  if (a.isLiteral() == b.isLiteral())
    return promoteOperands(a = toTensor(a, range), b = toTensor(b, range), ArithmeticKind::Plain, range);
  LangValue &literal = a.isLiteral() ? a : b;
  LangValue &tensor = a.isLiteral() ? b : a;
  auto natural = naturalType(literal.constant());
  if (!natural) {
    error(range, fmt::format("integer {} does not fit into 64 bits", literal.constant().repr()));
    return false;
  }
  if (!tensor.isTensor()) {
    error(range, fmt::format("expected a number or a tensor, but got {}", tensor.describe()));
    return false;
  }
  auto common = promote(*natural, tensor.type().element(), ArithmeticKind::Plain, range);
  if (!common)
    return false;
  tensor = cast(tensor, *common, range);
  literal = constantOf(literal.constant(), tensor.type());
  return true;
}

} // namespace ditron::frontend
