//===- ScalarOps.h - Elementwise operations applied to one element ----------------------------------------*- C++ -*-===//
//
// An arith or math operation on tensors is, for one thread, the same operation once per register. emitScalarOp creates that
// one application on lowered values. It is used for tensors, for scalars of types that the target does not compute in, and
// for the regions of reductions, scans and maps.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_SCALAROPS_H
#define DITRON_TARGET_COMMON_SCALAROPS_H

#include "ditron/target/common/TargetInfo.h"

namespace ditron::target {

/// True for operations that emitScalarOp can apply: elementwise arith and math operations without regions.
bool isScalarizable(mlir::Operation *op);

/// True for a division that would stop the program on this target for some divisor; emitScalarOp guards it.
bool isUnguardedDivision(const TargetInfo &target, mlir::Operation *op);
/// True for a narrowing of floats that rounds towards zero, for which the conversions below know no single instruction.
bool isTruncationTowardZero(mlir::Operation *op);
/// True for integers to f16. It is done by way of f32, with the same result: LLVM's vectoriser narrows the direct conversion to 16
/// bits as if it could not overflow to infinity.
bool isIntegerToHalf(mlir::Operation *op);

/// Applies `op` to lowered scalars (storage types). The semantic element types are those of op's own operands and results:
/// where the target does not compute in one of them, the arithmetic is done in f32 in between.
llvm::SmallVector<mlir::Value> emitScalarOp(Emitter &e, TargetInfo &target, mlir::Operation *op,
                                            mlir::ValueRange operands);

/// Converts a lowered scalar between semantic types: floats among each other, signed integers among each other. Wide floats
/// pass through f32 on their way to types that the target does not compute in.
/// The f32 that a float is which the target does not compute in, and the other way round.
mlir::Value widenFloat(Emitter &e, TargetInfo &target, mlir::Value bits, mlir::FloatType format);
mlir::Value narrowFloat(Emitter &e, TargetInfo &target, mlir::Value value, mlir::FloatType format);
mlir::Value convertScalar(Emitter &e, TargetInfo &target, mlir::Value value, mlir::Type from, mlir::Type to);

/// The constant that `attribute` of a semantic type is, as a value of the storage type.
mlir::Value emitConstant(Emitter &e, TargetInfo &target, mlir::TypedAttr attribute);

/// True if exchanging the operands of the region cannot change a bit of its result: one commutative operation.
bool isCommutative(mlir::Region &combine);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_SCALAROPS_H
