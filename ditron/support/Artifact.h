//===- Artifact.h - The result of compiling a kernel -----------------------------------------------------*- C++ -*-===//
//
// What the compiler hands to the runtime: code for one target and what a launch has to know about it. Plain data, free of
// MLIR and LLVM, so that a process which only runs compiled kernels links neither.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SUPPORT_ARTIFACT_H
#define DITRON_SUPPORT_ARTIFACT_H

#include "ditron/support/DataType.h"

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

/// A number of a tensor map: a parameter's value, or known when the kernel was compiled.
struct ArtifactMapNumber {
  int32_t parameter = -1; ///< Index into Artifact::parameters; negative: `value` holds the number.
  int64_t value = 0;      ///< Of a parameter: what it is taken for where it is less, if positive.

  bool operator==(const ArtifactMapNumber &) const = default;
};

/// What the launcher tells the tensor copy engine of one tensor: 128 bytes, encoded for the device from the actual arguments and
/// passed by value. All lists hold the outermost dimension first.
struct ArtifactTensorMap {
  uint32_t base = 0; ///< The pointer parameter of the tensor.
  std::vector<ArtifactMapNumber> sizes;
  std::vector<ArtifactMapNumber> strides; ///< In elements; the last is 1.
  std::vector<uint32_t> box;              ///< What one copy moves.
  uint32_t swizzleBytes = 0;              ///< 0, 32, 64 or 128.
  std::string element;                    ///< Signature text: "bf16"; or `tf32`.
  bool fillNan = false;                   ///< What lies outside of the tensor reads as NaN, else as zero.

  /// As `element`: fp32 in memory, which loads round to tf32 on their way.
  static constexpr std::string_view tf32 = "tf32";
  bool roundsTf32() const { return element == tf32; }
  /// The type of the elements in memory; nothing if `element` names none.
  std::optional<DataType> elementType() const { return roundsTf32() ? DataType::F32 : parseDataType(element); }

  bool operator==(const ArtifactTensorMap &) const = default;
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
  std::vector<ArtifactParameter> parameters; ///< Without tensor maps and the hidden world-view pointer.
  std::vector<ArtifactTensorMap> tensorMaps; ///< Passed after the parameters; the world-view pointer is always the last.
  uint32_t numWarps = 4;    ///< As the language counts them.
  uint32_t launchWarps = 0; ///< Warps of a block with those that only fetch for the others; 0: numWarps.
  uint32_t threadsPerWarp = 32;
  uint64_t sharedBytes = 0;
  bool loopsOverPrograms =
      false; ///< Blocks run one program after the other; three extents follow the parameters (runtime/ProgramLoop.h).
  ArtifactCode codeKind = ArtifactCode::HostObject;
  std::string code;
};

} // namespace ditron
#endif // DITRON_SUPPORT_ARTIFACT_H
