//===- GuardEffects.cpp - Side effects of regions on scalars happen once --------------------------------------------------===//
//
// The pass dgpu-guard-effects. A layout may give copies of an element to several threads, and each of them computes what the region of
// a reduction, scan or map makes of it. That is right for arithmetic, but a store, an atomic or an assertion in the region is to
// happen once for each application:
//
//   ^bb0(%a: i32):                                   ^bb0(%a: i32):
//     %old = tile.atomic_rmw add .. %p, %a             %mine = dgpu.performs
//     tile.yield %old                       ->         %old = scf.if %mine { %x = tile.atomic_rmw .. {dist.per_thread}; yield %x }
//                                                             else { yield 0 }
//                                                      tile.yield %old
//
// The lowering knows which thread performs; where results of effects are used it hands them to the threads with copies.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_GUARDEFFECTS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// A value that nobody reads, where an effect does not happen.
Value placeholder(OpBuilder &builder, Location loc, Type type) {
  if (TypedAttr zero = builder.getZeroAttr(type))
    return arith::ConstantOp::create(builder, loc, zero);
  Value address = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(0));
  return tile::IntToPtrOp::create(builder, loc, type, address);
}

void guard(Operation *effect, Value performs) {
  effect->setAttr(dist::perThreadAttrName, UnitAttr::get(effect->getContext()));
  OpBuilder builder(effect);
  Location loc = effect->getLoc();
  bool isUsed = !effect->use_empty();
  auto branch = scf::IfOp::create(builder, loc, isUsed ? TypeRange(effect->getResultTypes()) : TypeRange(), performs,
                                  /*withElseRegion=*/isUsed);
  if (isUsed) {
    effect->replaceAllUsesWith(branch.getResults());
    builder.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(builder, loc, effect->getResults());
    builder.setInsertionPointToEnd(branch.elseBlock());
    SmallVector<Value> others;
    for (Type type : effect->getResultTypes())
      others.push_back(placeholder(builder, loc, type));
    scf::YieldOp::create(builder, loc, others);
  }
  effect->moveBefore(branch.thenBlock(), branch.thenBlock()->begin());
}

class GuardEffectsPass : public impl::GuardEffectsBase<GuardEffectsPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (!isa<tile::ReduceOp, tile::ScanOp, tile::MapElementwiseOp>(op) || !analysis::regionHasEffects(op))
        return;
      SmallVector<Operation *> effects;
      op->getRegion(0).walk([&](Operation *inner) {
        if (analysis::isScalarEffect(inner))
          effects.push_back(inner);
      });
      auto builder = OpBuilder::atBlockBegin(&op->getRegion(0).front());
      Value performs = dgpu::PerformsOp::create(builder, op->getLoc());
      for (Operation *effect : effects)
        guard(effect, performs);
    });
  }
};

} // namespace
} // namespace ditron::transforms
