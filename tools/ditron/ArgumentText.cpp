//===- ArgumentText.cpp - Kernel arguments as text ----------------------------------------------------------------===//
//
// Parsing, and making the arrays that the text describes.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ArgumentText.h"

#include "ditron/frontend/Signature.h"
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <unistd.h>

namespace ditron::tool {

using runtime::Argument;

namespace {

constexpr std::string_view rankMark = "{rank}";
constexpr std::string_view outOfRange =
    "the integer does not fit into 64 bits; accepted are -9223372036854775808 to 18446744073709551615";
constexpr std::string_view acceptedForms = "accepted are a literal (3, 2.5, true, None, i64:7, fp32:1.5), @x.npy, "
                                           "bf16@x.npy, zeros:fp32[128,64] (also ones, arange, "
                                           "rand), symm: before an array, and desc[64,32]: before all for a tensor descriptor";

Status fail(std::string_view name, std::string_view text, std::string_view problem) {
  return invalidArgument(fmt::format("argument {}='{}': {}", name, text, problem));
}

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

std::optional<bool> parseBool(std::string_view text) {
  if (text == "true" || text == "True")
    return true;
  if (text == "false" || text == "False")
    return false;
  return std::nullopt;
}

/// Decimal or hexadecimal digits, with or without a sign.
bool isIntegerText(std::string_view text) {
  text.remove_prefix(text.starts_with("-") || text.starts_with("+"));
  const bool isHexadecimal = text.starts_with("0x") || text.starts_with("0X");
  text.remove_prefix(isHexadecimal ? 2 : 0);
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return isHexadecimal ? std::isxdigit(c) : std::isdigit(c);
  });
}

/// A literal without a type before it. Integers that do not fit into 64 bits are none, rather than floats.
std::optional<Argument> parseLiteral(std::string_view text) {
  if (text == "None" || text == "none")
    return Argument(runtime::None());
  if (std::optional<bool> value = parseBool(text))
    return Argument(*value);
  if (std::optional<Argument> value = parseInteger(text))
    return value;
  if (std::optional<double> value = parseFloat(text); value && !isIntegerText(text))
    return Argument(*value);
  return std::nullopt;
}

Expected<ArgumentText> parseTypedLiteral(std::string_view name, std::string_view text, size_t colon) {
  DITRON_ASSIGN_OR_RETURN(DataType type, parseDataTypeOrError(text.substr(0, colon)));
  const std::string_view literal = text.substr(colon + 1);
  const std::optional<Argument> value = parseLiteral(literal);
  const bool fits = value && (type == DataType::I1 ? value->is<bool>()
                              : isFloat(type)      ? value->is<double>() || value->isInteger()
                                                   : value->isInteger());
  if (!value && isIntegerText(literal))
    return fail(name, text, outOfRange);
  if (!fits)
    return fail(name, text, fmt::format("'{}' is no literal of type {}", literal, toString(type)));
  return ArgumentText(Argument::typed(type, *value));
}

Expected<std::vector<int64_t>> parseShape(std::string_view name, std::string_view text, std::string_view dims) {
  std::vector<int64_t> shape;
  while (true) {
    const size_t comma = std::min(dims.find(','), dims.size());
    std::string_view item = dims.substr(0, comma);
    while (!item.empty() && item.front() == ' ')
      item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ')
      item.remove_suffix(1);
    int64_t size = 0;
    auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), size);
    if (item.empty() || error != std::errc() || end != item.data() + item.size() || size < 0)
      return fail(name, text, fmt::format("'{}' is no size; write integers from 0, as in [128,64]", item));
    shape.push_back(size);
    if (comma == dims.size())
      return shape;
    dims.remove_prefix(comma + 1);
  }
}

struct GeneratorRow {
  std::string_view name;
  ArrayText::Source source;
};
constexpr GeneratorRow generators[] = {
    {"zeros", ArrayText::Source::Zeros},
    {"ones", ArrayText::Source::Ones},
    {"arange", ArrayText::Source::Arange},
    {"rand", ArrayText::Source::Random},
};

