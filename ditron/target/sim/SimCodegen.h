//===- SimCodegen.h - From the LLVM dialect to code of the host -------------------------------------------*- C++ -*-===//
//
// Turns a module that `ditron-to-llvm` lowered for a sim target into LLVM IR, optimises it and writes a relocatable object
// for this machine. Linking and loading is the jit room's.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_SIMCODEGEN_H
#define DITRON_TARGET_SIM_SIMCODEGEN_H

#include "ditron/support/Status.h"
#include "ditron/target/common/StepClock.h"

#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace ditron::target {

struct SimCodegenOptions {
  /// 0 to 3.
  int optimizationLevel = 2;
  /// Also keep the text of LLVM IR (optimised) and assembly.
  bool keepLLVMText = false;
  bool keepAssembly = false;
};

struct SimCode {
  std::vector<char> object; ///< An ELF relocatable file for the host.
  std::string llvmText;     ///< When asked for.
  std::string assemblyText; ///< When asked for.
  std::vector<StepTime> steps;
};

/// The module is in the LLVM dialect. It is not changed.
Expected<SimCode> emitSimObject(mlir::ModuleOp module, const SimCodegenOptions &options = {});

} // namespace ditron::target

#endif // DITRON_TARGET_SIM_SIMCODEGEN_H
