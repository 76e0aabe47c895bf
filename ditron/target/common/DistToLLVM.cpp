//===- DistToLLVM.cpp - Signals between ranks, and the thread level ---------------------------------------------------------===//
//
// Block-level signal operations are spread over the threads here: a wait lets thread i watch words i, i + threads, ... and
// then joins the block; a notify joins the block and lets thread 0 raise the word. Thread-level operations map to one leaf
// each. rank, num_ranks and symm_at have been rewritten to reads of the world view before (dist-lower-world).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/ScalarOps.h"
#include "ditron/target/common/WorldView.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ditron::target {

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
    if (!world)
      return op.emitOpError(needsWorldView);
    Type word = cast<tile::PointerType>(op.getPtr().getType()).getPointee();
    tile::MemoryScope scope =
        op.getScope() == dist::CommScope::Gpu ? tile::MemoryScope::Gpu : tile::MemoryScope::System;
    target.blockBarrier(e);
    emitIf(e, isFirstThread(e, target), {}, [&](Emitter &inner) -> Values {
      if (target.hopper()) // what the block has stored, for tensor copies of receivers that do not fence themselves
        target.hopper()->fenceAsyncGlobal(inner);
      target.fence(inner, tile::MemoryOrder::Release, scope);
      if (target.checksRanks()) {
        Value numRanks = loadWorldWord(inner, target, world, DITRON_WORLD_NUM_RANKS);
        target.checkRank(inner, adaptor.getRank().front(), inner.sextOrTrunc(numRanks, inner.getI32Type()), "notify");
      }
      Value address = peerAddress(inner, target, world, adaptor.getPtr().front(), adaptor.getRank().front());
      Value value = inner.sextOrTrunc(adaptor.getValue().front(), word);
      target.raiseWord(inner, address, value, op.getOp(), op.getScope(), adaptor.getRank().front());
      return {};
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// Only remote_ptr asks; all else finds out when it gets there.
class ReachesPattern : public TilePattern<dist::ReachesOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::ReachesOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!world)
      return op.emitOpError(needsWorldView);
    rewriter.replaceOp(op, target.reaches(e, world, adaptor.getRank().front()));
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
                                      op->hasAttr(dist::spinAttrName));
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
    Value address = adaptor.getPtr().front(), value = toMemory(e, adaptor.getValue().front());
    target.orderedStore(e, address, value, op.getOrder(), op.getScope());
    // Who stores a word with release order for other blocks means a signal.
    const bool isWord = value.getType().isInteger(32) || value.getType().isInteger(64);
    if (isWord && op.getOrder() == tile::MemoryOrder::Release && op.getScope() != tile::MemoryScope::Block)
      target.noteSignal(e, address, value, dist::SignalOp::Set);
    rewriter.eraseOp(op);
    return success();
  }
};

