//===- AtomicToLLVM.cpp - tile.atomic_rmw and tile.atomic_cas ---------------------------------------------------------------===//
//
// An atomic is performed exactly once per element: by the representative of the threads that hold copies of it, by thread 0
// for a scalar. If the old value is used, it is then handed to all copies: to other lanes by a shuffle, to other warps (and
// from thread 0 to the block) through scratch memory.
//
// An order of release or more covers what the whole block stored before, so a block barrier precedes; with acquire or more a
// barrier follows, after which no thread of the block can see older values.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/Patterns.h"

using namespace mlir;
using ditron::layout::DistributedLayout;
using ditron::layout::MachineDim;

namespace ditron::target {

static bool releases(tile::MemoryOrder order) {
  return order == tile::MemoryOrder::Release || order == tile::MemoryOrder::AcquireRelease;
}
static bool acquires(tile::MemoryOrder order) {
  return order == tile::MemoryOrder::Acquire || order == tile::MemoryOrder::AcquireRelease;
}

namespace {

/// What rmw and cas share. Derived patterns say how one element is done.
template <typename OpT> class AtomicPattern : public TilePattern<OpT> {
public:
  using TilePattern<OpT>::TilePattern;
  using typename TilePattern<OpT>::Values;
  using typename TilePattern<OpT>::OneToNAdaptor;

  /// Performs the atomic of register `reg` where `predicate` (null: everywhere) is true.
  virtual Value emitElement(Emitter &e, OpT op, OneToNAdaptor adaptor, int reg, Value predicate) const = 0;

  LogicalResult matchAndRewrite(OpT op, OneToNAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    TargetInfo &target = this->target;
    Emitter e(op.getLoc(), rewriter);
    GenericAddresses addresses(target, op);
    bool isTensor = isa<RankedTensorType>(op.getPtr().getType());
    bool isUsed = !op.getResult().use_empty();
    // In a region on scalars it is the work of whoever gets here, and his alone.
    if (op->hasAttr(dist::perThreadAttrName)) {
      rewriter.replaceOpWithMultiple(op, {{emitElement(e, op, adaptor, 0, Value())}});
      return success();
    }
    if (releases(op.getOrder()))
      target.blockBarrier(e);
    Value performs =
        isTensor ? isRepresentative(e, target, dgpu::layoutOf(op.getPtr().getType())) : isFirstThread(e, target);
    Values old;
    for (int reg = 0; reg < static_cast<int>(adaptor.getPtr().size()); ++reg)
      old.push_back(emitElement(e, op, adaptor, reg, performs));
    bool hadBarrier = false;
    if (isUsed) {
      FailureOr<Values> shared = share(e, op, old, hadBarrier);
      if (failed(shared))
        return shared;
      old = *shared;
    }
    if (acquires(op.getOrder()) && !hadBarrier)
      target.blockBarrier(e);
    rewriter.replaceOpWithMultiple(op, {old});
    return success();
  }

private:
  /// Hands the old values to all threads that hold copies.
  FailureOr<Values> share(Emitter &e, OpT op, const Values &old, bool &hadBarrier) const {
    Type type = op.getPtr().getType();
    if (isa<RankedTensorType>(type))
      return giveToCopies(e, this->target, op, dgpu::layoutOf(type), old, this->lowering.numThreads(op), hadBarrier);
    FailureOr<int64_t> offset = scratchOffset(op);
    if (failed(offset))
      return LogicalResult(offset);
    hadBarrier = true;
    return exchangeThroughShared(e, this->target, SharedSlots{*offset, old}, /*threads=*/1, e.i32(0),
                                 isFirstThread(e, this->target))[0];
  }
};

class AtomicRmwPattern : public AtomicPattern<tile::AtomicRmwOp> {
public:
  using AtomicPattern::AtomicPattern;

  Value emitElement(Emitter &e, tile::AtomicRmwOp op, OneToNAdaptor adaptor, int reg, Value predicate) const override {
    ValueRange mask = adaptor.getMask();
    Value wanted = mask.empty() ? Value() : mask[mask.size() == 1 ? 0 : reg];
    return target.atomicRmw(e, op.getOp(), tile::elementTypeOf(op.getValue().getType()), adaptor.getPtr()[reg],
                            adaptor.getValue()[reg], e.conjunction(predicate, wanted), op.getOrder(), op.getScope());
  }
};

class AtomicCasPattern : public AtomicPattern<tile::AtomicCasOp> {
public:
  using AtomicPattern::AtomicPattern;

  Value emitElement(Emitter &e, tile::AtomicCasOp op, OneToNAdaptor adaptor, int reg, Value predicate) const override {
    Value ptr = adaptor.getPtr()[reg], compare = adaptor.getCompare()[reg], value = adaptor.getValue()[reg];
    return emitIf(e, predicate, value.getType(), [&](Emitter &inner) -> Values {
      return {target.atomicCas(inner, ptr, compare, value, op.getOrder(), op.getScope())};
    })[0];
  }
};

} // namespace

void populateAtomicPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<AtomicRmwPattern, AtomicCasPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
