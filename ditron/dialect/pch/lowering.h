//===- lowering.h - Precompiled header of the rooms that lower to the LLVM dialect --------------------------*- C++ -*-===//
//
// core.h, the LLVM dialect and the conversion framework. NVVM and ROCDL never come in here (STYLE.md section 4).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/pch/core.h"

#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"
