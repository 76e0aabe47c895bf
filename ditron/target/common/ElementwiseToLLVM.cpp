//===- ElementwiseToLLVM.cpp - arith and math on tensors, constants ---------------------------------------------------------===//
//
// One generic pattern: an elementwise operation is applied once per register. Scalars of types that the target does not
// compute in take the same way. What comes out is arith and math on scalars, lowered later by the upstream patterns.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/HopperLeaves.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/ScalarOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

#include <map>

using namespace mlir;

namespace ditron::target {

SmallVector<SmallVector<Value>> applyToRegisters(size_t numRegs, size_t numResults, ArrayRef<ValueRange> operands,
                                                 llvm::function_ref<SmallVector<Value>(ValueRange)> apply) {
  // Broadcast values are the same in several registers; what follows from them is computed once as well.
  std::map<std::vector<const void *>, SmallVector<Value>> known;
  SmallVector<SmallVector<Value>> results(numResults);
  for (size_t r = 0; r < numRegs; ++r) {
    SmallVector<Value> scalars;
    std::vector<const void *> key;
    for (ValueRange operand : operands) { // a scalar operand (the condition of a select) serves all registers
      scalars.push_back(operand.size() == 1 ? operand[0] : operand[r]);
      key.push_back(scalars.back().getAsOpaquePointer());
    }
    auto [it, isNew] = known.try_emplace(std::move(key));
    if (isNew)
      it->second = apply(scalars);
    for (auto [all, one] : llvm::zip_equal(results, it->second))
      all.push_back(one);
  }
  return results;
}

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
    rewriter.replaceOpWithMultiple(op, applyToRegisters(resultTypes.size(), op->getNumResults(), operands,
                                                        [&](ValueRange scalars) -> SmallVector<Value> {
                                                          return emitScalarOp(e, target, op, scalars);
                                                        }));
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

/// A tile that nobody reads: an accumulator before its first dot.
class PoisonPattern : public TilePattern<ub::PoisonOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(ub::PoisonOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertType(op.getType(), types)))
      return rewriter.notifyMatchFailure(op, "type has no lowering");
    Emitter e(op.getLoc(), rewriter);
    Values values;
    if (target.hopper())
      values = target.hopper()->wgmmaUnset(e, types);
    else
      for (Type type : types)
        values.push_back(LLVM::PoisonOp::create(rewriter, op.getLoc(), type));
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

} // namespace

void populateElementwisePatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<ElementwisePattern, ConstantPattern, PoisonPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
