//===- ShmemToLLVM.cpp - OpenSHMEM operations -----------------------------------------------------------------------------===//
//
// Puts, gets, signals and team operations (DistShmemOps.td; docs/openshmem.md says what they promise). Threads of a warp or block
// that act together meet before and after: before, so that all of their stores belong to what is sent, after, so that none goes
// on with a source that is still read. What moves the bytes is a leaf: plain loads and stores to the peer's memory, or the
// simulator's network.
//
// A team barrier: each PE counts its barriers of the team and adds one to its word at every member; it waits until every member's
// word here has reached its own count. Words only grow. They lie in the symmetric heap, [-5] of the world view: per team
// 1 + number of ranks words, first the count, then the word of each rank.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/WorldView.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using LLVM::ICmpPredicate;

namespace ditron::target {
namespace {

/// The threads that carry out an operation together, and this one among them.
class Together {
public:
  Together(Emitter &e, TargetInfo &target, dist::ExecScope exec) : target(target), exec(exec) {
    if (exec == dist::ExecScope::Block)
      index = target.threadId(e), count = target.numThreads(e);
    else if (exec == dist::ExecScope::Warp)
      index = target.laneId(e), count = e.i32(target.warpSize());
    else
      index = e.i32(0), count = e.i32(1);
  }
  void meet(Emitter &e) const {
    if (exec == dist::ExecScope::Block)
      target.blockBarrier(e);
    else if (exec == dist::ExecScope::Warp)
      target.warpBarrier(e);
  }
  /// Runs `body` in one of the threads.
  void once(Emitter &e, llvm::function_ref<void(Emitter &)> body) const {
    Value first = exec == dist::ExecScope::Thread ? Value() : e.isZero(index);
    emitIf(e, first, {}, [&](Emitter &inner) -> SmallVector<Value> {
      body(inner);
      return {};
    });
  }
  /// Runs `body` for 0 .. limit-1, shared among the threads.
  void forEach(Emitter &e, Value limit, llvm::function_ref<void(Emitter &, Value)> body) const {
    auto loop = scf::ForOp::create(e, index, limit, count);
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointToStart(loop.getBody());
    body(e, loop.getInductionVar());
  }

  Value index, count;

private:
  TargetInfo &target;
  dist::ExecScope exec;
};

template <typename OpT> class ShmemPattern : public TilePattern<OpT> {
public:
  using TilePattern<OpT>::TilePattern;
  using typename TilePattern<OpT>::OneToNAdaptor;
  using typename TilePattern<OpT>::Values;

protected:
  /// The address of a symmetric object on a PE that has been checked.
  Value onPeer(Emitter &e, Value world, Value ptr, Value pe, StringRef function) const {
    this->target.checkPeer(e, world, pe, function);
    return peerAddress(e, this->target, world, ptr, pe);
  }
  void fence(Emitter &e, tile::MemoryOrder order) const { this->target.fence(e, order, tile::MemoryScope::System); }
};

class PutPattern : public ShmemPattern<dist::PutOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::PutOp op, OneToNAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!world)
      return op.emitOpError(needsWorldView);
    Together threads(e, target, op.getExec());
    threads.meet(e);
    Value pe = adaptor.getPe().front();
    Value there = onPeer(e, world, adaptor.getDest().front(), pe, "put");
    target.transfer(e, {there, adaptor.getSource().front(), adaptor.getBytes().front(), pe, threads.index, threads.count,
                        /*isGet=*/false, op.getNonblocking()});
    threads.meet(e);
    rewriter.eraseOp(op);
    return success();
  }
};

class GetPattern : public ShmemPattern<dist::GetOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::GetOp op, OneToNAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!world)
      return op.emitOpError(needsWorldView);
    Together threads(e, target, op.getExec());
    threads.meet(e);
    Value pe = adaptor.getPe().front();
    Value there = onPeer(e, world, adaptor.getSource().front(), pe, "get");
    target.transfer(e, {adaptor.getDest().front(), there, adaptor.getBytes().front(), pe, threads.index, threads.count,
                        /*isGet=*/true, op.getNonblocking()});
    threads.meet(e);
    rewriter.eraseOp(op);
    return success();
  }
};

class PutSignalPattern : public ShmemPattern<dist::PutSignalOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::PutSignalOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!world)
      return op.emitOpError(needsWorldView);
    Together threads(e, target, op.getExec());
    threads.meet(e);
    Value pe = adaptor.getPe().front();
    Value there = onPeer(e, world, adaptor.getDest().front(), pe, "put_signal");
    Value signal = peerAddress(e, target, world, adaptor.getSignal().front(), pe);
    SymmetricTransfer transfer{there,         adaptor.getSource().front(), adaptor.getBytes().front(), pe,
                               threads.index, threads.count,               /*isGet=*/false,            op.getNonblocking()};
    Value value = adaptor.getValue().front();
    if (!target.transferWithSignal(e, transfer, signal, value, op.getOp())) {
      target.transfer(e, transfer);
      threads.meet(e); // all have stored their part
      threads.once(e, [&](Emitter &inner) {
        fence(inner, tile::MemoryOrder::AcquireRelease);
        target.raiseSignal(inner, signal, value, op.getOp(), pe);
      });
    }
    threads.meet(e);
    rewriter.eraseOp(op);
    return success();
  }
};

