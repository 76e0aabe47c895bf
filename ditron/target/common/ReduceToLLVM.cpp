//===- ReduceToLLVM.cpp - tile.reduce ---------------------------------------------------------------------------------------===//
//
// Follows layout::ReducePlan: one level of the tree per bit of the axis, in the plan's order. A bit in a register combines
// pairs of registers, a bit in a lane exchanges with the neighbour lane. The element whose bit is 0 is always the left operand. What
// owned the axis then holds copies; nothing needs to be broadcast.
//
// Levels across warps that follow each other are done in rounds (layout::WarpRound): one value per slot goes through scratch memory,
// each thread loads some and combines them, and where lanes hold copies by then, each of them does that for other warps.
//
// Threads that differ in a bit which is already reduced compute the same. Side effects of the combine region are done by the one
// of them whose such bits are all 0.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/ScalarOps.h"
#include "ditron/target/common/ScalarRegion.h"
#include "ditron/target/common/WarpSlots.h"

#include "ditron/layout/AxisPlans.h"

using namespace mlir;
using ditron::layout::DistributedLayout;
using ditron::layout::MachineDim;

namespace ditron::target {
namespace {

class ReducePattern : public TilePattern<tile::ReduceOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ReduceOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    layout::ReducePlan plan = analysis::reducePlanOf(op);
    Type resultType = op.getResult(0).getType();
    if (isa<RankedTensorType>(resultType) && !(dgpu::layoutOf(resultType) == plan.result))
      return op.emitOpError("must have the result layout ") << plan.result.toString();

    SmallVector<Values> state; // operand -> registers of the current level
    for (ValueRange operand : adaptor.getSources())
      state.emplace_back(operand.begin(), operand.end());
    const DistributedLayout &source = dgpu::layoutOf(op.getSources().front().getType());
    Copies copies{source.freeMask(MachineDim::Lane), source.freeMask(MachineDim::Warp)};
    SmallVector<analysis::WarpExchange> exchanges = analysis::warpExchangesOf(op);
    auto nextExchange = exchanges.begin();
    for (ArrayRef<layout::ReduceStep> steps = plan.steps; !steps.empty();) {
      const layout::ReduceStep &step = steps.front();
      int levels = 1;
      switch (step.dim) {
      case MachineDim::Reg: combineRegisters(e, op, state, step.position, copies); break;
      case MachineDim::Lane: combineLanes(e, op, state, step.position, copies); break;
      case MachineDim::Warp:
        levels = nextExchange->levels;
        if (LogicalResult combined = combineWarps(e, op, state, *nextExchange++, steps.take_front(levels), copies);
            failed(combined))
          return combined;
        break;
      case MachineDim::Block: return op.emitOpError("along an axis that lies across blocks is not supported");
      }
      steps = steps.drop_front(levels);
    }
    if (analysis::regionUsesEffects(op))
      if (LogicalResult shared = shareWithCopies(e, lowering, op, plan.result, state); failed(shared))
        return shared;
    rewriter.replaceOpWithMultiple(op, std::move(state));
    return success();
  }

private:
  /// The bits of machine ids that make no difference by now.
  struct Copies {
    uint32_t lanes, warps;
  };

  /// The thread among those that hold copies that has side effects.
  Value performs(Emitter &e, Copies copies) const {
    Value result;
    if (copies.lanes)
      result = e.isZero(e.bitAnd(target.laneId(e), e.i32(static_cast<int32_t>(copies.lanes))));
    if (copies.warps)
      result = e.conjunction(result, e.isZero(e.bitAnd(target.warpId(e), e.i32(static_cast<int32_t>(copies.warps)))));
    return result;
  }

  Values combine(Emitter &e, tile::ReduceOp op, Values lhs, ArrayRef<Value> rhs, Copies copies) const {
    llvm::append_range(lhs, rhs);
    return applyRegion(e, lowering, op, lhs, [&] { return performs(e, copies); });
  }

  /// The values of register `reg` of all operands.
  static Values slice(ArrayRef<Values> state, size_t reg) {
    Values values;
    for (const Values &operand : state)
      values.push_back(operand[reg]);
    return values;
  }

  void combineRegisters(Emitter &e, tile::ReduceOp op, SmallVector<Values> &state, int position, Copies copies) const {
    size_t half = state.front().size() / 2, low = size_t(1) << position;
    SmallVector<Values> next(state.size());
    for (size_t reg = 0; reg < half; ++reg) {
      size_t left = (reg & (low - 1)) | (reg & ~(low - 1)) << 1;
      Values combined = combine(e, op, slice(state, left), slice(state, left | low), copies);
      for (auto [all, value] : llvm::zip(next, combined))
        all.push_back(value);
    }
    state = std::move(next);
  }

