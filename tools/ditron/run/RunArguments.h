//===- RunArguments.h - Values of parameters on every rank ----------------------------------------------*- C++ -*-===//
//
// Turns NAME=SPEC into what each rank's kernel gets: per-rank values chosen, tuples taken apart, arrays allocated, addresses
// found. Values without addresses are bound first, so that an address may name an array that is given later.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_RUNARGUMENTS_H
#define DITRON_TOOLS_DITRON_RUNARGUMENTS_H

#include "run/RunArrays.h"

#include "ditron/values/GridExpression.h"

namespace ditron::tool {

/// The value of a parameter on every rank. Of a tuple the elements, by their paths: "t.0".
struct BoundParameter {
  std::string name;
  using Leaf = std::pair<std::string, runtime::Argument>;
  std::vector<std::vector<Leaf>> perRank;
};

enum class ParameterKind { Argument, Constexpr, Memory };

/// Whether the text of a value has addresses, so that it is bound when all arrays are there.
bool mentionsAddress(std::string_view text);

/// Binds one value. --memory takes arrays only.
Expected<BoundParameter> bindParameter(RunArrays &arrays, uint32_t numRanks, ParameterKind kind,
                                       const std::string &name, const std::string &text);

/// Adds the integers among the values on a rank, for --grid.
void addIntegers(values::IntegerNames &names, const std::vector<BoundParameter::Leaf> &leaves);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_RUNARGUMENTS_H
