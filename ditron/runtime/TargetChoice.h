//===- TargetChoice.h - Which target this machine has --------------------------------------------------------*- C++ -*-===//
//
// "cuda" stands for the GPUs of this machine; here it becomes the name of the target to compile for.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_TARGETCHOICE_H
#define DITRON_RUNTIME_TARGETCHOICE_H

#include "ditron/support/TargetName.h"

#include <string_view>

namespace ditron::runtime {

/// The target for "cuda" (of GPU 0; an error when there is none), or parseTargetName of anything else.
Expected<TargetName> resolveTarget(std::string_view text);

/// The best known CUDA target that runs on a GPU of this compute capability: its own, or the highest older one whose code
/// the driver can translate (targets that end in 'a' run on their own architecture only).
Expected<TargetName> cudaTargetFor(int major, int minor);

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_TARGETCHOICE_H
