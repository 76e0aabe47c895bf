//===- Recomputation.cpp - Values in another layout, computed again ---------------------------------------------------------===//
//
// See Recomputation.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/pipelining/Recomputation.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace ditron::transforms {

bool Recomputation::isPossible(Value value) {
  if (!isTensor(value) || !possible.insert(value).second)
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getNumResults() == 1 && isRematerialisable(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isPossible(operand); });
}

Value Recomputation::in(Value value, const layout::DistributedLayout &layout) {
  if (!isTensor(value) || dgpu::layoutOf(value.getType()) == layout)
    return value;
  const std::pair<Value, Attribute> key{value, dgpu::LayoutAttr::get(value.getContext(), layout)};
  if (Value copy = copies.lookup(key))
    return copy;
  Operation *op = value.getDefiningOp();
  IRMapping mapping;
  for (OpOperand &operand : op->getOpOperands())
    if (isTensor(operand.get()))
      mapping.map(operand.get(), in(operand.get(), *operandLayout(operand, layout)));
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value result = builder.clone(*op, mapping)->getResult(0);
  setLayout(result, layout);
  copies[key] = result;
  return result;
}

} // namespace ditron::transforms
