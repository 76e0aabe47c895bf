//===- HopperToLLVM.cpp - mbarriers and tensor copies -----------------------------------------------------------------------===//
//
// mbarriers are initialised where they are allocated, by one thread; after the last of them all warps of the block meet. A
// tensor copy of a whole tile is cut into copies of its map's box, each at the place where the tile's layout has its first
// element; layout/CopyBoxes.h sees to it that the hardware means the same places.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/Partition.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/SharedAccess.h"

#include "ditron/layout/CopyBoxes.h"
#include "ditron/layout/Wgmma.h"

using namespace mlir;

namespace ditron::target {

/// True in one thread of those that run this code.
static Value isElected(Emitter &e, TargetInfo &target) {
  std::optional<Partition> partition = partitionAt(e);
  return partition && partition->numWarps == 1 ? target.hopper()->electLane(e) : isFirstThread(e, target);
}

static Value mbarrierAddress(Emitter &e, Value bars, Value slot) {
  return e.addBytes(bars, e.mul(e.sextOrTrunc(slot, e.getI64Type()), e.i64(8)));
}

namespace {

//===--- mbarriers ------------------------------------------------------------------------------------------------------===//

class MbarrierAllocPattern : public TilePattern<dgpu::MbarrierAllocOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::MbarrierAllocOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<int64_t> offset = scratchOffset(op);
    if (failed(offset))
      return offset;
    Emitter e(op.getLoc(), rewriter);
    HopperLeaves &leaves = *target.hopper();
    Value bars = sharedAddress(e, target, *offset), first = isFirstThread(e, target);
    const int count = static_cast<int>(op.getCount()) * (op.getCluster() && leaves.hasClusters() ? 2 : 1);
    for (int64_t slot = 0; slot < op.getType().getSlots(); ++slot)
      leaves.mbarrierInit(e, e.addBytes(bars, 8 * slot), count, first);
    // Operations are converted in their order, and these stand at the top level of the kernel only.
    bool isLast = true;
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
      isLast &= !isa<dgpu::MbarrierAllocOp>(next);
    if (isLast) {
      leaves.mbarrierInitFence(e);
      target.blockBarrier(e);
    }
    rewriter.replaceOp(op, bars);
    return success();
  }
};

class MbarrierExpectPattern : public TilePattern<dgpu::MbarrierExpectOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::MbarrierExpectOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value bar = mbarrierAddress(e, adaptor.getBars().front(), adaptor.getSlot().front());
    target.hopper()->mbarrierExpect(e, bar, static_cast<int64_t>(op.getBytes()), isElected(e, target));
    rewriter.eraseOp(op);
    return success();
  }
};

class MbarrierArrivePattern : public TilePattern<dgpu::MbarrierArriveOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::MbarrierArriveOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value bar = mbarrierAddress(e, adaptor.getBars().front(), adaptor.getSlot().front());
    if (op.getAfterLoads())
      target.warpBarrier(e);
    Value predicate = e.isZero(target.laneId(e));
    if (op.getPredicate())
      predicate = e.conjunction(adaptor.getPredicate().front(), predicate);
    target.hopper()->mbarrierArrive(e, bar, predicate);
    if (op.getCluster() && target.hopper()->hasClusters())
      target.hopper()->mbarrierArriveAtPeer(e, bar, predicate);
    rewriter.eraseOp(op);
    return success();
  }
};

class MbarrierArriveCopiedPattern : public TilePattern<dgpu::MbarrierArriveCopiedOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::MbarrierArriveCopiedOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    target.hopper()->mbarrierArriveCopied(e, mbarrierAddress(e, adaptor.getBars().front(), adaptor.getSlot().front()));
    rewriter.eraseOp(op);
    return success();
  }
};

class MbarrierWaitPattern : public TilePattern<dgpu::MbarrierWaitOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::MbarrierWaitOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value bar = mbarrierAddress(e, adaptor.getBars().front(), adaptor.getSlot().front());
    target.hopper()->mbarrierWait(e, bar, adaptor.getParity().front());
    rewriter.eraseOp(op);
    return success();
  }
};

//===--- Turns of warpgroups --------------------------------------------------------------------------------------------===//

/// Barrier firstTurnBarrier + w opens warpgroup w's turn; lower numbers are the block's, the consumers' and those of single warpgroups.
constexpr int firstTurnBarrier = 8;

