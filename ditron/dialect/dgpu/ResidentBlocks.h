//===- ResidentBlocks.h - For how many blocks a multiprocessor shall have registers ---------------------------*- C++ -*-===//
//
// dgpu.resident_blocks of a module. Callers ask for it; where warps give registers to others, dgpu-specialize-warps decides, for it divides
// what a block has. Where nobody says it, it is one of kernels that multiply tiles; of others whoever loads the code may choose.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_DGPU_RESIDENTBLOCKS_H
#define DITRON_DIALECT_DGPU_RESIDENTBLOCKS_H

#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace ditron::dgpu {

/// Of the module around an operation, or of the module itself.
inline int residentBlocksOf(mlir::Operation *op) {
  auto module = mlir::dyn_cast<mlir::ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<mlir::ModuleOp>();
  auto blocks = module->getAttrOfType<mlir::IntegerAttr>(residentBlocksAttrName);
  return blocks ? static_cast<int>(blocks.getInt()) : 1;
}

inline void setResidentBlocks(mlir::ModuleOp module, int blocks) {
  if (blocks > 1)
    module->setAttr(residentBlocksAttrName, mlir::Builder(module).getI32IntegerAttr(blocks));
  else
    module->removeAttr(residentBlocksAttrName);
}

} // namespace ditron::dgpu

#endif // DITRON_DIALECT_DGPU_RESIDENTBLOCKS_H
