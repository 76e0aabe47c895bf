//===- Decorators.h - What decorators say about a kernel ------------------------------------------------------*- C++ -*-===//
//
// Reads the decorators of a kernel with the interpreter. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_DECORATORS_H
#define DITRON_FRONTEND_DECORATORS_H

#include "ditron/frontend/Import.h"
#include "ditron/frontend/Interpreter.h"

namespace ditron::frontend {

/// The configurations, keys and names of heuristics. What cannot be evaluated is told in `problem`.
TuningSpace readTuningSpace(const ast::FunctionDef *kernel, const ModuleScope &scope, Interpreter &interpreter,
                            const SourceManager &sources);
/// Clears the flags of the parameters that do_not_specialize and do_not_specialize_on_alignment list.
Status applySpecialisationRules(KernelInfo &info, const ast::FunctionDef *kernel, const ModuleScope &scope,
                                Interpreter &interpreter);
/// Remarks on decorators that nobody knows.
void noteUnknownDecorators(const ast::FunctionDef *kernel, const ModuleScope &scope, DiagnosticEngine &diagnostics);
/// A value that a parameter can have; nullopt for lists, functions and the like.
std::optional<ConstexprArgument> constexprArgument(const HostValue &value);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_DECORATORS_H
