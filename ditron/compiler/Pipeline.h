//===- Pipeline.h - The stages between import and code generation ---------------------------------------*- C++ -*-===//
//
// The order of the passes, as two readable functions. What a stage does is said in the Passes.td of its room.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_COMPILER_PIPELINE_H
#define DITRON_COMPILER_PIPELINE_H

#include "ditron/compiler/StageRunner.h"

namespace ditron::target {
class TargetInfo;
}

namespace ditron::compiler {

/// Adds the dialects of the pipeline to a registry.
void registerPipelineDialects(mlir::DialectRegistry &registry);

/// Writes what the passes have to know of the options and the target into the module's attributes.
void annotateModule(mlir::ModuleOp module, const CompileOptions &options, target::TargetInfo &target);

/// From imported tile IR to tile IR with layouts, pipelined loops, shared memory and barriers. `describesTiles`: whether tiles that come through pointers
/// may become tiles of descriptors; afterwards whether some have.
Status assignHardware(StageRunner &run, mlir::ModuleOp module, const target::TargetInfo &target, bool &describesTiles);

/// From there to the LLVM dialect.
Status lowerToLLVM(StageRunner &run, mlir::ModuleOp module, const target::TargetInfo &target);

} // namespace ditron::compiler
#endif // DITRON_COMPILER_PIPELINE_H
