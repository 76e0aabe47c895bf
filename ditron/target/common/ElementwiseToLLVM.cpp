//===- ElementwiseToLLVM.cpp - arith and math on tensors, constants ---------------------------------------------------------===//
//
// One generic pattern: an elementwise operation is applied once per register. Scalars of types that the target does not
// compute in take the same way. What comes out is arith and math on scalars, lowered later by the upstream patterns.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/ScalarOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace ditron::target {
namespace {

class ElementwisePattern : public ConversionPattern {
public:
  ElementwisePattern(MLIRContext *context, const LoweringContext &lowering)
      : ConversionPattern(lowering.types, MatchAnyOpTypeTag(), /*benefit=*/1, context), target(lowering.target) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isScalarizable(op) || isa<arith::ConstantOp>(op))
      return rewriter.notifyMatchFailure(op, "not an elementwise operation");
    SmallVector<Type> resultTypes;
    if (op->getNumResults() == 0 || failed(getTypeConverter()->convertType(op->getResult(0).getType(), resultTypes)))
      return rewriter.notifyMatchFailure(op, "result type has no lowering");
    Emitter e(op->getLoc(), rewriter);
    SmallVector<SmallVector<Value>> results(op->getNumResults());
    for (size_t r = 0; r < resultTypes.size(); ++r) {
      SmallVector<Value> scalars;
      for (ValueRange operand : operands) // a scalar operand (the condition of a select) serves all registers
        scalars.push_back(operand.size() == 1 ? operand[0] : operand[r]);
      for (auto [all, one] : llvm::zip(results, emitScalarOp(e, target, op, scalars)))
        all.push_back(one);
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }

private:
  TargetInfo &target;
};

/// A splat constant is one value aliased by all registers.
class ConstantPattern : public TilePattern<arith::ConstantOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(arith::ConstantOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertType(op.getType(), types)))
      return rewriter.notifyMatchFailure(op, "type has no lowering");
    TypedAttr scalar = op.getValue();
    if (auto dense = dyn_cast<DenseElementsAttr>(op.getValue())) {
      if (!dense.isSplat())
        return op.emitOpError("with different elements has no register to live in; only splat constants are lowered");
      scalar = dense.getSplatValue<TypedAttr>();
    }
    Emitter e(op.getLoc(), rewriter);
    Values values(types.size(), emitConstant(e, target, scalar));
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

} // namespace

void populateElementwisePatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<ElementwisePattern, ConstantPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
