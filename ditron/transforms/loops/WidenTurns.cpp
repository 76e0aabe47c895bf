//===- WidenTurns.cpp - Several turns of a loop over tiles become one with longer tiles ------------------------------------===//
//
// A dot of warpgroups with 16 or 32 columns reads its first operand from shared memory as often as one with 64, and a turn has its waits and barriers
// whatever the tiles' extent. The backward of attention as it is often written goes through tiles of 32 rows, and of 16 where it masks. Works on tile
// IR, before anything depends on tiles' extents.
//
//   for t in 0 .. n: (sum, p = q + arange(32)[None, :] * s)       becomes       for t in 0 .. n / 2: (sum, p = q + arange(64)[None, :] * s)
//     x = dot k, load p, 0                     : 128 x 32                         x = dot k, load p, 0                   : 128 x 64
//     yield dot x, trans(load p), sum; p + 32 s                                   yield dot x, trans(load p), sum; p + 64 s
//                                                                               for t in n / 2 * 2 .. n: ... as it was
//
// 1. Which loops, and which tiles of them follow the turns: TurnTiles.h.
// 2. How many turns become one: tiles of 64, if the sums and the dots' results fit into registers. Twice that would not make a dot faster.
// 3. The longer loop is built from the sums backward: what they need of the old one, with longer tiles where these follow the turns. Indices that
//    begin in front of the loop are computed there again.
// 4. The old loop stays behind it for what turns are left over, or goes if it is known that there are none. It has few turns, and no ring of tiles.
//
// Sums get the same addends in the same order, for a dot adds up its k-steps in order: nothing is rounded otherwise. Reductions in other
// dimensions keep their elements, not their order, which they only have by the layout.
//
// What was built is looked at once more: all indices must have the same sum over their dimensions as before, and move f times as far.
//
//===--------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/loops/WidenTurns.h"

#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/transforms/Constants.h"
#include "ditron/transforms/dots/WarpgroupDotRules.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/loops/LoopArguments.h"
#include "ditron/transforms/loops/TurnTiles.h"
#include "ditron/transforms/loops/WidenBlocks.h"
#include "ditron/transforms/tensor_copies/DescribeTiles.h"
#include "ditron/transforms/warps/WarpRings.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_WIDENTURNS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Columns from which on a dot of warpgroups reads its operands no faster than it multiplies.
constexpr int64_t fullColumns = 64;
/// Of 255 registers that a thread can have, some are for addresses and operands.
constexpr int64_t mostSums = 200;

std::optional<int64_t> turnsOf(scf::ForOp loop) {
  const std::optional<int64_t> first = constantOf(loop.getLowerBound()), end = constantOf(loop.getUpperBound());
  if (!first || !end)
    return std::nullopt;
  const int64_t step = *constantOf(loop.getStep());
  return *end <= *first ? 0 : (*end - *first + step - 1) / step;
}

/// The longer loop of one whose tiles are known.
class LongerLoop {
public:
  LongerLoop(scf::ForOp loop, TurnTiles &tiles, int64_t factor)
      : loop(loop), tiles(tiles), factor(factor), loc(loop.getLoc()), front(loop) {}

  /// False if what was built is not what it should be: then all is as it was.
  bool build(int warps) {
    Operation *before = loop->getPrevNode();
    createLoop();
    fillBody();
    if (isRight(warps)) {
      replaceOldLoop();
      return true;
    }
    longer.erase();
    while (loop->getPrevNode() != before)
      loop->getPrevNode()->erase();
    return false;
  }

private:
  /// A value that the longer loop carries: one of the old loop, as it is or with a longer tile.
  struct Carried {
    unsigned index;
    int dimension;
  };

  bool isOutside(Value value) { return loop.isDefinedOutsideOfLoop(value); }
  bool isMovedTile(unsigned index) { return !tiles.dotOf(index) && isTensor(loop.getResult(index)); }

