//===- GridExpression.h - Launch grids as integer expressions -------------------------------------------*- C++ -*-===//
//
// The argument of --grid: one to three integer expressions between commas, such as
//
//   8            4,2            cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1, 2
//
// with + - * // % (floor, as in Python), parentheses, cdiv, min and max. Names are the integers given with --arg and
// --constexpr (t.0 of a tuple), and RANK, RANKS and SMS.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_VALUES_GRIDEXPRESSION_H
#define DITRON_VALUES_GRIDEXPRESSION_H

#include "ditron/support/Status.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace ditron::values {

using IntegerNames = std::map<std::string, int64_t>;

/// The value of one expression.
Expected<int64_t> evaluateInteger(std::string_view text, const IntegerNames &names);

/// One to three values from 1; missing ones are 1.
Expected<std::array<uint32_t, 3>> evaluateGrid(std::string_view text, const IntegerNames &names);

} // namespace ditron::values
#endif // DITRON_VALUES_GRIDEXPRESSION_H
