//===- ArrayFill.h - Values of input arrays by rule -----------------------------------------------------------*- C++ -*-===//
//
// Inputs are described, not stored: a rule and a seed. The generator (reference.py) follows the same rules with the same
// arithmetic, so both see the same bits on every machine.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TESTS_CONFORMANCE_ARRAYFILL_H
#define DITRON_TESTS_CONFORMANCE_ARRAYFILL_H

#include "ditron/support/DataType.h"

#include <filesystem>
#include <nlohmann/json.hpp>

namespace ditron::conformance {

/// The bytes of `count` elements by the rule in `array` (README.md, "Inputs"); zeros without one. `seedOffset` is added to
/// the rule's seed: other ranks have other values.
Expected<std::vector<std::byte>> fillArray(const nlohmann::json &array, DataType type, uint64_t count,
                                           uint64_t seedOffset, const std::filesystem::path &folder);

/// Elements listed as JSON: numbers, true and false, or texts ("nan", "-inf", "-0.0", "0x7fc0" for the bits).
Expected<std::vector<std::byte>> listedElements(const nlohmann::json &list, DataType type);

} // namespace ditron::conformance
#endif // DITRON_TESTS_CONFORMANCE_ARRAYFILL_H
