//===- Artifact.h - The result of compiling a kernel -----------------------------------------------------*- C++ -*-===//
//
// What the compiler hands to the runtime: code for one target and what a launch has to know about it. Plain data, free of
// MLIR and LLVM, so that a process which only runs compiled kernels links neither.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_ARTIFACT_H
#define DITRON_SUPPORT_ARTIFACT_H

#include <cstdint>
#include <string>
#include <vector>

namespace ditron {

/// A run-time parameter of a compiled kernel, in launch order.
struct ArtifactParameter {
  std::string name;
  std::string type;         ///< Signature text: "*bf16", "i32", "fp32", ...
  uint32_t bytes = 0;       ///< Size of the value in the argument buffer.
  uint32_t divisibility = 1; ///< The compiled code relies on the value (address or integer) being a multiple of this.
};

enum class ArtifactCode {
  HostObject, ///< Relocatable object for this machine, calling the simulator (sim targets).
  Ptx,        ///< PTX text; the driver assembles it.
  Cubin,      ///< Machine code of one NVIDIA architecture.
};

struct Artifact {
  std::string kernel;      ///< Name of the kernel function in its source.
  std::string entrySymbol; ///< Symbol of the entry point in `code`.
  std::string target;      ///< For example "sim:sm_80".
  std::string sourceFile;
  std::vector<ArtifactParameter> parameters; ///< Without the hidden world-view pointer, which is always passed last.
  uint32_t numWarps = 4;
  uint32_t threadsPerWarp = 32;
  uint64_t sharedBytes = 0;
  ArtifactCode codeKind = ArtifactCode::HostObject;
  std::string code;
};

} // namespace ditron
#endif // DITRON_SUPPORT_ARTIFACT_H
