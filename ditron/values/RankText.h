//===- RankText.h - Values that differ between ranks, as text -------------------------------------------*- C++ -*-===//
//
//   per-rank:0,1,2,3          a value for each rank, in order; commas within brackets and quotes do not count
//   per-rank:[0,1,2,3]        the same, as an element of a tuple
//   x{rank}.npy, {rank}       {rank} anywhere in a value is the number of the rank
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_VALUES_RANKTEXT_H
#define DITRON_VALUES_RANKTEXT_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <string>

namespace ditron::values {

/// What a value is on a rank. `name` is the parameter.
Expected<std::string> textForRank(std::string_view name, std::string_view text, uint32_t rank, uint32_t numRanks);

} // namespace ditron::values
#endif // DITRON_VALUES_RANKTEXT_H
