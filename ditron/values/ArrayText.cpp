//===- ArrayText.cpp - Arrays as text -----------------------------------------------------------------------------===//
//
// Parsing generators and lists, and making the arrays that the text describes.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/values/ArrayText.h"

#include "ditron/values/LiteralText.h"
#include "ditron/values/TextPieces.h"
#include "ditron/values/TupleText.h"
#include "ditron/values/OutputText.h"

#include "ditron/support/HostMemory.h"
#include "ditron/support/Plural.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace ditron::values {

using runtime::Argument;

namespace {

constexpr size_t mostDimensions = 8;

struct GeneratorRow {
  std::string_view name;
  ArrayText::Source source;
  size_t least, most;    ///< How many parameters it takes in parentheses.
  std::string_view form; ///< With all of them.
};
constexpr GeneratorRow generators[] = {
    {"zeros", ArrayText::Source::Zeros, 0, 0, "zeros:fp32[128,64]"},
    {"ones", ArrayText::Source::Ones, 0, 0, "ones:fp32[128,64]"},
    {"full", ArrayText::Source::Full, 1, 1, "full(2.5):fp32[128,64]"},
    {"arange", ArrayText::Source::Arange, 0, 2, "arange:, arange(FIRST): or arange(FIRST,STEP):i32[128]"},
    {"rand", ArrayText::Source::Random, 0, 1, "rand: or rand(SEED):fp32[128]"},
};

const GeneratorRow *findGenerator(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('('));
  for (const GeneratorRow &row : generators)
    if (row.name == name && (name.size() == word.size() || word.ends_with(')')))
      return &row;
  return nullptr;
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

__int128 wideInteger(const Argument &value) {
  return value.is<uint64_t>() ? static_cast<__int128>(value.get<uint64_t>())
                              : static_cast<__int128>(static_cast<int64_t>(value.integerBits()));
}

/// Element i of arange; exact for 64-bit integers.
Status storeArange(DataType type, std::byte *address, const std::vector<Argument> &parameters, int64_t i) {
  if (isFloat(type)) {
    const double first = parameters.empty() ? 0 : asDouble(parameters[0]);
    const double step = parameters.size() < 2 ? 1 : asDouble(parameters[1]);
    return storeFloat(type, first + step * static_cast<double>(i), address);
  }
  const __int128 first = parameters.empty() ? 0 : wideInteger(parameters[0]);
  const __int128 step = parameters.size() < 2 ? 1 : wideInteger(parameters[1]);
  __int128 value = 0;
  if (__builtin_mul_overflow(step, static_cast<__int128>(i), &value) || __builtin_add_overflow(value, first, &value) ||
      value > UINT64_MAX || value < INT64_MIN)
    return outsideOf(type, "a number of more than 64 bits");
  if (type == DataType::I1) {
    *address = std::byte(value & 1);
    return value == 0 || value == 1 ? Status::ok() : outsideOf(type, fmt::format("{}", static_cast<int64_t>(value)));
  }
  return storeLiteral(type, value < 0 ? Argument(static_cast<int64_t>(value)) : Argument(static_cast<uint64_t>(value)), address);
}

/// Copies the first element over all others.
void repeatFirst(std::vector<std::byte> &data, size_t elementBytes) {
  for (size_t done = elementBytes; done < data.size(); done *= 2)
    std::memcpy(data.data() + done, data.data(), std::min(done, data.size() - done));
}

/// Collects the elements of nested lists; the shape comes from the first of each level, and all must agree with it.
class ListReader {
public:
  ListReader(std::string_view name, std::string_view text, ArrayText &array, uint32_t numRanks)
      : name(name), text(text), array(array), numRanks(numRanks) {}

