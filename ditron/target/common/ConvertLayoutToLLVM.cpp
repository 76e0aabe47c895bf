//===- ConvertLayoutToLLVM.cpp - dgpu.convert_layout ------------------------------------------------------------------------===//
//
// Carries out the plan of layout/ConvertPlan.h: selects, shuffles and renamings, step by step as the plan's header defines
// them, or a round trip through swizzled shared memory.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/common/Exchange.h"
#include "ditron/target/common/Patterns.h"
#include "ditron/target/common/SharedAccess.h"

#include "ditron/analysis/Scratch.h"

using namespace mlir;
using namespace ditron::layout;

namespace ditron::target {
namespace {

using Values = SmallVector<Value>;

/// Applies the steps of a plan to the registers of one thread.
class StepEmitter {
public:
  StepEmitter(Emitter &e, TargetInfo &target) : e(e), target(target) {}

  Values operator()(const SelectStep &step, const Values &x) {
    Value bit = e.bitOf(step.dim == MachineDim::Lane ? target.laneId(e) : target.warpId(e), step.bit);
    size_t low = size_t(1) << step.regBit;
    Values y;
    for (size_t r = 0; r < x.size() / 2; ++r) {
      size_t zero = (r & (low - 1)) | (r & ~(low - 1)) << 1;
      y.push_back(e.select(bit, x[zero | low], x[zero]));
    }
    return y;
  }

  Values operator()(const WarpLaneStep &step, const Values &x) {
    Value warpBit = e.bitAnd(e.lshr(target.warpId(e), step.warpBit), e.i32(1));
    Value others = e.bitAnd(target.laneId(e), e.i32(~(1 << step.laneBit)));
    return shuffleValues(e, target, dist::ShuffleKind::Index, x, e.bitOr(others, e.shl(warpBit, step.laneBit)));
  }

  Values operator()(const ExchangeStep &step, const Values &x) {
    Value bit = e.bitOf(target.laneId(e), step.laneBit);
    size_t low = size_t(1) << step.regBit;
    Values sent;
    for (size_t r = 0; r < x.size(); ++r)
      if (!(r & low))
        sent.push_back(e.select(bit, x[r], x[r | low]));
    Values received = exchangeLaneBit(e, target, sent, step.laneBit);
    Values y(x.size());
    for (size_t r = 0, next = 0; r < x.size(); ++r) {
      if (r & low)
        continue;
      Value value = received[next++];
      y[r] = e.select(bit, value, x[r]);
      y[r | low] = e.select(bit, x[r | low], value);
    }
    return y;
  }

  Values operator()(const LanePermuteStep &step, const Values &x) {
    Value source = e.i32(0), lane = target.laneId(e);
    for (auto [bit, sourceBit] : llvm::enumerate(step.srcLaneBit))
      source = e.bitOr(source, e.shl(e.bitAnd(e.lshr(lane, static_cast<int>(bit)), e.i32(1)), sourceBit));
    return shuffleValues(e, target, dist::ShuffleKind::Index, x, source);
  }

  Values operator()(const RenameStep &step, const Values &x) {
    Values y;
    for (int source : step.srcRegOfDstReg)
      y.push_back(x[source]);
    return y;
  }

private:
  Emitter &e;
  TargetInfo &target;
};

/// Narrow elements that move together, as words.
class WordPacking {
public:
  WordPacking(Emitter &e, const ConvertPlan &plan, const Values &values) : e(e), type(values.front().getType()) {
    constexpr int wordBits = 32;
    const int elementBits = Emitter::bitWidth(type);
    if (elementBits * registersOfWord(elementBits) == wordBits)
      bits = bitsMovedTogether(plan, elementBits, static_cast<int>(values.size()));
  }

  Values pack(const Values &values) const {
    Values words;
    for (size_t word = 0; word < values.size() >> bits.size(); ++word) {
      Values parts;
      for (int i = 0; i < 1 << bits.size(); ++i)
        parts.push_back(values[registerOf(word, i)]);
      words.push_back(packWord(e, parts, e.getI32Type()));
    }
    return words;
  }

