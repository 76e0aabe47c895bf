//===- LayoutRules.cpp - How operations relate the layouts of operands and results ----------------------------------------===//
//
// See LayoutRules.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/layouts/LayoutRules.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/ExchangeAttr.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/Builders.h"
#include "ditron/layout/GatherPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using ditron::layout::DistributedLayout;

namespace ditron::transforms {

bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() ||
         isa<tile::AddPtrOp, tile::PtrToIntOp, tile::IntToPtrOp, tile::PtrCastOp, tile::HintOp, tile::ExternCallOp, tile::InlineAsmOp,
             dist::ConsumeTokenOp>(op);
}

bool isLayoutFree(Operation *op) { return isa<tile::ArangeOp, tile::SplatOp, arith::ConstantOp>(op); }

bool isShapeChange(Operation *op) {
  return isa<tile::ExpandDimsOp, tile::BroadcastOp, tile::ReshapeOp, tile::TransOp>(op);
}

bool isRematerialisable(Operation *op) {
  return isLayoutFree(op) || isShapeChange(op) || (isElementwise(op) && isMemoryEffectFree(op));
}

layout::Shape tensorShape(Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return layout::Shape(shape.begin(), shape.end());
}

/// The order that undoes a permutation.
static SmallVector<int> inverseOrder(ArrayRef<int32_t> order) {
  SmallVector<int> inverse(order.size());
  for (auto [index, source] : llvm::enumerate(order))
    inverse[source] = static_cast<int>(index);
  return inverse;
}

bool followsFirstOperand(Operation *op) { return isa<tile::ReduceOp, tile::JoinOp>(op); }

/// What every thread holds: the layout of a pair that becomes two scalars, or comes from two.
static DistributedLayout pairOfScalars(const DistributedLayout &like) {
  return DistributedLayout({2}, {0}, std::vector<int>(like.numBits(layout::MachineDim::Lane), layout::zeroBasis),
                           std::vector<int>(like.numBits(layout::MachineDim::Warp), layout::zeroBasis));
}

std::optional<DistributedLayout> siblingLayout(OpOperand &operand, const DistributedLayout &first) {
  Operation *op = operand.getOwner();
  if (followsFirstOperand(op) || isa<tile::HistogramOp>(op))
    return first;
  if (isa<tile::SplitOp>(op) && !isTensor(op->getResult(0)))
    return pairOfScalars(first);
  return std::nullopt;
}

std::optional<DistributedLayout> operandLayout(OpOperand &operand, const DistributedLayout &result) {
  Operation *op = operand.getOwner();
  if (!isTensor(operand.get()))
    return std::nullopt;
  if (isElementwise(op) || isa<tile::LoadOp, tile::StoreOp, tile::AtomicRmwOp, tile::AtomicCasOp, tile::ScanOp,
                               tile::MapElementwiseOp, tile::BitonicOp>(op))
    return result;
  if (isa<tile::ExpandDimsOp, tile::ReshapeOp>(op))
    return result.reshape(tensorShape(operand.get()));
  if (isa<tile::BroadcastOp>(op))
    return result.dropBroadcast(tensorShape(operand.get()));
  if (auto trans = dyn_cast<tile::TransOp>(op))
    return result.permute(inverseOrder(trans.getOrder()));
  if (isa<tile::JoinOp>(op))
    return result.split();
  if (isa<tile::SplitOp>(op))
    return result.join();
  if (auto gather = dyn_cast<tile::GatherOp>(op); gather && (operand.getOperandNumber() == 1 || tile::exchangeMaskOf(gather)))
    return result;
  return std::nullopt;
}

std::optional<DistributedLayout> resultLayout(OpOperand &operand, const DistributedLayout &source) {
  Operation *op = operand.getOwner();
  if (op->getNumResults() == 0 || !isTensor(op->getResult(0)))
    return std::nullopt;
  if (isElementwise(op) || isa<tile::ScanOp, tile::MapElementwiseOp>(op))
    return source;
  if (isa<tile::ExpandDimsOp, tile::ReshapeOp>(op))
    return source.reshape(tensorShape(op->getResult(0)));
  if (isa<tile::BroadcastOp>(op))
    return source.broadcastTo(tensorShape(op->getResult(0)));
  if (auto trans = dyn_cast<tile::TransOp>(op))
    return source.permute(SmallVector<int>(trans.getOrder().begin(), trans.getOrder().end()));
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return source.dropAxis(static_cast<int>(reduce.getAxis()));
  if (isa<tile::JoinOp>(op))
    return source.join();
  if (isa<tile::SplitOp>(op))
    return layout::makeSplittable(source).split();
  if (auto gather = dyn_cast<tile::GatherOp>(op))
    // An exchange stays where its data are; its index costs nothing anywhere.
    if ((operand.getOperandNumber() == 0) == tile::exchangeMaskOf(gather).has_value())
      return source;
  return std::nullopt;
}

DistributedLayout networkLayout(const layout::Shape &shape, int64_t elementBytes, int lanes, int warps) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  int64_t together = std::max<int64_t>(1, elements / (int64_t(lanes) * warps));
  if (elements * elementBytes > mostConvertedBytes)
    together = std::min<int64_t>(together, 16 / elementBytes);
  return layout::tile(shape, layout::rowMajorOrder(static_cast<int>(shape.size())), together, lanes, warps);
}

DistributedLayout defaultLayout(const layout::Shape &shape, int lanes, int warps) {
  return layout::tile(shape, layout::rowMajorOrder(static_cast<int>(shape.size())), 1, lanes, warps);
}

void setLayout(Value value, const DistributedLayout &layout) {
  auto attribute = dgpu::LayoutAttr::get(value.getContext(), layout);
  RankedTensorType type = dgpu::withLayout(cast<RankedTensorType>(value.getType()), attribute);
  value.setType(type);
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).reshape(type));
}

} // namespace ditron::transforms
