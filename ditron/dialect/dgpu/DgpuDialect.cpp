//===- DgpuDialect.cpp - Generated parts of the dgpu dialect --------------------------------------------*- C++ -*-===//
//
// Registration, aliases (#L, #S) and all code that mlir-tblgen writes. The text and the checks of attributes and types
// are in DgpuAttributes.cpp, those of operations in DgpuOps.cpp.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dgpu/Dgpu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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