  Status read(std::string_view list, size_t level) {
    if (level == mostDimensions)
      return badArgument(name, text, fmt::format("the list has more than {} dimensions", mostDimensions));
    if (!list.starts_with('[') || !list.ends_with(']'))
      return badArgument(name, text, fmt::format("'{}' is no list; write [1,2,3] or [[1,2],[3,4]]", list));
    const std::string_view inside = list.substr(1, list.size() - 2);
    std::optional<std::vector<std::string_view>> pieces = splitAtCommas(inside);
    if (!pieces)
      return badArgument(name, text, "brackets or quotes are not closed");
    if (pieces->size() == 1 && pieces->front().empty())
      pieces->clear();
    int64_t count = 0;
    for (std::string_view piece : *pieces) {
      if (piece.starts_with('[')) {
        DITRON_RETURN_IF_ERROR(read(piece, level + 1));
        ++count;
      } else {
        DITRON_ASSIGN_OR_RETURN(const int64_t added, readElement(piece, level));
        count += added;
      }
    }
    if (array.shape.size() <= level)
      array.shape.resize(level + 1, -1);
    if (array.shape[level] < 0)
      array.shape[level] = count;
    if (array.shape[level] != count)
      return badArgument(name, text,
                         fmt::format("the lists of dimension {} differ in their number of elements, {} and {}; all must have as many", level,
                                     array.shape[level], count));
    return Status::ok();
  }

private:
  /// Adds an element, or as many as there are ranks; gives their number.
  Expected<int64_t> readElement(std::string_view piece, size_t level) {
    if (depth == 0)
      depth = level + 1;
    if (depth != level + 1)
      return badArgument(name, text, fmt::format("'{}' stands beside a list; write [[1,2],[3,4]]", piece));
    if (piece.starts_with(addressMark) && piece.ends_with("@*")) {
      for (uint32_t rank = 0; rank < numRanks; ++rank) {
        DITRON_ASSIGN_OR_RETURN(AddressText address,
                                parseAddressText(name, fmt::format("{}{}", piece.substr(0, piece.size() - 1), rank)));
        array.elements.emplace_back(std::move(address));
      }
      return numRanks;
    }
    if (piece.starts_with(addressMark)) {
      DITRON_ASSIGN_OR_RETURN(AddressText address, parseAddressText(name, piece));
      array.elements.emplace_back(std::move(address));
      return 1;
    }
    if (std::optional<std::string> problem = tooLargeLiteral(piece))
      return badArgument(name, text, *problem);
    const std::optional<Argument> literal = parseLiteral(piece);
    if (!literal)
      return badArgument(
          name, text, fmt::format("'{}' is no element of a list; accepted are literals and addresses such as ptr:x", piece));
    std::byte scratch[8];
    if (Status stored = storeLiteral(*array.type, *literal, scratch); !stored.isOk())
      return badArgument(name, text, stored.message());
    array.elements.emplace_back(*literal);
    return 1;
  }

  std::string_view name, text;
  ArrayText &array;
  uint32_t numRanks;
  size_t depth = 0; ///< Of elements; 0 before the first.
};

} // namespace

bool isGenerator(std::string_view word) { return findGenerator(word) != nullptr; }

std::vector<std::string> generatorNames() {
  std::vector<std::string> names;
  for (const GeneratorRow &row : generators)
    names.emplace_back(row.name);
  return names;
}

Expected<std::vector<int64_t>> parseShape(std::string_view name, std::string_view text, std::string_view sizes) {
  std::vector<int64_t> shape;
  for (std::string_view item : splitAndTrim(sizes, ',')) {
    const std::optional<int64_t> size = wholeNumber<int64_t>(item);
    if (!size || *size < 0)
      return badArgument(name, text, fmt::format("'{}' is no size; write integers from 0 to {}, as in [128,64]", item, INT64_MAX));
    shape.push_back(*size);
  }
  return shape;
}

