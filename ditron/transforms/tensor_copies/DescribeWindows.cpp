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
    for (auto [index, candidate] : llvm::enumerate(candidates)) {
      Place place{inUnits(candidate.tile.offset, candidate), {}};
      if (!candidate.tile.perTurn.isZero()) {
        place.perTurn = inUnits(candidate.tile.perTurn, candidate);
        byLoop[candidate.load->getParentOfType<scf::ForOp>()].push_back(index);
      }
      places.push_back(place);
    }
    for (auto &[loop, members] : byLoop)
      carry(candidates, members, places);
    SmallVector<tile::DescriptorLoadOp> made;
    for (auto [candidate, place] : llvm::zip_equal(candidates, places))
      made.push_back(replace(candidate, place.offset));
    eraseDeadCode(kernel.getBody().front(), /*keepsScalars=*/true);
    return made;
  }

private:
  struct Place {
    Value offset;  ///< In units, where the loop begins; then in each turn.
    Value perTurn; ///< Null if the loop does not move it.
  };

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

  /// The value of a polynomial of elements, in units of 16 bytes: an operation of its own, so that loops which change do not take it away.
  Value inUnits(const Polynomial &polynomial, WindowLoad &candidate) {
    const int64_t unit = candidate.unit();
    for (const Sum &known : sums)
      if (known.unit == unit && known.polynomial == polynomial)
        return known.value;
    OpBuilder builder = builderBehind(polynomial);
    const Location loc = candidate.load.getLoc();
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
    Value shift = number64(llvm::Log2_64(unit), builder, loc);
    Value value = arith::ShRUIOp::create(builder, loc, sum, shift);
    sums.push_back({polynomial, unit, value});
    return value;
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
    SmallVector<size_t> argumentOf;
    for (size_t member : members) {
      const Place &place = places[member];
      size_t index = 0;
      while (index < inits.size() && (inits[index] != place.offset || steps[index] != place.perTurn))
        ++index;
      if (index == inits.size()) {
        inits.push_back(place.offset);
        steps.push_back(place.perTurn);
      }
      argumentOf.push_back(index);
    }
    scf::ForOp loop = addLoopArguments(candidates[members.front()].load->getParentOfType<scf::ForOp>(), inits);
    Operation *yield = loop.getBody()->getTerminator();
    const unsigned first = loop.getNumResults() - inits.size();
    OpBuilder builder(yield);
    for (auto [index, step] : llvm::enumerate(steps)) {
      Value moved = arith::AddIOp::create(builder, loop.getLoc(), loop.getRegionIterArg(first + index), step);
      yield->setOperand(first + index, moved);
    }
    for (auto [member, index] : llvm::zip_equal(members, argumentOf))
      places[member].offset = loop.getRegionIterArg(first + index);
  }

  tile::DescriptorLoadOp replace(WindowLoad &candidate, Value place) {
    tile::LoadOp load = candidate.load;
    const Location loc = load.getLoc();
    const auto [high, low] = offsetsOf(place, loc);
    SmallVector<int64_t> shape(candidate.type().getShape());
    if (candidate.isTransposed)
      std::swap(shape.front(), shape.back());
    OpBuilder builder(load);
    SmallVector<Value> offsets{high, low};
    offsets.append(shape.size(), number32(0, builder, loc));
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

  /// The window of a tile, at the kernel's begin.
  Value describe(WindowLoad &candidate, ArrayRef<int64_t> shape, Location loc) {
    SmallVector<int64_t> block{1, 1};
    block.append(shape.begin(), shape.end());
    auto type = tile::DescriptorType::get(block, candidate.type().getElementType());
    const Polynomial stride = candidate.isRow() ? Polynomial(1) : candidate.stride();
    for (const Window &known : windows)
      if (known.base == candidate.tile.base && known.stride == stride && known.descriptor.getType() == type)
        return known.descriptor;
    constexpr int64_t mostOfHigh = std::numeric_limits<int32_t>::max();
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    SmallVector<Value> sizes{number32(mostOfHigh, builder, loc), number32(int64_t(1) << lowBits, builder, loc)};
    for (int64_t size : shape)
      sizes.push_back(number32(size, builder, loc));
    SmallVector<Value> strides{number64(candidate.unit() << lowBits, builder, loc),
                               number64(candidate.unit(), builder, loc)};
    if (!candidate.isRow()) {
      const std::optional<int64_t> number = stride.constant();
      strides.push_back(number ? number64(*number, builder, loc) : widen(stride.scalar(), builder, loc));
    }
    strides.push_back(number64(1, builder, loc));
    Value descriptor = tile::MakeDescriptorOp::create(builder, loc, type, candidate.tile.base, sizes, strides,
                                                      tile::DescriptorPadding::Zero);
    windows.push_back({candidate.tile.base, stride, descriptor});
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
    Value descriptor;
  };

  func::FuncOp kernel;
  DominanceInfo dominance;
  llvm::DenseMap<Value, size_t> numbers; ///< In the order of the program.
  SmallVector<Sum, 0> sums;
  SmallVector<Window, 0> windows;
  llvm::DenseMap<Value, std::pair<Value, Value>> offsets;
};

} // namespace

SmallVector<tile::DescriptorLoadOp> describeWindows(func::FuncOp kernel, MutableArrayRef<WindowLoad> windows) {
  return Rewrite(kernel).run(windows);
}

} // namespace ditron::transforms
