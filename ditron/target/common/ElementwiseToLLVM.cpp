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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/SetVector.h"

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

/// The 8-bit side of a conversion between f32 and 8-bit floats; else null.
FloatType narrowSideOf(Operation *op) {
  if (!isa<arith::ExtFOp, arith::TruncFOp>(op) || isTruncationTowardZero(op))
    return {};
  auto from = cast<FloatType>(tile::elementTypeOf(op->getOperand(0).getType())),
       to = cast<FloatType>(tile::elementTypeOf(op->getResult(0).getType()));
  if (from.isF32() && to.getWidth() == 8)
    return to;
  return to.isF32() && from.getWidth() == 8 ? from : FloatType();
}

/// Neighbouring registers two at a time, where the target has an instruction for that; else empty.
SmallVector<Value> convertPairs(Emitter &e, TargetInfo &target, Operation *op, ValueRange values) {
  FloatType format = narrowSideOf(op);
  SmallVector<Value> results;
  if (values.size() % 2 != 0 || values[0] == values[1])
    return results;
  const Type byte = e.getI8Type(), word = e.getIntegerType(16);
  for (size_t i = 0; i < values.size(); i += 2) {
    if (isa<arith::TruncFOp>(op)) {
      Value pair = target.narrowPair(e, format, values[i], values[i + 1]);
      if (!pair)
        return {};
      results.push_back(e.zextOrTrunc(pair, byte));
      results.push_back(e.zextOrTrunc(e.lshr(pair, 8), byte));
    } else {
      Value pair = e.bitOr(e.zextOrTrunc(values[i], word), e.shl(e.zextOrTrunc(values[i + 1], word), 8));
      const SmallVector<Value> wide = target.widenPair(e, format, pair);
      if (wide.empty())
        return {};
      llvm::append_range(results, wide);
    }
  }
  return results;
}

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
    if (narrowSideOf(op))
      if (const SmallVector<Value> converted = convertPairs(e, target, op, operands[0]); !converted.empty()) {
        rewriter.replaceOpWithMultiple(op, {ValueRange(converted)});
        return success();
      }
    rewriter.replaceOpWithMultiple(op, applyToRegisters(resultTypes.size(), op->getNumResults(), operands,
                                                        [&](ValueRange scalars) -> SmallVector<Value> {
                                                          return emitScalarOp(e, target, op, scalars);
                                                        }));
    return success();
  }

private:
  TargetInfo &target;
};

/// Behind a vote of the warp, whose lanes then all go one way. Where none has to multiply, registers stay what they are.
class ScalePattern : public TilePattern<dgpu::ScaleOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::ScaleOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    constexpr int64_t bitsOfOne = 0x3F800000, allLanes = -1;
    Emitter e(op.getLoc(), rewriter);
    const ValueRange values = adaptor.getTile();
    Value changes;
    for (Value factor : llvm::SetVector<Value>(adaptor.getFactors().begin(), adaptor.getFactors().end())) {
      Value differs = e.isNotZero(e.bitXor(e.bitcast(factor, e.getI32Type()), e.i32(bitsOfOne)));
      changes = changes ? e.bitOr(changes, differs) : differs;
    }
    Value isScaled = e.isNotZero(target.ballot(e, e.i32(allLanes), changes));
    auto branch = scf::IfOp::create(e, values.getTypes(), isScaled, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointToStart(branch.thenBlock());
    Values scaled;
    for (auto [value, factor] : llvm::zip_equal(values, adaptor.getFactors()))
      scaled.push_back(arith::MulFOp::create(e, op.getLoc(), value, factor));
    scf::YieldOp::create(e, scaled);
    e.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(e, values);
    rewriter.replaceOpWithMultiple(op, {branch.getResults()});
    return success();
  }
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
  patterns.add<ElementwisePattern, ConstantPattern, PoisonPattern, ScalePattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
