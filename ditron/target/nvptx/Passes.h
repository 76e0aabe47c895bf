//===- Passes.h - Passes for the sake of NVIDIA's assembler -----------------------------------------------*- C++ -*-===//
//
// See Passes.td. The pipeline gets them from TargetInfo::assemblerPasses.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_PASSES_H
#define DITRON_TARGET_NVPTX_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace ditron::target {

#define GEN_PASS_DECL
#include "ditron/target/nvptx/NvptxPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "ditron/target/nvptx/NvptxPasses.h.inc"

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_PASSES_H
