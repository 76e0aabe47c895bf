//===- Comparison.h - Results against references --------------------------------------------------------------*- C++ -*-===//
//
// How an output is compared: bit for bit, by value, or within the tolerances of the language's specification.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_CONFORMANCE_COMPARISON_H
#define DITRON_TESTS_CONFORMANCE_COMPARISON_H

#include "ditron/support/DataType.h"

#include <span>

namespace ditron::conformance {

enum class CompareMode {
  Exact,  ///< The same bits; a NaN equals every NaN.
  Equal,  ///< The same values: zeros of both signs are equal.
  Close,  ///< |actual - expected| <= absolute + relative * |expected|.
  Sorted, ///< The same bits in any order.
};

struct CompareRule {
  CompareMode mode = CompareMode::Exact;
  double relative = 0;
  double absolute = 0;
};

struct Comparison {
  uint64_t wrong = 0;
  std::string text; ///< The first wrong elements.
  /// Of floats: the largest distance in units of the last place, over elements of at least 1/64 of the largest.
  double maxUlp = 0;
  double maxError = 0; ///< The largest difference, as a part of the array's largest element.
};

/// Compares elements; `positions` tells where the elements are in the array, for messages (empty: in order).
Comparison compareElements(DataType type, std::span<const std::byte> actual, std::span<const std::byte> expected,
                           const CompareRule &rule, std::span<const uint64_t> positions = {});

} // namespace ditron::conformance
#endif // DITRON_TESTS_CONFORMANCE_COMPARISON_H
