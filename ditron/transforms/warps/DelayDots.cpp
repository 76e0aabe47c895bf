//===- DelayDots.cpp - A dot that consumes another one's result runs beside the next turn ---------------------------------===//
//
// In a loop of a consumer whose last dot takes an operand that was computed from another dot of the same turn, the tensor core idles
// while the operand is computed, and the threads idle while the dots run. Here the last dot moves into the next turn, behind the start
// of that turn's first dot: the tensor core then multiplies while the threads compute the next operand. Works on the IR that
// dgpu-specialize-warps leaves, before layouts.
//
//   for i:                                     becomes       turn 0 without the last dot
//     s = warpgroup_wait 0, (dot q, k[i])                    for i from turn 1:
//     p, scaled = f(s, acc)                                    s0 = dot q, k[i];  acc0 = dot p, v[i - 1], scaled
//     acc = warpgroup_wait 0, (dot p, v[i], scaled)            s = warpgroup_wait 1, s0;  p' = f(s)
//                                                              acc = warpgroup_wait 0, acc0, p;  scaled' = f(s, acc)
//                                                            acc = dot p, v[last], scaled
// 1. The loop: every dot in its body is waited for at once, the last one's result is only carried on, its A comes from registers and is
//    computed in the body, and no other dot depends on the carried value. On the way from an accumulator to an operand A stays in its warps: shared
//    memory and barriers must not come in the middle of what a turn starts.
// 2. What moves: the last dot with the waits for its ring in front of it and the releases behind it. Its operands of the turn before are
//    carried instead of its result. Rings need two slots: the producer may be ahead by one turn of what is released.
// 3. What depends on the carried value goes to the end of the turn, behind the wait; it must be free of side effects.
// 4. In the producer the copies for the last dot move likewise, behind the next turn's others: tiles are fetched in the order in which they
//    are waited for.
// 5. All of it in a branch: a loop without turns carries its initial values on.
//
// Loops with other effects stay: who is told of a turn, or waited for, must find its tiles read.
//
// The order in which sums are formed does not change. Registers: A of the dot in flight lives beside the next one.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/ConvertPlan.h"
#include "ditron/layout/Wgmma.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_DELAYDOTS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// The wait that a dot has for itself, or null.
dgpu::WarpgroupWaitOp ownWait(dgpu::WarpgroupDotOp dot) {
  if (!dot.getResult().hasOneUse())
    return {};
  auto wait = dyn_cast<dgpu::WarpgroupWaitOp>(*dot.getResult().user_begin());
  const bool isOwn =
      wait && wait.getPending() == 0 && wait.getSources().size() == 1 && wait->getBlock() == dot->getBlock();
  return isOwn ? wait : dgpu::WarpgroupWaitOp();
}

/// True if a dot's A, computed like an accumulator, gets to where the multiply reads it without shared memory.
bool staysInWarps(dgpu::WarpgroupDotOp dot) {
  const auto type = cast<RankedTensorType>(dot.getA().getType());
  const int bits = static_cast<int>(type.getElementTypeBitWidth()), warps = dgpu::numWarpsOf(dot);
  const auto computed = layout::wgmmaAccumulator({type.getShape()[0], type.getShape()[1]}, warps);
  const auto sums = layout::wgmmaAccumulator(
      {dot.getResult().getType().getShape()[0], dot.getResult().getType().getShape()[1]}, warps);
  if (!computed.isOk() || !sums.isOk())
    return false;
  const auto operand = layout::wgmmaOperandA(*sums, type.getShape()[1], bits);
  return operand.isOk() && !layout::makePlan(*computed, *operand, bits).shared;
}

/// Moves operations of a loop's body into the next turn: the first turn without them stands before the loop, those of the last turn
/// behind it, all of it in a branch.
class TurnDelay {
public:
  virtual ~TurnDelay() = default;

  void apply() {
    OpBuilder builder(loop);
    Location loc = loop.getLoc();
    const auto less = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    Value hasTurn = arith::CmpIOp::create(builder, loc, less, loop.getLowerBound(), loop.getUpperBound());
    auto branch = scf::IfOp::create(builder, loc, loop.getResultTypes(), hasTurn, /*withElseRegion=*/true);
    builder.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(builder, loc, loop.getInitArgs());
    builder.setInsertionPointToEnd(branch.thenBlock());
    SmallVector<Value> inits = firstTurn(builder);
    scf::ForOp rest = furtherTurns(builder, inits);

    // What the last turn has left.
    builder.setInsertionPointAfter(rest);
    IRMapping ended;
    for (auto [value, result] : llvm::zip_equal(carried, rest.getResults().take_back(carried.size())))
      ended.map(value, result);
    for (Operation *op : moving)
      builder.clone(*op, ended);
    SmallVector<Value> results(rest.getResults().drop_back(carried.size()));
    if (delayed)
      results.insert(results.begin() + delayed->index, ended.lookup(delayed->result));
    scf::YieldOp::create(builder, loc, results);
    loop->replaceAllUsesWith(branch.getResults());
    loop->erase();
  }

protected:
  explicit TurnDelay(scf::ForOp loop) : loop(loop), body(loop.getBody()) {}

