//===- PointerToLLVM.cpp - Address arithmetic, casts of pointers and promises about values ----------------------------------===//
//
// Pointers count elements in `tile` and bytes here: an offset is widened to 64 bits, scaled and added to an opaque pointer.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Patterns.h"

using namespace mlir;

namespace ditron::target {
namespace {

class AddPtrPattern : public TilePattern<tile::AddPtrOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::AddPtrOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    auto pointer = cast<tile::PointerType>(tile::elementTypeOf(op.getPtr().getType()));
    int64_t bytes = pointer.getElementBytes();
    rewriter.replaceOpWithMultiple(op,
                                   applyToRegisters(adaptor.getPtr().size(), 1, {adaptor.getPtr(), adaptor.getOffset()},
                                                    [&](ValueRange scalars) -> Values {
                                                      Value offset = e.sextOrTrunc(scalars[1], e.getI64Type());
                                                      return {e.addBytes(scalars[0], e.mul(offset, e.i64(bytes)))};
                                                    }));
    return success();
  }
};

class PtrToIntPattern : public TilePattern<tile::PtrToIntOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::PtrToIntOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Type type = tile::elementTypeOf(op.getType());
    Values values;
    for (Value ptr : adaptor.getSource())
      values.push_back(e.zextOrTrunc(e.toBits(ptr), type));
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

class IntToPtrPattern : public TilePattern<tile::IntToPtrOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::IntToPtrOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Values values;
    for (Value integer : adaptor.getSource())
      values.push_back(e.fromBits(e.zextOrTrunc(integer, e.getI64Type()), e.pointerType()));
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

/// Operations whose lowered result is their lowered source: ptr_cast, hint (its facts went into the analyses), and
/// consume_token (the wait before it is a call with effects, which later accesses cannot pass).
template <typename OpT> class ForwardPattern : public TilePattern<OpT> {
public:
  using TilePattern<OpT>::TilePattern;

  LogicalResult matchAndRewrite(OpT op, typename TilePattern<OpT>::OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithMultiple(op, {adaptor.getSource()});
    return success();
  }
};

class AssumePattern : public TilePattern<tile::AssumeOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::AssumeOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    target.assume(e, adaptor.getCondition().front());
    rewriter.eraseOp(op);
    return success();
  }
};

class KeepLoopPattern : public TilePattern<tile::KeepLoopOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::KeepLoopOp op, OneToNAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.eraseOp(op); // LLVM removes no loop that may be endless, as our functions do not promise progress
    return success();
  }
};

} // namespace

void populatePointerPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<AddPtrPattern, PtrToIntPattern, IntToPtrPattern, ForwardPattern<tile::PtrCastOp>,
               ForwardPattern<tile::HintOp>, ForwardPattern<dist::ConsumeTokenOp>, AssumePattern, KeepLoopPattern>(
      patterns.getContext(), lowering);
}

} // namespace ditron::target
