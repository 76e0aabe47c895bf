//===- Provenance.cpp - Which pointers lead to other ranks ------------------------------------------------*- C++ -*-===//
//
// Forward from each symm_at along uses, pointer by pointer.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/Provenance.h"

#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
namespace tile = ditron::tile;
namespace dist = ditron::dist;

namespace ditron::analysis {

SmallVector<Value> flowsTo(OpOperand &use) {
  Operation *user = use.getOwner();
  unsigned number = use.getOperandNumber();
  if (auto loop = dyn_cast<scf::ForOp>(user)) {
    if (number < loop.getNumControlOperands())
      return {};
    unsigned slot = number - loop.getNumControlOperands();
    return {loop.getRegionIterArgs()[slot], loop.getResult(slot)};
  }
  if (auto loop = dyn_cast<scf::WhileOp>(user))
    return {loop.getBeforeArguments()[number]};
  if (isa<scf::ConditionOp>(user)) {
    auto loop = cast<scf::WhileOp>(user->getParentOp());
    if (number == 0)
      return {};
    return {loop.getAfterArguments()[number - 1], loop.getResult(number - 1)};
  }
  if (isa<scf::YieldOp>(user)) {
    Operation *parent = user->getParentOp();
    if (auto loop = dyn_cast<scf::WhileOp>(parent))
      return {loop.getBeforeArguments()[number]};
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return {loop.getRegionIterArgs()[number], loop.getResult(number)};
    return {parent->getResult(number)};
  }
  if (isa<scf::IfOp>(user))
    return {};
  return SmallVector<Value>(user->getResults());
}

static bool isPointer(Type type) { return isa<tile::PointerType>(tile::elementTypeOf(type)); }

PeerPointers::PeerPointers(Operation *root) {
  SmallVector<Value> work;
  root->walk([&](dist::SymmAtOp op) {
    if (op.getRank().getDefiningOp<dist::RankOp>())
      return;
    sources[op.getResult()] = op;
    work.push_back(op.getResult());
  });
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      // What is loaded through a pointer is another matter.
      bool isHandedOn = isa<tile::AddPtrOp, tile::PtrCastOp, tile::HintOp, tile::SplatOp, tile::BroadcastOp, tile::ExpandDimsOp, tile::ReshapeOp,
                            dist::ConsumeTokenOp, arith::SelectOp, scf::ForOp, scf::WhileOp, scf::ConditionOp, scf::YieldOp>(use.getOwner());
      if (!isHandedOn)
        continue;
      for (Value next : flowsTo(use))
        if (isPointer(next.getType()) && sources.try_emplace(next, sources[value]).second)
          work.push_back(next);
    }
  }
}

} // namespace ditron::analysis
