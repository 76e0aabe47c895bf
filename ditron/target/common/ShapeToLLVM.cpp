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

/// The joined tensor has the operands' registers in turns; two scalars become two registers that every thread holds.
class JoinPattern : public TilePattern<tile::JoinOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::JoinOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ValueRange halves[] = {adaptor.getLhs(), adaptor.getRhs()};
    if (!isa<RankedTensorType>(op.getLhs().getType())) {
      if (dgpu::layoutOf(op.getType()).numRegs() != 2)
        return op.emitOpError("of scalars needs both of them in every thread (a bug of layout assignment)");
      rewriter.replaceOpWithMultiple(op, {{halves[0].front(), halves[1].front()}});
      return success();
    }
    const DistributedLayout &source = dgpu::layoutOf(op.getLhs().getType());
    if (!(source.join() == dgpu::layoutOf(op.getType())))
      return reportMove(op, source.join());
    Values values;
    for (layout::JoinedRegister joined : layout::joinRegisters(source))
      values.push_back(halves[joined.operand][joined.reg]);
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

class SplitPattern : public TilePattern<tile::SplitOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::SplitOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const DistributedLayout &source = dgpu::layoutOf(op.getSource().getType());
    std::optional<DistributedLayout> expected = source.split();
    if (!expected)
      return op.emitOpError("needs its last dimension in registers (a bug of layout assignment)");
    if (isa<RankedTensorType>(op.getLhs().getType()) && !(*expected == dgpu::layoutOf(op.getLhs().getType())))
      return reportMove(op, *expected);
    SmallVector<Values> halves(2);
    for (int half : {0, 1})
      for (int reg : layout::splitRegisters(source, half))
        halves[half].push_back(adaptor.getSource()[reg]);
    rewriter.replaceOpWithMultiple(op, std::move(halves));
    return success();
  }
};

} // namespace

void populateShapePatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<ArangePattern, SplatPattern, UnsplatPattern, SameIndexPattern<tile::ExpandDimsOp>,
               SameIndexPattern<tile::ReshapeOp>, TransPattern, BroadcastPattern, JoinPattern, SplitPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
