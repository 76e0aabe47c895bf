//===- Comparison.cpp - Results against references ----------------------------------------------------------------------===//
//
// 64-bit integers are compared as bits; everything else fits a double exactly.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "Comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace ditron::conformance {
namespace {

uint64_t bitsAt(DataType type, const std::byte *at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, sizeOf(type));
  return bits;
}

/// A number that grows by one from each float of the type to the next.
int64_t ordinal(DataType type, uint64_t bits) {
  const uint64_t sign = 1ull << (sizeOf(type) * 8 - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return bits & sign ? -magnitude : magnitude;
}

std::string show(DataType type, const std::byte *at) {
  if (type == DataType::I64)
    return fmt::format("{}", static_cast<int64_t>(bitsAt(type, at)));
  if (type == DataType::U64)
    return fmt::format("{}", bitsAt(type, at));
  const double value = loadElement(type, at);
  return isInteger(type) ? fmt::format("{}", static_cast<int64_t>(value))
                         : fmt::format("{:.9g} (0x{:x})", value, bitsAt(type, at));
}

/// The elements in the order of their bits, behind each other.
std::vector<std::byte> sorted(DataType type, std::span<const std::byte> data) {
  const uint32_t size = sizeOf(type);
  std::vector<uint64_t> words(data.size() / size);
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = bitsAt(type, data.data() + i * size);
  std::sort(words.begin(), words.end());
  std::vector<std::byte> result(data.size());
  for (size_t i = 0; i < words.size(); ++i)
    std::memcpy(result.data() + i * size, &words[i], size);
  return result;
}

} // namespace

Comparison compareElements(DataType type, std::span<const std::byte> actual, std::span<const std::byte> expected,
                           const CompareRule &rule, std::span<const uint64_t> positions) {
  if (rule.mode == CompareMode::Sorted) {
    const std::vector<std::byte> left = sorted(type, actual), right = sorted(type, expected);
    return compareElements(type, left, right, {});
  }
  Comparison result;
  const uint32_t size = sizeOf(type);
  const uint64_t count = expected.size() / size;
  double largest = 0;
  for (uint64_t i = 0; i < count; ++i)
    if (const double value = std::abs(loadElement(type, expected.data() + i * size)); std::isfinite(value))
      largest = std::max(largest, value);
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte *a = actual.data() + i * size, *e = expected.data() + i * size;
    const uint64_t aBits = bitsAt(type, a), eBits = bitsAt(type, e);
    bool same = aBits == eBits;
    if (isFloat(type) && !same) {
      const double x = loadElement(type, a), y = loadElement(type, e);
      if (std::isnan(x) || std::isnan(y)) {
        same = std::isnan(x) && std::isnan(y);
      } else if (std::isfinite(x) && std::isfinite(y)) {
        const double error = std::abs(x - y);
        if (largest > 0)
          result.maxError = std::max(result.maxError, error / largest);
        if (std::abs(y) * 64 >= largest) // what is left of a cancellation has no meaningful last place
          result.maxUlp =
              std::max(result.maxUlp, std::abs(static_cast<double>(ordinal(type, aBits) - ordinal(type, eBits))));
        same = rule.mode == CompareMode::Close ? error <= rule.absolute + rule.relative * std::abs(y)
                                               : rule.mode == CompareMode::Equal && x == y;
      }
    } else if (!same && rule.mode == CompareMode::Close) {
      const double x = loadElement(type, a), y = loadElement(type, e);
      same = std::abs(x - y) <= rule.absolute + rule.relative * std::abs(y);
    }
    if (!same && ++result.wrong <= 3)
      result.text +=
          fmt::format(" [{}] got {}, expected {};", positions.empty() ? i : positions[i], show(type, a), show(type, e));
  }
  return result;
}

} // namespace ditron::conformance
