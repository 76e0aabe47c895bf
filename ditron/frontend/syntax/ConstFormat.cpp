//===- ConstFormat.cpp - format() of compile-time scalars ---------------------------------------------------------===//
//
// Python's format specification: [[fill]align][sign][#][0][width][grouping][.precision][type]. Used by f-strings, which
// in kernels build messages and inline assembly. A number is formatted as sign, prefix, digits and a tail (fraction and
// exponent) first; filling and grouping then work on those parts, as grouping with '0' filling has to.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/ConstValue.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include <cmath>
#include <cstdio>
#include <fmt/format.h>

namespace ditron::frontend {

namespace {

/// Width and precision beyond this are refused: a message never needs them.
constexpr unsigned maxFormatNumber = 10000;

struct FormatSpec {
  std::string fill = " ";
  char align = 0; ///< '<', '>', '=', '^', or 0 for the type's own.
  char sign = 0;  ///< '+', '-', ' ', or 0.
  bool alternate = false;
  unsigned width = 0;
  char grouping = 0;  ///< ',', '_', or 0.
  int precision = -1; ///< -1: none.
  char type = 0;
};

struct NumberParts {
  std::string sign;
  std::string prefix;
  std::string digits; ///< Of the integer part; what grouping applies to.
  std::string tail;
};

bool isAlign(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

/// A decimal number at the front of the text, or nullopt; sets tooLarge.
std::optional<unsigned> takeNumber(llvm::StringRef &text, bool &tooLarge) {
  if (text.empty() || !llvm::isDigit(text[0]))
    return std::nullopt;
  unsigned value = 0;
  while (!text.empty() && llvm::isDigit(text[0])) {
    value = std::min(value * 10 + static_cast<unsigned>(text[0] - '0'), maxFormatNumber + 1);
    text = text.drop_front();
  }
  tooLarge |= value > maxFormatNumber;
  return value;
}

Expected<FormatSpec> parseSpec(llvm::StringRef text, const ConstValue &value) {
  FormatSpec spec;
  llvm::StringRef whole = text;
  size_t fillBytes = 0;
  if (!text.empty()) {
    fillBytes = 1;
    while (fillBytes < text.size() && (text[fillBytes] & 0xc0) == 0x80)
      ++fillBytes;
  }
  bool alignGiven = true, fillGiven = false;
  if (fillBytes < text.size() && isAlign(text[fillBytes])) {
    spec.fill = text.take_front(fillBytes).str();
    spec.align = text[fillBytes];
    fillGiven = true;
    text = text.drop_front(fillBytes + 1);
  } else if (!text.empty() && isAlign(text[0])) {
    spec.align = text[0];
    text = text.drop_front();
  } else {
    alignGiven = false;
  }
  if (!text.empty() && (text[0] == '+' || text[0] == '-' || text[0] == ' ')) {
    spec.sign = text[0];
    text = text.drop_front();
  }
  spec.alternate = text.consume_front("#");
  if (text.consume_front("0") && !fillGiven) {
    spec.fill = "0";
    if (value.isNumber() && !alignGiven)
      spec.align = '=';
  }
  bool tooLarge = false;
  spec.width = takeNumber(text, tooLarge).value_or(0);
  if (!text.empty() && (text[0] == ',' || text[0] == '_')) {
    spec.grouping = text[0];
    text = text.drop_front();
  }
  if (text.consume_front(".")) {
    std::optional<unsigned> precision = takeNumber(text, tooLarge);
    if (!precision)
      return invalidArgument("Format specifier missing precision");
    spec.precision = static_cast<int>(*precision);
  }
  if (tooLarge)
    return unsupported(fmt::format("width and precision of a format specifier are limited to {}", maxFormatNumber));
  if (text.size() > 1)
    return invalidArgument(
        fmt::format("Invalid format specifier '{}' for object of type '{}'", whole.str(), value.typeName().str()));
  if (!text.empty())
    spec.type = text[0];
  return spec;
}

Status unknownCode(char code, const ConstValue &value) {
  return invalidArgument(fmt::format("Unknown format code '{}' for object of type '{}'", code, value.typeName().str()));
}

size_t codePoints(llvm::StringRef text) {
  return static_cast<size_t>(llvm::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string repeat(const std::string &piece, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i)
    out += piece;
  return out;
}

/// Puts a separator between groups of digits, and zeros before them until at least minWidth characters.
std::string group(llvm::StringRef digits, char separator, size_t groupSize, size_t minWidth) {
  std::string reversed;
  size_t used = 0;
  for (; used < digits.size() || reversed.size() < minWidth; ++used) {
    if (used && used % groupSize == 0)
      reversed += separator;
    reversed += used < digits.size() ? digits[digits.size() - 1 - used] : '0';
  }
  return {reversed.rbegin(), reversed.rend()};
}

std::string layOut(const NumberParts &number, const FormatSpec &spec) {
  bool isRadix = spec.type && llvm::StringRef("boxX").contains(spec.type);
  std::string digits = number.digits;
  size_t others = number.sign.size() + number.prefix.size() + number.tail.size();
  if (spec.grouping && !digits.empty() && llvm::isHexDigit(digits[0])) {
    bool zeros = spec.fill == "0" && spec.align == '=';
    digits = group(digits, spec.grouping, isRadix ? 4 : 3, zeros && spec.width > others ? spec.width - others : 0);
  }
  size_t length = others + digits.size();
  size_t missing = spec.width > length ? spec.width - length : 0;
  std::string head = number.sign + number.prefix, rest = digits + number.tail;
  switch (spec.align) {
  case '<': return head + rest + repeat(spec.fill, missing);
  case '=': return head + repeat(spec.fill, missing) + rest;
  case '^': return repeat(spec.fill, missing / 2) + head + rest + repeat(spec.fill, missing - missing / 2);
  default: return repeat(spec.fill, missing) + head + rest;
  }
}

std::string signText(bool negative, const FormatSpec &spec) {
  if (negative)
    return "-";
  return spec.sign == '+' || spec.sign == ' ' ? std::string(1, spec.sign) : "";
}

std::string printFloat(const char *form, int precision, double value) {
  int size = std::snprintf(nullptr, 0, form, precision, value);
  std::string text(static_cast<size_t>(size), '\0');
  std::snprintf(text.data(), text.size() + 1, form, precision, value);
  return text;
}

/// The type "no type but a precision": like 'g', but with ".0" on whole numbers and one digit less before exponents.
std::string printShort(double value, int precision) {
  precision = std::max(precision, 1);
  std::string scientific = printFloat("%.*e", precision - 1, value);
  llvm::StringRef exponentText = llvm::StringRef(scientific).split('e').second;
  int exponent = 0;
  exponentText.consume_front("+");
  exponentText.getAsInteger(10, exponent);
  if (exponent + 1 > -4 && exponent + 1 <= precision - 1) {
    std::string fixed = printFloat("%.*f", precision - 1 - exponent, value);
    llvm::StringRef trimmed = llvm::StringRef(fixed).contains('.') ? llvm::StringRef(fixed).rtrim('0') : fixed;
    return trimmed.ends_with(".") ? trimmed.str() + "0" : trimmed.contains('.') ? trimmed.str() : trimmed.str() + ".0";
  }
  auto [mantissa, rest] = llvm::StringRef(scientific).split('e');
  if (mantissa.contains('.'))
    mantissa = mantissa.rtrim('0').rtrim('.');
  return mantissa.str() + "e" + rest.str();
}

Expected<std::string> formatFloat(const ConstValue &original, double value, FormatSpec spec) {
  double magnitude = std::fabs(value);
  char type = spec.type;
  if (type && !llvm::StringRef("eEfFgGn%").contains(type))
    return unknownCode(type, original);
  std::string text;
  bool percent = type == '%';
  if (percent)
    magnitude *= 100.0;
  if (!std::isfinite(magnitude)) {
    text = std::isnan(magnitude) ? "nan" : "inf";
    if (type && llvm::StringRef("EFG").contains(type))
      text = llvm::StringRef(text).upper();
  } else {
    int precision = spec.precision < 0 ? 6 : spec.precision;
    switch (type) {
    case 0: text = spec.precision < 0 ? reprDouble(magnitude) : printShort(magnitude, spec.precision); break;
    case 'e': text = printFloat(spec.alternate ? "%#.*e" : "%.*e", precision, magnitude); break;
    case 'E': text = printFloat(spec.alternate ? "%#.*E" : "%.*E", precision, magnitude); break;
    case 'f':
    case 'F':
    case '%': text = printFloat(spec.alternate ? "%#.*f" : "%.*f", precision, magnitude); break;
    case 'G': text = printFloat(spec.alternate ? "%#.*G" : "%.*G", precision, magnitude); break;
    default: text = printFloat(spec.alternate ? "%#.*g" : "%.*g", precision, magnitude); break;
    }
  }
  NumberParts number;
  number.sign = signText(std::signbit(value) && !std::isnan(value), spec);
  size_t wholeEnd = std::min(text.find_first_not_of("0123456789"), text.size());
  number.digits = text.substr(0, wholeEnd);
  number.tail = text.substr(wholeEnd) + (percent ? "%" : "");
  return layOut(number, spec);
}

Expected<std::string> formatString(const ConstValue &original, const FormatSpec &spec) {
  if (spec.type && spec.type != 's')
    return unknownCode(spec.type, original);
  if (spec.sign)
    return invalidArgument(spec.sign == ' ' ? "Space not allowed in string format specifier"
                                            : "Sign not allowed in string format specifier");
  if (spec.alternate)
    return invalidArgument("Alternate form (#) not allowed in string format specifier");
  if (spec.align == '=')
    return invalidArgument("'=' alignment not allowed in string format specifier");
  if (spec.grouping)
    return invalidArgument(fmt::format("Cannot specify '{}' with 's'.", spec.grouping));
  std::string text = original.getString();
  if (spec.precision >= 0) {
    size_t end = 0;
    for (int left = spec.precision; end < text.size(); ++end)
      if ((text[end] & 0xc0) != 0x80 && left-- == 0)
        break;
    text.resize(end);
  }
  size_t length = codePoints(text);
  size_t missing = spec.width > length ? spec.width - length : 0;
  if (spec.align == '>')
    return repeat(spec.fill, missing) + text;
  if (spec.align == '^')
    return repeat(spec.fill, missing / 2) + text + repeat(spec.fill, missing - missing / 2);
  return text + repeat(spec.fill, missing);
}

/// The character with the number.
Expected<std::string> formatCharacter(const ConstValue &original, FormatSpec spec) {
  for (const auto &[isGiven, what] : {std::pair(spec.sign != 0, "Sign"), std::pair(spec.alternate, "Alternate form (#)")})
    if (isGiven)
      return invalidArgument(fmt::format("{} not allowed with integer format specifier 'c'", what));
  if (spec.grouping)
    return invalidArgument(fmt::format("Cannot specify '{}' with 'c'.", spec.grouping));
  const std::optional<int64_t> code = original.toInt64();
  if (!code || *code < 0 || *code > 0x10ffff)
    return invalidArgument("%c arg not in range(0x110000)");
  char bytes[UNI_MAX_UTF8_BYTES_PER_CODE_POINT], *end = bytes;
  if (!llvm::ConvertCodePointToUTF8(static_cast<unsigned>(*code), end))
    return invalidArgument(fmt::format("the surrogate {:#x} is no character at compile time", *code));
  spec.type = 's';
  if (spec.align != '<' && spec.align != '^')
    spec.align = '>';
  return formatString(ConstValue::string(std::string(bytes, end)), spec);
}

Expected<std::string> formatInt(const ConstValue &original, const FormatSpec &spec) {
  if (spec.type && llvm::StringRef("eEfFgG%").contains(spec.type)) {
    DITRON_ASSIGN_OR_RETURN(double value, original.toDouble());
    return formatFloat(original, value, spec);
  }
  if (spec.precision >= 0)
    return invalidArgument("Precision not allowed in integer format specifier");
  if (spec.grouping == ',' && spec.type && llvm::StringRef("boxX").contains(spec.type))
    return invalidArgument(fmt::format("Cannot specify ',' with '{}'.", spec.type));
  if (spec.type == 'c')
    return formatCharacter(original, spec);
  BigInt value = original.getInt();
  BigInt magnitude = value.abs();
  NumberParts number;
  number.sign = signText(value.isNegative(), spec);
  switch (spec.type) {
  case 0:
  case 'd':
  case 'n': number.digits = magnitude.toString(); break;
  case 'b': number.digits = magnitude.toString(2); break;
  case 'o': number.digits = magnitude.toString(8); break;
  case 'x': number.digits = magnitude.toString(16); break;
  case 'X': number.digits = llvm::StringRef(magnitude.toString(16)).upper(); break;
  default: return unknownCode(spec.type, original);
  }
  if (number.digits.empty())
    return invalidArgument(
        fmt::format("Exceeds the limit ({} digits) for integer string conversion", BigInt::maxDecimalDigits));
  if (spec.alternate && spec.type && llvm::StringRef("boxX").contains(spec.type))
    number.prefix = std::string("0") + spec.type;
  return layOut(number, spec);
}

} // namespace

Expected<std::string> format(const ConstValue &value, llvm::StringRef text) {
  if (text.empty())
    return value.str();
  if (!value.isNumber() && !value.isStr())
    return invalidArgument(fmt::format("unsupported format string passed to {}.__format__", value.typeName().str()));
  DITRON_ASSIGN_OR_RETURN(FormatSpec spec, parseSpec(text, value));
  if (value.isStr())
    return formatString(value, spec);
  if (value.isFloat())
    return formatFloat(value, value.getFloat(), spec);
  return formatInt(value, spec);
}

} // namespace ditron::frontend
