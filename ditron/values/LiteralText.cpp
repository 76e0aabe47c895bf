//===- LiteralText.cpp - Scalars as text --------------------------------------------------------------------------===//
//
// Parsing, and storing as elements of an array.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/values/LiteralText.h"

#include "ditron/frontend/Signature.h"
#include "ditron/support/InputFile.h"
#include "ditron/support/Npy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace ditron::values {

using runtime::Argument;

Status badArgument(std::string_view name, std::string_view text, std::string_view problem) {
  return invalidArgument(fmt::format("argument {}='{}': {}", name, text, problem));
}

namespace {

/// The whole text as an integer in decimal or hexadecimal.
std::optional<Argument> parseInteger(std::string_view text) {
  const bool negative = text.starts_with("-");
  std::string_view digits = text.substr(negative || text.starts_with("+"));
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
    base = 16;
  }
  uint64_t magnitude = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  if (negative)
    return magnitude <= uint64_t(1) << 63 ? std::optional<Argument>(static_cast<int64_t>(-magnitude)) : std::nullopt;
  return magnitude <= INT64_MAX ? Argument(static_cast<int64_t>(magnitude)) : Argument(magnitude);
}

std::optional<double> parseFloat(std::string_view text) {
  const std::string_view unsignedText = text.substr(text.starts_with("-") || text.starts_with("+"));
  if (unsignedText.empty() || !(std::isdigit(static_cast<unsigned char>(unsignedText[0])) || unsignedText[0] == '.' ||
                                unsignedText == "inf" || unsignedText == "nan"))
    return std::nullopt;
  const std::string copy(text);
  char *end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size() ? std::optional<double>(value) : std::nullopt;
}

/// A finite number that not even fp64 holds: strtod makes an infinity of it.
bool isBeyondDoubles(std::string_view text) {
  const std::optional<double> value = parseFloat(text);
  return value && std::isinf(*value) && !text.ends_with("inf") && !isIntegerText(text);
}

std::optional<bool> parseBool(std::string_view text) {
  if (text == "true" || text == "True")
    return true;
  if (text == "false" || text == "False")
    return false;
  return std::nullopt;
}

uint64_t largestInteger(DataType type) {
  const unsigned width = 8 * sizeOf(type);
  return isSignedInteger(type) ? (uint64_t(1) << (width - 1)) - 1 : ~uint64_t(0) >> (64 - width);
}

/// Fraction bits, and the exponent of the largest value.
std::pair<int, int> fractionAndExponent(DataType type) {
  switch (type) {
  case DataType::F8E5: return {2, 15};
  case DataType::F8E4NV: return {3, 8};
  case DataType::F16: return {10, 15};
  case DataType::BF16: return {7, 127};
  case DataType::F32: return {23, 127};
  default: return {52, 1023};
  }
}

double largestFloat(DataType type) {
  // fp8e4nv has NaN where its largest fraction would be.
  const auto [fraction, exponent] = fractionAndExponent(type);
  const double steps = type == DataType::F8E4NV ? 2 : 1;
  return std::ldexp(2 - steps * std::ldexp(1.0, -fraction), exponent);
}

/// The first value that no longer rounds to the largest: half a step beyond it.
double roundsToLargest(DataType type) {
  const auto [fraction, exponent] = fractionAndExponent(type);
  return largestFloat(type) + std::ldexp(0.5, exponent - fraction);
}

/// A file that may hold a scalar: one that never ends holds none.
Expected<std::string> readFile(const std::string &path) {
  constexpr uint64_t mostBytes = 65536;
  DITRON_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path, ""));
  std::string text(mostBytes + 1, 0);
  DITRON_ASSIGN_OR_RETURN(const uint64_t got, file.read(text.data(), text.size()));
  text.resize(got);
  if (text.empty())
    return notFound(fmt::format("cannot read '{}': it is empty", path));
  if (text.size() > mostBytes)
    return invalidArgument(fmt::format("'{}' has more than {} bytes, which no scalar has", path, mostBytes));
  return text;
}

/// The one element of an array as a value of its type.
Expected<Argument> elementOf(const NpyArray &array, const std::string &path) {
  if (array.elementCount() != 1)
    return invalidArgument(fmt::format("a scalar has one element, but '{}' has {} ({})", path, array.elementCount(),
                                       shapeToString(array.shape)));
  if (array.type == DataType::I1)
    return Argument::typed(array.type, array.data[0] != std::byte(0));
  if (isFloat(array.type))
    return Argument::typed(array.type, loadElement(array.type, array.data.data()));
  if (array.type == DataType::U64) {
    uint64_t value = 0;
    std::memcpy(&value, array.data.data(), sizeof value);
    return Argument::typed(array.type, value);
  }
  int64_t value = 0;
  if (array.type == DataType::I64)
    std::memcpy(&value, array.data.data(), sizeof value);
  else
    value = static_cast<int64_t>(loadElement(array.type, array.data.data()));
  return Argument::typed(array.type, value);
}

