//===- DistToLLVM.cpp - Signals between ranks, and the thread level ---------------------------------------------------------===//
//
// Block-level signal operations are spread over the threads here: a wait lets thread i watch words i, i + threads, ... and
// then joins the block; a notify joins the block and lets thread 0 raise the word. Thread-level operations map to one leaf
// each. rank, num_ranks and symm_at have been rewritten to reads of the world view before (dist-lower-world).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/Patterns.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace ditron::target {

/// Words of the world view (notes of dist-lower-world): own rank, number of ranks, then the heap base of every rank.
static constexpr int worldRankWord = 0, worldNumRanksWord = 1, worldBasesWord = 2;

/// The world view: the kernel's hidden last argument, already lowered.
static Value worldView(Operation *op) {
  return op->getParentOfType<FunctionOpInterface>().getFunctionBody().getArguments().back();
}

static Value loadWorldWord(Emitter &e, TargetInfo &target, Value world, Value index) {
  Value address = e.addBytes(world, e.mul(e.sextOrTrunc(index, e.getI64Type()), e.i64(8)));
  return target.loadVector(e, address, e.getI64Type(), 1, Value(), {}, AddressSpace::Global, {})[0];
}

/// ptr - bases[own rank] + bases[rank].
static Value peerAddress(Emitter &e, TargetInfo &target, Value world, Value ptr, Value rank) {
  Value own = loadWorldWord(e, target, world, e.i64(worldRankWord));
  Value from = loadWorldWord(e, target, world, e.add(own, e.i64(worldBasesWord)));
  Value to = loadWorldWord(e, target, world, e.add(e.sextOrTrunc(rank, e.getI64Type()), e.i64(worldBasesWord)));
  return e.addBytes(ptr, e.sub(to, from));
}

namespace {

class WaitPattern : public TilePattern<dist::WaitOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::WaitOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Type word = cast<tile::PointerType>(op.getPtr().getType()).getPointee();
    Value ptr = adaptor.getPtr().front(), count = adaptor.getCount().front();
    Value wanted = e.sextOrTrunc(adaptor.getValue().front(), word);
    int64_t bytes = word.getIntOrFloatBitWidth() / 8;
    auto loop = scf::ForOp::create(e, target.threadId(e), count, target.numThreads(e));
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(loop.getBody());
      Emitter body(op.getLoc(), rewriter);
      Value offset = body.mul(body.sextOrTrunc(loop.getInductionVar(), body.getI64Type()), body.i64(bytes));
      target.waitUntil(body, body.addBytes(ptr, offset), op.getCompare(), wanted, op.getOrder(), op.getScope());
    }
    target.blockBarrier(e);
    if (target.hopper()) // tensor copies of what has been waited for go another way to memory
      target.hopper()->fenceAsyncGlobal(e);
    rewriter.replaceOp(op, e.i32(0)); // the token; what it orders is ordered by the calls above
    return success();
  }
};

class NotifyPattern : public TilePattern<dist::NotifyOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::NotifyOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!isa<LLVM::LLVMPointerType>(world.getType()))
      return rewriter.notifyMatchFailure(op, "needs the world view as the kernel's last argument");
    Type word = cast<tile::PointerType>(op.getPtr().getType()).getPointee();
    tile::MemoryScope scope =
        op.getScope() == dist::CommScope::Gpu ? tile::MemoryScope::Gpu : tile::MemoryScope::System;
    target.blockBarrier(e);
    emitIf(e, isFirstThread(e, target), {}, [&](Emitter &inner) -> Values {
      target.fence(inner, tile::MemoryOrder::Release, scope);
      if (target.checksRanks()) {
        Value numRanks = loadWorldWord(inner, target, world, inner.i64(worldNumRanksWord));
        target.checkRank(inner, adaptor.getRank().front(), inner.sextOrTrunc(numRanks, inner.getI32Type()), "notify");
      }
      Value address = peerAddress(inner, target, world, adaptor.getPtr().front(), adaptor.getRank().front());
      Value value = inner.sextOrTrunc(adaptor.getValue().front(), word);
      if (op.getOp() == dist::SignalOp::Set)
        target.orderedStore(inner, address, value, tile::MemoryOrder::Release, scope);
      else
        target.atomicRmw(inner, tile::AtomicOp::Add, word, address, value, Value(), tile::MemoryOrder::Release, scope);
      return {};
    });
    rewriter.eraseOp(op);
    return success();
  }
};

class CheckRankPattern : public TilePattern<dist::CheckRankOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::CheckRankOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    if (target.checksRanks())
      target.checkRank(e, adaptor.getRank().front(), adaptor.getNumRanks().front(), "symm_at");
    rewriter.eraseOp(op);
    return success();
  }
};

class ThreadIdPattern : public TilePattern<dist::ThreadIdOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::ThreadIdOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    rewriter.replaceOp(op, op.getAxis() == 0 ? target.threadId(e) : e.i32(0));
    return success();
  }
};

class LaneIdPattern : public TilePattern<dist::LaneIdOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::LaneIdOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    rewriter.replaceOp(op, target.laneId(e));
    return success();
  }
};

class LdPattern : public TilePattern<dist::LdOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::LdOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    GenericAddresses addresses(target, op);
    Type storage = getTypeConverter()->convertType(op.getType());
    Value loaded = target.orderedLoad(e, memoryType(storage), adaptor.getPtr().front(), op.getOrder(), op.getScope(),
                                      op->hasAttr(spinAttrName));
    rewriter.replaceOp(op, fromMemory(e, loaded, storage));
    return success();
  }
};

