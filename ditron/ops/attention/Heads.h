//===- Heads.h - What every operator of attention says about heads and tiles --------------------------------*- C++ -*-===//
//
// Checks and defaults that attention, attention of a decoder and attention over ranks have in common. `operation` begins messages.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ATTENTION_HEADS_H
#define DITRON_OPS_ATTENTION_HEADS_H

#include "ditron/support/DataType.h"
#include "ditron/support/Status.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ditron::ops {

/// Of rows of queries or keys.
constexpr bool isTileSize(uint32_t size) { return size >= 16 && size <= 256 && std::has_single_bit(size); }

/// The given one, else 1 / sqrt(headDim).
double scaleOfScores(const std::optional<double> &scale, int64_t headDim);
/// Whether kernels, to which it comes in fp32 and times log2(e), multiply scores by something positive and finite.
bool isPositiveScale(double scale);

/// bf16 and fp16.
Status verifyHalfOperands(std::string_view operation, DataType dtype);
/// Query heads share heads of K and V in groups of equal size; both are positive.
Status verifyHeadGroups(std::string_view operation, int64_t heads, int64_t kvHeads);
/// 16, 32, 64, 128 or 256 elements.
Status verifyPlainHeadSize(std::string_view operation, int64_t headDim);

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_HEADS_H
