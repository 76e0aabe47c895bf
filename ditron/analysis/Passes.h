//===- Passes.h - Passes that check or print facts ------------------------------------------------------*- C++ -*-===//
//
// Verifiers that belong into the pipeline, and the test passes that print what the analyses of this room find. See
// Passes.td.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_ANALYSIS_PASSES_H
#define DITRON_ANALYSIS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace ditron::analysis {

#define GEN_PASS_DECL
#include "ditron/analysis/AnalysisPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "ditron/analysis/AnalysisPasses.h.inc"

/// dist-verify-signals: scopes of accesses to other ranks, owners of signal words, instructions that the target lacks.
std::unique_ptr<mlir::Pass> createVerifySignals();
/// dist-verify-waits: tokens that are not consumed, loops that never see a change.
std::unique_ptr<mlir::Pass> createVerifyWaits();
/// Registers these two.
void registerVerifiers();

} // namespace ditron::analysis

#endif // DITRON_ANALYSIS_PASSES_H
