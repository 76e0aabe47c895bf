//===- Passes.h - From tile code with layouts to LLVM -----------------------------------------------------*- C++ -*-===//
//
// See Passes.td. Targets must have been registered (registerTarget).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_PASSES_H
#define DITRON_TARGET_COMMON_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace ditron::target {

#define GEN_PASS_DECL
#include "ditron/target/common/TargetPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "ditron/target/common/TargetPasses.h.inc"

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_PASSES_H