/// The file of scalar@FILE: an array, or the text of a literal.
using ScalarFile = std::variant<NpyArray, std::string>;
Expected<ScalarFile> readScalarFile(std::string_view text) {
  const std::string path(text.substr(scalarMark.size()));
  if (path.empty())
    return invalidArgument("a file name is missing after '@'");
  DITRON_ASSIGN_OR_RETURN(std::string content, readFile(path));
  if (content.starts_with("\x93NUMPY")) {
    DITRON_ASSIGN_OR_RETURN(NpyArray array, parseNpy(std::as_bytes(std::span(content)), path));
    return ScalarFile(std::move(array));
  }
  const size_t begin = content.find_first_not_of(" \t\r\n"), end = content.find_last_not_of(" \t\r\n");
  return ScalarFile(begin == std::string::npos ? "" : content.substr(begin, end + 1 - begin));
}

} // namespace

bool isIntegerText(std::string_view text) {
  text.remove_prefix(text.starts_with("-") || text.starts_with("+"));
  const bool isHexadecimal = text.starts_with("0x") || text.starts_with("0X");
  text.remove_prefix(isHexadecimal ? 2 : 0);
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return isHexadecimal ? std::isxdigit(c) : std::isdigit(c);
  });
}

std::optional<Argument> parseLiteral(std::string_view text) {
  if (text == "None" || text == "none")
    return Argument(runtime::None());
  if (std::optional<bool> value = parseBool(text))
    return Argument(*value);
  if (std::optional<Argument> value = parseInteger(text))
    return value;
  if (std::optional<double> value = parseFloat(text); value && !isIntegerText(text) && !isBeyondDoubles(text))
    return Argument(*value);
  return std::nullopt;
}

std::optional<std::string> tooLargeLiteral(std::string_view text) {
  if (isBeyondDoubles(text))
    return outsideOf(DataType::F64, std::string(text)).message();
  if (isIntegerText(text) && !parseInteger(text))
    return fmt::format("the integer does not fit into 64 bits; accepted are {} to {}", INT64_MIN, UINT64_MAX);
  return std::nullopt;
}

Expected<std::optional<Argument>> parseScalar(std::string_view name, std::string_view text) {
  if (std::optional<std::string> problem = tooLargeLiteral(text))
    return badArgument(name, text, *problem);
  std::optional<Argument> literal = parseLiteral(text);
  if (!literal || !literal->is<double>())
    return literal;
  std::byte scratch[4];
  if (Status stored = storeFloat(DataType::F32, literal->get<double>(), scratch); !stored.isOk())
    return badArgument(name, text, fmt::format("{}; a float without a type is fp32; write fp64:{}", stored.message(), text));
  return literal;
}

Expected<Argument> parseTypedLiteral(std::string_view name, std::string_view text, size_t colon) {
  DITRON_ASSIGN_OR_RETURN(DataType type, parseDataTypeOrError(text.substr(0, colon)));
  const std::string_view literal = text.substr(colon + 1);
  const std::optional<Argument> value = parseLiteral(literal);
  const bool fits = value && (type == DataType::I1 ? value->is<bool>()
                              : isFloat(type)      ? value->is<double>() || value->isInteger()
                                                   : value->isInteger());
  if (std::optional<std::string> problem = tooLargeLiteral(literal))
    return badArgument(name, text, *problem);
  if (!fits)
    return badArgument(name, text, fmt::format("'{}' is no literal of type {}", literal, toString(type)));
  std::byte scratch[8];
  if (Status stored = storeLiteral(type, *value, scratch); !stored.isOk())
    return badArgument(name, text, stored.message());
  return Argument::typed(type, *value);
}

Expected<Argument> readScalar(std::string_view name, std::string_view text) {
  Expected<ScalarFile> file = readScalarFile(text);
  if (!file.isOk())
    return file.status().withContext(fmt::format("argument {}='{}'", name, text));
  if (const auto *array = std::get_if<NpyArray>(&*file)) {
    Expected<Argument> element = elementOf(*array, std::string(text.substr(scalarMark.size())));
    return element.isOk() ? element : element.status().withContext(fmt::format("argument {}", name));
  }
  const std::string &content = std::get<std::string>(*file);
  DITRON_ASSIGN_OR_RETURN(std::optional<Argument> literal, parseScalar(name, content));
  if (literal)
    return std::move(*literal);
  const size_t colon = content.find(':');
  if (colon != std::string::npos && parseDataType(content.substr(0, colon)))
    return parseTypedLiteral(name, content, colon);
  return badArgument(name, text, fmt::format("the file holds '{}'; accepted are an array of one element (.npy) or a "
                                             "literal: 3, 2.5, true, None, i64:7, fp32:1.5",
                                             content.substr(0, 40)));
}

