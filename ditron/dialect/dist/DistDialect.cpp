//===- DistDialect.cpp - Generated parts of the dist dialect --------------------------------------------*- C++ -*-===//
//
// Registration and all code that mlir-tblgen writes for the operations. Verifiers and folders are in DistVerifiers.cpp.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/AttributeTable.h"

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

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  constexpr auto isWait = [](Operation *carrier) { return isa<WaitOp>(carrier); };
  constexpr auto isFence = [](Operation *carrier) { return isa<FenceOp>(carrier); };
  constexpr auto isLoad = [](Operation *carrier) { return isa<LdOp, ditron::tile::LoadOp>(carrier); };
  using enum ditron::tile::AttributeKind;
  static constexpr ditron::tile::AttributeRule table[] = {
      {tokenDroppedAttrName, Unit, "dist.wait", isWait},
      {sequentialAttrName, Unit, "dist.fence", isFence},
      {peerSourceAttrName, Unit, "the module", ditron::tile::isModule},
      {spinAttrName, Unit, "dist.ld and tile.load", isLoad},
      {perThreadAttrName, Unit, "operations of tile, dist and dgpu", ditron::tile::isOurs},
  };
  return ditron::tile::verifyByTable(op, attribute, table);
}