class SignalOpPattern : public ShmemPattern<dist::SignalOpOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::SignalOpOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!world)
      return op.emitOpError(needsWorldView);
    Value pe = adaptor.getPe().front();
    target.raiseSignal(e, onPeer(e, world, adaptor.getSignal().front(), pe, "signal_op"), adaptor.getValue().front(), op.getOp(), pe);
    rewriter.eraseOp(op);
    return success();
  }
};

class SignalWaitUntilPattern : public ShmemPattern<dist::SignalWaitUntilOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::SignalWaitUntilOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value seen = target.waitUntil(e, adaptor.getSignal().front(), op.getCompare(), adaptor.getValue().front(),
                                  tile::MemoryOrder::Acquire, tile::MemoryScope::System);
    rewriter.replaceOp(op, seen);
    return success();
  }
};

class OrderPattern : public ShmemPattern<dist::OrderOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::OrderOp op, OneToNAdaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    target.orderTransfers(e, op.getKind());
    rewriter.eraseOp(op);
    return success();
  }
};

/// The barrier of a team that exists, by threads that have met. They have to meet again behind it.
void meetTeam(Emitter &e, TargetInfo &target, Value world, const Together &threads, dist::ExecScope exec, const Team &team,
                 Value number) {
  Type i64 = e.getI64Type();
  auto wide = [&](Value value) { return e.sextOrTrunc(value, i64); };
  Value words = LLVM::IntToPtrOp::create(e, e.pointerType(), loadWorldWord(e, target, world, DITRON_WORLD_TEAM_BARRIERS));
  Value counter = e.addBytes(words, e.mul(wide(number), e.mul(e.add(wide(team.numRanks), e.i64(1)), e.i64(8))));
  auto wordOf = [&](Emitter &inner, Value pe) { return inner.addBytes(counter, inner.mul(inner.add(inner.sextOrTrunc(pe, i64), inner.i64(1)), inner.i64(8))); };
  Value generation;
  if (exec == dist::ExecScope::Thread) { // several threads may be here, each on its own
    Value old = target.atomicRmw(e, tile::AtomicOp::Add, i64, counter, e.i64(1), Value(), tile::MemoryOrder::Relaxed,
                                 tile::MemoryScope::Gpu);
    generation = e.add(old, e.i64(1));
  } else { // one group of threads of the PE is here: all read the count before one of them advances it
    Value old = target.orderedLoad(e, i64, counter, tile::MemoryOrder::Relaxed, tile::MemoryScope::Gpu, /*spin=*/false);
    generation = e.add(old, e.i64(1));
    threads.meet(e);
    threads.once(e, [&](Emitter &inner) {
      target.orderedStore(inner, counter, generation, tile::MemoryOrder::Relaxed, tile::MemoryScope::Gpu);
    });
  }
  target.fence(e, tile::MemoryOrder::AcquireRelease, tile::MemoryScope::System);
  threads.forEach(e, team.size, [&](Emitter &inner, Value index) {
    Value member = team.member(inner, index);
    Value there = peerAddress(inner, target, world, wordOf(inner, team.rank), member);
    target.raiseWord(inner, there, inner.i64(1), dist::SignalOp::Add, dist::CommScope::InterNode, member);
  });
  threads.forEach(e, team.size, [&](Emitter &inner, Value index) {
    target.waitUntil(inner, wordOf(inner, team.member(inner, index)), dist::Compare::GE, generation, tile::MemoryOrder::Acquire,
                     tile::MemoryScope::System);
  });
}

void teamBarrier(Emitter &e, TargetInfo &target, Value world, const Together &threads, dist::ExecScope exec, const Team &team,
                 Value number) {
  emitIf(e, team.isValid, {}, [&](Emitter &inner) -> SmallVector<Value> {
    meetTeam(inner, target, world, threads, exec, team, number);
    return {};
  });
}

class TeamBarrierPattern : public ShmemPattern<dist::TeamBarrierOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::TeamBarrierOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!world)
      return op.emitOpError(needsWorldView);
    Value number = adaptor.getTeam().front();
    Team team(e, target, world, number);
    Together threads(e, target, op.getExec());
    threads.meet(e);
    if (!op.getSync())
      threads.once(e, [&](Emitter &inner) { target.orderTransfers(inner, dist::OrderKind::Quiet); });
    teamBarrier(e, target, world, threads, op.getExec(), team, number);
    threads.meet(e);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Broadcast: the root puts to all. Collect: each puts its part to all. Then all meet, with what was put.
