//===- Comparison.cpp - Arrays beside what they must be -----------------------------------------------------------===//
#include "ditron/values/Comparison.h"

#include "ditron/values/ArgumentText.h"
#include "ditron/values/ArrayPrint.h"
#include "ditron/values/TextPieces.h"

#include "ditron/support/Plural.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace ditron::values {

namespace {

/// |a - b|, exact for 64-bit integers.
double distance(DataType type, const std::byte *a, const std::byte *b) {
  if (type == DataType::I64 || type == DataType::U64) {
    uint64_t x = 0, y = 0;
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
    const bool less = type == DataType::I64 ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
    return static_cast<double>(less ? y - x : x - y);
  }
  const double x = loadElement(type, a), y = loadElement(type, b);
  if (x == y || (std::isnan(x) && std::isnan(y)))
    return 0;
  const double off = std::abs(x - y);
  return std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
}

/// "bf16[7]"
std::string typeAndShape(DataType type, const std::vector<int64_t> &shape) {
  return fmt::format("{}[{}]", toString(type), fmt::join(shape, ","));
}

/// Whether an array of `words` is what --out writes of elements of a type that NumPy has no name for.
bool holdsWordsOf(DataType type, DataType words) {
  const bool isUnnamed = isFloat(type) && sizeOf(type) <= 2 && type != DataType::F16;
  const bool isUnsigned = isInteger(words) && !isSignedInteger(words) && words != DataType::I1;
  return isUnnamed && isUnsigned && sizeOf(words) == sizeOf(type);
}

/// What to write when only the type is wrong.
std::string conversionHint(const NpyArray &actual, const NpyArray &wanted, const std::string &text) {
  if (text.starts_with('[') && actual.shape == wanted.shape)
    return fmt::format("; {}:{} is of that type", toString(actual.type), text);
  const bool isFile = text.ends_with(".npy") && text.find('@') == std::string::npos;
  if (!isFile || actual.shape != wanted.shape || !isFloat(actual.type) || !isFloat(wanted.type))
    return "";
  return fmt::format("; {}@{} rounds it to {}", toString(actual.type), text, toString(actual.type));
}

Expected<double> parseNumber(const std::string &text, const std::string &number) {
  char *end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != 0 || !(value >= 0))
    return invalidArgument(
        fmt::format("--tolerance '{}': '{}' is not accepted; write ABSOLUTE or ABSOLUTE,RELATIVE, numbers from "
                    "0, as in 1e-3,1e-2",
                    text, number));
  return value;
}

} // namespace

Difference compareArrays(const NpyArray &actual, const NpyArray &expected, const Tolerance &tolerance) {
  Difference difference;
  difference.elements = actual.elementCount();
  const int64_t size = sizeOf(actual.type);
  double worstExcess = -1;
  for (int64_t i = 0; i < difference.elements; ++i) {
    const std::byte *own = actual.data.data() + i * size, *wanted = expected.data.data() + i * size;
    const double off = distance(actual.type, own, wanted);
    if (off == 0)
      continue;
    const double allowed = tolerance.absolute + tolerance.relative * std::abs(loadElement(actual.type, wanted));
    const double excess = off - allowed;
    if (excess <= 0)
      continue;
    ++difference.wrong;
    // Infinite and NaN excesses count as the worst there is; the first of them stays.
    const double rank = std::isnan(excess) ? std::numeric_limits<double>::infinity() : excess;
    if (rank > worstExcess) {
      worstExcess = rank;
      difference.worst = i;
      difference.amount = off;
    }
  }
  return difference;
}

std::optional<std::string> describeMismatch(const NpyArray &actual, const NpyArray &wanted, const std::string &text,
                                            const Tolerance &tolerance) {
  const DataType wantedType = holdsWordsOf(actual.type, wanted.type) ? actual.type : wanted.type;
  if (actual.type != wantedType || actual.shape != wanted.shape)
    return fmt::format(": it is {}, but {} is {}{}", typeAndShape(actual.type, actual.shape), text,
                       typeAndShape(wantedType, wanted.shape), conversionHint(actual, wanted, text));
  const Difference difference = compareArrays(actual, wanted, tolerance);
  if (difference.wrong == 0)
    return std::nullopt;
  const size_t offset = static_cast<size_t>(difference.worst) * sizeOf(actual.type);
  const std::byte *own = actual.data.data() + offset, *other = wanted.data.data() + offset;
  const bool hasNan = std::isnan(loadElement(actual.type, own)) || std::isnan(loadElement(actual.type, other));
  return fmt::format(": {} of {} {} from {} by more than {}; the worst is {}: {}, expected {}{}", difference.wrong,
                     plural(difference.elements, "element"), difference.elements == 1 ? "differs" : "differ", text,
                     tolerance.relative > 0
                         ? fmt::format("{:g} + {:g} of the value", tolerance.absolute, tolerance.relative)
                         : fmt::format("{:g}", tolerance.absolute),
                     indexText(difference.worst, actual.shape), elementText(actual.type, own),
                     elementText(actual.type, other), hasNan ? "" : fmt::format(", off by {:g}", difference.amount));
}

/// What a rank's FILE.npy, TYPE@FILE.npy or array of --arg means.
Expected<NpyArray> readExpected(const std::string &name, const std::string &own, uint32_t rank, uint32_t numRanks,
                                uint64_t dataSeed) {
  const bool isFile = own.find('@') == std::string::npos && own.ends_with(".npy");
  DITRON_ASSIGN_OR_RETURN(const ArgumentText parsed, parseArgumentText(name, isFile ? "@" + own : own, numRanks));
  const auto *array = std::get_if<ArrayText>(&parsed);
  if (!array || array->symmetric || !array->block.empty() || array->hasAddresses())
    return invalidArgument(
        fmt::format("--expect {}='{}': an array is expected: FILE.npy, fp32@FILE.npy, ptr:OTHER, or a generator "
                    "such as full(3):fp32[100]",
                    name, own));
  return array->make(rank, dataSeed, name);
}

Expected<Tolerance> parseTolerance(const std::string &text) {
  Tolerance tolerance;
  const size_t comma = text.find(',');
  DITRON_ASSIGN_OR_RETURN(tolerance.absolute, parseNumber(text, text.substr(0, comma)));
  if (comma != std::string::npos) {
    DITRON_ASSIGN_OR_RETURN(tolerance.relative, parseNumber(text, text.substr(comma + 1)));
  }
  return tolerance;
}

Expected<std::vector<Tolerance>> parseTolerances(const std::vector<std::string> &texts, size_t numExpectations) {
  if (!texts.empty() && numExpectations == 0)
    return invalidArgument("--tolerance without --expect: there is nothing to compare");
  if (texts.size() > 1 && texts.size() != numExpectations)
    return invalidArgument(
        fmt::format("--tolerance is given {} times and --expect {}; give one tolerance for all, or one "
                    "for each in the same order",
                    texts.size(), numExpectations == 1 ? "once" : fmt::format("{} times", numExpectations)));
  std::vector<Tolerance> tolerances(numExpectations);
  for (size_t i = 0; i < numExpectations && !texts.empty(); ++i) {
    DITRON_ASSIGN_OR_RETURN(tolerances[i], parseTolerance(texts[texts.size() == 1 ? 0 : i]));
  }
  return tolerances;
}

} // namespace ditron::values
