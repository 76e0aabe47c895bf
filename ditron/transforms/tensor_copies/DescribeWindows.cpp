//===- DescribeWindows.cpp - Tiles of pointers become windows of a tensor map ----------------------------------------===//
//
// See TileWindows.h, and DescribeTiles.cpp for what comes of it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/loops/LoopArguments.h"
#include "ditron/transforms/tensor_copies/TileWindows.h"
#include "ditron/transforms/warps/ProducerSlice.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "llvm/ADT/MapVector.h"

namespace ditron::transforms {

using namespace mlir;
using analysis::Polynomial;

namespace {

/// The offset of a window in units, by two dimensions of which the second one has this many bits.
constexpr int lowBits = 20;

class Rewrite {
public:
  explicit Rewrite(func::FuncOp kernel) : kernel(kernel), dominance(kernel) { numberValues(); }

  SmallVector<tile::DescriptorLoadOp> run(MutableArrayRef<WindowLoad> candidates) {
    // All places before any loop changes: results of loops are values in them.
    SmallVector<Place> places;
    llvm::MapVector<Operation *, SmallVector<size_t>> byLoop;
    for (WindowLoad &candidate : candidates) {
      const Location loc = candidate.load.getLoc();
      Place place{moving(candidate.tile.offset, candidate.tile.perTurn, candidate.unit(), loc), {}};
      for (const std::optional<WindowEnd> &end : candidate.ends)
        place.starts.push_back(end ? moving(end->start, end->perTurn, 1, loc) : Moving());
      places.push_back(std::move(place));
    }
    for (auto [index, candidate] : llvm::enumerate(candidates))
      if (!places[index].moved().empty())
        byLoop[candidate.load->getParentOfType<scf::ForOp>()].push_back(index);
    for (auto &[loop, members] : byLoop)
      carry(candidates, members, places);
    SmallVector<tile::DescriptorLoadOp> made;
    for (auto [candidate, place] : llvm::zip_equal(candidates, places))
      made.push_back(replace(candidate, place));
    eraseDeadCode(kernel.getBody().front(), /*keepsScalars=*/true);
    return made;
  }

private:
  struct Moving {
    Value value;   ///< i64, where the loop begins; then in each turn. Null if there is none.
    Value perTurn; ///< Null if the loop does not move it.
  };
  struct Place {
    Moving window;              ///< In units.
    SmallVector<Moving> starts; ///< Of dimensions that have an end.

    /// What the loop moves.
    SmallVector<Moving *> moved() {
      SmallVector<Moving *> all;
      if (window.perTurn)
        all.push_back(&window);
      for (Moving &start : starts)
        if (start.perTurn)
          all.push_back(&start);
      return all;
    }
  };

  Moving moving(const Polynomial &first, const Polynomial &perTurn, int64_t unit, Location loc) {
    return {inUnits(first, unit, loc), perTurn.isZero() ? Value() : inUnits(perTurn, unit, loc)};
  }

