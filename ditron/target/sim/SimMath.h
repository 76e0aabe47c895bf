//===- SimMath.h - Arithmetic that the host does otherwise than a GPU --------------------------------------*- C++ -*-===//
//
// Conversions of floats to integers saturate on a GPU and give 0 for NaN; on the host the results are arbitrary.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_SIMMATH_H
#define DITRON_TARGET_SIM_SIMMATH_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/PatternMatch.h"

namespace ditron::target {

/// Patterns that come before the usual ones.
void populateSimMathPatterns(const mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns);

} // namespace ditron::target

#endif // DITRON_TARGET_SIM_SIMMATH_H
