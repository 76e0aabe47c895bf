//===- TargetName.cpp - Names of targets --------------------------------------------------------------------------===//
//
// The table of targets and the lookup by name.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/support/TargetName.h"

#include "ditron/support/Suggest.h"

#include <fmt/format.h>

namespace ditron {

bool TargetName::hasTensorCopies() const { return architecture.starts_with("sm_90"); }

bool hasTensorCopies(std::string_view target) {
  const Expected<TargetName> name = parseTargetName(target);
  return name.isOk() && name->hasTensorCopies();
}

const std::vector<TargetName> &knownTargets() {
  static const std::vector<TargetName> targets = {{"sim:sm_80", "sm_80", true, 32},
                                                 {"sim:sm_90a", "sm_90a", true, 32},
                                                 {"cuda:sm_80", "sm_80", false, 32},
                                                 {"cuda:sm_89", "sm_89", false, 32},
                                                 {"cuda:sm_90a", "sm_90a", false, 32},
                                                 {"cuda:sm_100a", "sm_100a", false, 32}};
  return targets;
}

Expected<TargetName> parseTargetName(std::string_view text) {
  if (text == "sim")
    return knownTargets().front();
  std::vector<std::string> names;
  for (const TargetName &target : knownTargets()) {
    if (target.text == text)
      return target;
    names.push_back(target.text);
  }
  return unsupported(fmt::format("unknown target '{}'{}; accepted are {} and sim (short for {})", text,
                                 didYouMean(text, names), fmt::join(names, ", "), names.front()));
}

} // namespace ditron