Expected<ArgumentText> parseGenerator(std::string_view name, std::string_view text, ArrayText array,
                                      std::string_view rest) {
  const size_t open = rest.find('[');
  if (open == std::string_view::npos || !rest.ends_with(']'))
    return fail(name, text, "write a type and a shape after the colon, as in zeros:fp32[128,64]");
  DITRON_ASSIGN_OR_RETURN(array.type, parseDataTypeOrError(rest.substr(0, open)));
  DITRON_ASSIGN_OR_RETURN(array.shape, parseShape(name, text, rest.substr(open + 1, rest.size() - open - 2)));
  return ArgumentText(std::move(array));
}

/// SplitMix64: small, and the same everywhere.
uint64_t nextRandom(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

double randomElement(DataType type, uint64_t &state) {
  const uint64_t bits = nextRandom(state);
  if (isFloat(type))
    return static_cast<double>(bits >> 40) / (1 << 23) - 1; // 24 bits in [-1, 1)
  if (type == DataType::I1)
    return static_cast<double>(bits & 1);
  return static_cast<double>(bits & 15) - (isSignedInteger(type) ? 8 : 0);
}

} // namespace

/// desc[SIZES]REST or desc[SIZES,nan]REST, where REST describes an array, with a colon before it unless it begins with '@'.
static Expected<ArgumentText> parseDescriptorText(std::string_view name, std::string_view text) {
  const size_t close = text.find(']');
  if (close == std::string_view::npos)
    return fail(name, text, "the tile's shape has no closing ']'; write desc[64,32]@x.npy");
  std::string_view block = text.substr(5, close - 5), rest = text.substr(close + 1);
  const bool fillNan = block.ends_with(",nan");
  if (fillNan)
    block.remove_suffix(4);
  DITRON_ASSIGN_OR_RETURN(std::vector<int64_t> shape, parseShape(name, text, block));
  if (rest.starts_with(':'))
    rest.remove_prefix(1);
  else if (!rest.starts_with('@'))
    return fail(name, text, "an array is missing after ']'; write desc[64,32]@x.npy or desc[64,32]:zeros:bf16[100,70]");
  DITRON_ASSIGN_OR_RETURN(ArgumentText described, parseArgumentText(name, rest));
  auto *array = std::get_if<ArrayText>(&described);
  if (!array || !array->block.empty())
    return fail(name, text, "a tensor descriptor describes an array; write desc[64,32]@x.npy");
  array->block = std::move(shape);
  array->fillNan = fillNan;
  return described;
}

Expected<ArgumentText> parseArgumentText(std::string_view name, std::string_view text) {
  if (text.starts_with("desc["))
    return parseDescriptorText(name, text);
  ArrayText array;
  std::string_view rest = text;
  if (rest.starts_with("symm:")) {
    array.symmetric = true;
    rest.remove_prefix(5);
  }
  // A type has no colon, and a path after '@' may have one.
  const size_t at = rest.find('@'), colon = rest.find(':');
  if (at != std::string_view::npos && (colon == std::string_view::npos || at < colon)) {
    array.source = ArrayText::Source::File;
    if (at > 0) {
      Expected<DataType> type = parseDataTypeOrError(rest.substr(0, at));
      if (!type.isOk())
        return fail(name, text, type.status().message());
      array.type = *type;
    }
    array.path = rest.substr(at + 1);
    if (array.path.empty())
      return fail(name, text, "a file name is missing after '@'");
    return ArgumentText(std::move(array));
  }
  if (colon != std::string_view::npos) {
    const std::string_view word = rest.substr(0, colon);
    for (const GeneratorRow &row : generators) {
      if (row.name != word)
        continue;
      array.source = row.source;
      Expected<ArgumentText> parsed = parseGenerator(name, text, std::move(array), rest.substr(colon + 1));
      if (!parsed.isOk() && !parsed.status().message().starts_with("argument"))
        return fail(name, text, parsed.status().message());
      return parsed;
    }
    if (!array.symmetric && parseDataType(word))
      return parseTypedLiteral(name, text, colon);
    std::vector<std::string> known = dataTypeNames();
    for (const GeneratorRow &row : generators)
      known.emplace_back(row.name);
    known.emplace_back("symm");
    return fail(name, text, fmt::format("'{}' is not known{}; {}", word, didYouMean(word, known), acceptedForms));
  }
  if (array.symmetric)
    return fail(name, text, "symm: takes an array, as in symm:@x.npy or symm:zeros:fp32[128,64]");
  if (std::optional<Argument> literal = parseLiteral(text))
    return ArgumentText(std::move(*literal));
  if (isIntegerText(text))
    return fail(name, text, outOfRange);
  return fail(name, text, acceptedForms);
}

