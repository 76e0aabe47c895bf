//===- Expectation.cpp - Comparing the result of a run with what is expected --------------------------------------===//
#include "run/Expectation.h"

#include "base/Command.h"

#include "ditron/support/Plural.h"
#include "ditron/values/RankText.h"

#include <fmt/format.h>

namespace ditron::tool {

Expected<std::vector<std::string>> Expectation::compare(const RunArrays &arrays, uint32_t numRanks) const {
  std::vector<std::string> problems;
  for (uint32_t rank = 0; rank < numRanks; ++rank) {
    DITRON_ASSIGN_OR_RETURN(NpyArray actual, array->download(rank));
    if (type) {
      std::string overflow;
      DITRON_ASSIGN_OR_RETURN(actual, values::interpretArray(std::move(actual), *type, array->name, &overflow));
      if (!overflow.empty())
        fmt::print(stderr, "ditron: warning: --expect {}, on rank {}\n", overflow, rank);
    }
    NpyArray downloaded;
    if (other) {
      DITRON_ASSIGN_OR_RETURN(downloaded, other->download(rank));
    }
    const NpyArray &wanted = other ? downloaded : expected[rank];
    if (std::optional<std::string> mismatch = values::describeMismatch(actual, wanted, texts[rank], tolerance))
      problems.push_back(fmt::format("{} on rank {} is not as expected{}", array->name, rank, *mismatch));
  }
  return problems;
}

std::string Expectation::describeMatch(uint32_t numRanks) const {
  int64_t elements = 0;
  for (const std::vector<int64_t> &shape : array->shapes)
    elements += elementCount(shape);
  return fmt::format("{} is as expected: {} on {}", array->name, plural(elements, "element"), plural(numRanks, "rank"));
}

Expected<Expectation> readExpectation(const RunArrays &arrays, uint32_t numRanks, uint64_t dataSeed,
                                      const std::string &text, const values::Tolerance &tolerance) {
  DITRON_ASSIGN_OR_RETURN(auto assignment, splitAssignment("--expect", text));
  Expectation expectation;
  DITRON_ASSIGN_OR_RETURN(expectation.array, arrays.require("--expect", assignment.first));
  expectation.tolerance = tolerance;
  if (assignment.second.starts_with(values::addressMark)) {
    DITRON_ASSIGN_OR_RETURN(const values::AddressText address, values::parseAddressText(assignment.first, assignment.second));
    if (address.rank || !address.index.empty())
      return invalidArgument(
          fmt::format("--expect {}='{}': a whole array is compared, with the same rank's; write ptr:{}",
                      assignment.first, assignment.second, address.array));
    DITRON_ASSIGN_OR_RETURN(expectation.other, arrays.require("--expect", address.array));
    expectation.texts.assign(numRanks, address.array);
    return expectation;
  }
  for (uint32_t rank = 0; rank < numRanks; ++rank) {
    DITRON_ASSIGN_OR_RETURN(std::string own, values::textForRank(assignment.first, assignment.second, rank, numRanks));
    DITRON_ASSIGN_OR_RETURN(NpyArray array, values::readExpected(assignment.first, own, rank, numRanks, dataSeed));
    expectation.texts.push_back(std::move(own));
    expectation.expected.push_back(std::move(array));
  }
  // TYPE@FILE: both sides are seen as the type.
  const std::string &first = expectation.texts.front();
  if (const size_t at = first.find('@'); at != std::string::npos && at > 0)
    expectation.type = parseDataType(std::string_view(first).substr(0, at));
  if (expectation.type) // what cannot be compared is found before the run, on no elements
    DITRON_RETURN_IF_ERROR(
        values::interpretArray({expectation.array->type, {0}, {}}, *expectation.type, expectation.array->name).status());
  return expectation;
}

} // namespace ditron::tool