  void createLoop() {
    for (unsigned index = 0; index < loop.getNumResults(); ++index)
      if (!isMovedTile(index))
        carried.push_back({index, asItIs});
    for (auto [value, dimension] : tiles.needed())
      if (auto argument = dyn_cast<BlockArgument>(value);
          argument && argument != loop.getInductionVar() && isMovedTile(argument.getArgNumber() - 1))
        carried.push_back({argument.getArgNumber() - 1, dimension});
    SmallVector<Value> inits;
    for (auto [index, dimension] : carried)
      inits.push_back(longerValue(loop.getInitArgs()[index], dimension));

    const int64_t step = *constantOf(loop.getStep());
    Value longStep = number(factor * step), end = loop.getUpperBound();
    if (!turnsOf(loop)) {
      // Turn f w + f - 1 exists if (f w + f - 1) step < end - first.
      Value distance = front.createOrFold<arith::SubIOp>(loc, end, loop.getLowerBound());
      Value rounded = front.createOrFold<arith::AddIOp>(loc, distance, number(step - 1));
      Value positive = front.createOrFold<arith::MaxSIOp>(loc, rounded, number(0));
      Value longTurns = front.createOrFold<arith::DivSIOp>(loc, positive, longStep);
      turnsDone = front.createOrFold<arith::MulIOp>(loc, longTurns, number(factor));
      Value covered = front.createOrFold<arith::MulIOp>(loc, longTurns, longStep);
      end = front.createOrFold<arith::AddIOp>(loc, loop.getLowerBound(), covered);
    }
    longer = scf::ForOp::create(front, loc, loop.getLowerBound(), end, longStep, inits);
    longer->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    front.setInsertionPoint(longer);
    body.emplace(OpBuilder::atBlockBegin(longer.getBody()));
    values[{loop.getInductionVar(), asItIs}] = longer.getInductionVar();
    for (auto [entry, argument] : llvm::zip_equal(carried, longer.getRegionIterArgs()))
      values[{loop.getRegionIterArg(entry.index), entry.dimension}] = argument;
  }

  void fillBody() {
    llvm::DenseMap<Operation *, SmallVector<int>> wanted;
    for (auto [value, dimension] : tiles.needed())
      if (Operation *op = value.getDefiningOp(); op && op->getBlock() == loop.getBody())
        wanted[op].push_back(dimension);
    SmallVector<Value> yielded(carried.size());
    for (Operation &op : loop.getBody()->without_terminator()) {
      for (int dimension : wanted.lookup(&op))
        if (!values.contains({op.getResult(0), dimension}))
          copy(&op, dimension, *body);
      for (auto [position, entry] : llvm::enumerate(carried))
        if (tiles.dotOf(entry.index) == &op)
          yielded[position] = addToSum(cast<tile::DotOp>(op));
    }
    for (auto [position, entry] : llvm::enumerate(carried))
      if (!tiles.dotOf(entry.index))
        yielded[position] = moved(*body, longer.getRegionIterArg(position), entry.index, {});
    if (!yielded.empty())
      scf::YieldOp::create(*body, loc, yielded);
  }

  Value addToSum(tile::DotOp dot) {
    auto sum = cast<tile::DotOp>(body->clone(*dot));
    sum.getAMutable().assign(longerValue(dot.getA(), 1));
    sum.getBMutable().assign(longerValue(dot.getB(), 0));
    sum.getCMutable().assign(longerValue(dot.getC(), asItIs));
    return sum;
  }

  /// A value of the old loop, or one from outside, in the longer loop's first turn.
  Value longerValue(Value value, int dimension) {
    if (auto known = values.find({value, dimension}); known != values.end())
      return known->second;
    if (dimension == asItIs && isOutside(value))
      return value;
    assert(isOutside(value) && "what the body needs is in it by the order of the old one");
    copy(value.getDefiningOp(), dimension, front);
    return values.lookup({value, dimension});
  }

