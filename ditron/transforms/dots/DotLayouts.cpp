//===- DotLayouts.cpp - Which instruction a dot uses, and the layouts that follow -----------------------------------------===//
//
// See DotLayouts.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/dots/DotLayouts.h"

#include "ditron/transforms/layouts/LayoutRules.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ditron::layout;

namespace ditron::transforms {

/// The tensor core instruction for the operand type, if there is one.
static std::optional<MmaKind> instructionFor(tile::DotOp dot) {
  Type element = cast<RankedTensorType>(dot.getA().getType()).getElementType();
  Type accumulator = cast<RankedTensorType>(dot.getC().getType()).getElementType();
  if (isa<Float8E4M3FNType, Float8E5M2Type>(element))
    return MmaKind::M16N8K16B16; // as fp16, which promoteFp8Operands makes of it
  if (element.isF16() || element.isBF16())
    return accumulator.isF32() || (accumulator.isF16() && element.isF16()) ? std::optional(MmaKind::M16N8K16B16)
                                                                           : std::nullopt;
  if (element.isInteger(8))
    return accumulator.isInteger(32) ? std::optional(MmaKind::M16N8K32B8) : std::nullopt;
  if (element.isF64() && accumulator.isF64())
    return MmaKind::M8N8K4F64;
  if (element.isF32() && accumulator.isF32() && dot.getPrecision() == tile::DotPrecision::TF32)
    return MmaKind::M16N8K8TF32;
  return std::nullopt;
}

/// True if the dot's result reaches the first operand of another dot through elementwise operations.
static bool feedsFirstOperand(tile::DotOp dot) {
  SmallVector<Value> worklist{dot.getResult()};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!worklist.empty()) {
    for (OpOperand &use : worklist.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (isa<tile::DotOp>(user) && use.getOperandNumber() == 0)
        return true;
      if (isElementwise(user) && seen.insert(user).second)
        worklist.append(user->result_begin(), user->result_end());
    }
  }
  return false;
}

DotChoice chooseDotLayouts(tile::DotOp dot, int lanes, int warps) {
  ArrayRef<int64_t> a = cast<RankedTensorType>(dot.getA().getType()).getShape();
  DotShape shape{a[a.size() - 2], cast<RankedTensorType>(dot.getB().getType()).getShape().back(), a.back()};
  // Batches first: warps of different batches share no operands.
  const bool isBatched = a.size() == 3;
  const int64_t batch = isBatched ? a[0] : 1;
  const int warpsOnBatch = static_cast<int>(std::min<int64_t>(batch, warps));
  warps /= warpsOnBatch;
  auto batched = [&](DotLayouts layouts) {
    return isBatched ? withBatch(layouts, batch, warpsOnBatch) : std::move(layouts);
  };
  std::optional<MmaKind> kind = lanes == 32 ? instructionFor(dot) : std::nullopt;
  if (kind) {
    WarpGrid grid = chooseWarpGrid(*kind, shape, warps);
    if (feedsFirstOperand(dot) && shape.m >= int64_t(mmaShape(*kind).m) * warps)
      grid = {warps, 1};
    if (auto layouts = mmaLayouts(*kind, shape, grid); layouts.isOk()) {
      std::string name(
          mmaFragment(*kind, DotOperand::A).name.substr(0, mmaFragment(*kind, DotOperand::A).name.rfind('.')));
      return {batched(*layouts), llvm::formatv("{0}, warps {1}x{2}", name, grid.m, grid.n).str(), true};
    }
  }
  return {batched(fmaLayouts(shape, lanes, warps)), "multiply-add"};
}

void promoteFp8Operands(tile::DotOp dot) {
  OpBuilder builder(dot);
  for (OpOperand &operand : dot->getOpOperands().take_front(2)) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    if (isa<Float8E4M3FNType, Float8E5M2Type>(type.getElementType()))
      operand.set(arith::ExtFOp::create(builder, dot.getLoc(), type.clone(builder.getF16Type()), operand.get()));
  }
}

} // namespace ditron::transforms
