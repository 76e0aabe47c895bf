//===- ResourceLimit.h - Errors about what a target has too little of --------------------------------------*- C++ -*-===//
//
// A kernel may be right and still need more shared memory or registers than the target has. Passes report that at the kernel's
// line as any other error, and mark it, so that whoever tries several configurations, or reads an exit code, can tell.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_ANALYSIS_RESOURCELIMIT_H
#define DITRON_ANALYSIS_RESOURCELIMIT_H

#include "mlir/IR/Diagnostics.h"

namespace ditron::analysis {

inline constexpr llvm::StringLiteral resourceLimitMark = "resource limit";

/// Marks an error as one about a limit of the target.
inline void markResourceLimit(mlir::InFlightDiagnostic &error) {
  error.getUnderlyingDiagnostic()->getMetadata().emplace_back(llvm::StringRef(resourceLimitMark));
}

/// True for an error that was marked.
inline bool isResourceLimit(mlir::Diagnostic &error) {
  return llvm::any_of(error.getMetadata(), [](const mlir::DiagnosticArgument &mark) {
    return mark.getKind() == mlir::DiagnosticArgument::DiagnosticArgumentKind::String &&
           mark.getAsString() == resourceLimitMark;
  });
}

} // namespace ditron::analysis

#endif // DITRON_ANALYSIS_RESOURCELIMIT_H
