//===- ShapeToLLVM.cpp - Creation of tensors and changes of their shape -----------------------------------------------------===//
//
// arange computes; everything else here only renames registers. Layout assignment has given operands and results layouts
// for which no data moves between threads; where it has not, the lowering reports it instead of guessing.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/Patterns.h"

#include "ditron/layout/RegisterMaps.h"

using namespace mlir;
using ditron::layout::DistributedLayout;

namespace ditron::target {

static LogicalResult reportMove(Operation *op, const DistributedLayout &expected) {
  return op->emitOpError("would move data between threads; its result layout should be ")
         << expected.toString() << " (a bug of layout assignment)";
}

namespace {

class ArangePattern : public TilePattern<tile::ArangeOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ArangeOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const DistributedLayout &layout = dgpu::layoutOf(op.getType());
    Emitter e(op.getLoc(), rewriter);
    Value base = e.add(threadPart(e, target, layout), e.i32(static_cast<int32_t>(op.getStart())));
    Values values;
    for (int r = 0; r < layout.numRegs(); ++r)
      values.push_back(e.add(base, e.i32(registerPart(layout, r))));
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

class SplatPattern : public TilePattern<tile::SplatOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::SplatOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Values values(dgpu::layoutOf(op.getType()).numRegs(), adaptor.getSource().front());
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

/// A one-element tensor has one register, which every thread holds.
class UnsplatPattern : public TilePattern<tile::UnsplatOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::UnsplatOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithMultiple(op, {adaptor.getSource()});
    return success();
  }
};

/// expand_dims and reshape keep the packed index, so the registers stay what they are.
template <typename OpT> class SameIndexPattern : public TilePattern<OpT> {
public:
  using TilePattern<OpT>::TilePattern;

  LogicalResult matchAndRewrite(OpT op, typename TilePattern<OpT>::OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const DistributedLayout &result = dgpu::layoutOf(op.getType());
    DistributedLayout expected = dgpu::layoutOf(op.getSource().getType()).reshape(result.shape());
    if (!(expected == result))
      return reportMove(op, expected);
    rewriter.replaceOpWithMultiple(op, {adaptor.getSource()});
    return success();
  }
};

class TransPattern : public TilePattern<tile::TransOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::TransOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const DistributedLayout &source = dgpu::layoutOf(op.getSource().getType());
    std::vector<int> order(op.getOrder().begin(), op.getOrder().end());
    DistributedLayout expected = source.permute(order);
    if (!(expected == dgpu::layoutOf(op.getType())))
      return reportMove(op, expected);
    Values values;
    for (int reg : layout::permuteRegisters(source, order))
      values.push_back(adaptor.getSource()[reg]);
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

class BroadcastPattern : public TilePattern<tile::BroadcastOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::BroadcastOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const DistributedLayout &source = dgpu::layoutOf(op.getSource().getType());
    const DistributedLayout &result = dgpu::layoutOf(op.getType());
    if (!layout::isFreeBroadcast(source, result))
      return reportMove(op, source.broadcastTo(result.shape()));
    Values values;
    for (int reg : layout::broadcastRegisters(source, result))
      values.push_back(adaptor.getSource()[reg]);
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

} // namespace

void populateShapePatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<ArangePattern, SplatPattern, UnsplatPattern, SameIndexPattern<tile::ExpandDimsOp>,
               SameIndexPattern<tile::ReshapeOp>, TransPattern, BroadcastPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
