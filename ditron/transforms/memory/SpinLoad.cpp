//===- SpinLoad.cpp - Loops that do nothing but test memory -----------------------------------------------------------------===//
#include "ditron/transforms/memory/SpinLoad.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace ditron::transforms {

Operation *spinLoadOf(scf::WhileOp loop) {
  if (!loop.getInits().empty())
    return nullptr;
  Operation *load = nullptr;
  WalkResult walk = loop.walk([&](Operation *op) {
    if (op == loop || isa<scf::ConditionOp, scf::YieldOp, dgpu::OrderLanesOp>(op) || isMemoryEffectFree(op))
      return WalkResult::advance();
    auto plain = dyn_cast<tile::LoadOp>(op);
    bool isLoad = isa<dist::LdOp>(op) || (plain && plain.getIsVolatile() && !isa<RankedTensorType>(plain.getType()));
    if (!isLoad || load)
      return WalkResult::interrupt();
    load = op;
    return WalkResult::advance();
  });
  return walk.wasInterrupted() ? nullptr : load;
}

} // namespace ditron::transforms
