//===- DistDialect.cpp - Generated parts of the dist dialect --------------------------------------------*- C++ -*-===//
//
// Registration and all code that mlir-tblgen writes for the operations. Verifiers and folders are in DistVerifiers.cpp.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ditron::dist;

#include "ditron/dialect/dist/DistDialect.cpp.inc"
#include "ditron/dialect/dist/DistEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ditron/dialect/dist/DistAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "ditron/dialect/dist/DistOps.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ditron/dialect/dist/DistAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ditron/dialect/dist/DistOps.cpp.inc"
      >();
}

Operation *DistDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}
