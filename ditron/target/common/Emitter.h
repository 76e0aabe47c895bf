//===- Emitter.h - A builder for the scalar code of one thread --------------------------------------------*- C++ -*-===//
//
// A builder with a location and short names for the LLVM dialect instructions that address arithmetic and data movement are
// made of. It folds neutral elements and sums and products of constants, so that callers need no special case for offset 0;
// the rest is LLVM's.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_EMITTER_H
#define DITRON_TARGET_COMMON_EMITTER_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>

namespace ditron::target {

class Emitter : public mlir::ImplicitLocOpBuilder {
public:
  Emitter(mlir::Location loc, mlir::OpBuilder &builder) : ImplicitLocOpBuilder(loc, builder) {}

  // Constants.
  mlir::Value constant(mlir::Type integer, int64_t value);
  mlir::Value i1(bool value) { return constant(getI1Type(), value); }
  mlir::Value i32(int64_t value) { return constant(getI32Type(), value); }
  mlir::Value i64(int64_t value) { return constant(getI64Type(), value); }
  /// A zero of any scalar type.
  mlir::Value zero(mlir::Type type);
  std::optional<int64_t> constantOf(mlir::Value value);

  // Integers.
  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs);
  mlir::Value bitAnd(mlir::Value lhs, mlir::Value rhs);
  mlir::Value bitOr(mlir::Value lhs, mlir::Value rhs);
  mlir::Value bitXor(mlir::Value lhs, mlir::Value rhs);
  mlir::Value shl(mlir::Value value, int amount);
  mlir::Value lshr(mlir::Value value, int amount);
  /// Zero-extends or truncates to the type.
  mlir::Value zextOrTrunc(mlir::Value value, mlir::Type type);
  mlir::Value sextOrTrunc(mlir::Value value, mlir::Type type);
  mlir::Value compare(mlir::LLVM::ICmpPredicate predicate, mlir::Value lhs, mlir::Value rhs);
  mlir::Value isZero(mlir::Value value);
  mlir::Value isNotZero(mlir::Value value);
  /// Bit `position` of an integer, as i1.
  mlir::Value bitOf(mlir::Value value, int position);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  /// Conjunction in which a null operand means true; null when both are.
  mlir::Value conjunction(mlir::Value lhs, mlir::Value rhs);

  // Bits. Every scalar has an integer of its width.
  static unsigned bitWidth(mlir::Type scalar);
  mlir::Value toBits(mlir::Value value);
  mlir::Value fromBits(mlir::Value bits, mlir::Type type);
  mlir::Value bitcast(mlir::Value value, mlir::Type type);

  // Pointers.
  mlir::Type pointerType() { return mlir::LLVM::LLVMPointerType::get(getContext()); }
  /// `ptr` plus an i32 or i64 number of bytes.
  mlir::Value addBytes(mlir::Value ptr, mlir::Value bytes);
  mlir::Value addBytes(mlir::Value ptr, int64_t bytes);

  // Vectors.
  mlir::Value packVector(mlir::ValueRange values);
  llvm::SmallVector<mlir::Value> unpackVector(mlir::Value vector);

  // Stack memory, reserved once at function entry.
  mlir::Value allocaAtEntry(mlir::Type element, int64_t count, int alignment);
};

/// The type that a scalar has in memory: i1 is one byte, a pointer 64 bits, all else itself.
mlir::Type memoryType(mlir::Type storage);
mlir::Value toMemory(Emitter &e, mlir::Value value);
mlir::Value fromMemory(Emitter &e, mlir::Value value, mlir::Type storage);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_EMITTER_H
