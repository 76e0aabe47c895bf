//===- DgpuDialect.cpp - Generated parts of the dgpu dialect --------------------------------------------*- C++ -*-===//
//
// Registration, aliases (#L, #S) and all code that mlir-tblgen writes. The text and the checks of attributes and types
// are in DgpuAttributes.cpp, those of operations in DgpuOps.cpp.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dgpu/Dgpu.h"

#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/dialect/tile/AttributeTable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ditron::dgpu;

#include "ditron/dialect/dgpu/DgpuDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ditron/dialect/dgpu/DgpuAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ditron/dialect/dgpu/DgpuTypes.cpp.inc"
#define GET_OP_CLASSES
#include "ditron/dialect/dgpu/DgpuOps.cpp.inc"

namespace {
/// Layouts are long and repeated: `#L`, `#L1` for register layouts, `#S` for shared ones.
struct AliasInterface : public OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (isa<LayoutAttr>(attribute)) {
      os << "L";
      return AliasResult::FinalAlias;
    }
    if (isa<SharedLayoutAttr>(attribute)) {
      os << "S";
      return AliasResult::FinalAlias;
    }
    return AliasResult::NoAlias;
  }
};
} // namespace

void DgpuDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ditron/dialect/dgpu/DgpuAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ditron/dialect/dgpu/DgpuTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ditron/dialect/dgpu/DgpuOps.cpp.inc"
      >();
  addInterfaces<AliasInterface>();
}

Operation *DgpuDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

LogicalResult DgpuDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  constexpr auto isBranch = [](Operation *carrier) { return isa<scf::IfOp>(carrier); };
  constexpr auto isTensorAccess = [](Operation *carrier) {
    return isa<ditron::tile::LoadOp, ditron::tile::StoreOp, AsyncCopyOp>(carrier);
  };
  using enum ditron::tile::AttributeKind;
  using ditron::tile::isModule, ditron::tile::isModuleOrFunction, ditron::tile::isOurs;
  static constexpr ditron::tile::AttributeRule table[] = {
      {numWarpsAttrName, Integer, "the module and functions", isModuleOrFunction},
      {threadsPerWarpAttrName, Integer, "the module and functions", isModuleOrFunction},
      {numStagesAttrName, Integer, "the module and functions", isModuleOrFunction},
      {sharedBytesAttrName, Integer, "the module", isModule},
      {launchWarpsAttrName, Integer, "the module", isModule},
      {targetAttrName, String, "the module", isModule},
      {wgmmaAttrName, Unit, "the module", isModule},
      {tmaAttrName, Unit, "the module", isModule},
      {publishWaitsAttrName, Unit, "the module", isModule},
      {noteEventsAttrName, Unit, "the module", isModule},
      {boundWaitsAttrName, Unit, "the module", isModule},
      {residentBlocksAttrName, Integer, "the module", isModule},
      {changesTensorMapsAttrName, Unit, "the module", isModule},
      {sumsHalvesAttrName, Unit, "the module", isModule},
      {partitionsAttrName, Integer, "the branch between partitions", isBranch},
      {activeWarpsAttrName, Integer, "the branch between partitions", isBranch},
      {vectorAxisAttrName, Integer, "accesses of tensors", isTensorAccess},
      {vectorElemsAttrName, Integer, "accesses of tensors", isTensorAccess},
      {genericAttrName, Unit, "accesses of memory", isOurs},
  };
  return ditron::tile::verifyByTable(op, attribute, table);
}

LogicalResult DgpuDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  static constexpr ditron::tile::AttributeRule table[] = {
      {tensorMapAttrName, ditron::tile::AttributeKind::Dictionary, "arguments of functions", ditron::tile::isFunction},
      {numProgramsAttrName, ditron::tile::AttributeKind::Integer, "arguments of functions", ditron::tile::isFunction}};
  return ditron::tile::verifyByTable(op, attribute, table);
}
