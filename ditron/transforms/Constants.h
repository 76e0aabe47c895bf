//===- Constants.h - Integers that are known when a kernel is compiled ------------------------------------------*- C++ -*-===//
#ifndef DITRON_TRANSFORMS_CONSTANTS_H
#define DITRON_TRANSFORMS_CONSTANTS_H

#include "mlir/IR/Matchers.h"

#include <optional>

namespace ditron::transforms {

/// The value of an integer, or of all elements of a tensor of integers, if that is a constant; else nothing.
inline std::optional<int64_t> constantOf(mlir::Value value) {
  llvm::APInt number;
  return mlir::matchPattern(value, mlir::m_ConstantInt(&number)) ? std::optional(number.getSExtValue()) : std::nullopt;
}

} // namespace ditron::transforms
#endif // DITRON_TRANSFORMS_CONSTANTS_H
