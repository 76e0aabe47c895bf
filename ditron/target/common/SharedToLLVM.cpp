//===- SharedToLLVM.cpp - Buffers in shared memory, asynchronous copies, barriers -------------------------------------------===//
//
// A buffer is lowered to the address that shared-memory allocation gave it; slot s begins s * slotBytes later. Accesses follow
// layout::OffsetPlan, as wide as register layout, shared layout and (for asynchronous copies) global contiguity allow.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/ScalarRegion.h"
#include "ditron/target/common/SharedAccess.h"

#include "ditron/layout/Builders.h"
#include "ditron/layout/Wgmma.h"

using namespace mlir;
using ditron::layout::DistributedLayout;
using ditron::layout::OffsetPlan;

namespace ditron::target {

namespace {

class BufferAllocPattern : public TilePattern<dgpu::BufferAllocOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::BufferAllocOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<int64_t> offset = scratchOffset(op);
    if (failed(offset))
      return offset;
    Emitter e(op.getLoc(), rewriter);
    rewriter.replaceOp(op, sharedAddress(e, target, *offset));
    return success();
  }
};

class BufferPermutePattern : public TilePattern<dgpu::BufferPermuteOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::BufferPermuteOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getSource().front());
    return success();
  }
};

class BufferStorePattern : public TilePattern<dgpu::BufferStoreOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::BufferStoreOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    auto type = cast<dgpu::BufferType>(op.getBuffer().getType());
    const DistributedLayout &registers = dgpu::layoutOf(op.getValue().getType());
    OffsetPlan plan = layout::makeOffsetPlan(registers, type.getLayout().getLayout(), target.maxVectorBytes() * 8);
    Value base = slotAddress(e, type, adaptor.getBuffer().front(), adaptor.getSlot().front());
    storeTile(e, target, plan, base, adaptor.getValue(), isRepresentative(e, target, registers), registers);
    rewriter.eraseOp(op);
    return success();
  }
};

class BufferLoadPattern : public TilePattern<dgpu::BufferLoadOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::BufferLoadOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    auto type = cast<dgpu::BufferType>(op.getBuffer().getType());
    const DistributedLayout &registers = dgpu::layoutOf(op.getType());
    OffsetPlan plan = layout::makeOffsetPlan(registers, type.getLayout().getLayout(), target.maxVectorBytes() * 8);
    Value base = slotAddress(e, type, adaptor.getBuffer().front(), adaptor.getSlot().front());
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertType(op.getType(), types)))
      return rewriter.notifyMatchFailure(op, "type has no lowering");
    Values values = loadTile(e, target, plan, base, types.front(), registers);
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