template <typename TurnOp, NamedBarrierKind kind> class TurnPattern : public TilePattern<TurnOp> {
public:
  using TilePattern<TurnOp>::TilePattern;

  LogicalResult matchAndRewrite(TurnOp op, typename TilePattern<TurnOp>::OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    TargetInfo &target = this->target;
    const int groupThreads = layout::warpsPerGroup * target.warpSize(),
              groups = this->lowering.numThreads(op) / groupThreads;
    Value own = e.lshr(target.warpId(e), llvm::Log2_32(layout::warpsPerGroup));
    // A warpgroup waits at its own barrier and arrives at the next one's.
    const bool passes = kind == NamedBarrierKind::Arrive;
    Value isLast = e.compare(LLVM::ICmpPredicate::eq, own, e.i32(groups - 1));
    auto meet = [&](Emitter &e, Value id) {
      target.hopper()->namedBarrier(e, id, 2 * groupThreads, kind); // one group waits and one arrives
      return SmallVector<Value>();
    };
    if (op.getFirst())
      emitIf(e, passes ? isLast : e.isZero(own), {}, [&](Emitter &e) { return meet(e, e.i32(firstTurnBarrier)); });
    else if (passes)
      meet(e, e.select(isLast, e.i32(firstTurnBarrier), e.add(own, e.i32(firstTurnBarrier + 1))));
    else
      meet(e, e.add(own, e.i32(firstTurnBarrier)));
    rewriter.eraseOp(op);
    return success();
  }
};

//===--- Tensor copies --------------------------------------------------------------------------------------------------===//

/// One box of a tile.
struct BoxCopy {
  int64_t firstRow;               ///< In the tile.
  SmallVector<Value> coordinates; ///< The contiguous dimension first.
  Value shared;
};

/// The boxes that make up the tile of a slot.
template <typename CopyOp>
FailureOr<SmallVector<BoxCopy>> cutIntoBoxes(Emitter &e, CopyOp op, dgpu::BufferType type, Value slotBase,
                                             ArrayRef<ValueRange> offsets) {
  if (!op.getBox() || !op.getSwizzleBytes())
    return op.emitOpError("does not say the box and the swizzle of its map; run dgpu-bind-tensor-maps first");
  const layout::SharedLayout &shared = type.getLayout().getLayout();
  // Outer dimensions, of which a box has one element, are not the tile's.
  const size_t outer = offsets.size() - shared.shape().size();
  const int swizzle = static_cast<int>(*op.getSwizzleBytes());
  Expected<std::vector<layout::CopyBox>> boxes = layout::copyBoxes(shared, op.getBox()->drop_front(outer), swizzle);
  if (!boxes.isOk())
    return op->emitOpError("compiler bug: ") << boxes.status().message();
  if (type.getSlots() > 1 && type.getSlotBytes() % layout::copyAlignment(swizzle) != 0)
    return op->emitOpError("compiler bug: slots of ") << type.getSlotBytes() << " bytes, which is no multiple of the "
                                                      << layout::copyAlignment(swizzle) << " at which a box begins";
  SmallVector<BoxCopy> copies;
  for (const layout::CopyBox &part : *boxes) {
    BoxCopy &copy = copies.emplace_back();
    copy.firstRow = part.start.front();
    copy.shared = e.addBytes(slotBase, part.offsetBytes);
    for (size_t d = offsets.size(); d-- > 0;)
      copy.coordinates.push_back(d < outer ? offsets[d].front()
                                           : e.add(offsets[d].front(), e.i32(part.start[d - outer])));
  }
  return copies;
}

class TmaPrefetchPattern : public TilePattern<dgpu::TmaPrefetchOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::TmaPrefetchOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value first = isFirstThread(e, target);
    target.hopper()->prefetchMap(e, adaptor.getMap().front(), first);
    rewriter.eraseOp(op);
    return success();
  }
};