  Type longerType(Type type, int dimension) {
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile || dimension == asItIs)
      return type;
    SmallVector<int64_t> shape(tile.getShape());
    shape[dimension] *= factor;
    return RankedTensorType::get(shape, tile.getElementType());
  }

  void copy(Operation *op, int dimension, OpBuilder &builder) {
    // What the author promises of a tile's elements need not be true of those behind them.
    if (auto hint = dyn_cast<tile::HintOp>(op); hint && dimension != asItIs) {
      Value source = longerValue(hint.getSource(), dimension);
      values[{hint, dimension}] = source;
      return;
    }
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands())
      operands.push_back(longerValue(operand.get(), dimensionOfOperand(operand, dimension)));
    Operation *copied = builder.clone(*op);
    copied->setOperands(operands);
    for (auto [old, result] : llvm::zip_equal(op->getResults(), copied->getResults())) {
      result.setType(longerType(old.getType(), dimension));
      values[{old, dimension}] = result;
    }
    if (dimension == asItIs)
      return;
    if (auto range = dyn_cast<tile::ArangeOp>(copied))
      range.setEnd(range.getStart() + uint32_t(range.getType().getDimSize(0)));
    if (auto constant = dyn_cast<arith::ConstantOp>(copied))
      constant.setValueAttr(
          cast<SplatElementsAttr>(constant.getValue()).resizeSplat(cast<ShapedType>(constant.getType())));
  }

  /// `value`, which stands for a carried one, as it is after so many turns of the old loop; by default after those of one turn of the longer one.
  /// Pointers go further than integers of 32 bits reach.
  Value moved(OpBuilder &builder, Value value, unsigned index, Value turns) {
    const bool isPointer = isa<tile::PointerType>(getElementTypeOrSelf(value.getType()));
    Value amount = tiles.amountOf(index);
    const Type own = getElementTypeOrSelf(amount.getType());
    if (auto splat = amount.getDefiningOp<tile::SplatOp>(); splat && isTensor(amount))
      amount = splat.getSource();
    else if (isTensor(amount))
      amount = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(own, *constantOf(amount)));
    amount = invariant(builder, amount);
    Type type = own;
    if (isPointer && !own.isInteger(64)) {
      type = builder.getI64Type();
      amount = own.isIndex() ? arith::IndexCastOp::create(builder, loc, type, amount).getResult()
                             : arith::ExtSIOp::create(builder, loc, type, amount).getResult();
    }
    Value times = turns ? converted(builder, turns, type)
                        : arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, factor)).getResult();
    amount = builder.createOrFold<arith::MulIOp>(loc, amount, times);
    if (auto tile = dyn_cast<RankedTensorType>(value.getType()))
      amount = tile::SplatOp::create(builder, loc, RankedTensorType::get(tile.getShape(), type), amount);
    if (isPointer)
      return tile::AddPtrOp::create(builder, loc, value.getType(), value, amount);
    return builder.createOrFold<arith::AddIOp>(loc, value, amount);
  }

  /// A number of turns as an integer of another type.
  Value converted(OpBuilder &builder, Value turns, Type type) {
    const Type from = turns.getType();
    if (from == type)
      return turns;
    if (from.isIndex() || type.isIndex())
      return arith::IndexCastOp::create(builder, loc, type, turns);
    if (from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
      return arith::ExtSIOp::create(builder, loc, type, turns);
    return arith::TruncIOp::create(builder, loc, type, turns);
  }

  /// A scalar that the old loop's body may compute, though it is the same in all turns, for use where the builder is.
  Value invariant(OpBuilder &builder, Value scalar) {
    if (isOutside(scalar))
      return scalar;
    Operation *op = scalar.getDefiningOp();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(invariant(builder, operand));
    Operation *copied = builder.clone(*op);
    copied->setOperands(operands);
    return copied->getResult(cast<OpResult>(scalar).getResultNumber());
  }

  bool isRight(int warps) {
    analysis::AffineTiles affine(longer);
    for (auto [value, dimension] : tiles.needed()) {
      const std::optional<analysis::AffineTile> was = tiles.affineTile(value);
      if (!was || getElementTypeOrSelf(value.getType()).isInteger(1))
        continue;
      auto known = values.find({value, dimension});
      if (known == values.end()) // in front of the loop, for a value that is not needed there any more
        continue;
      const std::optional<analysis::AffineTile> is = affine.of(known->second);
      if (!is || is->base != was->base || !(is->offset == was->offset) || is->coefficients != was->coefficients ||
          !(is->perTurn == was->perTurn * analysis::Polynomial(factor)))
        return false;
    }
    return llvm::all_of(longer.getBody()->getOps<tile::DotOp>(),
                        [&](tile::DotOp dot) { return whyNoWarpgroupDot(dot, warps).empty(); });
  }

  void replaceOldLoop() {
    front.setInsertionPoint(loop);
    const std::optional<int64_t> known = turnsOf(loop);
    if (known)
      turnsDone = number(*known);
    SmallVector<Value> after(loop.getNumResults());
    for (auto [position, entry] : llvm::enumerate(carried))
      if (entry.dimension == asItIs &&
          tiles.dotOf(entry.index)) // what moves is computed again: loops that give only sums can be joined
        after[entry.index] = longer.getResult(position);
    for (unsigned index = 0; index < after.size(); ++index)
      if (!after[index] && (!known || !loop.getResult(index).use_empty()))
        after[index] = moved(front, loop.getInitArgs()[index], index, turnsDone);
    if (known) {
      for (auto [result, value] : llvm::zip_equal(loop.getResults(), after))
        if (value)
          result.replaceAllUsesWith(value);
      loop.erase();
      return;
    }
    loop.getLowerBoundMutable().assign(longer.getUpperBound());
    loop.getInitArgsMutable().assign(after);
    loop->setAttr("tile.num_stages", front.getI32IntegerAttr(1));
  }

  Value number(int64_t value) {
    return arith::ConstantOp::create(front, loc, front.getIntegerAttr(loop.getInductionVar().getType(), value));
  }

  scf::ForOp loop, longer;
  TurnTiles &tiles;
  int64_t factor;
  Location loc;
  OpBuilder front; ///< In front of the old loop, and of the longer one as soon as it is there.
  std::optional<OpBuilder> body;
  SmallVector<Carried> carried;
  llvm::DenseMap<NeededTile, Value>
      values;      ///< Of the old loop and from outside -> of the longer loop and in front of it.
  Value turnsDone; ///< By the longer loop, in turns of the old one.
};