class AsyncCopyPattern : public TilePattern<dgpu::AsyncCopyOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::AsyncCopyOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    auto type = cast<dgpu::BufferType>(op.getBuffer().getType());
    const DistributedLayout &registers = dgpu::layoutOf(op.getPtr().getType());
    const layout::SharedLayout &shared = type.getLayout().getLayout();
    int elementBytes = shared.elementBytes();
    ValueRange ptr = adaptor.getPtr(), mask = adaptor.getMask();
    auto maskOf = [&](int reg) { return mask.empty() ? Value() : mask[mask.size() == 1 ? 0 : reg]; };
    Value base = slotAddress(e, type, adaptor.getBuffer().front(), adaptor.getSlot().front());
    OffsetPlan plan = copyPlan(op, registers, shared);
    int bytes = plan.vecElems * elementBytes;
    if (bytes != 4 && bytes != 8 && bytes != 16) {
      // Pieces that the hardware cannot copy asynchronously: through registers, complete at once, which every wait allows.
      Type storage = memoryType(getTypeConverter()->convertType(type.getElementType()));
      Values values;
      for (int reg = 0; reg < registers.numRegs(); ++reg)
        values.push_back(target.loadVector(e, ptr[reg], storage, 1, maskOf(reg), {}, AddressSpace::Global, {})[0]);
      OffsetPlan store = layout::makeOffsetPlan(registers, shared, target.maxVectorBytes() * 8);
      storeTile(e, target, store, base, values, isRepresentative(e, target, registers), registers);
      rewriter.eraseOp(op);
      return success();
    }
    // Threads that hold what others copy need not: a false predicate would not spare them that, it writes zeros.
    Value copies = isRepresentative(e, target, registers);
    Values addresses = sharedAddresses(e, target, plan, base, elementBytes);
    for (auto [access, address] : llvm::zip_equal(plan.accesses, addresses)) {
      int reg = access.regs.front();
      target.asyncCopy(e, address, ptr[reg], bytes, maskOf(reg), copies);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Pieces that are consecutive in global memory (as annotated) and in shared memory.
  static OffsetPlan copyPlan(dgpu::AsyncCopyOp op, const DistributedLayout &registers,
                             const layout::SharedLayout &shared) {
    auto axis = op->getAttrOfType<IntegerAttr>(dgpu::vectorAxisAttrName);
    auto elems = op->getAttrOfType<IntegerAttr>(dgpu::vectorElemsAttrName);
    int64_t contiguous = elems ? elems.getInt() : 1;
    OffsetPlan plan = layout::makeOffsetPlan(registers, shared, static_cast<int>(contiguous) * shared.elementBits());
    if (plan.vecElems == 1)
      return plan;
    int lowest = layout::lowestBitOfAxis(registers.shape(), static_cast<int>(axis.getInt()));
    const std::vector<int> &regs = plan.accesses.front().regs;
    bool sameDimension = registerPart(registers, regs[1]) - registerPart(registers, regs[0]) == int64_t(1) << lowest;
    return sameDimension ? plan : layout::makeOffsetPlan(registers, shared, shared.elementBits());
  }
};

/// Who copies what of a gathered tile: the threads of the partition share it as a coalesced access would.
struct GatherPlan {
  static constexpr int64_t copyBytes = 16;

  GatherPlan(dgpu::BufferType type, int warpSize, int threads)
      : rowElements(type.getShape().back()),
        threads(layout::tile(layout::Shape(type.getShape().begin(), type.getShape().end()), layout::rowMajorOrder(2),
                             copyBytes / type.getLayout().getLayout().elementBytes(), warpSize, threads / warpSize)),
        copies(layout::makeOffsetPlan(this->threads, type.getLayout().getLayout(), 8 * copyBytes)) {}

  /// Row and column of each copy of this thread.
  SmallVector<std::pair<Value, Value>> places(Emitter &e, TargetInfo &target) const {
    Value thread = threadPart(e, target, threads);
    SmallVector<std::pair<Value, Value>> result;
    for (const layout::SharedAccess &access : copies.accesses) {
      // Sizes are powers of two: the bits of the element's number are those of its column, then those of its row.
      Value number = e.bitXor(thread, e.i32(static_cast<int32_t>(registerPart(threads, access.regs.front()))));
      result.emplace_back(e.lshr(number, static_cast<int>(llvm::Log2_64(rowElements))),
                          e.bitAnd(number, e.i32(static_cast<int32_t>(rowElements - 1))));
    }
    return result;
  }

  int64_t rowElements;
  DistributedLayout threads;
  OffsetPlan copies;
};

/// Loads that each thread does by itself.
void loadPerThread(Region &region) {
  region.walk([](tile::LoadOp load) { load->setAttr(dist::perThreadAttrName, UnitAttr::get(load.getContext())); });
}