  /// A further turn's operations, in which those that move are the turn's before, with the operands in `before`.
  virtual void emitTurn(OpBuilder &builder, IRMapping &values, IRMapping &before) = 0;

  void setMoving(SmallVector<Operation *> operations) {
    moving = std::move(operations);
    for (Operation *op : moving)
      for (Value operand : op->getOperands())
        if (loop.getRegion().isAncestor(operand.getParentRegion()) &&
            !llvm::is_contained(moving, operand.getDefiningOp()))
          carried.insert(operand);
  }

  /// The carried value that the moving operations make.
  struct Delayed {
    unsigned index;
    Value result;
  };

  scf::ForOp loop;
  Block *body;
  SmallVector<Operation *> moving; ///< In order.
  std::optional<Delayed> delayed;

private:
  /// What the loop hands on after a turn whose values are in `values`: all but what is delayed, then the operands for that.
  SmallVector<Value> handedOn(const IRMapping &values) {
    SmallVector<Value> result;
    for (auto [position, value] : llvm::enumerate(body->getTerminator()->getOperands()))
      if (!delayed || position != delayed->index)
        result.push_back(values.lookupOrDefault(value));
    for (Value value : carried)
      result.push_back(values.lookupOrDefault(value));
    return result;
  }

  SmallVector<Value> firstTurn(OpBuilder &builder) {
    IRMapping values;
    values.map(loop.getInductionVar(), loop.getLowerBound());
    values.map(loop.getRegionIterArgs(), loop.getInitArgs());
    for (Operation &op : body->without_terminator())
      if (!llvm::is_contained(moving, &op))
        builder.clone(op, values);
    return handedOn(values);
  }

  scf::ForOp furtherTurns(OpBuilder &builder, ValueRange inits) {
    Location loc = loop.getLoc();
    // A step that would lead beyond the end leads to it: the sum cannot overflow.
    Value distance = arith::SubIOp::create(builder, loc, loop.getUpperBound(), loop.getLowerBound());
    Value step = arith::MinUIOp::create(builder, loc, loop.getStep(), distance);
    Value second = arith::AddIOp::create(builder, loc, loop.getLowerBound(), step);
    auto rest = scf::ForOp::create(builder, loc, second, loop.getUpperBound(), loop.getStep(), inits);
    rest->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    rest.setUnsignedCmp(loop.getUnsignedCmp());
    IRMapping values, before;
    values.map(loop.getInductionVar(), rest.getInductionVar());
    ValueRange arguments = rest.getRegionIterArgs();
    size_t next = 0;
    for (auto [position, argument] : llvm::enumerate(loop.getRegionIterArgs()))
      if (!delayed || position != delayed->index)
        values.map(argument, arguments[next++]);
    for (Value value : carried)
      before.map(value, arguments[next++]);
    builder.setInsertionPointToStart(rest.getBody());
    emitTurn(builder, values, before);
    scf::YieldOp::create(builder, loc, handedOn(values));
    return rest;
  }

  llvm::SetVector<Value> carried; ///< What the moving operations need of their turn.
};

/// The last dot of a consumer's loop.
class DotDelay : public TurnDelay {
public:
  explicit DotDelay(scf::ForOp loop) : TurnDelay(loop) {}

  /// Why the loop stays as it is, or nothing.
  std::string find() {
    SmallVector<dgpu::WarpgroupDotOp> dots(body->getOps<dgpu::WarpgroupDotOp>());
    if (!llvm::all_of(dots, ownWait))
      return "its dots stay in flight already";
    first = dots.front();
    last = dots.back();
    wait = ownWait(last);
    Value complete = wait.getResult(0);
    if (!complete.hasOneUse() || complete.use_begin()->getOwner() != body->getTerminator())
      return "the last dot's result is used in the same turn";
    delayed = {complete.use_begin()->getOperandNumber(), complete};
    if (last.getPromoteElems())
      return "the last dot's sums are promoted";
    Operation *operand = isa<RankedTensorType>(last.getA().getType()) ? last.getA().getDefiningOp() : nullptr;
    if (!operand || operand->getBlock() != body)
      return "the last dot's A is not computed in registers";
    if (!staysInWarps(last))
      return "the last dot's A moves between warps";
    if (std::string reason = whyNotLater(); !reason.empty())
      return reason;
    if (std::string reason = collectLate(); !reason.empty())
      return reason;
    return collectMoving();
  }

