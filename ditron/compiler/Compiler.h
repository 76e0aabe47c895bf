//===- Compiler.h - Kernel source to artifact -----------------------------------------------------------*- C++ -*-===//
//
// The compiler as one function: a kernel of a file, for one signature and one target, becomes an Artifact. Wrong
// kernels give CompileError with the rendered diagnostic (source line and caret); what the compiler itself gets wrong
// gives Internal with the name of the stage and the path of a reproducer. One call is independent of every other; none
// uses threads.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_COMPILER_COMPILER_H
#define DITRON_COMPILER_COMPILER_H

#include "ditron/compiler/KernelInterface.h"

namespace ditron::compiler {

/// Forms in which a compilation can be looked at.
enum class EmitStage {
  Ast,    ///< The syntax tree of the file.
  Tile,   ///< Imported: tensors without layouts.
  Layout, ///< Before lowering: layouts, pipelined loops, shared memory, barriers.
  Llvm,   ///< LLVM IR, optimised.
  Asm,    ///< Assembly of the target.
};
std::string_view toString(EmitStage stage);
/// By name: ast, tile, layout, llvm, asm. The error names the nearest.
Expected<EmitStage> parseEmitStage(std::string_view name);

/// Compiles one variant of a kernel. `report`, when given, receives times and messages, also of failures.
Expected<Artifact> compileKernel(const KernelSource &source, std::string_view kernel,
                                 const frontend::KernelSignature &signature, const CompileOptions &options,
                                 CompileReport *report = nullptr);

/// Compiles as far as the stage and gives its text.
Expected<std::string> emitStage(const KernelSource &source, std::string_view kernel,
                                const frontend::KernelSignature &signature, const CompileOptions &options,
                                EmitStage stage, CompileReport *report = nullptr);

} // namespace ditron::compiler
#endif // DITRON_COMPILER_COMPILER_H
