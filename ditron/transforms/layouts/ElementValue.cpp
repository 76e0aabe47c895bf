//===- ElementValue.cpp - One element of a tile, computed by itself -------------------------------------------------------===//
//
// See ElementValue.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/layouts/ElementValue.h"

#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace ditron::transforms {

std::optional<SmallVector<Value>> elementOperands(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  const bool isSplat = constant && isa<SplatElementsAttr>(constant.getValue());
  auto load = dyn_cast<tile::LoadOp>(op);
  const bool isKnown =
      isSplat || isa<tile::ArangeOp, tile::SplatOp, tile::ExpandDimsOp, tile::BroadcastOp, tile::TransOp>(op) ||
      (load && !load.getIsVolatile()) ||
      (isElementwise(op) && op->getNumRegions() == 0 && op->getNumResults() == 1 && isMemoryEffectFree(op));
  return isKnown ? std::optional(SmallVector<Value>(op->getOperands())) : std::nullopt;
}

/// The index in the operand of an operation that only changes the shape.
static SmallVector<Value> indexInOperand(OpBuilder &builder, Operation *op, ArrayRef<Value> index) {
  SmallVector<Value> inner(index);
  if (auto expand = dyn_cast<tile::ExpandDimsOp>(op)) {
    inner.erase(inner.begin() + expand.getAxis());
  } else if (auto trans = dyn_cast<tile::TransOp>(op)) {
    for (auto [result, source] : llvm::enumerate(trans.getOrder()))
      inner[source] = index[result];
  } else if (isa<tile::BroadcastOp>(op)) {
    for (auto [dim, size] : llvm::enumerate(cast<RankedTensorType>(op->getOperand(0).getType()).getShape()))
      if (size == 1)
        inner[dim] = arith::ConstantOp::create(builder, op->getLoc(), builder.getI32IntegerAttr(0));
  }
  return inner;
}

Value elementAt(OpBuilder &builder, Value tile, ArrayRef<Value> index, KnownElement known) {
  if (!isTensor(tile))
    return tile;
  if (Value element = known(tile, index))
    return element;
  Operation *op = tile.getDefiningOp();
  Location loc = op->getLoc();
  if (auto range = dyn_cast<tile::ArangeOp>(op)) {
    Value start =
        arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(range.getStart())));
    return arith::AddIOp::create(builder, loc, start, index.front());
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return arith::ConstantOp::create(builder, loc,
                                     cast<SplatElementsAttr>(constant.getValue()).getSplatValue<TypedAttr>());
  const SmallVector<Value> inner = indexInOperand(builder, op, index);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(elementAt(builder, operand, inner, known));
  if (isShapeChange(op) || isa<tile::SplatOp, tile::HintOp>(op)) // hints are about runs of elements
    return operands.front();
  Type element = cast<RankedTensorType>(tile.getType()).getElementType();
  OperationState state(loc, op->getName(), operands, element, op->getAttrs());
  return builder.create(state)->getResult(0);
}

} // namespace ditron::transforms