Expected<Argument> parseConstexprText(std::string_view name, const std::string &text) {
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

Expected<OutputText> parseOutputText(std::string_view name, std::string_view text) {
  OutputText output;
  const size_t at = text.find('@');
  if (at != std::string_view::npos && at > 0) {
    Expected<DataType> type = parseDataTypeOrError(text.substr(0, at));
    if (!type.isOk())
      return type.status().withContext(fmt::format("output {}='{}'", name, text));
    output.type = *type;
  }
  output.path = at == std::string_view::npos ? text : text.substr(at + 1);
  if (output.path.empty())
    return invalidArgument(fmt::format("output {}='{}': a file name is missing", name, text));
  return output;
}

bool hasRank(const std::string &path) { return path.find(rankMark) != std::string::npos; }

std::string pathForRank(const std::string &path, uint32_t rank) {
  std::string result = path;
  const std::string number = std::to_string(rank);
  for (size_t at = result.find(rankMark); at != std::string::npos; at = result.find(rankMark, at + number.size()))
    result.replace(at, rankMark.size(), number);
  return result;
}

Expected<NpyArray> interpretArray(NpyArray array, DataType type, std::string_view name) {
  if (array.type == type)
    return array;
  // Formats that NumPy has no name for travel as words.
  const bool isWord = isInteger(array.type) && array.type != DataType::I1 && sizeOf(array.type) == sizeOf(type);
  if (isFloat(type) && isWord && sizeOf(type) <= 2) {
    array.type = type;
    return array;
  }
  if (isFloat(type) && isFloat(array.type)) {
    NpyArray converted{type, array.shape,
                       std::vector<std::byte>(static_cast<size_t>(array.elementCount()) * sizeOf(type))};
    for (int64_t i = 0; i < array.elementCount(); ++i)
      storeElement(type, converted.data.data() + i * sizeOf(type),
                   loadElement(array.type, array.data.data() + i * sizeOf(array.type)));
    return converted;
  }
  return invalidArgument(fmt::format("argument {}: the array has elements of type {}, which cannot be read as {}", name,
                                     toString(array.type), toString(type)));
}

Expected<NpyArray> ArrayText::make(uint32_t rank, uint64_t seed, std::string_view name) const {
  if (source == Source::File) {
    DITRON_ASSIGN_OR_RETURN(NpyArray array, readNpy(pathForRank(path, rank)));
    return type ? interpretArray(std::move(array), *type, name) : Expected<NpyArray>(std::move(array));
  }
  const uint64_t memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t bytes = sizeOf(*type);
  for (int64_t size : shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes) || bytes > memory)
      return Status(StatusCode::ResourceExhausted,
                    fmt::format("argument {}: an array of {} elements does not fit this machine's memory of {} bytes", name,
                                shapeToString(shape), memory));
  NpyArray array{*type, shape, std::vector<std::byte>(bytes)};
  if (source == Source::Zeros)
    return array;
  uint64_t state = seed * 1000003 + rank;
  for (char c : name)
    state = state * 131 + static_cast<unsigned char>(c);
  for (int64_t i = 0; i < array.elementCount(); ++i) {
    const double value = source == Source::Ones     ? 1
                         : source == Source::Arange ? static_cast<double>(i)
                                                    : randomElement(*type, state);
    storeElement(*type, array.data.data() + i * sizeOf(*type), value);
  }
  return array;
}

} // namespace ditron::tool
