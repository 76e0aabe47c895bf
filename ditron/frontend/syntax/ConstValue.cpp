//===- ConstValue.cpp - Compile-time scalars: construction, truth, text -------------------------------------------===//
//
// The operators are in ConstArithmetic.cpp, conversions between types in ConstConversion.cpp, format() in
// ConstFormat.cpp.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/ConstValue.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"
#include <bit>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace ditron::frontend {

llvm::StringRef spelling(BinaryOp op) {
  switch (op) {
  case BinaryOp::Add: return "+";
  case BinaryOp::Sub: return "-";
  case BinaryOp::Mult: return "*";
  case BinaryOp::MatMult: return "@";
  case BinaryOp::Div: return "/";
  case BinaryOp::FloorDiv: return "//";
  case BinaryOp::Mod: return "%";
  case BinaryOp::Pow: return "**";
  case BinaryOp::LShift: return "<<";
  case BinaryOp::RShift: return ">>";
  case BinaryOp::BitOr: return "|";
  case BinaryOp::BitXor: return "^";
  case BinaryOp::BitAnd: return "&";
  }
  return "?";
}

llvm::StringRef spelling(UnaryOp op) {
  switch (op) {
  case UnaryOp::Invert: return "~";
  case UnaryOp::Not: return "not";
  case UnaryOp::UAdd: return "+";
  case UnaryOp::USub: return "-";
  }
  return "?";
}

llvm::StringRef spelling(CompareOp op) {
  switch (op) {
  case CompareOp::Eq: return "==";
  case CompareOp::NotEq: return "!=";
  case CompareOp::Lt: return "<";
  case CompareOp::LtE: return "<=";
  case CompareOp::Gt: return ">";
  case CompareOp::GtE: return ">=";
  case CompareOp::Is: return "is";
  case CompareOp::IsNot: return "is not";
  case CompareOp::In: return "in";
  case CompareOp::NotIn: return "not in";
  }
  return "?";
}

ConstValue ConstValue::ellipsis() { return {Kind::Ellipsis, std::monostate()}; }
ConstValue ConstValue::boolean(bool value) { return {Kind::Bool, value}; }
ConstValue ConstValue::integer(BigInt value) { return {Kind::Int, std::move(value)}; }
ConstValue ConstValue::floating(double value) { return {Kind::Float, value}; }
ConstValue ConstValue::string(std::string text) { return {Kind::Str, std::move(text)}; }
ConstValue ConstValue::bytes(std::string data) { return {Kind::Bytes, std::move(data)}; }

BigInt ConstValue::getInt() const { return isBool() ? BigInt(getBool()) : std::get<BigInt>(storage); }

std::optional<int64_t> ConstValue::toInt64() const {
  if (!isIntegral())
    return std::nullopt;
  return getInt().toInt64();
}

llvm::StringRef ConstValue::typeName() const {
  switch (valueKind) {
  case Kind::None: return "NoneType";
  case Kind::Ellipsis: return "ellipsis";
  case Kind::Bool: return "bool";
  case Kind::Int: return "int";
  case Kind::Float: return "float";
  case Kind::Str: return "str";
  case Kind::Bytes: return "bytes";
  }
  return "?";
}

bool ConstValue::isTrue() const {
  switch (valueKind) {
  case Kind::None: return false;
  case Kind::Ellipsis: return true;
  case Kind::Bool: return getBool();
  case Kind::Int: return !std::get<BigInt>(storage).isZero();
  case Kind::Float: return getFloat() != 0.0;
  case Kind::Str:
  case Kind::Bytes: return !getString().empty();
  }
  return false;
}

