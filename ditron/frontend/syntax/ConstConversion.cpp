//===- ConstConversion.cpp - int(), float() and len() at compile time ---------------------------------------------===//
//
// Text to number follows Python's grammar of numbers, not that of the C library: underscores between digits, blanks
// around, no hexadecimal floats, no locale.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/ConstValue.h"

#include "ditron/frontend/syntax/NumberText.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace ditron::frontend {

using Kind = ConstValue::Kind;

static constexpr const char *pythonBlanks = " \t\n\r\v\f";

Expected<double> ConstValue::toDouble() const {
  if (isFloat())
    return getFloat();
  if (!isIntegral())
    return invalidArgument(
        fmt::format("float() argument must be a string or a real number, not '{}'", typeName().str()));
  std::optional<double> value = getInt().toDouble();
  if (!value)
    return invalidArgument("int too large to convert to float");
  return *value;
}

bool removeUnderscores(llvm::StringRef text, std::string &digits) {
  digits.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
      continue;
    }
    bool between = i > 0 && i + 1 < text.size() && llvm::isAlnum(text[i - 1]) && llvm::isAlnum(text[i + 1]);
    if (!between)
      return false;
  }
  return true;
}

double parseDecimalFloat(llvm::StringRef text) {
  double value = 0.0;
  auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error == std::errc())
    return value;
  // Out of range either way: from_chars leaves the value alone, APFloat says infinity or zero.
  llvm::APFloat wide(0.0);
  auto status = wide.convertFromString(text, llvm::APFloat::rmNearestTiesToEven);
  if (!status) {
    llvm::consumeError(status.takeError());
    return std::numeric_limits<double>::quiet_NaN();
  }
  return wide.convertToDouble();
}

/// True for digits [. digits] [e [sign] digits] with at least one digit before the exponent.
static bool isDecimalFloat(llvm::StringRef text) {
  auto digits = [&] {
    size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text = text.drop_front(count);
    return count;
  };
  size_t mantissa = digits();
  if (text.consume_front("."))
    mantissa += digits();
  if (mantissa == 0)
    return false;
  if (text.consume_front_insensitive("e")) {
    if (!text.consume_front("-"))
      text.consume_front("+");
    if (digits() == 0)
      return false;
  }
  return text.empty();
}

static Expected<ConstValue> intFromText(const ConstValue &value, int base) {
  Status invalid = invalidArgument(fmt::format("invalid literal for int() with base {}: {}", base, value.repr()));
  if (base != 0 && base != 2 && base != 8 && base != 10 && base != 16)
    return unsupported("int() of a string takes the bases 0, 2, 8, 10 and 16");
  llvm::StringRef text = llvm::StringRef(value.getString()).trim(pythonBlanks);
  bool negative = text.consume_front("-");
  if (!negative)
    text.consume_front("+");
  unsigned radix = static_cast<unsigned>(base);
  auto takePrefix = [&](llvm::StringRef prefix, unsigned prefixRadix) {
    if ((base != 0 && radix != prefixRadix) || !text.starts_with_insensitive(prefix))
      return;
    radix = prefixRadix;
    text = text.drop_front(2);
    text.consume_front("_");
  };
  takePrefix("0x", 16);
  takePrefix("0o", 8);
  takePrefix("0b", 2);
  std::string digits;
  if (!removeUnderscores(text, digits))
    return invalid;
  if (radix == 0) { // base 0 without a prefix: decimal, and no leading zeros
    radix = 10;
    if (digits.size() > 1 && digits[0] == '0' &&
        llvm::StringRef(digits).find_first_not_of('0') != llvm::StringRef::npos)
      return invalid;
  }
  std::optional<BigInt> number = BigInt::fromDigits(digits, radix);
  if (!number) {
    if (radix == 10 && !digits.empty() && llvm::all_of(digits, llvm::isDigit))
      return invalidArgument(fmt::format("Exceeds the limit ({} digits) for integer string conversion: value has {} "
                                         "digits",
                                         BigInt::maxDecimalDigits, digits.size()));
    return invalid;
  }
  return ConstValue::integer(negative ? -*number : *number);
}

Expected<ConstValue> toInt(const ConstValue &value, int base) {
  switch (value.kind()) {
  case Kind::Bool:
  case Kind::Int: return ConstValue::integer(value.getInt());
  case Kind::Float: {
    std::optional<BigInt> number = BigInt::fromDouble(value.getFloat());
    if (!number)
      return invalidArgument(std::isnan(value.getFloat()) ? "cannot convert float NaN to integer"
                                                          : "cannot convert float infinity to integer");
    return ConstValue::integer(*number);
  }
  case Kind::Str:
  case Kind::Bytes: return intFromText(value, base);
  default:
    return invalidArgument(fmt::format(
        "int() argument must be a string, a bytes-like object or a real number, not '{}'", value.typeName().str()));
  }
}

Expected<ConstValue> toFloat(const ConstValue &value) {
  if (!value.isStr() && value.kind() != Kind::Bytes) {
    DITRON_ASSIGN_OR_RETURN(double number, value.toDouble());
    return ConstValue::floating(number);
  }
  Status invalid = invalidArgument(fmt::format("could not convert string to float: {}", value.repr()));
  llvm::StringRef text = llvm::StringRef(value.getString()).trim(pythonBlanks);
  bool negative = text.consume_front("-");
  if (!negative)
    text.consume_front("+");
  auto withSign = [&](double magnitude) { return ConstValue::floating(negative ? -magnitude : magnitude); };
  if (text.equals_insensitive("inf") || text.equals_insensitive("infinity"))
    return withSign(std::numeric_limits<double>::infinity());
  if (text.equals_insensitive("nan"))
    return withSign(std::numeric_limits<double>::quiet_NaN());
  std::string digits;
  if (!removeUnderscores(text, digits) || !isDecimalFloat(digits))
    return invalid;
  return withSign(parseDecimalFloat(digits));
}

Expected<ConstValue> length(const ConstValue &value) {
  if (value.kind() == Kind::Bytes)
    return ConstValue::integer(static_cast<int64_t>(value.getString().size()));
  if (!value.isStr())
    return invalidArgument(fmt::format("object of type '{}' has no len()", value.typeName().str()));
  int64_t codePoints = llvm::count_if(value.getString(), [](char c) { return (c & 0xc0) != 0x80; });
  return ConstValue::integer(codePoints);
}

} // namespace ditron::frontend
