//===- ApplyHints.cpp - What is promised of a value holds for all that comes behind -------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_APPLYHINTS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

class ApplyHintsPass : public impl::ApplyHintsBase<ApplyHintsPass> {
  void runOnOperation() override {
    const DominanceInfo dominance(getOperation());
    getOperation().walk([&](tile::HintOp hint) {
      hint.getSource().replaceUsesWithIf(hint.getResult(), [&](OpOperand &use) {
        return dominance.properlyDominates(hint.getOperation(), use.getOwner());
      });
    });
  }
};

} // namespace
} // namespace ditron::transforms
