//===- NeededRows.cpp - Is a part of a tile used at all? ------------------------------------------------------------------===//
//
// See NeededRows.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/tensor_copies/NeededRows.h"

#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace ditron::transforms {

namespace {

/// Follows the elements of a tile from use to use; dimensions of it may change their places.
class NeededBelow {
public:
  explicit NeededBelow(const analysis::IndexLimit &limit) : limit(limit) {}

  bool check(Value tile, unsigned dimension) {
    if (!seen.insert({tile, dimension}).second)
      return true;
    return llvm::all_of(tile.getUses(), [&](OpOperand &use) { return checkUse(use, dimension); });
  }

private:
  bool checkUse(OpOperand &use, unsigned dimension) {
    Operation *user = use.getOwner();
    const unsigned operand = use.getOperandNumber();
    if (auto store = dyn_cast<tile::StoreOp>(user))
      return use.get() == store.getValue() && use.get() != store.getPtr() && use.get() != store.getMask() &&
             store.getMask() && isMasked(store.getMask(), dimension);
    if (auto dot = dyn_cast<tile::DotOp>(user))
      return cast<RankedTensorType>(dot.getType()).getRank() == 2 && (operand == 2 || dimension == operand) &&
             check(dot.getResult(), dimension);
    if (auto transpose = dyn_cast<tile::TransOp>(user)) {
      const ArrayRef<int32_t> order = transpose.getOrder();
      const auto *place = llvm::find(order, static_cast<int32_t>(dimension));
      return check(transpose.getResult(), static_cast<unsigned>(place - order.begin()));
    }
    if (auto loop = dyn_cast<scf::ForOp>(user)) {
      OpResult result = loop.getTiedLoopResult(&use);
      return result && check(loop.getTiedLoopRegionIterArg(&use), dimension) && check(result, dimension);
    }
    if (isa<scf::YieldOp>(user)) {
      Operation *around = user->getParentOp();
      if (auto loop = dyn_cast<scf::ForOp>(around))
        return isTheSameInAllTurns(loop) && check(loop.getRegionIterArg(operand), dimension) &&
               check(loop.getResult(operand), dimension);
      return isa<scf::IfOp>(around) && check(around->getResult(operand), dimension);
    }
    const auto isAlike = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      return type && type.getShape() == cast<RankedTensorType>(use.get().getType()).getShape();
    };
    return isElementwise(user) && user->getNumRegions() == 0 && isPure(user) &&
           llvm::all_of(user->getResults(), isAlike) &&
           llvm::all_of(user->getResults(), [&](Value result) { return check(result, dimension); });
  }

  /// A store in the next turn of a loop around may have a mask of that turn.
  bool isTheSameInAllTurns(scf::ForOp loop) const {
    return llvm::all_of(limit.room.products(), [&](const auto &term) {
      return llvm::all_of(term.first, [&](Value scalar) { return loop.isDefinedOutsideOfLoop(scalar); });
    });
  }

  /// True if the store's mask has the limit, of this dimension.
  bool isMasked(Value mask, unsigned dimension) const {
    analysis::IndexLimit here = limit;
    here.dimension = dimension;
    const std::optional<SmallVector<analysis::IndexLimit>> limits = limitsWithin(mask);
    return limits && llvm::is_contained(*limits, here);
  }

  /// Those that a mask has among others.
  static std::optional<SmallVector<analysis::IndexLimit>> limitsWithin(Value mask) {
    if (auto both = mask.getDefiningOp<arith::AndIOp>()) {
      SmallVector<analysis::IndexLimit> all;
      for (Value part : both->getOperands())
        if (const std::optional<SmallVector<analysis::IndexLimit>> limits = limitsWithin(part))
          all.append(*limits);
      return all;
    }
    return analysis::AffineTiles().limitsOf(mask);
  }

  const analysis::IndexLimit &limit;
  llvm::DenseSet<std::pair<Value, unsigned>> seen;
};

} // namespace

bool isNeededBelow(Value tile, const analysis::IndexLimit &limit) {
  return limit.perTurn.isZero() && NeededBelow(limit).check(tile, limit.dimension);
}

} // namespace ditron::transforms