  /// The order of polynomials is that of addresses in the compiler; what is built of them has that of the program.
  void numberValues() {
    for (BlockArgument argument : kernel.getArguments())
      numbers.try_emplace(argument, numbers.size());
    kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Value result : op->getResults())
        numbers.try_emplace(result, numbers.size());
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            numbers.try_emplace(argument, numbers.size());
    });
  }

  using Term = std::pair<SmallVector<Value>, int64_t>;
  SmallVector<Term> termsInOrder(const Polynomial &polynomial) {
    const auto numbersOf = [&](const Term &term) {
      return llvm::map_to_vector(term.first, [&](Value value) { return numbers.lookup(value); });
    };
    SmallVector<Term> terms;
    for (const auto &[product, factor] : polynomial.products()) {
      terms.push_back({SmallVector<Value>(product.begin(), product.end()), factor});
      llvm::sort(terms.back().first, [&](Value a, Value b) { return numbers.lookup(a) < numbers.lookup(b); });
    }
    llvm::sort(terms, [&](const Term &a, const Term &b) { return numbersOf(a) < numbersOf(b); });
    return terms;
  }

  /// Behind the last of the scalars, so that all loads and loops that need the sum can have it.
  OpBuilder builderBehind(const Polynomial &polynomial) {
    Value last;
    for (const Term &term : termsInOrder(polynomial))
      for (Value scalar : term.first)
        if (!last || isBefore(last, scalar))
          last = scalar;
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    if (!last)
      return builder;
    if (auto argument = dyn_cast<BlockArgument>(last))
      builder.setInsertionPointToStart(argument.getOwner());
    else
      builder.setInsertionPointAfter(last.getDefiningOp());
    return builder;
  }

  /// Of two values that are both there at one load.
  bool isBefore(Value a, Value b) {
    if (auto argument = dyn_cast<BlockArgument>(b))
      return a.getParentBlock() != argument.getOwner() && a.getParentRegion()->isProperAncestor(b.getParentRegion());
    return dominance.properlyDominates(a, b.getDefiningOp());
  }

  /// The value of a polynomial of elements, in units of so many: an operation of its own, so that loops which change do not take it away.
  Value inUnits(const Polynomial &polynomial, int64_t unit, Location loc) {
    for (const Sum &known : sums)
      if (known.unit == unit && known.polynomial == polynomial)
        return known.value;
    OpBuilder builder = builderBehind(polynomial);
    if (const std::optional<int64_t> number = polynomial.constant()) {
      sums.push_back({polynomial, unit, number64(*number / unit, builder, loc)});
      return sums.back().value;
    }
    Value sum;
    for (const auto &[scalars, factor] : termsInOrder(polynomial)) {
      Value term;
      for (Value scalar : scalars) {
        Value wide = widen(scalar, builder, loc);
        term = term ? arith::MulIOp::create(builder, loc, term, wide) : wide;
      }
      if (!term)
        term = number64(factor, builder, loc);
      else if (factor != 1)
        term = arith::MulIOp::create(builder, loc, term, number64(factor, builder, loc));
      sum = sum ? arith::AddIOp::create(builder, loc, sum, term) : term;
    }
    if (unit > 1)
      sum = arith::ShRUIOp::create(builder, loc, sum, number64(llvm::Log2_64(unit), builder, loc));
    sums.push_back({polynomial, unit, sum});
    return sum;
  }

  static Value widen(Value scalar, OpBuilder &builder, Location loc) {
    if (scalar.getType().isIndex())
      return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), scalar);
    if (scalar.getType().isInteger(64))
      return scalar;
    return arith::ExtSIOp::create(builder, loc, builder.getI64Type(), scalar);
  }

  static Value number64(int64_t value, OpBuilder &builder, Location loc) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  }
  static Value number32(int64_t value, OpBuilder &builder, Location loc) {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
  }

  /// One loop carries the places of all that moves in it; what moves alike, once.
  void carry(MutableArrayRef<WindowLoad> candidates, ArrayRef<size_t> members, MutableArrayRef<Place> places) {
    SmallVector<Value> inits, steps;
    SmallVector<std::pair<Moving *, size_t>> argumentOf;
    for (size_t member : members)
      for (Moving *each : places[member].moved()) {
        size_t index = 0;
        while (index < inits.size() && (inits[index] != each->value || steps[index] != each->perTurn))
          ++index;
        if (index == inits.size()) {
          inits.push_back(each->value);
          steps.push_back(each->perTurn);
        }
        argumentOf.push_back({each, index});
      }
    scf::ForOp loop = addLoopArguments(candidates[members.front()].load->getParentOfType<scf::ForOp>(), inits);
    Operation *yield = loop.getBody()->getTerminator();
    const unsigned first = loop.getNumResults() - inits.size();
    OpBuilder builder(yield);
    for (auto [index, step] : llvm::enumerate(steps)) {
      Value moved = arith::AddIOp::create(builder, loop.getLoc(), loop.getRegionIterArg(first + index), step);
      yield->setOperand(first + index, moved);
    }
    for (auto [each, index] : argumentOf)
      each->value = loop.getRegionIterArg(first + index);
  }

  tile::DescriptorLoadOp replace(WindowLoad &candidate, const Place &place) {
    tile::LoadOp load = candidate.load;
    const Location loc = load.getLoc();
    const auto [high, low] = offsetsOf(place.window.value, loc);
    SmallVector<int64_t> shape(candidate.type().getShape());
    OpBuilder builder(load);
    SmallVector<Value> offsets{high, low};
    for (auto [end, start] : llvm::zip_equal(candidate.ends, place.starts))
      offsets.push_back(end ? startOf(*end, start.value, loc) : number32(0, builder, loc));
    if (candidate.isTransposed) {
      std::swap(shape.front(), shape.back());
      std::swap(candidate.ends.front(), candidate.ends.back());
      std::swap(offsets[2], offsets[3]);
    }
    Value descriptor = describe(candidate, shape, loc);
    auto type = cast<tile::DescriptorType>(descriptor.getType());
    auto fetched =
        tile::DescriptorLoadOp::create(builder, loc, type.getTileType(), descriptor, offsets, load.getEvict());
    if (candidate.isRow())
      replaceRow(load, fetched, builder);
    else
      replaceMatrix(candidate, fetched, shape, builder);
    load.erase();
    return fetched;
  }

  static void replaceMatrix(WindowLoad &candidate, Value fetched, ArrayRef<int64_t> shape, OpBuilder &builder) {
    tile::LoadOp load = candidate.load;
    auto matrix = RankedTensorType::get(shape, candidate.type().getElementType());
    Value tile = tile::ReshapeOp::create(builder, load.getLoc(), matrix, fetched);
    if (candidate.isTransposed)
      tile = tile::TransOp::create(builder, load.getLoc(), load.getType(), tile, {1, 0});
    load.replaceAllUsesWith(tile);
  }

  /// What stands beside columns takes the row as a matrix, as it is read from its slot.
  static void replaceRow(tile::LoadOp load, Value fetched, OpBuilder &builder) {
    auto row = cast<RankedTensorType>(load.getType());
    auto matrix = RankedTensorType::get({1, row.getDimSize(0)}, row.getElementType());
    Value read = tile::ReshapeOp::create(builder, load.getLoc(), matrix, fetched);
    for (Operation *user : llvm::make_early_inc_range(load->getUsers()))
      if (auto expand = dyn_cast<tile::ExpandDimsOp>(user); expand && expand.getAxis() == 0) {
        expand.replaceAllUsesWith(read);
        expand.erase();
      }
    if (!load->use_empty())
      load.replaceAllUsesWith(tile::ReshapeOp::create(builder, load.getLoc(), row, read).getResult());
  }

  /// The two offsets of a place, right behind where it is known.
  std::pair<Value, Value> offsetsOf(Value place, Location loc) {
    auto [entry, isNew] = offsets.try_emplace(place);
    if (!isNew)
      return entry->second;
    OpBuilder builder(kernel.getContext());
    builder.setInsertionPointAfterValue(place);
    Value high = arith::ShRUIOp::create(builder, loc, place, number64(lowBits, builder, loc));
    Value low = arith::AndIOp::create(builder, loc, place, number64((int64_t(1) << lowBits) - 1, builder, loc));
    high = arith::TruncIOp::create(builder, loc, builder.getI32Type(), high);
    low = arith::TruncIOp::create(builder, loc, builder.getI32Type(), low);
    return entry->second = {high, low};
  }

  /// The offset in a dimension that has an end. A tensor has at least one element: where there is none, the tile stands behind that.
  Value startOf(const WindowEnd &end, Value start, Location loc) {
    Value &offset = starts[{start, end.argument}];
    if (offset)
      return offset;
    OpBuilder builder(kernel.getContext());
    builder.setInsertionPointAfterValue(start);
    // A multiple of all that offsets must be multiples of. No tensor is so large.
    constexpr int64_t lastOffset = (int64_t(1) << 31) - 128;
    if (end.isWide)
      start = arith::MinSIOp::create(builder, loc, start, number64(lastOffset, builder, loc));
    offset = arith::TruncIOp::create(builder, loc, builder.getI32Type(), start);
    if (!end.argument)
      return offset;
    constexpr int64_t behind = int64_t(1) << 30;
    Value isEmpty =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, end.argument, number32(1, builder, loc));
    return offset = arith::SelectOp::create(builder, loc, isEmpty, number32(behind, builder, loc), offset);
  }

  /// The window of a tile, at the kernel's begin.
  Value describe(WindowLoad &candidate, ArrayRef<int64_t> shape, Location loc) {
    SmallVector<int64_t> block{1, 1};
    block.append(shape.begin(), shape.end());
    auto type = tile::DescriptorType::get(block, candidate.type().getElementType());
    const Polynomial stride = candidate.isRow() ? Polynomial(1) : candidate.stride();
    SmallVector<std::pair<Value, int64_t>> extents;
    for (auto [end, size] : llvm::zip_equal(candidate.ends, shape))
      extents.push_back(!end            ? std::pair(Value(), size)
                        : end->argument ? std::pair(end->argument, int64_t(1))
                                        : std::pair(Value(), end->number));
    for (const Window &known : windows)
      if (known.base == candidate.tile.base && known.stride == stride && known.descriptor.getType() == type &&
          known.extents == extents)
        return known.descriptor;
    constexpr int64_t mostOfHigh = std::numeric_limits<int32_t>::max();
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    SmallVector<Value> sizes{number32(mostOfHigh, builder, loc), number32(int64_t(1) << lowBits, builder, loc)};
    for (auto [argument, number] : extents) {
      sizes.push_back(number32(number, builder, loc));
      if (argument)
        sizes.back() = arith::MaxSIOp::create(builder, loc, argument, sizes.back());
    }
    SmallVector<Value> strides{number64(candidate.unit() << lowBits, builder, loc),
                               number64(candidate.unit(), builder, loc)};
    if (!candidate.isRow()) {
      const std::optional<int64_t> number = stride.constant();
      strides.push_back(number ? number64(*number, builder, loc) : widen(stride.scalar(), builder, loc));
    }
    strides.push_back(number64(1, builder, loc));
    Value descriptor = tile::MakeDescriptorOp::create(builder, loc, type, candidate.tile.base, sizes, strides,
                                                      tile::DescriptorPadding::Zero);
    windows.push_back({candidate.tile.base, stride, extents, descriptor});
    return descriptor;
  }

  struct Sum {
    Polynomial polynomial;
    int64_t unit;
    Value value;
  };
  struct Window {
    Value base;
    Polynomial stride;
    SmallVector<std::pair<Value, int64_t>>
        extents; ///< Each an argument, taken for at least this number, or the number.
    Value descriptor;
  };

  func::FuncOp kernel;
  DominanceInfo dominance;
  llvm::DenseMap<Value, size_t> numbers; ///< In the order of the program.
  SmallVector<Sum, 0> sums;
  SmallVector<Window, 0> windows;
  llvm::DenseMap<Value, std::pair<Value, Value>> offsets;
  llvm::DenseMap<std::pair<Value, Value>, Value> starts;
};

} // namespace

SmallVector<tile::DescriptorLoadOp> describeWindows(func::FuncOp kernel, MutableArrayRef<WindowLoad> windows) {
  return Rewrite(kernel).run(windows);
}

} // namespace ditron::transforms
