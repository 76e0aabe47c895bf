//===- LineInfo.h - Source lines in PTX -------------------------------------------------------------------*- C++ -*-===//
//
// Makes the backend write `.loc` lines that name places in the kernel's file, as nvcc -lineinfo does, so that profilers,
// debuggers and the driver's messages can show the source. Nothing else of debug information is emitted.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_NVPTX_LINEINFO_H
#define DITRON_TARGET_NVPTX_LINEINFO_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ditron::target {

/// A copy of a lowered module whose locations survive the translation to LLVM IR. Null if that fails.
mlir::OwningOpRef<mlir::ModuleOp> withLineInfo(mlir::ModuleOp module);

} // namespace ditron::target

#endif // DITRON_TARGET_NVPTX_LINEINFO_H
