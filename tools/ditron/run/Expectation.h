//===- Expectation.h - Comparing the result of a run with what is expected ------------------------------*- C++ -*-===//
//
// --expect NAME=FILE.npy: after the run the array must have the file's shape, type and values. An element may be off by
//
//   absolute + relative * |expected|
//
// of --tolerance ABSOLUTE,RELATIVE; without it not at all. NaN equals NaN. With a type, NAME=fp32@FILE.npy, both sides are
// seen as that type, as --out does. In place of a file stands any array that --arg accepts: NAME=full(3):fp32[100], or ptr:OTHER,
// which is what another array holds after the run, as when a plain kernel computes the same.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_EXPECTATION_H
#define DITRON_TOOLS_DITRON_EXPECTATION_H

#include "run/RunArrays.h"

namespace ditron::tool {

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

struct Expectation {
  const RunArray *array = nullptr;
  std::optional<DataType> type;   ///< What both sides are seen as.
  std::vector<std::string> texts; ///< Per rank, as written behind NAME=.
  std::vector<NpyArray> expected; ///< Per rank, unless there is `other`.
  const RunArray *other = nullptr;
  Tolerance tolerance;

  /// A line for each rank whose array is not as expected.
  Expected<std::vector<std::string>> compare(const RunArrays &arrays, uint32_t numRanks) const;
  /// What to say when all are.
  std::string describeMatch(uint32_t numRanks) const;
};

/// One for each --expect: none, one for all, or one each.
Expected<std::vector<Tolerance>> parseTolerances(const std::vector<std::string> &texts, size_t numExpectations);
/// Reads NAME=VALUE and what it expects on each rank.
Expected<Expectation> readExpectation(const RunArrays &arrays, uint32_t numRanks, uint64_t dataSeed,
                                      const std::string &text, const Tolerance &tolerance);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_EXPECTATION_H