Expected<Argument> parseConstexprText(std::string_view name, const std::string &text) {
  if (text.starts_with(scalarMark)) {
    Expected<ScalarFile> file = readScalarFile(text);
    if (!file.isOk())
      return file.status().withContext(fmt::format("constexpr {}='{}'", name, text));
    if (const auto *content = std::get_if<std::string>(&*file); content && !content->starts_with(scalarMark))
      return parseConstexprText(name, *content);
    DITRON_ASSIGN_OR_RETURN(const Argument element, readScalar(name, text));
    // A compile-time value is one of Python's, without a width.
    return element.is<bool>()      ? Argument(element.get<bool>())
           : element.is<double>()  ? Argument(element.get<double>())
           : element.is<int64_t>() ? Argument(element.get<int64_t>())
                                   : Argument(element.get<uint64_t>());
  }
  Expected<frontend::ConstexprArgument> parsed = frontend::parseConstexpr(text);
  if (!parsed.isOk()) {
    // The spelling of --arg is accepted here too.
    if (std::optional<bool> value = parseBool(text))
      return Argument(*value);
    return parsed.status().withContext(fmt::format("constexpr {}", name));
  }
  if (const auto *type = std::get_if<frontend::LangType>(&*parsed)) {
    if (std::optional<DataType> dataType = parseDataType(type->signatureText()))
      return Argument(*dataType);
    return invalidArgument(fmt::format("constexpr {}='{}': this type cannot be a value", name, text));
  }
  const auto &value = std::get<frontend::ConstValue>(*parsed);
  if (value.isNone())
    return Argument(runtime::None());
  if (value.isBool())
    return Argument(value.getBool());
  if (value.isFloat())
    return Argument(value.getFloat());
  if (value.isStr())
    return Argument(value.getString());
  if (std::optional<int64_t> integer = value.toInt64())
    return Argument(*integer);
  return invalidArgument(fmt::format("constexpr {}='{}': the value does not fit into 64 bits", name, text));
}

double asDouble(const Argument &value) {
  return value.is<double>()    ? value.get<double>()
         : value.is<int64_t>() ? static_cast<double>(value.get<int64_t>())
                               : static_cast<double>(value.get<uint64_t>());
}

std::string rangeText(DataType type) {
  if (type == DataType::I1)
    return "true and false";
  if (isFloat(type)) {
    const double largest = largestFloat(type);
    return fmt::format("{:.9g} to {:.9g}", -largest, largest);
  }
  const uint64_t most = largestInteger(type);
  return fmt::format("{} to {}", isSignedInteger(type) ? -static_cast<int64_t>(most) - 1 : 0, most);
}

Status outsideOf(DataType type, const std::string &value) {
  return invalidArgument(fmt::format("{} is outside of {}; accepted are {}", value, toString(type), rangeText(type)));
}

Status storeFloat(DataType type, double value, std::byte *address) {
  storeElement(type, address, value);
  if (!std::isfinite(value) || std::abs(value) <= largestFloat(type))
    return Status::ok();
  // What lies nearer to the largest value than to the next step beyond it is rounded, as everywhere.
  return std::abs(value) < roundsToLargest(type) && std::isfinite(loadElement(type, address)) ? Status::ok() : outsideOf(type, fmt::format("{:.9g}", value));
}

Status storeLiteral(DataType type, const Argument &value, std::byte *address) {
  const auto refused = [&] {
    return invalidArgument(fmt::format("{} is no value of type {}; accepted are {}", value.describe(), toString(type),
                                       isFloat(type) ? "numbers" : rangeText(type)));
  };
  if (type == DataType::I1) {
    if (!value.is<bool>())
      return refused();
    *address = std::byte(value.get<bool>());
    return Status::ok();
  }
  if (isFloat(type)) {
    if (!value.is<double>() && !value.isInteger())
      return refused();
    return storeFloat(type, asDouble(value), address);
  }
  if (!value.isInteger())
    return refused();
  const uint64_t bits = value.integerBits();
  const bool negative = value.is<int64_t>() && value.get<int64_t>() < 0;
  const bool fits = negative ? isSignedInteger(type) && ~bits <= largestInteger(type) : bits <= largestInteger(type);
  if (!fits)
    return outsideOf(type, negative ? fmt::format("{}", static_cast<int64_t>(bits)) : fmt::format("{}", bits));
  std::memcpy(address, &bits, sizeOf(type)); // little endian, as all of our hosts
  return Status::ok();
}

} // namespace ditron::values