std::string reprDouble(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  // to_chars gives the shortest digits that read back the same: d.ddde[+-]xx.
  char buffer[40];
  auto result = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  llvm::StringRef text(buffer, static_cast<size_t>(result.ptr - buffer));
  bool negative = text.consume_front("-");
  auto [mantissa, exponentText] = text.split('e');
  int exponent = 0;
  exponentText.consume_front("+");
  exponentText.getAsInteger(10, exponent);
  std::string digits;
  for (char c : mantissa)
    if (c != '.')
      digits += c;
  std::string out = negative ? "-" : "";
  int pointAt = exponent + 1; // digits before the decimal point
  int count = static_cast<int>(digits.size());
  if (pointAt > 16 || pointAt <= -4) {
    out += digits.substr(0, 1);
    if (count > 1)
      out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (pointAt <= 0)
    return out + "0." + std::string(static_cast<size_t>(-pointAt), '0') + digits;
  if (count <= pointAt)
    return out + digits + std::string(static_cast<size_t>(pointAt - count), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(pointAt)) + "." + digits.substr(static_cast<size_t>(pointAt));
}

bool isPrintable(uint32_t codePoint) {
  bool isSpaceSeparator = codePoint == 0xa0 || codePoint == 0x1680 || (codePoint >= 0x2000 && codePoint <= 0x200a) ||
                          codePoint == 0x2028 || codePoint == 0x2029 || codePoint == 0x202f || codePoint == 0x205f ||
                          codePoint == 0x3000;
  return !isSpaceSeparator && llvm::sys::unicode::isPrintable(static_cast<int>(codePoint)) &&
         !llvm::sys::unicode::isFormatting(static_cast<int>(codePoint));
}

static std::string quote(llvm::StringRef text, bool isBytes) {
  char mark = text.contains('\'') && !text.contains('"') ? '"' : '\'';
  std::string out = isBytes ? "b" : "";
  out += mark;
  for (size_t i = 0; i < text.size();) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c < 0x80 || isBytes) {
      ++i;
      if (c == '\\' || c == static_cast<unsigned char>(mark))
        (out += '\\') += static_cast<char>(c);
      else if (c == '\n')
        out += "\\n";
      else if (c == '\r')
        out += "\\r";
      else if (c == '\t')
        out += "\\t";
      else if (c < 0x20 || c >= 0x7f)
        out += fmt::format("\\x{:02x}", c);
      else
        out += static_cast<char>(c);
      continue;
    }
    const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data() + i), *next = begin;
    llvm::UTF32 codePoint = 0;
    const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.data() + text.size());
    if (llvm::convertUTF8Sequence(&next, end, &codePoint, llvm::strictConversion) != llvm::conversionOK) {
      out += fmt::format("\\x{:02x}", c);
      ++i;
      continue;
    }
    size_t bytes = static_cast<size_t>(next - begin);
    if (isPrintable(codePoint))
      out += text.substr(i, bytes).str();
    else if (codePoint <= 0xff)
      out += fmt::format("\\x{:02x}", codePoint);
    else if (codePoint <= 0xffff)
      out += fmt::format("\\u{:04x}", codePoint);
    else
      out += fmt::format("\\U{:08x}", codePoint);
    i += bytes;
  }
  return out += mark;
}

std::string ConstValue::repr() const {
  switch (valueKind) {
  case Kind::None: return "None";
  case Kind::Ellipsis: return "Ellipsis";
  case Kind::Bool: return getBool() ? "True" : "False";
  case Kind::Int: {
    const BigInt &value = std::get<BigInt>(storage);
    std::string text = value.toString();
    if (!text.empty())
      return text;
    // More decimal digits than Python prints: it raises an error, a message of ours shows the bits.
    return fmt::format("{}0x{}", value.isNegative() ? "-" : "", value.abs().toString(16));
  }
  case Kind::Float: return reprDouble(getFloat());
  case Kind::Str: return quote(getString(), /*isBytes=*/false);
  case Kind::Bytes: return quote(getString(), /*isBytes=*/true);
  }
  return "?";
}

std::string ConstValue::str() const { return isStr() ? getString() : repr(); }

bool ConstValue::identical(const ConstValue &other) const {
  if (valueKind != other.valueKind)
    return false;
  if (isFloat()) {
    double a = getFloat(), b = other.getFloat();
    return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  }
  return storage == other.storage;
}

size_t ConstValue::hash() const {
  size_t content = 0;
  switch (valueKind) {
  case Kind::None:
  case Kind::Ellipsis: break;
  case Kind::Bool: content = getBool(); break;
  case Kind::Int: content = std::get<BigInt>(storage).hash(); break;
  case Kind::Float: content = std::isnan(getFloat()) ? 1 : std::bit_cast<uint64_t>(getFloat()); break;
  case Kind::Str:
  case Kind::Bytes: content = llvm::hash_value(llvm::StringRef(getString())); break;
  }
  return llvm::hash_combine(static_cast<int>(valueKind), content);
}

} // namespace ditron::frontend