class GatherRowsPattern : public TilePattern<dgpu::GatherRowsOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::GatherRowsOp op, OneToNAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    const GatherPlan plan(op.getBuffer().getType(), target.warpSize(), lowering.numThreads(op));
    loadPerThread(op.getRow());
    const size_t copies = plan.copies.accesses.size(), values = op.getRow().front().back().getNumOperands();
    if (copies * values != op.getNumResults())
      return op.emitOpError("compiler bug: a thread makes ") << copies << " copies";
    SmallVector<Value> results(op.getNumResults());
    for (auto [copy, place] : llvm::enumerate(plan.places(e, target)))
      for (auto [i, value] : llvm::enumerate(applyRegion(e, lowering, op, {place.first}, [] { return Value(); })))
        results[i * copies + copy] = value;
    rewriter.replaceOp(op, results);
    return success();
  }
};

class AsyncGatherPattern : public TilePattern<dgpu::AsyncGatherOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::AsyncGatherOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    dgpu::BufferType type = op.getBuffer().getType();
    const int elementBytes = type.getLayout().getLayout().elementBytes();
    const GatherPlan plan(type, target.warpSize(), lowering.numThreads(op));
    if (plan.copies.vecElems * elementBytes != GatherPlan::copyBytes)
      return op.emitOpError("compiler bug: pieces of ")
             << plan.copies.vecElems * elementBytes << " bytes lie together in the slot";
    loadPerThread(op.getAddress());
    const size_t copies = plan.copies.accesses.size(), held = op.getAddress().front().getNumArguments() - 2;
    if (copies * held != op.getHeld().size())
      return op.emitOpError("compiler bug: a thread makes ") << copies << " copies";
    Value base = slotAddress(e, type, adaptor.getBuffer().front(), adaptor.getSlot().front());
    emitIf(e, isRepresentative(e, target, plan.threads), {}, [&](Emitter &inner) -> Values {
      // All addresses first: what they are loaded from is then on its way together.
      SmallVector<SmallVector<Value>> addresses;
      for (auto [copy, place] : llvm::enumerate(plan.places(inner, target))) {
        SmallVector<Value> arguments{place.first, place.second};
        for (size_t i = 0; i < held; ++i)
          arguments.push_back(adaptor.getHeld()[i * copies + copy].front());
        addresses.push_back(applyRegion(inner, lowering, op, arguments, [] { return Value(); }));
      }
      Values places = sharedAddresses(inner, target, plan.copies, base, elementBytes);
      for (auto [address, place] : llvm::zip_equal(addresses, places))
        target.asyncCopy(inner, place, address[0], GatherPlan::copyBytes, address.size() > 1 ? address[1] : Value());
      return {};
    });
    rewriter.eraseOp(op);
    return success();
  }
};

class AsyncCommitPattern : public TilePattern<dgpu::AsyncCommitOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::AsyncCommitOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    target.asyncCommit(e);
    rewriter.eraseOp(op);
    return success();
  }
};

class AsyncWaitPattern : public TilePattern<dgpu::AsyncWaitOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::AsyncWaitOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    target.asyncWait(e, static_cast<int>(op.getPending()));
    rewriter.eraseOp(op);
    return success();
  }
};

class BarrierPattern : public TilePattern<dgpu::BarrierOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::BarrierOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    if (op.getWarpgroups()) {
      // Barriers 0 and 1 are the block's and the consumers'.
      Value warpgroup = e.lshr(target.warpId(e), llvm::Log2_32(layout::warpsPerGroup));
      target.hopper()->namedBarrier(e, e.add(warpgroup, e.i32(2)), layout::warpsPerGroup * target.warpSize(),
                                    NamedBarrierKind::Sync);
    } else {
      target.blockBarrier(e);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

class SyncThreadsPattern : public TilePattern<dist::SyncThreadsOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::SyncThreadsOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    target.blockBarrier(e);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateSharedPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<BufferAllocPattern, BufferPermutePattern, BufferStorePattern, BufferLoadPattern, AsyncCopyPattern,
               GatherRowsPattern, AsyncGatherPattern, AsyncCommitPattern, AsyncWaitPattern, BarrierPattern,
               SyncThreadsPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
