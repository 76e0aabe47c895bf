//===- RegionValues.h - Values that control flow carries ----------------------------------------------------*- C++ -*-===//
//
// scf operations hand values on: an initial value becomes a loop argument, a yielded one the next argument and finally the
// result. All of these have one type. The two functions here say which values are tied in this way, forward and backward, for
// scf.for, scf.while and scf.if, and for dgpu.warpgroup_wait, which gives its operands back.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_REGIONVALUES_H
#define DITRON_TRANSFORMS_REGIONVALUES_H

#include "mlir/IR/Operation.h"

namespace ditron::transforms {

/// The values that receive `use` when control flow hands it on: for an operand of scf.for, scf.while, scf.yield or
/// scf.condition the loop arguments and results; otherwise nothing.
llvm::SmallVector<mlir::Value> valuesTiedTo(mlir::OpOperand &use);

/// The values that `value` may be when it is a loop argument or a result of an scf operation, together with other arguments
/// and results that are the same carried value; otherwise nothing.
llvm::SmallVector<mlir::Value> sourcesOf(mlir::Value value);

/// Values that always have the same type have one carrier: the argument for a result of scf.for or scf.while, the first result for
/// operations whose results are alike. A value that stands for itself is its own carrier.
mlir::Value carrierOf(mlir::Value value);
/// All values with this carrier, the carrier included.
llvm::SmallVector<mlir::Value> carriedBy(mlir::Value carrier);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_REGIONVALUES_H
