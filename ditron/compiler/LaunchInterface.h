//===- LaunchInterface.h - What a launch has to know of the compiled module -----------------------------*- C++ -*-===//
//
// Passes decide things that the launcher must act on: which tensors need maps for the copy engine, how many warps a block has
// besides those of the language, how much shared memory it uses. They leave them in attributes, which are read here.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_COMPILER_LAUNCHINTERFACE_H
#define DITRON_COMPILER_LAUNCHINTERFACE_H

#include "ditron/support/Artifact.h"
#include "ditron/support/Status.h"

#include "mlir/IR/BuiltinOps.h"

namespace ditron::compiler {

/// The artifact's members that passes decide.
struct LaunchInterface {
  std::vector<ArtifactTensorMap> tensorMaps;
  bool loopsOverPrograms = false;
  uint32_t numWarps = 0;
  uint32_t launchWarps = 0;
  uint64_t sharedBytes = 0;
};

/// Reads the module as assignHardware leaves it.
Expected<LaunchInterface> readLaunchInterface(mlir::ModuleOp module);

} // namespace ditron::compiler
#endif // DITRON_COMPILER_LAUNCHINTERFACE_H