/// For targets without multicast memory: a turn for each rank of the node with the address of the same place there. Gives the loop.
scf::ForOp forEachRank(Emitter &e, TargetInfo &target, Value world, Value ptr, ValueRange initial,
                       llvm::function_ref<SmallVector<Value>(Emitter &, Value address, ValueRange carried)> body, int from = 0) {
  const Team node = nodeTeam(e, target, world);
  auto loop = scf::ForOp::create(e, e.i32(from), node.size, e.i32(1), initial);
  OpBuilder::InsertionGuard guard(e);
  e.setInsertionPointToStart(loop.getBody());
  Value address = peerAddress(e, target, world, ptr, node.member(e, loop.getInductionVar()));
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
    Value ptr = adaptor.getPtr().front(), world = worldView(op);
    emitIf(e, adaptor.getMask().empty() ? Value() : adaptor.getMask().front(), {}, [&](Emitter &inner) -> Values {
      if (!target.multimemStore(inner, ptr, words))
        forEachRank(inner, target, world, ptr, {}, [&](Emitter &turn, Value address, ValueRange) -> Values {
          for (auto [i, word] : llvm::enumerate(words))
            target.orderedStore(turn, turn.addBytes(address, int64_t(i) * Emitter::bitWidth(word.getType()) / 8), word,
                                tile::MemoryOrder::Relaxed, tile::MemoryScope::System);
          return {};
        });
      return {};
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// One step of a load-reduce in the type of the words, or in f32 for what is packed.
Value combine(Emitter &e, dist::MultimemReduction op, Value a, Value b) {
  bool isFloat = isa<FloatType>(a.getType());
  switch (op) {
  case dist::MultimemReduction::Add:
    return isFloat ? Value(LLVM::FAddOp::create(e, a, b)) : e.add(a, b);
  case dist::MultimemReduction::Min:
    return isFloat ? Value(LLVM::MinNumOp::create(e, a, b)) : Value(LLVM::SMinOp::create(e, a, b));
  case dist::MultimemReduction::Max:
    return isFloat ? Value(LLVM::MaxNumOp::create(e, a, b)) : Value(LLVM::SMaxOp::create(e, a, b));
  case dist::MultimemReduction::And:
    return e.bitAnd(a, b);
  case dist::MultimemReduction::Or:
    return e.bitOr(a, b);
  case dist::MultimemReduction::Xor:
    return e.bitXor(a, b);
  }
  return a;
}

class MultimemLdReducePattern : public TilePattern<dist::MultimemLdReduceOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dist::MultimemLdReduceOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value ptr = adaptor.getPtr().front(), world = worldView(op);
    Value mask = adaptor.getMask().empty() ? Value() : adaptor.getMask().front();
    Values read = emitIf(e, mask, op.getResultTypes(), [&](Emitter &inner) {
      Values words = target.multimemLoadReduce(inner, ptr, op);
      return words.empty() ? inTurn(inner, op, world, ptr) : words;
    });
    if (mask)
      for (Value &word : read)
        word = e.select(mask, word, e.zero(word.getType()));
    rewriter.replaceOp(op, read);
    return success();
  }

private:
  /// Numbers of a word as they are combined: two f32 for packed halves.
  Values unpack(Emitter &e, dist::MultimemLdReduceOp op, Value word) const {
    if (!op.getPacked())
      return {word};
    Values parts;
    for (int shift : {0, 16}) {
      Value bits = e.zextOrTrunc(e.lshr(word, shift), e.getI16Type());
      Type half = *op.getPacked();
      Value stored = target.storageType(half) == half ? e.fromBits(bits, half) : bits;
      parts.push_back(convertScalar(e, target, stored, half, e.getF32Type()));
    }
    return parts;
  }
  Value pack(Emitter &e, dist::MultimemLdReduceOp op, ValueRange parts) const {
    if (!op.getPacked())
      return parts.front();
    Value word = e.i32(0);
    for (auto [i, part] : llvm::enumerate(parts)) {
      Value bits = e.toBits(convertScalar(e, target, part, e.getF32Type(), *op.getPacked()));
      word = e.bitOr(word, e.shl(e.zextOrTrunc(bits, e.getI32Type()), 16 * int(i)));
    }
    return word;
  }

  /// Rank by rank, the lowest first. What is packed is rounded once, at the end.
  Values inTurn(Emitter &e, dist::MultimemLdReduceOp op, Value world, Value ptr) const {
    Type type = op.getResultTypes().front();
    int64_t bytes = Emitter::bitWidth(type) / 8;
    auto load = [&](Emitter &at, Value base) {
      Values numbers;
      for (unsigned i = 0; i < op.getNumResults(); ++i)
        llvm::append_range(numbers, unpack(at, op, target.orderedLoad(at, type, at.addBytes(base, i * bytes), tile::MemoryOrder::Relaxed,
                                                                      tile::MemoryScope::System, /*spin=*/false)));
      return numbers;
    };
    Values first = load(e, peerAddress(e, target, world, ptr, nodeTeam(e, target, world).member(e, e.i32(0))));
    auto loop = forEachRank(e, target, world, ptr, first, [&](Emitter &inner, Value address, ValueRange carried) {
      Values next;
      for (auto [sum, number] : llvm::zip(carried, load(inner, address)))
        next.push_back(combine(inner, op.getOp(), sum, number));
      return next;
    }, /*from=*/1);
    Values words;
    const size_t each = op.getPacked() ? 2 : 1;
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      words.push_back(pack(e, op, loop.getResults().slice(i * each, each)));
    return words;
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
  patterns.add<WaitPattern, NotifyPattern, CheckRankPattern, ReachesPattern, ThreadIdPattern, LaneIdPattern, LdPattern,
               StPattern, MultimemStPattern, MultimemLdReducePattern, ThreadAtomicRmwPattern, ThreadAtomicCasPattern,
               ShufflePattern, BallotPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
