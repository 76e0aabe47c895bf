//===- Decorators.h - What decorators say about a kernel ------------------------------------------------------*- C++ -*-===//
//
// Reads the decorators of a kernel, which the evaluator has applied. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_DECORATORS_H
#define DITRON_FRONTEND_DECORATORS_H

#include "ditron/frontend/Import.h"
#include "ditron/frontend/Evaluator.h"

namespace ditron::frontend {

/// The configurations, keys and names of heuristics. What cannot be evaluated is told in `problem`.
TuningSpace readTuningSpace(const FunctionValue &kernel, const Evaluator &evaluator, const SourceManager &sources);
/// Clears the flags of the parameters that do_not_specialize and do_not_specialize_on_alignment list.
Status applySpecialisationRules(KernelInfo &info, const FunctionValue &kernel, Evaluator &evaluator,
                                const SourceManager &sources);
/// Warns of decorators that change how the program launches the kernel in ways that are not known here.
void noteUnappliedDecorators(const FunctionValue &kernel, const Evaluator &evaluator, DiagnosticEngine &diagnostics);
/// A value that a parameter can have; nullopt for lists, functions and the like.
std::optional<ConstexprArgument> constexprArgument(const LangValue &value);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_DECORATORS_H
