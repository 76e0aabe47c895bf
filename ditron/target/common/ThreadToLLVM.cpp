//===- ThreadToLLVM.cpp - Wide accesses, fences, shared memory and intrinsics of the thread level -------------------------===//
//
// The operations of DistThreadOps.td: one leaf each. Shared memory that a kernel reserves itself has got its place from
// shared-memory allocation, as buffers have.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/target/common/Patterns.h"

using namespace mlir;

namespace ditron::target {
namespace {

class LdVectorPattern : public TilePattern<dist::LdVectorOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::LdVectorOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    GenericAddresses addresses(target, op);
    Type storage = getTypeConverter()->convertType(op.getResultTypes().front());
    Values loaded = target.orderedLoadVector(e, memoryType(storage), static_cast<int>(op.getNumResults()),
                                             adaptor.getPtr().front(), op.getOrder(), op.getScope());
    for (Value &value : loaded)
      value = fromMemory(e, value, storage);
    rewriter.replaceOp(op, loaded);
    return success();
  }
};

class StVectorPattern : public TilePattern<dist::StVectorOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::StVectorOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    GenericAddresses addresses(target, op);
    Values values;
    for (ValueRange value : adaptor.getValues())
      values.push_back(toMemory(e, value.front()));
    target.orderedStoreVector(e, adaptor.getPtr().front(), values, op.getOrder(), op.getScope());
    rewriter.eraseOp(op);
    return success();
  }
};

class FencePattern : public TilePattern<dist::FenceOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::FenceOp op, OneToNAdaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    if (op->hasAttr(dist::sequentialAttrName))
      target.sequentialFence(e, op.getScope());
    else
      target.fence(e, op.getOrder(), op.getScope());
    rewriter.eraseOp(op);
    return success();
  }
};

class SharedAllocPattern : public TilePattern<dist::SharedAllocOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::SharedAllocOp op, OneToNAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    FailureOr<int64_t> offset = scratchOffset(op);
    if (failed(offset))
      return offset;
    rewriter.replaceOp(op, target.sharedArray(e, *offset, op.getBytes()));
    return success();
  }
};

class IntrinsicPattern : public TilePattern<dist::IntrinsicOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::IntrinsicOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Values operands;
    for (ValueRange operand : adaptor.getArgs())
      operands.push_back(operand.front());
    DictionaryAttr options = op.getOptionsAttr() ? op.getOptionsAttr() : DictionaryAttr::get(op.getContext());
    FailureOr<Values> results = target.intrinsic(e, op.getName(), operands, options);
    if (failed(results))
      return results;
    rewriter.replaceOp(op, *results);
    return success();
  }
};

} // namespace

void populateThreadPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<LdVectorPattern, StVectorPattern, FencePattern, SharedAllocPattern, IntrinsicPattern>(patterns.getContext(),
                                                                                                     lowering);
}

} // namespace ditron::target