class TmaLoadPattern : public TilePattern<dgpu::TmaLoadOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::TmaLoadOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    auto type = cast<dgpu::BufferType>(op.getBuffer().getType());
    Value base = slotAddress(e, type, adaptor.getBuffer().front(), adaptor.getSlot().front());
    Value bar = mbarrierAddress(e, adaptor.getBars().front(), adaptor.getBarSlot().front());
    FailureOr<SmallVector<BoxCopy>> copies = cutIntoBoxes(e, op, type, base, adaptor.getOffsets());
    if (failed(copies))
      return copies;
    HopperLeaves &leaves = *target.hopper();
    const bool toCluster = op.getCluster() && leaves.hasClusters();
    Value elected = isElected(e, target), second, first;
    if (toCluster) {
      if (copies->size() % 2 != 0)
        return op.emitOpError("compiler bug: a tile of ") << copies->size() << " boxes has no halves";
      Value own = leaves.blockInCluster(e);
      first = e.conjunction(elected, e.isZero(own));
      second = e.conjunction(elected, e.isNotZero(own));
    }
    for (auto [i, copy] : llvm::enumerate(*copies)) {
      Value predicate = !toCluster ? elected : i < copies->size() / 2 ? first : second;
      leaves.tmaLoad(e, adaptor.getMap().front(), copy.coordinates, copy.shared, bar, predicate, op.getEvict(),
                     toCluster);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

class ClusterBarrierPattern : public TilePattern<dgpu::ClusterBarrierOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::ClusterBarrierOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    if (target.hopper()->hasClusters())
      target.hopper()->clusterBarrier(e);
    rewriter.eraseOp(op);
    return success();
  }
};

class TmaStorePattern : public TilePattern<dgpu::TmaStoreOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::TmaStoreOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    auto type = cast<dgpu::BufferType>(op.getBuffer().getType());
    Value base = slotAddress(e, type, adaptor.getBuffer().front(), adaptor.getSlot().front());
    FailureOr<SmallVector<BoxCopy>> copies = cutIntoBoxes(e, op, type, base, adaptor.getOffsets());
    if (failed(copies))
      return copies;
    std::optional<ArrayRef<int32_t>> warpgroups = op.getWarpgroups();
    Value first = warpgroups ? Value() : isFirstThread(e, target);
    for (const BoxCopy &copy : *copies) {
      Value predicate = first;
      if (warpgroups) {
        int threads = layout::warpsPerGroup * target.warpSize();
        int32_t warpgroup = (*warpgroups)[copy.firstRow / layout::wgmmaRows];
        predicate = e.compare(LLVM::ICmpPredicate::eq, target.threadId(e), e.i32(warpgroup * threads));
      }
      target.hopper()->tmaStore(e, adaptor.getMap().front(), copy.coordinates, copy.shared, predicate);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// Groups of stores are a thread's own: those of threads without stores are empty, and waiting for them is nothing.
class TmaStoreCommitPattern : public TilePattern<dgpu::TmaStoreCommitOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::TmaStoreCommitOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    target.hopper()->tmaStoreCommit(e);
    rewriter.eraseOp(op);
    return success();
  }
};

class TmaStoreWaitPattern : public TilePattern<dgpu::TmaStoreWaitOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::TmaStoreWaitOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    target.hopper()->tmaStoreWait(e, static_cast<int>(op.getPending()), op.getRead());
    rewriter.eraseOp(op);
    return success();
  }
};

class FenceAsyncPattern : public TilePattern<dgpu::FenceAsyncOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::FenceAsyncOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    target.hopper()->fenceAsync(e);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

LogicalResult checkHopper(ModuleOp module, TargetInfo &target) {
  if (target.hopper())
    return success();
  WalkResult walk = module.walk([](Operation *op) -> WalkResult {
    if (isa<dgpu::WarpSpecializeOp, dgpu::MbarrierAllocOp, dgpu::TmaPrefetchOp, dgpu::TmaLoadOp, dgpu::TmaStoreOp,
            dgpu::FenceAsyncOp, dgpu::WarpgroupDotOp, dgpu::WarpgroupWaitOp, dgpu::ClusterBarrierOp, dgpu::TakeTurnOp,
            dgpu::PassTurnOp>(op))
      return op->emitOpError("is not available on this target");
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

void populateHopperPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<MbarrierAllocPattern, MbarrierExpectPattern, MbarrierArrivePattern, MbarrierArriveCopiedPattern,
               MbarrierWaitPattern, TmaPrefetchPattern, TmaLoadPattern, TmaStorePattern, TmaStoreCommitPattern,
               TmaStoreWaitPattern, FenceAsyncPattern, ClusterBarrierPattern,
               TurnPattern<dgpu::TakeTurnOp, NamedBarrierKind::Sync>,
               TurnPattern<dgpu::PassTurnOp, NamedBarrierKind::Arrive>>(patterns.getContext(), lowering);
}

} // namespace ditron::target