  /// Values of all operands from the lane that differs in a bit, as few words as possible.
  SmallVector<Values> fromLane(Emitter &e, ArrayRef<Values> state, int position) const {
    Values flat;
    for (const Values &operand : state)
      llvm::append_range(flat, operand);
    Values received = exchangeLaneBit(e, target, flat, position);
    SmallVector<Values> result;
    for (size_t begin = 0; const Values &operand : state) {
      result.emplace_back(received.begin() + begin, received.begin() + begin + operand.size());
      begin += operand.size();
    }
    return result;
  }

  /// Afterwards both lanes compute the same.
  void combineLanes(Emitter &e, tile::ReduceOp op, SmallVector<Values> &state, int position, Copies &copies) const {
    copies.lanes |= 1u << position;
    combineWithPartner(
        e, op, state, fromLane(e, state, position), [&] { return e.bitOf(target.laneId(e), position); }, copies);
  }

  /// One round through scratch memory for all of `steps`.
  LogicalResult combineWarps(Emitter &e, tile::ReduceOp op, SmallVector<Values> &state,
                             const analysis::WarpExchange &exchange, ArrayRef<layout::ReduceStep> steps,
                             Copies &copies) const {
    FailureOr<int64_t> offset = scratchOffset(op);
    if (failed(offset))
      return offset;
    WarpSlots slots(e, target, exchange, *offset, state);
    slots.storeAndWait();
    uint32_t reducedWarps = 0;
    for (const layout::ReduceStep &step : steps)
      reducedWarps |= 1u << step.position;
    Value lane = target.laneId(e);
    Value slot = slots.slotOf(lane, e.bitAnd(target.warpId(e), e.i32(static_cast<int32_t>(~reducedWarps))));
    ArrayRef<layout::ReduceStep> inThread = steps.drop_back(exchange.laneBits.size());
    for (auto [step, laneBit] : llvm::zip_equal(steps.drop_front(inThread.size()), exchange.laneBits)) {
      slot = e.bitOr(slot, e.select(e.bitOf(lane, laneBit), e.i32(slots.distanceOf(step.position)), e.i32(0)));
      copies.lanes &= ~(1u << laneBit);
    }
    copies.warps |= reducedWarps;

    state = combineSlots(e, op, slots, slot, 0, inThread, copies);
    for (int laneBit : exchange.laneBits)
      combineLanes(e, op, state, laneBit, copies);
    return success();
  }

  /// What this thread makes of the slots that `steps` lead to from `slot` + distance: the last step joins two halves.
  SmallVector<Values> combineSlots(Emitter &e, tile::ReduceOp op, WarpSlots &slots, Value slot, int64_t distance,
                                   ArrayRef<layout::ReduceStep> steps, Copies copies) const {
    if (steps.empty())
      return slots.load(slot, distance);
    const int64_t right = distance + slots.distanceOf(steps.back().position);
    SmallVector<Values> result = combineSlots(e, op, slots, slot, distance, steps.drop_back(), copies);
    SmallVector<Values> others = combineSlots(e, op, slots, slot, right, steps.drop_back(), copies);
    for (size_t reg = 0; reg < result.front().size(); ++reg) {
      Values combined = combine(e, op, slice(result, reg), slice(others, reg), copies);
      for (auto [all, value] : llvm::zip(result, combined))
        all[reg] = value;
    }
    return result;
  }

  /// Combines own values with the partner's; `isRight` says (as i1) that this thread's bit is 1.
  void combineWithPartner(Emitter &e, tile::ReduceOp op, SmallVector<Values> &state, ArrayRef<Values> partner,
                          llvm::function_ref<Value()> isRight, Copies copies) const {
    Value right = isCommutative(op.getCombine()) ? Value() : isRight();
    for (size_t reg = 0; reg < state.front().size(); ++reg) {
      Values own = slice(state, reg), other = slice(partner, reg), lhs = own, rhs = other;
      for (size_t i = 0; right && i < own.size(); ++i) {
        lhs[i] = e.select(right, other[i], own[i]);
        rhs[i] = e.select(right, own[i], other[i]);
      }
      Values combined = combine(e, op, lhs, rhs, copies);
      for (auto [all, value] : llvm::zip(state, combined))
        all[reg] = value;
    }
  }
};

} // namespace

void populateReducePatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<ReducePattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