/// A dot of few columns that change from turn to turn.
bool hasNarrowDot(scf::ForOp loop, int warps) {
  return llvm::any_of(loop.getBody()->getOps<tile::DotOp>(), [&](tile::DotOp dot) {
    return dot.getType().getShape().back() < fullColumns && whyNoWarpgroupDot(dot, warps).empty() &&
           isInvariant(dot.getA(), loop) && !isInvariant(dot.getB(), loop);
  });
}

SmallVector<scf::ForOp> loopsWithNarrowDots(ModuleOp module) {
  SmallVector<scf::ForOp> loops;
  const int warps = dgpu::numWarpsOf(module);
  module.walk([&](scf::ForOp loop) {
    if (hasNarrowDot(loop, warps))
      loops.push_back(loop);
  });
  return loops;
}

/// Widens the turns of a module's loops.
class TurnWidening {
public:
  TurnWidening(ModuleOp module, bool isSilent) : module(module), isSilent(isSilent), warps(dgpu::numWarpsOf(module)) {}

  /// True if there was something to widen.
  bool run() {
    if (!module->hasAttr(dgpu::wgmmaAttrName))
      return false;
    bool isWidened = false;
    for (scf::ForOp loop : loopsWithNarrowDots(module))
      isWidened |= widen(loop);
    return isWidened;
  }
  /// True if some turn would have become longer, or longer still, with more registers.
  bool lacksRegisters() const { return isShortOfRegisters; }

private:
  bool widen(scf::ForOp loop) {
    const Location loc = loop.getLoc();
    constexpr auto options = [] { return remark::RemarkOpts::name("turns").category("dgpu-widen-turns"); };
    const auto stays = [&](const std::string &reason) {
      if (!isSilent)
        remark::missed(loc, options()) << "turns of narrow dots stay apart: " + reason;
      return false;
    };
    TurnTiles tiles(loop, warps);
    if (std::string reason = tiles.find(); !reason.empty())
      return stays(reason);
    if (tiles.extent() >= fullColumns)
      return stays(llvm::formatv("its tiles have {0} rows", tiles.extent()).str());
    int64_t factor = fullColumns / tiles.extent();
    if (const std::optional<int64_t> turns = turnsOf(loop)) {
      while (factor > 1 && *turns % factor != 0)
        factor /= 2;
      if (factor == 1)
        return stays(llvm::formatv("there are {0} of them", *turns).str());
    }
    const int64_t fewest = registersOf(loop, tiles, 2);
    for (; factor > 1 && registersOf(loop, tiles, factor) > mostSums; factor /= 2)
      isShortOfRegisters = true;
    if (factor == 1)
      return stays(llvm::formatv("its sums would take {0} registers of each thread", fewest).str());
    if (!LongerLoop(loop, tiles, factor).build(warps))
      return stays("its indices are not understood");
    if (!isSilent)
      remark::passed(loc, options()) << llvm::formatv("{0} turns become one: tiles of {1} become {2}", factor,
                                                      tiles.extent(), factor * tiles.extent())
                                            .str();
    return true;
  }

