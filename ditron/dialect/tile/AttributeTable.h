//===- AttributeTable.h - Attributes that a dialect lets any operation carry --------------------------------*- C++ -*-===//
//
// Some facts belong to operations of other dialects (options of a loop), to functions or to the module; MLIR calls their attributes
// discardable. Nobody declares them, so that a slip in a name or a type would be a fact that is silently not there. Each of our
// dialects therefore lists its own: name, type, and what may carry it. MLIR's verifier asks the dialect, after every pass.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_TILE_ATTRIBUTETABLE_H
#define DITRON_DIALECT_TILE_ATTRIBUTETABLE_H

#include "mlir/IR/Attributes.h"
#include "mlir/Support/LLVM.h"

namespace ditron::tile {

/// The type of an attribute's value.
enum class AttributeKind { Unit, Integer, String, Dictionary };

struct AttributeRule {
  llvm::StringLiteral name;
  AttributeKind kind;
  llvm::StringLiteral carriers; ///< In words, for the error.
  bool (*isCarrier)(mlir::Operation *op);
};

/// Refuses an attribute that is not in the table, has another type or is carried by something else.
llvm::LogicalResult verifyByTable(mlir::Operation *op, mlir::NamedAttribute attribute,
                                  llvm::ArrayRef<AttributeRule> table);

/// Carriers that several tables name.
bool isModule(mlir::Operation *op);
bool isFunction(mlir::Operation *op);
bool isModuleOrFunction(mlir::Operation *op);
/// Of tile, dist or dgpu.
bool isOurs(mlir::Operation *op);

} // namespace ditron::tile

#endif // DITRON_DIALECT_TILE_ATTRIBUTETABLE_H
