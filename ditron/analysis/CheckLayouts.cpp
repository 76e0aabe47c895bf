//===- CheckLayouts.cpp - Has every tensor a layout? ---------------------------------------------------------------------===//
//
// See CheckLayouts.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/CheckLayouts.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace ditron::analysis {

using namespace mlir;

LogicalResult checkLayouts(Operation *root, StringRef user) {
  auto lacksLayout = [](Value value) {
    return isa<RankedTensorType>(value.getType()) && !dgpu::layoutAttrOf(value.getType());
  };
  const WalkResult result = root->walk([&](Operation *op) {
    bool lacks = llvm::any_of(op->getResults(), lacksLayout);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        lacks |= llvm::any_of(block.getArguments(), lacksLayout);
    if (!lacks)
      return WalkResult::advance();
    op->emitError("a tensor has no layout: dgpu-assign-layouts comes before ") << user;
    return WalkResult::interrupt();
  });
  return success(!result.wasInterrupted());
}

} // namespace ditron::analysis