  /// The mbarriers that say that the last dot's tile is there; null if the loop does not wait for it.
  Value fullOfLast() { return isa<dgpu::MbarrierWaitOp>(moving.front()) ? moving.front()->getOperand(0) : Value(); }

private:
  /// What tells others about the turn, or waits for them, must find the turn's tiles read.
  std::string whyNotLater() {
    std::string reason;
    body->walk([&](Operation *op) {
      if (op->getNumRegions() == 0 && !isMemoryEffectFree(op) &&
          !isa<dgpu::WarpgroupDotOp, dgpu::WarpgroupWaitOp, dgpu::MbarrierWaitOp, dgpu::MbarrierArriveOp, tile::LoadOp,
               dgpu::BufferLoadOp>(op))
        reason = ("the loop has other effects, of '" + op->getName().getStringRef() + "'").str();
    });
    return reason;
  }

  /// What the body computes from the result of the turn before.
  std::string collectLate() {
    SmallVector<Value> worklist{loop.getRegionIterArg(delayed->index)};
    while (!worklist.empty()) {
      for (Operation *user : worklist.pop_back_val().getUsers()) {
        Operation *op = body->findAncestorOpInBlock(*user);
        if (op == last)
          continue;
        if (op == body->getTerminator() || isa<dgpu::WarpgroupDotOp>(op) || !isMemoryEffectFree(op))
          return "more than the last dot depends on its result";
        if (late.insert(op))
          worklist.append(op->result_begin(), op->result_end());
      }
    }
    return {};
  }

  std::string collectMoving() {
    SmallVector<Operation *> before, operations;
    for (Operation *op = last->getPrevNode(); isa_and_nonnull<dgpu::MbarrierWaitOp>(op); op = op->getPrevNode())
      before.push_back(op);
    operations.append(before.rbegin(), before.rend());
    operations.append({last, wait});
    bool isReleased = false;
    for (Operation *op = wait->getNextNode(); isa_and_nonnull<dgpu::MbarrierArriveOp>(op); op = op->getNextNode()) {
      if (cast<dgpu::MbarrierArriveOp>(op).getBars().getType().getSlots() < 2)
        return "a ring of the last dot has one slot only";
      isReleased = true;
      operations.push_back(op);
    }
    if (!isReleased)
      return "the last dot's tiles are not fetched in the loop";
    setMoving(std::move(operations));
    return {};
  }

  void emitTurn(OpBuilder &builder, IRMapping &values, IRMapping &before) override {
    for (Operation &op : body->without_terminator()) {
      if (llvm::is_contained(moving, &op) || late.contains(&op))
        continue;
      Operation *copy = builder.clone(op, values);
      if (&op == first)
        for (Operation *moved : moving)
          if (moved->isBeforeInBlock(wait))
            builder.clone(*moved, before);
      if (&op == ownWait(first))
        cast<dgpu::WarpgroupWaitOp>(copy).setPending(1);
    }
    // A of the dot in flight must keep its registers, too.
    SmallVector<Value> waited = {before.lookup(last.getResult()), before.lookup(last.getA())};
    if (Value row = lastRowComputed())
      waited.push_back(values.lookup(row));
    auto complete = dgpu::WarpgroupWaitOp::create(builder, wait.getLoc(), waited, 0);
    for (Operation *moved : moving)
      if (wait->isBeforeInBlock(moved))
        builder.clone(*moved, before);
    values.map(loop.getRegionIterArg(delayed->index), complete.getResult(0));
    for (Operation &op : *body)
      if (late.contains(&op))
        builder.clone(op, values);
  }

