//===- ReduceToLLVM.cpp - tile.reduce ---------------------------------------------------------------------------------------===//
//
// Follows layout::ReducePlan: one level of the tree per bit of the axis, in the plan's order. A bit in a register combines
// pairs of registers, a bit in a lane exchanges with the neighbour lane, a bit in a warp goes through scratch memory. The
// element whose bit is 0 is always the left operand; the canonical expression tree depends on the shape only
// (spec/linear_layouts.md 4.5.3). What owned the axis then holds copies; nothing needs to be broadcast.
//
// Several levels across warps cost one round through scratch memory and not one each, when lanes hold copies by then: each of
// those lanes reads the value of another warp, and the levels go on between lanes.
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

#include "ditron/analysis/Scratch.h"
#include "ditron/layout/AxisPlans.h"

using namespace mlir;
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
    SmallVector<analysis::WarpExchange> exchanges = analysis::warpExchangesOf(op);
    auto nextExchange = exchanges.begin();
    SmallVector<int> copyLanes; // lane bits whose values are copies
    const bool hasEffects = analysis::regionHasEffects(op);
    const layout::DistributedLayout &source = dgpu::layoutOf(op.getSources().front().getType());
    Copies copies{source.freeMask(MachineDim::Lane), source.freeMask(MachineDim::Warp)};
    for (auto next = plan.steps.begin(); next != plan.steps.end(); ++next) {
      const layout::ReduceStep &step = *next;
      auto run = std::find_if(next, plan.steps.end(), [](const auto &s) { return s.dim != MachineDim::Warp; }) - next;
      if (run > 1 && !hasEffects && copyLanes.size() >= static_cast<size_t>(run)) {
        if (failed(combineWarpsInLanes(e, op, state, *nextExchange, ArrayRef(&step, run), copyLanes, copies)))
          return failure();
        nextExchange += run;
        next += run - 1;
        continue;
      }
      switch (step.dim) {
      case MachineDim::Reg: combineRegisters(e, op, state, step.position, copies); break;
      case MachineDim::Lane:
        copies.lanes |= 1u << step.position;
        combineWithPartner(
            e, op, state, fromLane(e, state, step.position),
            [&] { return e.bitOf(target.laneId(e), step.position); }, copies);
        copyLanes.push_back(step.position);
        break;
      case MachineDim::Warp: {
        FailureOr<SmallVector<Values>> partner = fromWarp(e, op, state, *nextExchange++, step.position);
        if (failed(partner))
          return failure();
        copies.warps |= 1u << step.position;
        combineWithPartner(
            e, op, state, *partner, [&] { return e.bitOf(target.warpId(e), step.position); }, copies);
        break;
      }
      case MachineDim::Block: return op.emitOpError("along an axis that lies across blocks is not supported");
      }
    }
    if (analysis::regionUsesEffects(op) && failed(shareWithCopies(e, lowering, op, plan.result, state)))
      return failure();
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

  FailureOr<SmallVector<Values>> fromWarp(Emitter &e, tile::ReduceOp op, ArrayRef<Values> state,
                                          const analysis::WarpExchange &exchange, int position) const {
    FailureOr<int64_t> offset = scratchOffset(op);
    if (failed(offset))
      return failure();
    SmallVector<SharedSlots> groups;
    for (auto [operand, operandOffset] : llvm::zip(state, exchange.operandOffsets))
      groups.push_back({*offset + operandOffset, operand});
    Value partner = e.bitXor(target.threadId(e), e.i32(int64_t(target.warpSize()) << position));
    return exchangeThroughShared(e, target, groups, lowering.numThreads(op), partner, Value());
  }

  /// All of `steps`, across warps: lane bit copyLanes[i] takes the place of the warp bit of step i.
  LogicalResult combineWarpsInLanes(Emitter &e, tile::ReduceOp op, SmallVector<Values> &state,
                                    const analysis::WarpExchange &exchange, ArrayRef<layout::ReduceStep> steps,
                                    ArrayRef<int> copyLanes, Copies copies) const {
    FailureOr<int64_t> offset = scratchOffset(op);
    if (failed(offset))
      return failure();
    SmallVector<SharedSlots> groups;
    for (auto [operand, operandOffset] : llvm::zip(state, exchange.operandOffsets))
      groups.push_back({*offset + operandOffset, operand});
    Value lane = target.laneId(e), source = target.threadId(e);
    for (auto [step, laneBit] : llvm::zip(steps, copyLanes)) {
      int64_t warpBit = int64_t(target.warpSize()) << step.position;
      Value others = e.bitAnd(source, e.i32(~static_cast<int32_t>(warpBit)));
      source = e.bitOr(others, e.select(e.bitOf(lane, laneBit), e.i32(warpBit), e.i32(0)));
    }
    state = exchangeThroughShared(e, target, groups, lowering.numThreads(op), source, Value());
    for (auto [step, laneBit] : llvm::zip(steps, copyLanes))
      combineWithPartner(
          e, op, state, fromLane(e, state, laneBit),
          [&, bit = laneBit] { return e.bitOf(target.laneId(e), bit); }, copies);
    return success();
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
