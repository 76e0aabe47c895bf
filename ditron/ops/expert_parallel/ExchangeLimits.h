//===- ExchangeLimits.h - Numbers of tokens and experts that an exchange accepts ----------------------------------*- C++ -*-===//
//
// ExpertParallel and FusedExpertParallel have the same numbers, within the same limits: slots of all ranks are counted in 32 bits.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_EXPERT_PARALLEL_EXCHANGELIMITS_H
#define DITRON_OPS_EXPERT_PARALLEL_EXCHANGELIMITS_H

#include "ditron/ops/moe/Routing.h"

#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

/// "OPERATION: NAME is VALUE; ACCEPTED"
inline Status refuseOption(std::string_view operation, std::string_view name, int64_t value,
                           std::string_view accepted) {
  return invalidArgument(fmt::format("{}: {} is {}; {}", operation, name, value, accepted));
}

/// Refuses numbers of experts, tokens, rows and calls that make no sense; `options` are the operator's.
template <typename Options> Status verifyExchange(std::string_view operation, const Options &options, uint32_t ranks) {
  const auto refuse = [&](std::string_view name, int64_t value, std::string_view accepted) {
    return refuseOption(operation, name, value, accepted);
  };
  if (options.experts == 0 || options.experts > mostExperts || options.experts % ranks != 0)
    return refuse("experts", options.experts,
                  fmt::format("multiples of the {} ranks up to {} are accepted", ranks, mostExperts));
  if (options.topK == 0 || options.topK > mostTopK)
    return refuse("topK", options.topK, fmt::format("1 to {} are accepted", mostTopK));
  const int64_t mostTokens = std::numeric_limits<int32_t>::max() / options.topK / ranks;
  if (options.maxTokens < 1 || options.maxTokens > mostTokens)
    return refuse("maxTokens", options.maxTokens,
                  fmt::format("1 to {} are accepted with {} ranks and topK {}", mostTokens, ranks, options.topK));
  const int64_t mostCapacity = options.maxTokens * options.topK;
  if (options.capacity < 0 || options.capacity > mostCapacity)
    return refuse("capacity", options.capacity,
                  fmt::format("1 to {} (maxTokens * topK) are accepted, or 0 for maxTokens", mostCapacity));
  if (options.maxRows < 0)
    return refuse("maxRows", options.maxRows, "1 or more are accepted, or 0 for all that can come");
  if (options.concurrentCalls == 0)
    return refuse("concurrentCalls", 0, "1 or more are accepted");
  return Status::ok();
}

} // namespace ditron::ops
#endif // DITRON_OPS_EXPERT_PARALLEL_EXCHANGELIMITS_H