Expected<ArrayText> parseGenerator(std::string_view name, std::string_view text, std::string_view word,
                                   std::string_view rest) {
  const GeneratorRow &row = *findGenerator(word);
  ArrayText array;
  array.source = row.source;
  const size_t open = rest.find('[');
  if (open == std::string_view::npos || !rest.ends_with(']'))
    return badArgument(name, text, "write a type and a shape after the colon, as in zeros:fp32[128,64]");
  Expected<DataType> type = parseDataTypeOrError(rest.substr(0, open));
  if (!type.isOk())
    return badArgument(name, text, type.status().message());
  array.type = *type;
  DITRON_ASSIGN_OR_RETURN(array.shape, parseShape(name, text, rest.substr(open + 1, rest.size() - open - 2)));
  std::vector<std::string_view> pieces;
  if (word.ends_with(')'))
    pieces = splitAtCommas(word.substr(row.name.size() + 1, word.size() - row.name.size() - 2)).value_or(pieces);
  if (pieces.size() < row.least || pieces.size() > row.most || (word.ends_with(')') && pieces.empty()))
    return badArgument(name, text, fmt::format("'{}' has {} in parentheses; write {}", word,
                                               plural(pieces.size(), "value"), row.form));
  for (std::string_view piece : pieces) {
    if (std::optional<std::string> problem = tooLargeLiteral(piece))
      return badArgument(name, text, *problem);
    const std::optional<Argument> value = parseLiteral(piece);
    std::byte scratch[8];
    if (!value || !(value->isInteger() || value->is<double>() || value->is<bool>()))
      return badArgument(name, text, fmt::format("'{}' is no number; write {}", piece, row.form));
    const bool isSeed = row.source == ArrayText::Source::Random;
    if (Status stored = storeLiteral(isSeed ? DataType::U64 : *type, *value, scratch); !stored.isOk())
      return badArgument(name, text, (isSeed ? "the seed " : "") + stored.message());
    array.parameters.push_back(*value);
  }
  return array;
}

Expected<ArrayText> parseList(std::string_view name, std::string_view text, DataType type, uint32_t numRanks) {
  ArrayText array;
  array.source = ArrayText::Source::List;
  array.type = type;
  DITRON_RETURN_IF_ERROR(ListReader(name, text, array, numRanks).read(text, 0));
  if (array.hasAddresses() && (!isInteger(type) || sizeOf(type) != 8))
    return badArgument(name, text, fmt::format("an address does not fit into {}; accepted are i64 and u64", toString(type)));
  return array;
}

bool ArrayText::hasAddresses() const {
  return std::ranges::any_of(elements, [](const Element &each) { return std::holds_alternative<AddressText>(each); });
}

/// The array's floats rounded to the type; the first that is too large and how many there are.
static NpyArray roundFloats(const NpyArray &array, DataType type, std::optional<int64_t> &first, int64_t &tooLarge) {
  NpyArray rounded{type, array.shape, std::vector<std::byte>(static_cast<size_t>(array.elementCount()) * sizeOf(type))};
  for (int64_t i = 0; i < array.elementCount(); ++i) {
    const double value = loadElement(array.type, array.data.data() + i * sizeOf(array.type));
    if (storeFloat(type, value, rounded.data.data() + i * sizeOf(type)).isOk())
      continue;
    ++tooLarge;
    if (!first)
      first = i;
  }
  return rounded;
}

Expected<NpyArray> interpretArray(NpyArray array, DataType type, std::string_view name, std::string *overflow) {
  if (array.type == type)
    return array;
  // Formats that NumPy has no name for travel as words.
  const bool isWord = isInteger(array.type) && array.type != DataType::I1 && sizeOf(array.type) == sizeOf(type);
  if (isFloat(type) && isWord && sizeOf(type) <= 2) {
    array.type = type;
    return array;
  }
  if (isFloat(type) && isFloat(array.type)) {
    std::optional<int64_t> first;
    int64_t tooLarge = 0;
    NpyArray rounded = roundFloats(array, type, first, tooLarge);
    if (!first)
      return rounded;
    const double value = loadElement(array.type, array.data.data() + *first * sizeOf(array.type));
    const std::string place = fmt::format("element {}{}", indexText(*first, array.shape),
                                          tooLarge == 1 ? "" : fmt::format(", the first of {}", tooLarge));
    Status outside = outsideOf(type, fmt::format("{:.9g}", value));
    if (!overflow)
      return outside.withContext(fmt::format("argument {}: {}", name, place));
    *overflow = fmt::format("{}: {}: {}; it becomes {}", name, place, outside.message(),
                            loadElement(type, rounded.data.data() + *first * sizeOf(type)));
    return rounded;
  }
  const std::string accepted =
      !isFloat(type) ? fmt::format("{} is read from arrays of its own type", toString(type))
                     : fmt::format("{} is read from floats{}", toString(type),
                                   sizeOf(type) > 2 ? "" : fmt::format(", and from words of i{0} or u{0}", 8 * sizeOf(type)));
  return invalidArgument(fmt::format("argument {}: the array has elements of type {}, which cannot be read as {}: {}", name,
                                     toString(array.type), toString(type), accepted));
}

