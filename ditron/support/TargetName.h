//===- TargetName.h - Names of targets ------------------------------------------------------------------*- C++ -*-===//
//
// What a kernel is compiled for and what a world runs on: "sim:sm_80" is a simulated GPU with the warp size,
// tensor-core instructions and asynchronous copies of NVIDIA's compute capability 8.0. "sim" alone is short for it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_TARGETNAME_H
#define DITRON_SUPPORT_TARGETNAME_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <vector>

namespace ditron {

/// What can be known of a target without its compiler.
struct TargetName {
  std::string text;         ///< Canonical: "sim:sm_80".
  std::string architecture; ///< "sm_80".
  bool simulated = true;
  uint32_t warpSize = 32;

  /// Whether tensors are copied between global and shared memory by single instructions, and warpgroups multiply what is there (Hopper).
  bool hasTensorCopies() const;
};

/// The targets of this version.
const std::vector<TargetName> &knownTargets();

/// Takes canonical names and the short ones; else an error that lists what is accepted.
Expected<TargetName> parseTargetName(std::string_view text);
/// Of the target with that name; unknown ones have none.
bool hasTensorCopies(std::string_view target);

} // namespace ditron
#endif // DITRON_SUPPORT_TARGETNAME_H
