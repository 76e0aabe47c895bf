//===- WarpgroupDotRules.cpp - Which dots warpgroups can do ---------------------------------------------------------------===//
//
// See WarpgroupDotRules.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/dots/WarpgroupDotRules.h"

#include "ditron/analysis/Scratch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace ditron::transforms {

/// Elements of K that one instruction contracts.
static constexpr uint32_t fp8StepElements = layout::wgmmaStepBytes;

IntegerAttr promotionOf(tile::DotOp dot) {
  std::optional<uint32_t> limit = dot.getMaxImpreciseAcc();
  if (!limit)
    return {};
  return Builder(dot.getContext()).getI32IntegerAttr(*limit / fp8StepElements * fp8StepElements);
}

/// True if the instruction exists for the types. Accumulators of 16 bits are left to mma.sync.
static bool hasInstruction(tile::DotOp dot) {
  const Type a = tile::elementTypeOf(dot.getA().getType()), b = tile::elementTypeOf(dot.getB().getType());
  const Type c = tile::elementTypeOf(dot.getC().getType());
  if (a.isInteger(8))
    return b == a && c.isInteger(32);
  if (!c.isF32())
    return false;
  if (isa<Float8E4M3FNType, Float8E5M2Type>(a))
    return a == b; // mixed kinds are rare: single warps multiply them as fp16
  if (a != b)
    return false;
  return a.isF16() || a.isBF16() || (a.isF32() && dot.getPrecision() == tile::DotPrecision::TF32);
}

std::string whyNoWarpgroupDot(tile::DotOp dot, int warps) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  auto c = cast<RankedTensorType>(dot.getC().getType());
  if (a.getRank() != 2)
    return "it is batched";
  if (std::optional<uint32_t> limit = dot.getMaxImpreciseAcc(); limit && *limit < fp8StepElements)
    return llvm::formatv("its sums of fp8 must be exact after {0} elements, and one instruction adds {1}", *limit,
                         fp8StepElements)
        .str();
  if (!hasInstruction(dot))
    return llvm::formatv("no instruction multiplies {0} into {1}", a.getElementType(), c.getElementType()).str();
  if (warps % layout::warpsPerGroup != 0)
    return llvm::formatv("{0} warps are not whole warpgroups of 4", warps).str();
  const int64_t rows = int64_t(warps) / layout::warpsPerGroup * layout::wgmmaRows;
  if (c.getShape()[0] % rows != 0)
    return llvm::formatv("{0} rows are not a multiple of {1}", c.getShape()[0], rows).str();
  if (c.getShape()[1] < 16 || c.getShape()[1] > layout::wgmmaMaxColumns)
    return llvm::formatv("{0} columns are not between 16 and {1}", c.getShape()[1], layout::wgmmaMaxColumns).str();
  if (a.getShape()[1] * analysis::sharedElementBytes(a.getElementType()) < layout::wgmmaStepBytes)
    return llvm::formatv("it contracts only {0} elements", a.getShape()[1]).str();
  return {};
}

bool dropsOuterDimensions(tile::ReshapeOp reshape) {
  ArrayRef<int64_t> from = reshape.getSource().getType().getShape(), to = reshape.getType().getShape();
  return to.size() == 2 && from.size() > 2 && from.take_back(2) == to;
}

OperandRoot rootOf(Value operand) {
  OperandRoot root{operand};
  while (auto trans = root.value.getDefiningOp<tile::TransOp>()) {
    if (trans.getOrder().size() != 2)
      break;
    root.isTransposed ^= trans.getOrder()[0] == 1;
    root.value = trans.getSource();
  }
  // Only tensor copies leave outer dimensions out by themselves.
  if (auto reshape = root.value.getDefiningOp<tile::ReshapeOp>();
      reshape && dropsOuterDimensions(reshape) && reshape.getSource().getDefiningOp<tile::DescriptorLoadOp>())
    root.value = reshape.getSource();
  return root;
}

bool canReadOperand(dgpu::BufferType buffer, bool isTransposed, layout::DotOperand operand) {
  if (isTransposed)
    buffer = buffer.permuted({1, 0});
  return layout::wgmmaOperand(buffer.getLayout().getLayout(), operand).has_value();
}

} // namespace ditron::transforms