Status ArrayText::checkMemory(uint64_t copies, std::string_view name) const {
  if (source == Source::File)
    return Status::ok();
  constexpr uint64_t worthAsking = uint64_t(1) << 20; // asking costs some file reads
  uint64_t bytes = sizeOf(*type) * copies;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes))
      bytes = UINT64_MAX; // too much, unless a size is 0
  if (bytes < worthAsking)
    return Status::ok();
  const uint64_t available = availableHostMemory();
  if (bytes <= available)
    return Status::ok();
  return Status(StatusCode::ResourceExhausted,
                fmt::format("argument {}: an array of {} elements does not fit this machine's memory: its {} copies (on the ranks "
                            "and before they get there) take {}, {} are available",
                            name, shapeToString(shape), copies, memoryText(bytes), memoryText(available)));
}

Expected<NpyArray> ArrayText::make(uint32_t rank, uint64_t seed, std::string_view name,
                                   const AddressLookup &lookup) const {
  if (source == Source::File) {
    DITRON_ASSIGN_OR_RETURN(NpyArray array, readNpy(pathForRank(path, rank)));
    return type ? interpretArray(std::move(array), *type, name) : Expected<NpyArray>(std::move(array));
  }
  DITRON_RETURN_IF_ERROR(checkMemory(1, name));
  uint64_t bytes = sizeOf(*type);
  for (int64_t size : shape)
    bytes *= static_cast<uint64_t>(size);
  NpyArray array{*type, shape, std::vector<std::byte>(bytes)};
  if (source == Source::Zeros || bytes == 0)
    return array;
  if (source == Source::Ones || source == Source::Full) {
    if (source == Source::Ones)
      storeElement(*type, array.data.data(), 1);
    else
      DITRON_RETURN_IF_ERROR(storeLiteral(*type, parameters[0], array.data.data()));
    repeatFirst(array.data, sizeOf(*type));
    return array;
  }
  uint64_t state = seed * 1000003 + rank;
  for (char c : name)
    state = state * 131 + static_cast<unsigned char>(c);
  if (source == Source::Random && !parameters.empty())
    state = parameters[0].integerBits();
  for (int64_t i = 0; i < array.elementCount(); ++i) {
    std::byte *address = array.data.data() + i * sizeOf(*type);
    switch (source) {
    case Source::Random: storeElement(*type, address, randomElement(*type, state)); break;
    case Source::Arange:
      if (Status stored = storeArange(*type, address, parameters, i); !stored.isOk())
        return invalidArgument(fmt::format("argument {}: element {} of arange: {}", name, i, stored.message()));
      break;
    case Source::List:
      if (const auto *target = std::get_if<AddressText>(&elements[i])) {
        DITRON_ASSIGN_OR_RETURN(const runtime::Pointer pointer, lookup(*target));
        std::memcpy(address, &pointer.address, sizeof pointer.address);
      } else {
        DITRON_RETURN_IF_ERROR(storeLiteral(*type, std::get<Argument>(elements[i]), address));
      }
      break;
    default: break; // made above
    }
  }
  return array;
}

} // namespace ditron::values
