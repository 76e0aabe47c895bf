//===- ScalarRegion.h - Regions on scalars: combine functions and functions applied to elements ------------*- C++ -*-===//
//
// The region of a reduction, scan or map is put in place once for each application. One of plain arithmetic is emitted directly on
// lowered values. Anything else (branches, loops, loads, side effects) is cloned as it is, and the conversion goes on with the
// clones; what enters and leaves is cast.
//
// Side effects happen once for each application although several threads may compute it: dgpu-guard-effects has put every effect under
// the condition dgpu.performs.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_SCALARREGION_H
#define DITRON_TARGET_COMMON_SCALARREGION_H

#include "ditron/target/common/Patterns.h"

namespace ditron::target {

/// Applies the region of `op` to lowered scalars. `performs` (i1, null for "true") is what dgpu.performs gives; it is asked for only
/// when the region has that.
llvm::SmallVector<mlir::Value> applyRegion(Emitter &e, const LoweringContext &lowering, mlir::Operation *op,
                                           mlir::ValueRange arguments, llvm::function_ref<mlir::Value()> performs);

/// For a region whose effects give results: hands the registers of all values, of tensors of this layout, from the threads that
/// perform to those that hold copies. `exchange` is the last of the operation, if warps hold copies.
mlir::LogicalResult shareWithCopies(Emitter &e, const LoweringContext &lowering, mlir::Operation *op,
                                    const layout::DistributedLayout &layout,
                                    llvm::SmallVectorImpl<llvm::SmallVector<mlir::Value>> &values);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_SCALARREGION_H
