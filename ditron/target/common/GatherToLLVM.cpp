//===- GatherToLLVM.cpp - tile.gather and tile.histogram --------------------------------------------------------------------===//
//
// A gather follows layout::GatherPlan: within a warp by shuffles of all registers that an element may be in, else through scratch
// memory in row-major order. Bits of an index beyond the axis are ignored, so that an index out of range reads some element and
// never memory that is not the tile's. A gather that is known to be an exchange renames registers and takes one butterfly.
//
// A histogram counts in scratch memory with atomic additions, one for each element that some thread represents.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/SharedAccess.h"

#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/tile/ExchangeAttr.h"
#include "ditron/layout/GatherPlan.h"

using namespace mlir;
using ditron::layout::DistributedLayout;
using ditron::layout::GatherPlan;

namespace ditron::target {
namespace {

class GatherPattern : public TilePattern<tile::GatherOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::GatherOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    FailureOr<Values> values = exchangeMaskOf(op)                     ? exchange(e, op, adaptor.getSource())
                               : analysis::gatherPlanOf(op).isWithinWarp ? withinWarp(e, op, adaptor)
                                                                      : throughShared(e, op, adaptor);
    if (failed(values))
      return values;
    rewriter.replaceOpWithMultiple(op, {*values});
    return success();
  }

private:
  FailureOr<Values> exchange(Emitter &e, tile::GatherOp op, ValueRange source) const {
    const DistributedLayout &layout = dgpu::layoutOf(op.getSource().getType());
    if (!(layout == dgpu::layoutOf(op.getType())))
      return op.emitOpError("that is an exchange must have its source's layout ") << layout.toString();
    layout::ExchangeMasks masks =
        layout::makeExchangeMasks(layout, static_cast<int>(op.getAxis()), *exchangeMaskOf(op));
    if (masks.blocks != 0)
      return op.emitOpError("would move data between blocks of a cluster, which is not supported");
    Values renamed;
    for (size_t reg = 0; reg < source.size(); ++reg)
      renamed.push_back(source[reg ^ masks.regs]);
    if (masks.warps != 0) {
      FailureOr<int64_t> offset = scratchOffset(op);
      if (failed(offset))
        return LogicalResult(offset);
      uint32_t threads = masks.lanes | masks.warps * static_cast<uint32_t>(target.warpSize());
      Value partner = e.bitXor(target.threadId(e), e.i32(static_cast<int32_t>(threads)));
      return exchangeThroughShared(e, target, SharedSlots{*offset, renamed}, lowering.numThreads(op), partner,
                                   Value())[0];
    }
    if (masks.lanes != 0)
      return shuffleValues(e, target, dist::ShuffleKind::Butterfly, renamed, e.i32(int64_t(masks.lanes)));
    return renamed;
  }

  /// The index values as i32; what is above the axis does not matter.
  static Values indices(Emitter &e, OneToNAdaptor adaptor) {
    Values values;
    for (Value index : adaptor.getIndex())
      values.push_back(e.zextOrTrunc(index, e.getI32Type()));
    return values;
  }

  FailureOr<Values> withinWarp(Emitter &e, tile::GatherOp op, OneToNAdaptor adaptor) const {
    const DistributedLayout &result = dgpu::layoutOf(op.getType());
    GatherPlan plan = analysis::gatherPlanOf(op);
    Value own = threadPart(e, target, result);
    ValueRange source = adaptor.getSource();
    Values values;
    for (auto [reg, index] : llvm::enumerate(indices(e, adaptor))) {
      int64_t ownRegister = registerPart(result, static_cast<int>(reg));
      Value position = e.add(own, e.i32(ownRegister));
      Value sourceReg = e.bitXor(mapBits(e, index, plan.valueRegs), mapBits(e, position, plan.ownRegs));
      // What the own register alone says about the source's; the other bits are tried out.
      int64_t known = 0;
      for (auto [bit, basis] : llvm::enumerate(plan.ownRegs))
        if (ownRegister >> bit & 1)
          known |= basis;
      for (int bit : plan.unknownRegBits)
        known &= ~(int64_t(1) << bit);
      Values candidates;
      for (int64_t choice = 0; choice < int64_t(1) << plan.unknownRegBits.size(); ++choice) {
        int64_t from = known;
        for (auto [i, bit] : llvm::enumerate(plan.unknownRegBits))
          from |= (choice >> i & 1) << bit;
        candidates.push_back(source[from]);
      }
      if (!plan.isWithinThread) {
        Value lane = e.bitXor(mapBits(e, index, plan.valueLanes), mapBits(e, position, plan.ownLanes));
        candidates = shuffleValues(e, target, dist::ShuffleKind::Index, candidates, lane);
      }
      for (int bit : plan.unknownRegBits) {
        Value isOdd = e.bitOf(sourceReg, bit);
        Values chosen;
        for (size_t i = 0; i < candidates.size(); i += 2)
          chosen.push_back(e.select(isOdd, candidates[i + 1], candidates[i]));
        candidates = std::move(chosen);
      }
      values.push_back(candidates.front());
    }
    return values;
  }

