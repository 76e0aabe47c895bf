//===- ConstArithmetic.cpp - Operators on compile-time scalars ----------------------------------------------------===//
//
// Python's rules in order: two bools under & | ^ stay bool; bool and int give int, except that / and negative powers
// give float; with one float the other operand becomes a double; str and bytes know + and *. All else is Python's
// TypeError.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/ConstValue.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::frontend {

using Kind = ConstValue::Kind;

static Status unsupportedOperands(BinaryOp op, const ConstValue &a, const ConstValue &b) {
  std::string name = op == BinaryOp::Pow ? "** or pow()" : spelling(op).str();
  return invalidArgument(
      fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", name, a.typeName().str(), b.typeName().str()));
}

static Expected<ConstValue> sized(std::optional<BigInt> value) {
  if (!value)
    return invalidArgument(
        fmt::format("integer result too large: compile-time integers have at most {} bits", BigInt::maxBits));
  return ConstValue::integer(std::move(*value));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Floats
//===--------------------------------------------------------------------------------------------------------------===//

static double floatMod(double a, double b) {
  double mod = std::fmod(a, b);
  if (mod == 0.0)
    return std::copysign(0.0, b);
  return (b < 0) != (mod < 0) ? mod + b : mod;
}

static double floatFloorDiv(double a, double b) {
  double mod = std::fmod(a, b);
  // (a - mod) / b is close to an integer; it is rounded to the nearest one below.
  double quotient = (a - mod) / b;
  if (mod != 0.0 && (b < 0) != (mod < 0))
    quotient -= 1.0;
  if (quotient == 0.0)
    return std::copysign(0.0, a / b);
  double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1.0 : floored;
}

static Expected<ConstValue> floatPow(double a, double b) {
  if (a == 0.0 && b < 0.0)
    return invalidArgument("0.0 cannot be raised to a negative power");
  if (a < 0.0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
    return invalidArgument("a negative number to a fractional power is complex; complex numbers are not supported");
  double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
    return invalidArgument("(34, 'Numerical result out of range')");
  return ConstValue::floating(result);
}

static Expected<ConstValue> floatBinary(BinaryOp op, const ConstValue &left, const ConstValue &right) {
  DITRON_ASSIGN_OR_RETURN(double a, left.toDouble());
  DITRON_ASSIGN_OR_RETURN(double b, right.toDouble());
  switch (op) {
  case BinaryOp::Add: return ConstValue::floating(a + b);
  case BinaryOp::Sub: return ConstValue::floating(a - b);
  case BinaryOp::Mult: return ConstValue::floating(a * b);
  case BinaryOp::Div:
    if (b == 0.0)
      return invalidArgument("float division by zero");
    return ConstValue::floating(a / b);
  case BinaryOp::FloorDiv:
    if (b == 0.0)
      return invalidArgument("float floor division by zero");
    return ConstValue::floating(floatFloorDiv(a, b));
  case BinaryOp::Mod:
    if (b == 0.0)
      return invalidArgument("float modulo");
    return ConstValue::floating(floatMod(a, b));
  case BinaryOp::Pow: return floatPow(a, b);
  default: return unsupportedOperands(op, left, right);
  }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Integers
//===--------------------------------------------------------------------------------------------------------------===//

static Expected<ConstValue> intDivision(BinaryOp op, const BigInt &a, const BigInt &b) {
  if (b.isZero())
    return invalidArgument(op == BinaryOp::Div        ? "division by zero"
                           : op == BinaryOp::FloorDiv ? "integer division or modulo by zero"
                                                      : "integer modulo by zero");
  if (op == BinaryOp::Div) {
    std::optional<double> quotient = trueDivide(a, b);
    if (!quotient)
      return invalidArgument("integer division result too large for a float");
    return ConstValue::floating(*quotient);
  }
  BigInt quotient, remainder;
  floorDivMod(a, b, quotient, remainder);
  return ConstValue::integer(op == BinaryOp::FloorDiv ? std::move(quotient) : std::move(remainder));
}

static Expected<ConstValue> intShift(BinaryOp op, const BigInt &a, const BigInt &b) {
  if (b.isNegative())
    return invalidArgument("negative shift count");
  return op == BinaryOp::LShift ? sized(shl(a, b)) : ConstValue::integer(shr(a, b));
}

static Expected<ConstValue> intBinary(BinaryOp op, const ConstValue &left, const ConstValue &right) {
  BigInt a = left.getInt(), b = right.getInt();
  bool bothBool = left.isBool() && right.isBool();
  auto bitwise = [&](BigInt value) {
    return bothBool ? ConstValue::boolean(!value.isZero()) : ConstValue::integer(std::move(value));
  };
  switch (op) {
  case BinaryOp::Add: return sized(add(a, b));
  case BinaryOp::Sub: return sized(sub(a, b));
  case BinaryOp::Mult: return sized(mul(a, b));
  case BinaryOp::Div:
  case BinaryOp::FloorDiv:
  case BinaryOp::Mod: return intDivision(op, a, b);
  case BinaryOp::Pow:
    if (b.isNegative())
      return floatBinary(op, left, right);
    return sized(pow(a, b));
  case BinaryOp::LShift:
  case BinaryOp::RShift: return intShift(op, a, b);
  case BinaryOp::BitOr: return bitwise(a | b);
  case BinaryOp::BitXor: return bitwise(a ^ b);
  case BinaryOp::BitAnd: return bitwise(a & b);
  case BinaryOp::MatMult: break;
  }
  return unsupportedOperands(op, left, right);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Strings
//===--------------------------------------------------------------------------------------------------------------===//

static bool isText(const ConstValue &value) { return value.isStr() || value.kind() == Kind::Bytes; }

static Expected<ConstValue> makeText(Kind kind, std::string text) {
  return kind == Kind::Str ? ConstValue::string(std::move(text)) : ConstValue::bytes(std::move(text));
}

static Status textTooLong() {
  return invalidArgument(
      fmt::format("string result too long: compile-time strings have at most {} bytes", ConstValue::maxStringBytes));
}

static Expected<ConstValue> repeatText(const ConstValue &text, const ConstValue &count) {
  if (!count.isIntegral())
    return invalidArgument(fmt::format("can't multiply sequence by non-int of type '{}'", count.typeName().str()));
  BigInt times = count.getInt();
  const std::string &piece = text.getString();
  if (times.isNegative() || times.isZero() || piece.empty())
    return makeText(text.kind(), "");
  std::optional<int64_t> number = times.toInt64();
  if (!number || static_cast<uint64_t>(*number) > ConstValue::maxStringBytes / piece.size())
    return textTooLong();
  std::string out;
  out.reserve(piece.size() * static_cast<size_t>(*number));
  for (int64_t i = 0; i < *number; ++i)
    out += piece;
  return makeText(text.kind(), std::move(out));
}

static Expected<ConstValue> textBinary(BinaryOp op, const ConstValue &a, const ConstValue &b) {
  if (op == BinaryOp::Mult)
    return isText(a) ? repeatText(a, b) : repeatText(b, a);
  if (op == BinaryOp::Add && a.kind() == b.kind()) {
    if (a.getString().size() + b.getString().size() > ConstValue::maxStringBytes)
      return textTooLong();
    return makeText(a.kind(), a.getString() + b.getString());
  }
  if (op == BinaryOp::Add && a.isStr())
    return invalidArgument(fmt::format("can only concatenate str (not \"{}\") to str", b.typeName().str()));
  if (op == BinaryOp::Add && a.kind() == Kind::Bytes)
    return invalidArgument(fmt::format("can't concat {} to bytes", b.typeName().str()));
  if (op == BinaryOp::Mod && isText(a))
    return unsupported("formatting with % is not supported; use an f-string");
  return unsupportedOperands(op, a, b);
}

//===--------------------------------------------------------------------------------------------------------------===//
// The public operators
//===--------------------------------------------------------------------------------------------------------------===//

Expected<ConstValue> binary(BinaryOp op, const ConstValue &a, const ConstValue &b) {
  if (a.isIntegral() && b.isIntegral())
    return intBinary(op, a, b);
  if (a.isNumber() && b.isNumber())
    return floatBinary(op, a, b);
  if (isText(a) || isText(b))
    return textBinary(op, a, b);
  return unsupportedOperands(op, a, b);
}

Expected<ConstValue> unary(UnaryOp op, const ConstValue &a) {
  if (op == UnaryOp::Not)
    return ConstValue::boolean(!a.isTrue());
  if (a.isIntegral()) {
    BigInt value = a.getInt();
    if (op == UnaryOp::Invert)
      return ConstValue::integer(~value);
    return ConstValue::integer(op == UnaryOp::USub ? -value : value);
  }
  if (a.isFloat() && op != UnaryOp::Invert)
    return ConstValue::floating(op == UnaryOp::USub ? -a.getFloat() : a.getFloat());
  return invalidArgument(fmt::format("bad operand type for unary {}: '{}'", spelling(op).str(), a.typeName().str()));
}

/// The order of two numbers or two texts of one kind; nullopt when Python has no `<` for them.
static std::optional<std::partial_ordering> order(const ConstValue &a, const ConstValue &b) {
  if (a.isIntegral() && b.isIntegral())
    return a.getInt() <=> b.getInt();
  if (a.isFloat() && b.isFloat())
    return a.getFloat() <=> b.getFloat();
  if (a.isIntegral() && b.isFloat())
    return compareExactly(a.getInt(), b.getFloat());
  if (a.isFloat() && b.isIntegral())
    return 0 <=> compareExactly(b.getInt(), a.getFloat());
  // The order of UTF-8 bytes is the order of code points.
  if (isText(a) && a.kind() == b.kind())
    return a.getString() <=> b.getString();
  return std::nullopt;
}

static Expected<ConstValue> contains(const ConstValue &element, const ConstValue &container, bool wanted) {
  if (container.isStr()) {
    if (!element.isStr())
      return invalidArgument(
          fmt::format("'in <string>' requires string as left operand, not {}", element.typeName().str()));
    return ConstValue::boolean(llvm::StringRef(container.getString()).contains(element.getString()) == wanted);
  }
  if (container.kind() == Kind::Bytes) {
    llvm::StringRef data = container.getString();
    if (element.kind() == Kind::Bytes)
      return ConstValue::boolean(data.contains(element.getString()) == wanted);
    if (!element.isIntegral())
      return invalidArgument(fmt::format("a bytes-like object is required, not '{}'", element.typeName().str()));
    std::optional<int64_t> byte = element.toInt64();
    if (!byte || *byte < 0 || *byte > 255)
      return invalidArgument("byte must be in range(0, 256)");
    return ConstValue::boolean(data.contains(static_cast<char>(*byte)) == wanted);
  }
  return invalidArgument(fmt::format("argument of type '{}' is not iterable", container.typeName().str()));
}

Expected<ConstValue> compare(CompareOp op, const ConstValue &a, const ConstValue &b) {
  switch (op) {
  case CompareOp::Is: return ConstValue::boolean(a.identical(b));
  case CompareOp::IsNot: return ConstValue::boolean(!a.identical(b));
  case CompareOp::In: return contains(a, b, true);
  case CompareOp::NotIn: return contains(a, b, false);
  default: break;
  }
  std::optional<std::partial_ordering> ordering = order(a, b);
  if (op == CompareOp::Eq || op == CompareOp::NotEq) {
    // Without an order only values of one kind without content (None, Ellipsis) are equal.
    bool equal = ordering ? std::is_eq(*ordering) : a.identical(b);
    return ConstValue::boolean(equal == (op == CompareOp::Eq));
  }
  if (!ordering)
    return invalidArgument(fmt::format("'{}' not supported between instances of '{}' and '{}'", spelling(op).str(),
                                       a.typeName().str(), b.typeName().str()));
  switch (op) {
  case CompareOp::Lt: return ConstValue::boolean(std::is_lt(*ordering));
  case CompareOp::LtE: return ConstValue::boolean(std::is_lteq(*ordering));
  case CompareOp::Gt: return ConstValue::boolean(std::is_gt(*ordering));
  default: return ConstValue::boolean(std::is_gteq(*ordering));
  }
}

} // namespace ditron::frontend
