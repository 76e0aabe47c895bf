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

#include "ditron/values/Comparison.h"

namespace ditron::tool {

struct Expectation {
  const RunArray *array = nullptr;
  std::optional<DataType> type;   ///< What both sides are seen as.
  std::vector<std::string> texts; ///< Per rank, as written behind NAME=.
  std::vector<NpyArray> expected; ///< Per rank, unless there is `other`.
  const RunArray *other = nullptr;
  values::Tolerance tolerance;

  /// A line for each rank whose array is not as expected.
  Expected<std::vector<std::string>> compare(const RunArrays &arrays, uint32_t numRanks) const;
  /// What to say when all are.
  std::string describeMatch(uint32_t numRanks) const;
};

/// Reads NAME=VALUE and what it expects on each rank.
Expected<Expectation> readExpectation(const RunArrays &arrays, uint32_t numRanks, uint64_t dataSeed,
                                      const std::string &text, const values::Tolerance &tolerance);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_EXPECTATION_H