  FailureOr<Values> throughShared(Emitter &e, tile::GatherOp op, OneToNAdaptor adaptor) const {
    FailureOr<int64_t> offset = scratchOffset(op);
    if (failed(offset))
      return LogicalResult(offset);
    const DistributedLayout &source = dgpu::layoutOf(op.getSource().getType());
    const DistributedLayout &result = dgpu::layoutOf(op.getType());
    int bits = analysis::sharedElementBits(op.getType().getElementType());
    layout::SharedLayout rowMajor(source.shape(), bits, layout::f2::identity(source.numTensorBits()));
    Value base = sharedAddress(e, target, *offset);
    storeTile(e, target, layout::makeOffsetPlan(source, rowMajor), base, adaptor.getSource(),
              isRepresentative(e, target, source), source);
    target.blockBarrier(e);

    GatherPlan plan = analysis::gatherPlanOf(op);
    Type storage = adaptor.getSource().front().getType();
    Value own = threadPart(e, target, result);
    Values values;
    for (auto [reg, index] : llvm::enumerate(indices(e, adaptor))) {
      Value position = e.add(own, e.i32(registerPart(result, static_cast<int>(reg))));
      Value element = e.bitXor(mapBits(e, index, plan.valueOffsets), mapBits(e, position, plan.ownOffsets));
      Value address = e.addBytes(base, e.mul(element, e.i32(bits / 8)));
      Value loaded =
          target.loadVector(e, address, memoryType(storage), 1, Value(), {}, AddressSpace::Shared, {}).front();
      values.push_back(fromMemory(e, loaded, storage));
    }
    return values;
  }
};

class HistogramPattern : public TilePattern<tile::HistogramOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::HistogramOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    FailureOr<int64_t> offset = scratchOffset(op);
    if (failed(offset))
      return offset;
    const DistributedLayout &source = dgpu::layoutOf(op.getSource().getType());
    const DistributedLayout &result = dgpu::layoutOf(op.getType());
    layout::SharedLayout bins(result.shape(), 32, layout::f2::identity(result.numTensorBits()));
    layout::OffsetPlan plan = layout::makeOffsetPlan(result, bins);
    Value base = sharedAddress(e, target, *offset);
    Values zeros(result.numRegs(), e.i32(0));
    storeTile(e, target, plan, base, zeros, isRepresentative(e, target, result), result);
    target.blockBarrier(e);

    Value represents = isRepresentative(e, target, source), one = e.i32(1);
    ValueRange mask = adaptor.getMask();
    for (auto [reg, value] : llvm::enumerate(adaptor.getSource())) {
      // As unsigned numbers: negative ones are out of range too.
      Value counts = countsIn(e, value, result.numElements());
      if (!mask.empty())
        counts = e.conjunction(counts, mask[mask.size() == 1 ? 0 : reg]);
      counts = e.conjunction(counts, represents);
      emitIf(e, counts, {}, [&, number = value](Emitter &inner) -> Values {
        Value bin = inner.zextOrTrunc(number, inner.getI32Type());
        Value address = inner.addBytes(base, inner.mul(bin, inner.i32(4)));
        LLVM::AtomicRMWOp::create(inner, LLVM::AtomicBinOp::add, address, one, LLVM::AtomicOrdering::monotonic);
        return {};
      });
    }
    target.blockBarrier(e);
    rewriter.replaceOpWithMultiple(op, {loadTile(e, target, plan, base, e.getI32Type(), result)});
    return success();
  }

private:
  /// Null when all values of the type are bins.
  static Value countsIn(Emitter &e, Value value, int64_t bins) {
    unsigned width = Emitter::bitWidth(value.getType());
    if (width < 63 && bins >= int64_t(1) << width)
      return {};
    return e.compare(LLVM::ICmpPredicate::ult, value, e.constant(value.getType(), bins));
  }
};

} // namespace

void populateGatherPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<GatherPattern, HistogramPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
