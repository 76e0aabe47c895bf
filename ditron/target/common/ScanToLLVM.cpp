//===- ScanToLLVM.cpp - tile.scan -------------------------------------------------------------------------------------------===//
//
// Follows layout::makeScanPlan: for each bit of the axis, ascending, every element whose bit is 1 combines, on its left, with
// the current value of the element that has this bit cleared and all lower axis bits set: the total of the block before it.
// The other operand is a register of this thread, of another lane (shuffle) or of another
// warp (scratch memory); elements that share it fetch it once. A reverse scan is a scan of the reversed elements, reversed: what
// comes from higher positions is the left operand.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/ScalarRegion.h"
#include "ditron/target/common/WarpSlots.h"

#include "ditron/layout/AxisPlans.h"

#include <map>

using namespace mlir;
using ditron::layout::DistributedLayout;
using ditron::layout::MachineDim;
using ditron::layout::ScanStep;

namespace ditron::target {
namespace {

class ScanPattern : public TilePattern<tile::ScanOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ScanOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    const DistributedLayout &source = dgpu::layoutOf(op.getSources().front().getType());
    if (!(dgpu::layoutOf(op.getResult(0).getType()) == source))
      return op.emitOpError("must have its source's layout ") << source.toString();

    SmallVector<Values> state; // operand -> registers
    for (ValueRange operand : adaptor.getSources())
      state.emplace_back(operand.begin(), operand.end());
    std::vector<ScanStep> steps = layout::makeScanPlan(source, static_cast<int>(op.getAxis()));
    SmallVector<analysis::WarpExchange> exchanges = analysis::warpExchangesOf(op);
    auto nextExchange = exchanges.begin();
    for (const ScanStep &step : steps) {
      const analysis::WarpExchange *exchange = step.crossesWarps() ? &*nextExchange++ : nullptr;
      if (LogicalResult done = emitStep(e, op, state, step, exchange); failed(done))
        return done;
    }
    if (analysis::regionUsesEffects(op))
      if (LogicalResult shared = shareWithCopies(e, lowering, op, source, state); failed(shared))
        return shared;
    rewriter.replaceOpWithMultiple(op, std::move(state));
    return success();
  }

private:
  /// One thread-id part of the other operand's place: bits set and cleared, exchanged for a reverse scan.
  static Value place(Emitter &e, Value id, uint32_t set, uint32_t clear, bool reverse) {
    if (reverse)
      std::swap(set, clear);
    return e.bitAnd(e.bitOr(id, e.i32(static_cast<int32_t>(set))), e.i32(static_cast<int32_t>(~clear)));
  }

  LogicalResult emitStep(Emitter &e, tile::ScanOp op, SmallVector<Values> &state, const ScanStep &step,
                         const analysis::WarpExchange *exchange) const {
    bool reverse = op.getReverse();
    uint32_t set = reverse ? step.regClear : step.regSet, clear = reverse ? step.regSet : step.regClear;
    auto sourceRegister = [&](uint32_t reg) { return (reg | set) & ~clear; };
    auto acts = [&](uint32_t reg) {
      return step.dim != MachineDim::Reg || ((reg >> step.position & 1) != 0) != reverse;
    };

    // The distinct registers that are somebody's other operand, and their values in the thread that has them.
    uint32_t numRegs = state.front().size();
    std::map<uint32_t, Values> others;
    for (uint32_t reg : analysis::scanSourceRegisters(step, static_cast<int>(numRegs), reverse))
      others.try_emplace(reg);
    if (LogicalResult fetched = fetch(e, op, state, step, exchange, others); failed(fetched))
      return fetched;

    // In a step along lanes or warps all threads compute, and those whose bit says so take the result.
    Value takes;
    if (step.dim != MachineDim::Reg) {
      Value bit = e.bitOf(step.dim == MachineDim::Lane ? target.laneId(e) : target.warpId(e), step.position);
      takes = reverse ? e.bitXor(bit, e.i1(true)) : bit;
    }
    SmallVector<Values> next = state;
    for (uint32_t reg = 0; reg < numRegs; ++reg) {
      if (!acts(reg))
        continue;
      Values own;
      for (const Values &operand : state)
        own.push_back(operand[reg]);
      const Values &other = others.at(sourceRegister(reg));
      Values arguments = other;
      llvm::append_range(arguments, own);
      const DistributedLayout &layout = dgpu::layoutOf(op.getSources().front().getType());
      Values combined = applyRegion(e, lowering, op, arguments, [&] {
        return e.conjunction(takes, isRepresentative(e, target, layout));
      });
      for (size_t i = 0; i < own.size(); ++i)
        next[i][reg] = takes ? e.select(takes, combined[i], own[i]) : combined[i];
    }
    state = std::move(next);
    return success();
  }

  /// Fills `others`: for each key register, the values of all operands where the step says they are.
  LogicalResult fetch(Emitter &e, tile::ScanOp op, ArrayRef<Values> state, const ScanStep &step,
                      const analysis::WarpExchange *exchange, std::map<uint32_t, Values> &others) const {
    bool reverse = op.getReverse();
    if (exchange) {
      FailureOr<int64_t> offset = scratchOffset(op);
      if (failed(offset))
        return offset;
      SmallVector<Values> sent(state.size());
      for (auto &[reg, values] : others)
        for (auto [all, operand] : llvm::zip(sent, state))
          all.push_back(operand[reg]);
      WarpSlots slots(e, target, *exchange, *offset, sent);
      slots.storeAndWait();
      // The bits that the step sets and clears name no slot.
      SmallVector<Values> loaded = slots.load(slots.slotOf(target.laneId(e), target.warpId(e)));
      for (size_t index = 0; auto &[reg, values] : others) {
        for (const Values &operand : loaded)
          values.push_back(operand[index]);
        ++index;
      }
      return success();
    }
    Values flat;
    for (auto &[reg, values] : others)
      for (const Values &operand : state)
        flat.push_back(operand[reg]);
    if (step.crossesLanes())
      flat = shuffleValues(e, target, dist::ShuffleKind::Index, flat,
                           place(e, target.laneId(e), step.laneSet, step.laneClear, reverse));
    for (size_t begin = 0; auto &[reg, values] : others) {
      values.assign(flat.begin() + begin, flat.begin() + begin + state.size());
      begin += state.size();
    }
    return success();
  }
};

} // namespace

void populateScanPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<ScanPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