class StPattern : public TilePattern<dist::StOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::StOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    GenericAddresses addresses(target, op);
    target.orderedStore(e, adaptor.getPtr().front(), toMemory(e, adaptor.getValue().front()), op.getOrder(),
                        op.getScope());
    rewriter.eraseOp(op);
    return success();
  }
};

/// For targets without multicast memory: a turn for each rank with the address of the same place there. Gives the loop.
scf::ForOp forEachRank(Emitter &e, TargetInfo &target, Value world, Value ptr, ValueRange initial,
                       llvm::function_ref<SmallVector<Value>(Emitter &, Value address, ValueRange carried)> body) {
  Value numRanks = e.sextOrTrunc(loadWorldWord(e, target, world, e.i64(worldNumRanksWord)), e.getI32Type());
  auto loop = scf::ForOp::create(e, e.i32(0), numRanks, e.i32(1), initial);
  OpBuilder::InsertionGuard guard(e);
  e.setInsertionPointToStart(loop.getBody());
  Value address = peerAddress(e, target, world, ptr, loop.getInductionVar());
  SmallVector<Value> next = body(e, address, loop.getRegionIterArgs());
  if (!initial.empty())
    scf::YieldOp::create(e, next);
  return loop;
}

class MultimemStPattern : public TilePattern<dist::MultimemStOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::MultimemStOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Values words;
    for (ValueRange value : adaptor.getValues())
      words.push_back(value.front());
    Value ptr = adaptor.getPtr().front();
    if (!target.multimemStore(e, ptr, words))
      forEachRank(e, target, worldView(op), ptr, {}, [&](Emitter &inner, Value address, ValueRange) -> Values {
        for (auto [i, word] : llvm::enumerate(words))
          target.orderedStore(inner, inner.addBytes(address, int64_t(i) * Emitter::bitWidth(word.getType()) / 8), word,
                              tile::MemoryOrder::Relaxed, tile::MemoryScope::System);
        return {};
      });
    rewriter.eraseOp(op);
    return success();
  }
};

class MultimemLdReducePattern : public TilePattern<dist::MultimemLdReduceOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::MultimemLdReduceOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value ptr = adaptor.getPtr().front();
    Values sums = target.multimemLoadReduce(e, ptr);
    if (sums.empty()) {
      Type f32 = e.getF32Type();
      Values zeros(op.getNumResults(), LLVM::ConstantOp::create(e, f32, e.getF32FloatAttr(0)));
      auto loop = forEachRank(e, target, worldView(op), ptr, zeros, [&](Emitter &inner, Value address, ValueRange carried) {
        Values next;
        for (auto [i, sum] : llvm::enumerate(carried)) {
          Value word = target.orderedLoad(inner, f32, inner.addBytes(address, int64_t(i) * 4), tile::MemoryOrder::Relaxed,
                                          tile::MemoryScope::System, /*spin=*/false);
          next.push_back(LLVM::FAddOp::create(inner, sum, word));
        }
        return next;
      });
      sums.assign(loop.getResults().begin(), loop.getResults().end());
    }
    rewriter.replaceOp(op, sums);
    return success();
  }
};

class ThreadAtomicRmwPattern : public TilePattern<dist::ThreadAtomicRmwOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::ThreadAtomicRmwOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    GenericAddresses addresses(target, op);
    rewriter.replaceOp(op, target.atomicRmw(e, op.getOp(), op.getValue().getType(), adaptor.getPtr().front(),
                                            adaptor.getValue().front(), Value(), op.getOrder(), op.getScope()));
    return success();
  }
};

class ThreadAtomicCasPattern : public TilePattern<dist::ThreadAtomicCasOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::ThreadAtomicCasOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    GenericAddresses addresses(target, op);
    rewriter.replaceOp(op, target.atomicCas(e, adaptor.getPtr().front(), adaptor.getCompare().front(),
                                            adaptor.getValue().front(), op.getOrder(), op.getScope()));
    return success();
  }
};

class ShufflePattern : public TilePattern<dist::ShuffleOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::ShuffleOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value value = adaptor.getValue().front();
    if (Emitter::bitWidth(value.getType()) > static_cast<unsigned>(target.shuffleBits()))
      return op.emitOpError("of a value wider than the target's shuffle is not supported");
    Type word = e.getIntegerType(target.shuffleBits());
    Value received = target.shuffle(e, op.getKind(), e.zextOrTrunc(e.toBits(value), word), adaptor.getOperand().front(),
                                    adaptor.getMask().front());
    Value bits = e.zextOrTrunc(received, e.getIntegerType(Emitter::bitWidth(value.getType())));
    rewriter.replaceOp(op, e.fromBits(bits, value.getType()));
    return success();
  }
};

class BallotPattern : public TilePattern<dist::BallotOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::BallotOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    rewriter.replaceOp(op, target.ballot(e, adaptor.getMask().front(), adaptor.getPredicate().front()));
    return success();
  }
};

} // namespace

void populateDistPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<WaitPattern, NotifyPattern, CheckRankPattern, ThreadIdPattern, LaneIdPattern, LdPattern, StPattern,
               MultimemStPattern, MultimemLdReducePattern, ThreadAtomicRmwPattern, ThreadAtomicCasPattern, ShufflePattern,
               BallotPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
