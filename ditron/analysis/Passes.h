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

} // namespace ditron::analysis

#endif // DITRON_ANALYSIS_PASSES_H
