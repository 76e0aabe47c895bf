//===- SortToLLVM.cpp - tile.bitonic --------------------------------------------------------------------------------------===//
//
// A step of the network compares by one bit of the position. When a register bit owns it, pairs of registers are compared;
// when a lane bit does, all registers with those of the lane that differs in it (a butterfly); when a warp bit does, with those
// of another warp, through scratch memory, a few registers at a time. The two threads of a pair decide alike, so that no
// element is lost, not even a NaN.
//
// Code size. Stages that turn round by a register's bit (the direction of a block in stage s is bit s of the position) are
// straight code: with the layouts that layout assignment chooses they have no steps outside of registers. The other stages are
// a loop with one body for all of them, in which a step is skipped while its distance is too large: n / threads * log2(n)
// comparisons, where straight code would have n / threads * log2(n)^2 / 2. Networks that are short anyway are straight code
// altogether. Threads with many elements keep them in an array (SortElements.h); their code does not depend on n / threads.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/LayoutIndex.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/ScalarOps.h"
#include "ditron/target/common/SortElements.h"

#include "ditron/analysis/Scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using ditron::layout::BitOwner;
using ditron::layout::DistributedLayout;
using ditron::layout::MachineDim;

namespace ditron::target {
namespace {

/// A run of stages is straight code up to this many comparisons by one thread.
constexpr int64_t mostStraightComparisons = 256;
/// Registers of an array that go to other lanes, or other warps, at once.
constexpr int laneGroup = 4, warpGroup = 16;

/// Elements as they are compared.
class SortOrder {
public:
  SortOrder(TargetInfo &target, tile::BitonicOp op)
      : element(op.getType().getElementType()), key(op.getKey()), target(target) {}

  /// i1: whether a > b, or, where `descends`, a < b.
  Value isAfter(Emitter &e, Value a, Value b, const Flag &descends) const {
    Value left = keyOf(e, a), right = keyOf(e, b);
    if (descends.known.value_or(false))
      std::swap(left, right);
    if (!descends.known) {
      Value greater = e.select(descends.value, right, left);
      right = e.select(descends.value, left, right);
      left = greater;
    }
    if (isa<FloatType>(element))
      return arith::CmpFOp::create(e, arith::CmpFPredicate::OGT, left, right);
    return e.compare(key == tile::SortKey::Unsigned ? LLVM::ICmpPredicate::ugt : LLVM::ICmpPredicate::sgt, left, right);
  }

private:
  Value keyOf(Emitter &e, Value value) const {
    if (auto format = dyn_cast<FloatType>(element))
      return target.isNativeFloat(format) ? value : widenFloat(e, target, value, format);
    if (key != tile::SortKey::SignMagnitude)
      return value;
    Type type = value.getType();
    Value isNegative = e.compare(LLVM::ICmpPredicate::slt, value, e.zero(type));
    Value magnitude = e.bitAnd(value, e.constant(type, (int64_t(1) << (Emitter::bitWidth(type) - 1)) - 1));
    return e.select(isNegative, e.sub(e.zero(type), magnitude), magnitude);
  }

  Type element;
  tile::SortKey key;
  TargetInfo &target;
};

/// Emits one network.
class Network {
public:
  using Values = SmallVector<Value>;

  Network(Emitter &e, const LoweringContext &lowering, tile::BitonicOp op, ValueRange source, int64_t scratch)
      : op(op), lastStage(static_cast<int>(op.getLastStage())), direction(op.getDirection()), target(lowering.target),
        layout(dgpu::layoutOf(op.getType())), order(target, op), scratch(scratch), threads(lowering.numThreads(op)),
        position(threadPart(e, target, layout)), elements(e, source, target.registerWords()) {}

  Values run(Emitter &e) {
    for (int stage = static_cast<int>(op.getFirstStage()); stage <= lastStage; ++stage) {
      if (turnsByRegister(stage)) {
        merge(e, stage, stage, {},
              [&](Emitter &inner, RegisterNumber reg) { return reg.bit(inner, layout.owner(stage).position); });
        continue;
      }
      int end = stage;
      while (end < lastStage && !turnsByRegister(end + 1))
        ++end;
      mergeRun(e, stage, end);
      stage = end;
    }
    return elements.values(e);
  }

private:
  /// Whether the block of a register descends.
  using Direction = llvm::function_ref<Flag(Emitter &, RegisterNumber)>;

  /// Whether all blocks of a stage descend, or ascend; nothing when they take turns.
  std::optional<bool> fixedDirection(int stage) const {
    if (stage == lastStage && direction != tile::SortDirection::Alternating)
      return direction == tile::SortDirection::Descending;
    const bool isOneBlock = int64_t(1) << stage >= layout.shape().back();
    return isOneBlock ? std::optional(false) : std::nullopt;
  }
  bool turnsByRegister(int stage) const { return !fixedDirection(stage) && layout.owner(stage).dim == MachineDim::Reg; }

