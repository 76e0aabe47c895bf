//===- TileFolds.cpp - Folders and canonicalisations of the tile dialect --------------------------------*- C++ -*-===//
//
// The simplifications that need no analysis: shape operations on splats and constants, neutral operands, masks known at
// compile time. Also the memory effects of loads, which depend on an attribute.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace ditron::tile;

//===--------------------------------------------------------------------------------------------------------------===//
// Folders
//===--------------------------------------------------------------------------------------------------------------===//

/// A splat constant in another tensor type of the same element type; null if `operand` is none.
static Attribute resplat(Attribute operand, Type type) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(operand);
  return splat ? DenseElementsAttr::get(cast<ShapedType>(type), splat.getSplatValue<Attribute>()) : Attribute();
}

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (isa_and_nonnull<IntegerAttr, FloatAttr>(adaptor.getSource()))
    return DenseElementsAttr::get(cast<ShapedType>(getType()), adaptor.getSource());
  return {};
}

OpFoldResult UnsplatOp::fold(FoldAdaptor adaptor) {
  if (auto constant = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return constant.getSplatValue<Attribute>();
  if (auto splat = getSource().getDefiningOp<SplatOp>())
    return splat.getSource();
  return {};
}

OpFoldResult ExpandDimsOp::fold(FoldAdaptor adaptor) { return resplat(adaptor.getSource(), getType()); }

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  return resplat(adaptor.getSource(), getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  return resplat(adaptor.getSource(), getType());
}

OpFoldResult TransOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType() && llvm::equal(getOrder(), llvm::seq<int32_t>(0, getOrder().size())))
    return getSource();
  return resplat(adaptor.getSource(), getType());
}

OpFoldResult AddPtrOp::fold(FoldAdaptor adaptor) {
  if (matchPattern(adaptor.getOffset(), m_Zero()))
    return getPtr();
  return {};
}

OpFoldResult PtrCastOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto cast = getSource().getDefiningOp<PtrCastOp>(); cast && cast.getSource().getType() == getType())
    return cast.getSource();
  return {};
}

//===--------------------------------------------------------------------------------------------------------------===//
// Patterns
//===--------------------------------------------------------------------------------------------------------------===//

namespace {
/// A shape operation on a splat is a splat.
template <typename ShapeOp> struct ShapeOfSplat : public OpRewritePattern<ShapeOp> {
  using OpRewritePattern<ShapeOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(ShapeOp op, PatternRewriter &rewriter) const override {
    auto splat = op.getSource().template getDefiningOp<SplatOp>();
    if (!splat)
      return rewriter.notifyMatchFailure(op, "source is not a splat");
    rewriter.replaceOpWithNewOp<SplatOp>(op, op.getType(), splat.getSource());
    return success();
  }
};

/// reshape(reshape(x)) and reshape(expand_dims(x)) are one reshape: both keep the row-major order.
template <typename InnerOp> struct ReshapeOf : public OpRewritePattern<ReshapeOp> {
  using OpRewritePattern<ReshapeOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSource().template getDefiningOp<InnerOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "source keeps no row-major order");
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getSource());
    return success();
  }
};

/// broadcast(broadcast(x)) is one broadcast.
struct BroadcastOfBroadcast : public OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<BroadcastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "source is not a broadcast");
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getSource());
    return success();
  }
};

/// trans(trans(x, inner), outer) = trans(x, inner o outer): result dimension i is source dimension inner[outer[i]].
struct TransOfTrans : public OpRewritePattern<TransOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<TransOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "source is not a trans");
    SmallVector<int32_t> order;
    for (int32_t dim : op.getOrder())
      order.push_back(inner.getOrder()[dim]);
    rewriter.replaceOpWithNewOp<TransOp>(op, op.getType(), inner.getSource(), order);
    return success();
  }
};

/// The value of a mask known at compile time: all true or all false.
static std::optional<bool> constantMask(Value mask) {
  APInt value;
  if (mask && matchPattern(mask, m_ConstantInt(&value)))
    return !value.isZero();
  return std::nullopt;
}

