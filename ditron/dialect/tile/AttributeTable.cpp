//===- AttributeTable.cpp - Attributes that a dialect lets any operation carry ----------------------------------------------===//
//
// See AttributeTable.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/AttributeTable.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace ditron::tile {

static bool hasKind(Attribute value, AttributeKind kind) {
  switch (kind) {
  case AttributeKind::Unit: return isa<UnitAttr>(value);
  case AttributeKind::Integer: return isa<IntegerAttr>(value);
  case AttributeKind::String: return isa<StringAttr>(value);
  case AttributeKind::Dictionary: return isa<DictionaryAttr>(value);
  }
  return false;
}

static StringRef nameOf(AttributeKind kind) {
  switch (kind) {
  case AttributeKind::Unit: return "no value";
  case AttributeKind::Integer: return "an integer";
  case AttributeKind::String: return "a string";
  case AttributeKind::Dictionary: return "a dictionary";
  }
  return "";
}

LogicalResult verifyByTable(Operation *op, NamedAttribute attribute, ArrayRef<AttributeRule> table) {
  StringRef name = attribute.getName().getValue();
  const auto *rule = llvm::find_if(table, [&](const AttributeRule &each) { return each.name == name; });
  if (rule == table.end()) {
    InFlightDiagnostic error = op->emitError() << "there is no attribute '" << name << "'; known are ";
    llvm::interleaveComma(table, error, [&](const AttributeRule &each) { error << each.name; });
    return error;
  }
  if (!rule->isCarrier(op))
    return op->emitError() << "'" << name << "' is an attribute of " << rule->carriers << ", not of '" << op->getName()
                           << "'";
  if (!hasKind(attribute.getValue(), rule->kind))
    return op->emitError() << "'" << name << "' takes " << nameOf(rule->kind) << ", not " << attribute.getValue();
  return success();
}

bool isModule(Operation *op) { return isa<ModuleOp>(op); }
bool isFunction(Operation *op) { return isa<FunctionOpInterface>(op); }
bool isModuleOrFunction(Operation *op) { return isModule(op) || isFunction(op); }
bool isOurs(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  return dialect == "tile" || dialect == "dist" || dialect == "dgpu";
}

} // namespace ditron::tile