class CollectivePattern : public ShmemPattern<dist::CollectiveOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::CollectiveOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!world)
      return op.emitOpError(needsWorldView);
    Value number = adaptor.getTeam().front(), bytes = adaptor.getBytes().front();
    Value dest = adaptor.getDest().front(), source = adaptor.getSource().front();
    bool collects = op.getKind() == dist::CollectiveKind::Collect;
    StringRef name = collects ? "fcollect" : "broadcast";
    Team team(e, target, world, number);
    Together threads(e, target, op.getExec());
    threads.meet(e);
    Value own = team.indexOf(e, team.rank);
    Value place = collects ? e.addBytes(dest, e.mul(e.sextOrTrunc(own, e.getI64Type()), bytes)) : dest;
    Value sends = collects ? Value() : e.compare(ICmpPredicate::eq, own, adaptor.getRoot().front());
    emitIf(e, sends, {}, [&](Emitter &inner) -> Values {
      auto loop = scf::ForOp::create(inner, inner.i32(0), team.size, inner.i32(1));
      OpBuilder::InsertionGuard guard(inner);
      inner.setInsertionPointToStart(loop.getBody());
      // Beginning with the next PE, so that not all send to one.
      Value turn = inner.add(inner.add(loop.getInductionVar(), own), inner.i32(1));
      Value index = inner.select(inner.compare(ICmpPredicate::uge, turn, team.size), inner.sub(turn, team.size), turn);
      Value pe = team.member(inner, index);
      Value there = onPeer(inner, world, place, pe, name);
      target.transfer(inner, {there, source, bytes, pe, threads.index, threads.count, /*isGet=*/false, /*nonblocking=*/true});
      return {};
    });
    threads.meet(e);
    threads.once(e, [&](Emitter &inner) { target.orderTransfers(inner, dist::OrderKind::Quiet); });
    teamBarrier(e, target, world, threads, op.getExec(), team, number);
    threads.meet(e);
    rewriter.eraseOp(op);
    return success();
  }
};

class TeamRankPattern : public ShmemPattern<dist::TeamRankOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::TeamRankOp op, OneToNAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!world)
      return op.emitOpError(needsWorldView);
    Team team(e, target, world, adaptor.getTeam().front());
    rewriter.replaceOp(op, team.indexOf(e, team.rank));
    return success();
  }
};

class TeamSizePattern : public ShmemPattern<dist::TeamSizeOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::TeamSizeOp op, OneToNAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!world)
      return op.emitOpError(needsWorldView);
    rewriter.replaceOp(op, Team(e, target, world, adaptor.getTeam().front()).size);
    return success();
  }
};

class TeamTranslatePattern : public ShmemPattern<dist::TeamTranslateOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::TeamTranslateOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!world)
      return op.emitOpError(needsWorldView);
    Team from(e, target, world, adaptor.getSourceTeam().front()), to(e, target, world, adaptor.getDestTeam().front());
    Value pe = adaptor.getPe().front();
    Value inside = e.bitAnd(from.isValid, e.compare(ICmpPredicate::ult, pe, from.size));
    rewriter.replaceOp(op, e.select(inside, to.indexOf(e, from.member(e, pe)), e.i32(-1)));
    return success();
  }
};

/// There is multicast memory for the PEs of the node, or none.
class MulticastPtrPattern : public ShmemPattern<dist::MulticastPtrOp> {
public:
  using ShmemPattern::ShmemPattern;

  LogicalResult matchAndRewrite(dist::MulticastPtrOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value world = worldView(op);
    if (!world)
      return op.emitOpError(needsWorldView);
    Team team(e, target, world, adaptor.getTeam().front());
    Value base = loadWorldWord(e, target, world, DITRON_WORLD_MULTICAST_HEAP);
    Value own = loadWorldWord(e, target, world, e.add(e.sextOrTrunc(team.rank, e.getI64Type()), e.i64(DITRON_WORLD_HEAPS)));
    Value isNode = e.bitAnd(e.compare(ICmpPredicate::eq, team.size, team.nodeSize), e.compare(ICmpPredicate::eq, team.stride, e.i32(1)));
    Value exists = e.bitAnd(e.isNotZero(base), isNode);
    Value there = e.addBytes(adaptor.getPtr().front(), e.sub(base, own));
    rewriter.replaceOp(op, e.select(exists, there, LLVM::ZeroOp::create(e, there.getType())));
    return success();
  }
};

} // namespace

void populateShmemPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<PutPattern, GetPattern, PutSignalPattern, SignalOpPattern, SignalWaitUntilPattern, OrderPattern, TeamBarrierPattern,
               CollectivePattern, TeamRankPattern, TeamSizePattern, TeamTranslatePattern, MulticastPtrPattern>(patterns.getContext(),
                                                                                                               lowering);
}

} // namespace ditron::target