/// A mask that is true everywhere goes away; one that is false everywhere leaves `other`, or zero.
struct LoadWithConstantMask : public OpRewritePattern<LoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LoadOp op, PatternRewriter &rewriter) const override {
    std::optional<bool> mask = constantMask(op.getMask());
    if (!mask)
      return rewriter.notifyMatchFailure(op, "mask is not known");
    if (*mask) {
      rewriter.modifyOpInPlace(op, [&] {
        op.getMaskMutable().clear();
        op.getOtherMutable().clear();
      });
      return success();
    }
    if (op.getOther()) {
      rewriter.replaceOp(op, op.getOther());
      return success();
    }
    TypedAttr zero = rewriter.getZeroAttr(op.getType());
    if (!zero)
      return rewriter.notifyMatchFailure(op, "there is no constant of a pointer type");
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, zero);
    return success();
  }
};

struct StoreWithConstantMask : public OpRewritePattern<StoreOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(StoreOp op, PatternRewriter &rewriter) const override {
    std::optional<bool> mask = constantMask(op.getMask());
    if (!mask)
      return rewriter.notifyMatchFailure(op, "mask is not known");
    if (*mask)
      rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().clear(); });
    else
      rewriter.eraseOp(op);
    return success();
  }
};
/// dot(a, b, 0) + x = dot(a, b, x): the instruction adds anyway. Not for 8-bit floats, whose products tensor cores add with fewer bits than
/// the addition has, nor where sums are rounded to 16 bits.
template <typename AddOp> struct AddToDot : public OpRewritePattern<AddOp> {
  using OpRewritePattern<AddOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp add, PatternRewriter &rewriter) const override {
    for (unsigned number : {0, 1}) {
      auto dot = add->getOperand(number).template getDefiningOp<DotOp>();
      if (!dot || !dot->hasOneUse() || dot->getBlock() != add->getBlock() || !isExact(dot) ||
          !(matchPattern(dot.getC(), m_AnyZeroFloat()) || matchPattern(dot.getC(), m_Zero())))
        continue;
      rewriter.replaceOpWithNewOp<DotOp>(add, dot.getA(), dot.getB(), add->getOperand(1 - number),
                                         dot.getPrecisionAttr(), dot.getMaxImpreciseAccAttr());
      rewriter.eraseOp(dot);
      return success();
    }
    return rewriter.notifyMatchFailure(add,
                                       "no operand is a dot of this block that starts from zero and has no other use");
  }

  static bool isExact(DotOp dot) {
    Type operand = elementTypeOf(dot.getA().getType()), sum = elementTypeOf(dot.getType());
    return operand.getIntOrFloatBitWidth() > 8 ? !sum.isF16() : operand.isInteger();
  }
};
} // namespace

void DotOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<AddToDot<arith::AddFOp>, AddToDot<arith::AddIOp>>(context);
}

void ExpandDimsOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<ExpandDimsOp>>(context);
}

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<BroadcastOp>, BroadcastOfBroadcast>(context);
}

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<ReshapeOp>, ReshapeOf<ReshapeOp>, ReshapeOf<ExpandDimsOp>>(context);
}

void TransOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<TransOp>, TransOfTrans>(context);
}

void LoadOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<LoadWithConstantMask>(context);
}

void StoreOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<StoreWithConstantMask>(context);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Builders and effects
//===--------------------------------------------------------------------------------------------------------------===//

void LoadOp::build(OpBuilder &builder, OperationState &state, Value ptr, Value mask, Value other) {
  Type element = cast<PointerType>(elementTypeOf(ptr.getType())).getPointee();
  build(builder, state, withElementType(ptr.getType(), element), ptr, mask, other);
}

/// A volatile load counts as a write too: then nobody removes, merges or moves it.
void LoadOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getPtrMutable(), GlobalMemory::get());
  if (getIsVolatile())
    effects.emplace_back(MemoryEffects::Write::get(), &getPtrMutable(), GlobalMemory::get());
}