  Values unpack(const Values &words) const {
    Values values(words.size() << bits.size());
    const SmallVector<Type> types(size_t(1) << bits.size(), type);
    for (size_t word = 0; word < words.size(); ++word)
      for (auto [i, part] : llvm::enumerate(unpackWord(e, words[word], types)))
        values[registerOf(word, static_cast<int>(i))] = part;
    return values;
  }

  std::vector<int> bits; ///< Of the register's number; empty: elements move one by one.

private:
  /// The register of part `i` of a word: the word's number with the bits of the part in their places.
  size_t registerOf(size_t word, int i) const {
    for (auto [position, bit] : llvm::enumerate(bits)) { // ascending, so that places below are complete
      const size_t below = (size_t(1) << bit) - 1;
      word = (word & ~below) << 1 | (word & below) | size_t(i >> position & 1) << bit;
    }
    return word;
  }

  Emitter &e;
  Type type;
};

class ConvertLayoutPattern : public TilePattern<dgpu::ConvertLayoutOp> {
public:
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(dgpu::ConvertLayoutOp op, OneToNAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    ConvertPlan plan = analysis::convertPlanOf(op);
    if (plan.cls == ConvertClass::CrossBlock)
      return op.emitOpError("would move data between blocks of a cluster, which is not supported");
    Values values(adaptor.getSource().begin(), adaptor.getSource().end());
    if (plan.shared) {
      FailureOr<int64_t> offset = scratchOffset(op);
      if (failed(offset))
        return offset;
      values = throughShared(e, *plan.shared, values, *offset, dgpu::layoutOf(op.getSource().getType()),
                             dgpu::layoutOf(op.getType()));
    } else {
      values = byShuffles(e, plan, std::move(values));
    }
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }

private:
  Values byShuffles(Emitter &e, const ConvertPlan &plan, Values values) const {
    const WordPacking words(e, plan, values);
    StepEmitter emitStep(e, target);
    bool isPacked = !words.bits.empty();
    if (isPacked)
      values = words.pack(values);
    for (ConvertStep step : plan.steps) {
      if (isPacked && std::holds_alternative<RenameStep>(step)) {
        values = words.unpack(values);
        isPacked = false;
      }
      if (auto *exchange = std::get_if<ExchangeStep>(&step); isPacked && exchange)
        exchange->regBit -=
            static_cast<int>(llvm::count_if(words.bits, [&](int bit) { return bit < exchange->regBit; }));
      values = std::visit([&](const auto &one) { return emitStep(one, values); }, step);
    }
    return isPacked ? words.unpack(values) : values;
  }

  Values throughShared(Emitter &e, const SharedExchange &exchange, const Values &values, int64_t offset,
                       const DistributedLayout &source, const DistributedLayout &result) const {
    Value base = sharedAddress(e, target, offset);
    Value writes;
    if (exchange.storeLaneFree)
      writes = e.isZero(e.bitAnd(target.laneId(e), e.i32(static_cast<int32_t>(exchange.storeLaneFree))));
    if (exchange.storeWarpFree)
      writes = e.conjunction(writes,
                             e.isZero(e.bitAnd(target.warpId(e), e.i32(static_cast<int32_t>(exchange.storeWarpFree)))));
    storeTile(e, target, exchange.store, base, values, writes, source);
    if (exchange.scope == BarrierScope::Warp)
      target.warpBarrier(e);
    else
      target.blockBarrier(e);
    return loadTile(e, target, exchange.load, base, values.front().getType(), result);
  }
};

} // namespace

void populateConvertLayoutPatterns(RewritePatternSet &patterns, const LoweringContext &lowering) {
  patterns.add<ConvertLayoutPattern>(patterns.getContext(), lowering);
}

} // namespace ditron::target