  /// For the sums that the loop carries, and for the results of dots that become longer.
  int64_t registersOf(scf::ForOp loop, const TurnTiles &tiles, int64_t factor) const {
    int64_t elements = 0;
    for (unsigned index = 0; index < loop.getNumResults(); ++index)
      if (tiles.dotOf(index))
        elements += cast<RankedTensorType>(loop.getResult(index).getType()).getNumElements();
    for (Operation *dot : tiles.columnDots())
      elements += factor * cast<RankedTensorType>(dot->getResult(0).getType()).getNumElements();
    const int64_t threads = int64_t(warps) * dgpu::threadsPerWarpOf(loop->getParentOfType<ModuleOp>());
    return elements / threads;
  }

  ModuleOp module;
  bool isSilent;
  int warps;
  bool isShortOfRegisters = false;
};

class WidenTurnsPass : public impl::WidenTurnsBase<WidenTurnsPass> {
  void runOnOperation() override { TurnWidening(getOperation(), /*isSilent=*/false).run(); }
};

} // namespace

/// A tile of dots in a loop that the threads would copy by themselves, after dgpu-describe-tiles; null if there is none.
static tile::LoadOp copiedTile(ModuleOp module, int64_t limitBytes) {
  describeTiles(module, limitBytes, /*isSilent=*/true);
  tile::LoadOp copied;
  module.walk([&](tile::LoadOp load) {
    if (std::optional<SmallVector<tile::DotOp>> dots = dotsOf(load.getResult());
        dots && !dots->empty() && isa<scf::ForOp>(load->getParentOp()))
      copied = load;
  });
  return copied;
}

bool prepareLongerTurns(ModuleOp module, int64_t limitBytes) {
  if (!hasProducers(module) || loopsWithNarrowDots(module).empty())
    return false;
  OwningOpRef<ModuleOp> trial = module.clone();
  TurnWidening longer(*trial, /*isSilent=*/true);
  const bool isLonger = longer.run();
  if (longer.lacksRegisters() && mayHaveTwoWarpgroups(module)) {
    const auto warps = Builder(module).getI32IntegerAttr(2 * layout::warpsPerGroup);
    OwningOpRef<ModuleOp> wider = module.clone();
    (*wider)->setAttr(dgpu::numWarpsAttrName, warps);
    if (TurnWidening inBoth(*wider, /*isSilent=*/true);
        inBoth.run() && !inBoth.lacksRegisters() && !copiedTile(*wider, limitBytes)) {
      module->setAttr(dgpu::numWarpsAttrName, warps);
      remark::passed(module.getLoc(), remark::RemarkOpts::name("turns").category("dgpu-widen-turns"))
          << llvm::formatv("{0} warps instead of {1}: longer turns have no registers in one warpgroup",
                           2 * layout::warpsPerGroup, layout::warpsPerGroup)
                 .str();
      return true;
    }
  }
  if (!isLonger) {
    TurnWidening(module, /*isSilent=*/false).run(); // says why
    return false;
  }
  tile::LoadOp copied = copiedTile(*trial, limitBytes);
  if (copied)
    remark::missed(copied.getLoc(), remark::RemarkOpts::name("turns").category("dgpu-widen-turns"))
        << "turns of narrow dots stay apart: no producer would fetch this tile if it were longer";
  return !copied;
}

bool hasShortTurns(ModuleOp module) {
  return llvm::any_of(loopsWithNarrowDots(module), [](scf::ForOp loop) { return pipelineStagesOf(loop) > 1; });
}
} // namespace ditron::transforms
