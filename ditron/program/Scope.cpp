//===- Scope.cpp - The variables of host code ---------------------------------------------------------------------===//
#include "ditron/program/Scope.h"

#include <fmt/format.h>

namespace ditron::program {

Scope::Scope(uint32_t rank, uint32_t ranks, uint32_t sms)
    : variables({{"rank", rank}, {"ranks", ranks}, {"sms", sms}, {"RANK", rank}, {"RANKS", ranks}, {"SMS", sms}}) {}

std::optional<int64_t> Scope::find(const std::string &name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? std::nullopt : std::optional(found->second);
}

Expected<std::string> Scope::substitute(std::string_view text) const {
  std::string result;
  while (true) {
    const size_t open = text.find('{'), close = text.find('}', open);
    result += text.substr(0, open);
    if (open == std::string_view::npos)
      return result;
    if (close == std::string_view::npos)
      return invalidArgument(fmt::format("'{}' has no closing '}}'", text.substr(open)));
    DITRON_ASSIGN_OR_RETURN(const int64_t value,
                            values::evaluateInteger(text.substr(open + 1, close - open - 1), variables));
    result += std::to_string(value);
    text.remove_prefix(close + 1);
  }
}

Expected<int64_t> Scope::evaluate(std::string_view text) const {
  DITRON_ASSIGN_OR_RETURN(const std::string substituted, substitute(text));
  return values::evaluateInteger(substituted, variables);
}

} // namespace ditron::program