  /// Of the carried rows that do not depend on the last dot, the one that the body computes last; or null. That it is computed tells
  /// that the turn's work is done.
  Value lastRowComputed() {
    Value computed;
    for (Value value : body->getTerminator()->getOperands()) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      Operation *op = value.getDefiningOp();
      const bool isRow = type && type.getRank() == 1 && type.getElementType().isF32() && op && op->getBlock() == body;
      if (isRow && op != wait && !late.contains(op) && (!computed || computed.getDefiningOp()->isBeforeInBlock(op)))
        computed = value;
    }
    return computed;
  }

  dgpu::WarpgroupDotOp first, last;
  dgpu::WarpgroupWaitOp wait; ///< Of the last dot.
  llvm::SetVector<Operation *> late;
};

/// The copies of the producer's loop into the ring of a delayed dot: each comes behind the next turn's others, in the order in which the
/// consumer asks for them. Where the ring is full, its producer would otherwise not get to the tile that is needed first.
class CopyDelay : public TurnDelay {
public:
  CopyDelay(scf::ForOp loop, dgpu::MbarrierExpectOp expect) : TurnDelay(loop) {
    SmallVector<Operation *> operations = {expect->getPrevNode(), expect};
    for (Operation *op = expect->getNextNode(); isa<dgpu::TmaLoadOp>(op); op = op->getNextNode())
      operations.push_back(op);
    setMoving(std::move(operations));
  }

  /// The turn has other copies, and nothing that others wait for or that waits for others.
  bool isWorthwhile() {
    bool hasOthers = false, isPlain = true;
    body->walk([&](Operation *op) {
      hasOthers |= isa<dgpu::TmaLoadOp>(op) && !llvm::is_contained(moving, op);
      isPlain &= op->getNumRegions() != 0 || isMemoryEffectFree(op) ||
                 isa<dgpu::MbarrierWaitOp, dgpu::MbarrierExpectOp, dgpu::TmaLoadOp, tile::LoadOp>(op);
    });
    return hasOthers && isPlain;
  }

private:
  void emitTurn(OpBuilder &builder, IRMapping &values, IRMapping &before) override {
    for (Operation &op : body->without_terminator())
      if (!llvm::is_contained(moving, &op))
        builder.clone(op, values);
    for (Operation *moved : moving)
      builder.clone(*moved, before);
  }
};

class DelayDotsPass : public impl::DelayDotsBase<DelayDotsPass> {
  void runOnOperation() override {
    SmallVector<dgpu::WarpSpecializeOp> specialized;
    getOperation().walk([&](dgpu::WarpSpecializeOp partitions) { specialized.push_back(partitions); });
    for (dgpu::WarpSpecializeOp partitions : specialized)
      delay(partitions);
  }

  static void delay(dgpu::WarpSpecializeOp partitions) {
    SmallVector<scf::ForOp> loops;
    partitions.getConsumer().walk([&](scf::ForOp loop) {
      if (llvm::range_size(loop.getBody()->getOps<dgpu::WarpgroupDotOp>()) > 1)
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      DotDelay delay(loop);
      const std::string reason = delay.find();
      if (!reason.empty()) {
        remark::missed(loop.getLoc(), remark::RemarkOpts::name("delay").category("dgpu-delay-dots"))
            << "no dot is delayed: " + reason;
        continue;
      }
      remark::passed(loop.getLoc(), remark::RemarkOpts::name("delay").category("dgpu-delay-dots"))
          << "the last dot of a turn runs beside the next turn";
      if (Value full = delay.fullOfLast())
        delayCopies(partitions, loop, full);
      delay.apply();
    }
  }

  /// Of the producer's loops that fill the ring, the one that stands for the consumer's loop: both partitions have them in one order.
  static void delayCopies(dgpu::WarpSpecializeOp partitions, scf::ForOp loop, Value full) {
    unsigned position = 0;
    bool isFound = false;
    partitions.getConsumer().walk([&](scf::ForOp other) {
      isFound |= other == loop;
      if (!isFound)
        position += llvm::any_of(other.getBody()->getOps<dgpu::MbarrierWaitOp>(),
                                 [&](dgpu::MbarrierWaitOp wait) { return wait.getBars() == full; });
    });
    SmallVector<dgpu::MbarrierExpectOp> fills;
    partitions.getProducer().walk([&](dgpu::MbarrierExpectOp expect) {
      if (expect.getBars() == full && isa<scf::ForOp>(expect->getParentOp()) &&
          isa_and_nonnull<dgpu::MbarrierWaitOp>(expect->getPrevNode()))
        fills.push_back(expect);
    });
    if (position >= fills.size())
      return;
    CopyDelay delay(cast<scf::ForOp>(fills[position]->getParentOp()), fills[position]);
    if (delay.isWorthwhile())
      delay.apply();
  }
};

} // namespace
} // namespace ditron::transforms
