//===- Heads.cpp - What every operator of attention says about heads and tiles --------------------------------------------===//
#include "ditron/ops/attention/Heads.h"

#include <cmath>
#include <numbers>
#include <fmt/format.h>

namespace ditron::ops {

double scaleOfScores(const std::optional<double> &scale, int64_t headDim) {
  return scale.value_or(1.0 / std::sqrt(static_cast<double>(headDim)));
}

bool isPositiveScale(double scale) {
  const auto factor = static_cast<float>(scale * std::numbers::log2e);
  return factor > 0 && std::isfinite(factor);
}

Status verifyHalfOperands(std::string_view operation, DataType dtype) {
  if (dtype == DataType::BF16 || dtype == DataType::F16)
    return Status::ok();
  return unsupported(
      fmt::format("{}: operands of type {}; bf16 and fp16 are accepted", operation, ditron::toString(dtype)));
}

Status verifyHeadGroups(std::string_view operation, int64_t heads, int64_t kvHeads) {
  if (heads % kvHeads == 0)
    return Status::ok();
  return invalidArgument(
      fmt::format("{}: {} heads on {} heads of K and V; the second must divide the first", operation, heads, kvHeads));
}

Status verifyPlainHeadSize(std::string_view operation, int64_t headDim) {
  if (headDim >= 16 && headDim <= 256 && std::has_single_bit(static_cast<uint64_t>(headDim)))
    return Status::ok();
  return unsupported(fmt::format("{}: heads of {} elements; 16, 32, 64, 128 and 256 are accepted", operation, headDim));
}

} // namespace ditron::ops
