//===- AgreeOnLoads.cpp - A word that others change is one value of the block -------------------------------------------------===//
//
// The pass tile-agree-on-loads. Threads of a block that load a word each for itself, while others change it, may get different values, though a
// scalar is one value of the block, and branches and loops that it decides are taken by all threads or by none:
//
//   %x = tile.load %p {isVolatile}  : i32            %t = tile.load (tile.splat %p) {isVolatile} : tensor<1xi32>
//                                             ->     %x = tile.unsplat %t
//
// A volatile load of a tile loads each element once. What single threads load stays, and so do loops that do nothing but look at a word: who leaves
// one has seen what it waited for, and carries nothing out of it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/analysis/Scratch.h"
#include "ditron/analysis/Uniformity.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/memory/SpinLoad.h"
#include "mlir/IR/BuiltinOps.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_AGREEONLOADS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// What all threads of the block load together.
bool isOfBlock(tile::LoadOp load, const analysis::UniformityAnalysis &uniformity) {
  if (!load.getIsVolatile() || !load.getType().isIntOrFloat() || analysis::isInScalarRegion(load))
    return false;
  const bool isVarying = llvm::any_of(load->getOperands(), [&](Value each) { return uniformity.isVarying(each); });
  return !isVarying && !uniformity.divergentCondition(load);
}

Value splat(OpBuilder &builder, Value value) {
  return value ? tile::SplatOp::create(builder, value.getLoc(), RankedTensorType::get({1}, value.getType()), value)
               : Value();
}

void loadOnce(tile::LoadOp load) {
  OpBuilder builder(load);
  const Location loc = load.getLoc();
  auto once = tile::LoadOp::create(builder, loc, splat(builder, load.getPtr()), splat(builder, load.getMask()),
                                   splat(builder, load.getOther()));
  once.setCache(load.getCache());
  once.setEvict(load.getEvict());
  once.setIsVolatile(true);
  load.replaceAllUsesWith(tile::UnsplatOp::create(builder, loc, load.getType(), once.getResult()).getResult());
  load.erase();
}

class AgreeOnLoadsPass : public impl::AgreeOnLoadsBase<AgreeOnLoadsPass> {
  void runOnOperation() override {
    llvm::DenseSet<Operation *> spins;
    getOperation().walk([&](scf::WhileOp loop) { spins.insert(spinLoadOf(loop)); });
    const analysis::UniformityAnalysis uniformity(getOperation());
    SmallVector<tile::LoadOp> loads;
    getOperation().walk([&](tile::LoadOp load) {
      if (!spins.contains(load) && isOfBlock(load, uniformity))
        loads.push_back(load);
    });
    llvm::for_each(loads, loadOnce);
  }
};

} // namespace
} // namespace ditron::transforms
