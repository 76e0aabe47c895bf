//===- Architecture.h - What NVIDIA architectures have ----------------------------------------------------*- C++ -*-===//
//
// The table of compute capabilities that we generate code for. PTX versions are the lowest that know the architecture and all
// instructions that we emit for it, so that code runs on drivers as old as possible.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_ARCHITECTURE_H
#define DITRON_TARGET_NVPTX_ARCHITECTURE_H

#include "ditron/support/Status.h"

#include <cstdint>
#include <string_view>

namespace ditron::target {

struct NvptxArchitecture {
  std::string_view name;       ///< As LLVM, ptxas and our target names call it: "sm_90a".
  int capability;              ///< 90 for 9.0.
  std::string_view ptxFeature; ///< LLVM's feature name of the PTX version.
  int64_t sharedBytes;         ///< Shared memory that one block may ask for.

  /// atom.add on bf16 and arithmetic on bf16 (before: only fma, of which LLVM makes the rest).
  bool hasBf16Atomics() const { return capability >= 90; }
  /// wgmma, of this architecture alone; 10.0 has other instructions.
  bool hasWgmma() const { return capability == 90; }
  bool convertsFloat8() const { return capability >= 89; }
};

/// By the name of a target: "cuda:sm_90a". The error lists what is known.
Expected<NvptxArchitecture> nvptxArchitectureOf(std::string_view targetName);

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_ARCHITECTURE_H
