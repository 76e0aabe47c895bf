//===- DistinctPlaces.cpp - Tiles of pointers that do not meet themselves -------------------------------------------------===//
//
// See DistinctPlaces.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/memory/DistinctPlaces.h"

#include "ditron/analysis/AxisInfo.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/Constants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <cstdlib>
#include <optional>

using namespace mlir;

namespace ditron::transforms {

bool isOneLanePerAddress(Value pointers, const analysis::AxisInfoAnalysis &axes) {
  auto type = dyn_cast<RankedTensorType>(pointers.getType());
  if (!type || dgpu::layoutOf(type).freeMask(layout::MachineDim::Lane) != 0)
    return false;
  const analysis::AxisInfo info = axes.getAxisInfo(pointers);
  for (int axis = 0; axis < info.rank(); ++axis)
    if (type.getDimSize(axis) == type.getNumElements() && info.contiguity[axis] >= type.getNumElements())
      return true;
  return false;
}

/// How much a value grows from turn to turn: pointers in elements. Nothing if that is not known to be a constant.
static std::optional<int64_t> growth(Value value, scf::ForOp loop) {
  if (value == loop.getInductionVar())
    return constantOf(loop.getStep());
  if (!loop->isAncestor(value.getParentBlock()->getParentOp()))
    return 0;
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<tile::ArangeOp>(op) || op->hasTrait<OpTrait::ConstantLike>())
    return 0;
  if (isa<tile::SplatOp, tile::BroadcastOp, tile::ExpandDimsOp, tile::HintOp, dgpu::ConvertLayoutOp,
          dist::ConsumeTokenOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    return growth(op->getOperand(0), loop);
  if (!isa<tile::AddPtrOp, arith::AddIOp, arith::MulIOp>(op))
    return std::nullopt;
  const std::optional<int64_t> left = growth(op->getOperand(0), loop), right = growth(op->getOperand(1), loop);
  if (!left || !right)
    return std::nullopt;
  if (!isa<arith::MulIOp>(op))
    return *left + *right;
  if (*left == 0 && *right == 0)
    return 0;
  const std::optional<int64_t> factor = constantOf(op->getOperand(*left == 0 ? 0 : 1));
  if (!factor || (*left != 0 && *right != 0))
    return std::nullopt;
  return *factor * (*left + *right);
}

/// The same for pointers that the loop carries and moves on by a constant.
static std::optional<int64_t> carriedGrowth(Value pointers, scf::ForOp loop) {
  auto argument = dyn_cast<BlockArgument>(pointers);
  if (!argument || argument.getOwner() != loop.getBody() || argument == loop.getInductionVar())
    return std::nullopt;
  auto next = loop.getTiedLoopYieldedValue(argument)->get().getDefiningOp<tile::AddPtrOp>();
  if (!next || next.getPtr() != argument)
    return std::nullopt;
  Value step = next.getOffset();
  while (auto splat = step.getDefiningOp<tile::SplatOp>())
    step = splat.getSource();
  DenseIntElementsAttr all;
  if (matchPattern(step, m_Constant(&all)) && all.isSplat())
    return all.getSplatValue<APInt>().getSExtValue();
  return constantOf(step);
}

bool advancesWith(Value pointers, scf::ForOp loop) {
  auto type = dyn_cast<RankedTensorType>(pointers.getType());
  if (!type)
    return false;
  std::optional<int64_t> step = carriedGrowth(pointers, loop);
  if (!step)
    step = growth(pointers, loop);
  return step && std::abs(*step) >= type.getNumElements();
}

} // namespace ditron::transforms
