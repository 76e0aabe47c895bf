//===- FloatFormats.h - Floats that a target has no instructions for --------------------------------------*- C++ -*-===//
//
// bf16 and the 8-bit formats on targets that do not compute in them: conversion from and to f32 with integer instructions.
// Narrowing rounds to nearest, ties to even; the 8-bit formats saturate at their largest finite value and keep NaN.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_FLOATFORMATS_H
#define DITRON_TARGET_COMMON_FLOATFORMATS_H

#include "ditron/target/common/Emitter.h"

namespace ditron::target {

/// The f32 that an integer bit pattern of `format` means.
mlir::Value extendToF32(Emitter &e, mlir::Value bits, mlir::FloatType format);
/// The bit pattern of `format` nearest to an f32.
mlir::Value truncateFromF32(Emitter &e, mlir::Value value, mlir::FloatType format);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_FLOATFORMATS_H
