//===- Comparison.h - Arrays beside what they must be ---------------------------------------------------*- C++ -*-===//
//
// An array has the shape, type and values that are expected. An element may be off by
//
//   absolute + relative * |expected|
//
// without a tolerance not at all. NaN equals NaN.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_VALUES_COMPARISON_H
#define DITRON_VALUES_COMPARISON_H

#include "ditron/support/Npy.h"

#include <optional>

namespace ditron::values {

struct Tolerance {
  double absolute = 0, relative = 0;
};

/// How two arrays of one type and shape differ.
struct Difference {
  int64_t elements = 0, wrong = 0;
  int64_t worst = 0; ///< Packed index of the element that is off by most beyond its tolerance.
  double amount = 0; ///< What it is off by; infinite where one side is NaN.
};
Difference compareArrays(const NpyArray &actual, const NpyArray &expected, const Tolerance &tolerance);

/// ": 3 of 8 elements differ from TEXT by ...", or nothing when they are the same. `text` is how the expected array was written.
std::optional<std::string> describeMismatch(const NpyArray &actual, const NpyArray &wanted, const std::string &text,
                                            const Tolerance &tolerance);

/// What FILE.npy, TYPE@FILE.npy or a generated array of --arg is on a rank. `name` is what it is expected of.
Expected<NpyArray> readExpected(const std::string &name, const std::string &own, uint32_t rank, uint32_t numRanks,
                                uint64_t dataSeed);

/// ABSOLUTE or ABSOLUTE,RELATIVE.
Expected<Tolerance> parseTolerance(const std::string &text);
/// One for each --expect: none, one for all, or one each.
Expected<std::vector<Tolerance>> parseTolerances(const std::vector<std::string> &texts, size_t numExpectations);

} // namespace ditron::values
#endif // DITRON_VALUES_COMPARISON_H
