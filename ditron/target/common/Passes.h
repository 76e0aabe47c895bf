//===- Passes.h - The pass ditron-to-llvm -----------------------------------------------------------------*- C++ -*-===//
//
// The lowering from laid-out tile code to the LLVM dialect. Targets must have been registered (registerTarget).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_PASSES_H
#define DITRON_TARGET_COMMON_PASSES_H

#include <memory>
#include <string>

namespace mlir {
class Pass;
}

namespace ditron::target {

/// `ditron-to-llvm`: tile, dist, dgpu, arith, math, scf and func to the LLVM dialect. An empty target name means that of
/// the module's dgpu.target attribute.
std::unique_ptr<mlir::Pass> createDitronToLLVMPass(std::string target = {});

/// Registers `ditron-to-llvm` with the pass registry, for ditron-opt.
void registerDitronToLLVMPass();

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_PASSES_H
