//===- AxisTransfer.h - How operations carry axis information -------------------------------------------*- C++ -*-===//
//
// The rules of the analysis in AxisInfo.h, one per operation; private to this room.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_ANALYSIS_AXISTRANSFER_H
#define DITRON_ANALYSIS_AXISTRANSFER_H

#include "ditron/analysis/AxisInfo.h"

namespace ditron::analysis {

/// What holds of result `index` of an operation without regions, given what holds of its operands (all initialised).
AxisInfo transferAxisInfo(mlir::Operation *op, unsigned index, llvm::ArrayRef<AxisInfo> operands);

/// What holds of the induction variable of a loop from `lower` in steps of `step`.
AxisInfo inductionAxisInfo(const AxisInfo &lower, const AxisInfo &step);

} // namespace ditron::analysis

#endif // DITRON_ANALYSIS_AXISTRANSFER_H