  /// Stages whose direction is that of a thread.
  void mergeRun(Emitter &e, int first, int last) {
    int64_t steps = 0;
    for (int stage = first; stage <= last; ++stage)
      steps += stage;
    if (first == last || (!elements.isArray() && steps * elements.size() <= 2 * mostStraightComparisons)) {
      for (int stage = first; stage <= last; ++stage) {
        const std::optional<bool> fixed = fixedDirection(stage);
        const Flag descends{fixed, fixed ? Value() : e.bitOf(position, stage)};
        merge(e, stage, stage, {}, [&](Emitter &, RegisterNumber) { return descends; });
      }
      return;
    }
    elements.loop(e, first, last, [&](Emitter &inner, Value stage) {
      Value shifted = LLVM::LShrOp::create(inner, position, stage);
      Value descends = inner.bitOf(shifted, 0);
      if (std::optional<bool> fixed = fixedDirection(last)) { // only a last stage may have one
        Value isLast = inner.compare(LLVM::ICmpPredicate::eq, stage, inner.i32(last));
        descends = inner.select(isLast, inner.i1(*fixed), descends);
      }
      merge(inner, first, last, stage, [&](Emitter &, RegisterNumber) { return Flag{std::nullopt, descends}; });
    });
  }

  /// The steps of a stage, which is `least`, or, when it is known only when the code runs, between `least` and `most`.
  void merge(Emitter &e, int least, int most, Value stage, Direction descends) {
    for (int bit = most; bit-- > 0;) {
      if (bit < least) {
        step(e, bit, descends);
        continue;
      }
      Value takesPart = e.compare(LLVM::ICmpPredicate::ugt, stage, e.i32(bit));
      elements.when(e, takesPart, [&](Emitter &inner) { step(inner, bit, descends); });
    }
  }

  void step(Emitter &e, int bit, Direction descends) {
    const BitOwner owner = layout.owner(bit);
    switch (owner.dim) {
    case MachineDim::Reg: return inRegisters(e, owner.position, descends);
    case MachineDim::Lane: return acrossLanes(e, owner.position, descends);
    case MachineDim::Warp: return acrossWarps(e, owner.position, descends);
    case MachineDim::Block: llvm_unreachable("refused by the pattern");
    }
  }

  void inRegisters(Emitter &e, int registerBit, Direction descends) {
    elements.forPairs(e, registerBit, [&](Emitter &inner, RegisterNumber low, Value first, Value second) {
      Value exchanged = order.isAfter(inner, first, second, descends(inner, low));
      return std::pair(inner.select(exchanged, second, first), inner.select(exchanged, first, second));
    });
  }

  /// The one of two elements that stays here; `isUpper`: this thread has the higher position.
  Value keep(Emitter &e, Value own, Value other, Value isUpper, const Flag &descends) {
    // The upper side of a descending block decides as the lower side of an ascending one.
    Flag turned = descends.known ? Flag{std::nullopt, *descends.known ? e.bitXor(isUpper, e.i1(true)) : isUpper}
                                 : Flag{std::nullopt, e.bitXor(isUpper, descends.value)};
    return e.select(order.isAfter(e, own, other, turned), other, own);
  }

  Values keepAll(Emitter &e, RegisterNumber first, ValueRange own, ArrayRef<Value> others, Value isUpper, Direction descends) {
    Values kept;
    for (auto [i, value, other] : llvm::enumerate(own, others)) {
      RegisterNumber number = first;
      number.offset += static_cast<int>(i);
      kept.push_back(keep(e, value, other, isUpper, descends(e, number)));
    }
    return kept;
  }

  void acrossLanes(Emitter &e, int laneBit, Direction descends) {
    Value isUpper = e.bitOf(target.laneId(e), laneBit);
    const int group = elements.isArray() ? laneGroup : elements.size();
    elements.forGroups(e, group, [&](Emitter &inner, RegisterNumber first, ValueRange own) {
      return keepAll(inner, first, own, exchangeLaneBit(inner, target, own, laneBit), isUpper, descends);
    });
  }

  void acrossWarps(Emitter &e, int warpBit, Direction descends) {
    Value isUpper = e.bitOf(target.warpId(e), warpBit);
    Value partner = e.bitXor(target.threadId(e), e.i32(int64_t(target.warpSize()) << warpBit));
    int group = static_cast<int>(analysis::networkRoundRegisters(op));
    if (elements.isArray())
      group = std::min(group, warpGroup);
    elements.forGroups(e, group, [&](Emitter &inner, RegisterNumber first, ValueRange own) {
      target.blockBarrier(inner); // the round before may still be read
      SmallVector<Values> others = exchangeThroughShared(inner, target, SharedSlots{scratch, own}, threads, partner, Value());
      return keepAll(inner, first, own, others.front(), isUpper, descends);
    });
  }

  tile::BitonicOp op;
  int lastStage;
  tile::SortDirection direction;
  TargetInfo &target;
  const DistributedLayout &layout;
  SortOrder order;
  int64_t scratch;
  int threads;
  Value position; ///< The thread's part of it.
  SortElements elements;
};

class BitonicPattern : public TilePattern<tile::BitonicOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::BitonicOp op, OneToNAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    if (dgpu::layoutOf(op.getType()).ownedMask(MachineDim::Block) != 0)
      return op.emitOpError("across blocks of a cluster is not supported");
    FailureOr<int64_t> scratch = 0;
    if (analysis::scratchBytes(op) != 0 && failed(scratch = scratchOffset(op)))
      return scratch;
    Emitter e(op.getLoc(), rewriter);
    rewriter.replaceOpWithMultiple(op, {Network(e, lowering, op, adaptor.getSource(), *scratch).run(e)});
    return success();
  }
};

} // namespace

void populateSortPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<BitonicPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
