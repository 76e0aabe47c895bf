//===- SizeOptions.cpp - Sizes that operators are given, and the errors of those that do not fit ---------------------------===//
#include "ditron/ops/SizeOptions.h"

#include <fmt/format.h>

namespace ditron::ops {

Status verifySizeOptions(std::string_view operation, std::initializer_list<SizeOption> options) {
  for (const SizeOption &option : options)
    if (option.value < option.least || option.value > option.most)
      return invalidArgument(fmt::format("{}: {} is {}; {} to {} are accepted", operation, option.name, option.value,
                                         option.least, option.most));
  return Status::ok();
}

Status verifyProductOfSizes(std::string_view operation, std::string_view what,
                            std::initializer_list<SizeOption> factors, int64_t most) {
  bool fits = true;
  int64_t product = 1;
  std::string text;
  for (const SizeOption &factor : factors) {
    fits = fits && (factor.value == 0 || product <= most / factor.value);
    if (fits)
      product *= factor.value;
    text += fmt::format("{}{} {}", text.empty() ? "" : " times ", factor.name, factor.value);
  }
  if (fits)
    return Status::ok();
  return invalidArgument(fmt::format("{}: {} are {}; at most {} are accepted", operation, what, text, most));
}

Status verifyTokenCount(std::string_view operation, int64_t tokens, int64_t least, int64_t maxTokens) {
  if (tokens >= least && tokens <= maxTokens)
    return Status::ok();
  return invalidArgument(
      fmt::format("{}: {} tokens; {} to {} (maxTokens) are accepted", operation, tokens, least, maxTokens));
}

} // namespace ditron::ops
