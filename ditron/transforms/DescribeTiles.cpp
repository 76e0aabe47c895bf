//===- DescribeTiles.cpp - Tiles of dots that come through pointers, as tiles of descriptors ------------------------------===//
//
// A producer warp fetches tiles of tensor descriptors (dgpu-specialize-warps). What a kernel loads through pointers is mostly a tile of a
// matrix, too; here such loads become loads of descriptors, where that is the same and where the producer then fetches them. Works on tile IR, before
// loops are joined and warps are specialised.
//
//   p = a + first * stride + i[:, None] * stride + j[None, :]            becomes
//   for ... iter_args(q = p):                                              u = first * stride / 8
//     dot(load q, ...)                                                     for ... iter_args(v = u):
//     q += 32 * stride                                                       t = descriptor_load d[v >> 20, v & 0xfffff, 0, 0]
//                                                                            dot(reshape t, ...);  v += 32 * stride / 8
//   where d = descriptor of a, sizes [2^31 - 1, 2^20, rows, columns], strides [8 << 20, 8, stride, 1], tiles [1, 1, rows, columns]; elements of 16 bits
//
// The tensor that d describes is no tensor of the kernel's: nobody knows the sizes of those, and where rows end. It is a window of one tile that can
// stand at any multiple of 16 bytes behind the argument; two dimensions of offsets, since one has 32 bits. All of the window lies in the tensor, so
// nothing is padded, and exactly the tile is read.
//
// 1. Which loads: of whole matrices that dots alone use, by addresses (analysis/AffineTiles)
//      base + offset + t * perTurn + i * coefficients[0] + j * coefficients[1]       t: turns of the innermost loop around
//    where base is an argument of the kernel and divisible by 16, one coefficient is 1, and the other one a number or an argument. If it is the first
//    one that is 1, the tile is described as it lies, and transposed.
// 2. The copy engine counts offsets from the base, in 16 bytes: offset and perTurn must be multiples of that, and not negative. Proved term by term, from
//    the divisors of arguments, and with what analysis/AxisInfo.h assumes: arguments and loaded values are not negative. A negative term is made up for
//    by others where it is that of a remainder, x - x / c * c.
// 3. Rows ([N]) beside such tiles, in the body of a loop, that something else than a dot uses: [2^31 - 1, 2^20, N], likewise.
// 4. Only what the producer then fetches: tried on a copy of the kernel, with fewer loads until the plan takes all of them. A kernel stays as it is if the
//    plan has no ring in a loop, rings of one slot where the author wants more, or loses tiles of descriptors that it would fetch without.
// 5. Not fp32 tiles: the copy engine rounds them to tf32 with ties to even, threads away from zero.
//
// The address is an i64 in units of 16 bytes, which the loop carries. Sums of indices do not overflow (analysis/AxisInfo.h), so it is what the kernel's own
// arithmetic, in whatever width, gives.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/DescribeTiles.h"

#include "ditron/transforms/Passes.h"

#include "ditron/analysis/AffineTiles.h"
#include "ditron/analysis/AxisInfo.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/LoopArguments.h"
#include "ditron/transforms/ProgramOrder.h"
#include "ditron/transforms/TensorMaps.h"
#include "ditron/transforms/WarpRings.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_DESCRIBETILES
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;
using analysis::AffineTile;
using analysis::AffineTiles;
using analysis::Polynomial;

namespace {

/// The offset of a window in units, by two dimensions of which the second one has this many bits.
constexpr int lowBits = 20;

bool isArgumentOf(func::FuncOp kernel, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner() == &kernel.getBody().front();
}

/// The one value that the polynomial is; null if it is anything else.
Value singleValue(const Polynomial &polynomial) {
  if (polynomial.products().size() != 1)
    return {};
  const auto &[product, factor] = *polynomial.products().begin();
  return product.size() == 1 && factor == 1 ? product.front() : Value();
}

/// A load that may become one of a descriptor.
struct Candidate {
  tile::LoadOp load;
  AffineTile tile;
  bool isTransposed = false; ///< The first dimension is the contiguous one.

  RankedTensorType type() { return cast<RankedTensorType>(load.getType()); }
  bool isRow() { return type().getRank() == 1; }
  int64_t elementBytes() { return type().getElementTypeBitWidth() / 8; }
  /// Elements in 16 bytes.
  int64_t unit() { return copyAlignmentBytes / elementBytes(); }
  /// Of the dimension that is not contiguous, in elements.
  const Polynomial &stride() const { return tile.coefficients[isTransposed ? 1 : 0]; }
};

//===--------------------------------------------------------------------------------------------------------------===//
// What can be described
//===--------------------------------------------------------------------------------------------------------------===//

/// What is proved of sums of a kernel's scalars.
class AddressFacts {
public:
  AddressFacts(const analysis::AxisInfoAnalysis &axes, AffineTiles &tiles) : axes(axes), tiles(tiles) {}

  /// Each term is a multiple.
  static bool isMultiple(const Polynomial &polynomial, int64_t elements) {
    return llvm::all_of(polynomial.products(), [&](const auto &term) {
      int64_t divisor = std::min(analysis::powerOfTwoDivisor(term.second), elements);
      for (Value scalar : term.first)
        divisor = std::min(divisor * divisorOf(scalar), elements);
      return divisor % elements == 0;
    });
  }

  /// `budget`: how many terms may be replaced on the way.
  bool isNonNegative(const Polynomial &polynomial, int budget = 8) {
    for (const auto &[product, factor] : polynomial.products())
      for (Value scalar : product)
        if (!axes.getAxisInfo(scalar).nonNegative)
          return false;
    for (const auto &[product, factor] : polynomial.products())
      if (factor < 0)
        return budget > 0 && isMadeUpFor(polynomial, product, factor, budget - 1);
    return true;
  }

private:
  /// True if the sum is not negative though this term is: a quotient or remainder in it is replaced by what it is at most.
  ///   q = x / c:  c * q <= x     so  p >= 0  if  c * p + c * f * q * rest - f * x * rest >= 0       for a term -f * q * rest
  ///                                            p + f * c * q * rest - f * x * rest >= 0             for a term -f * c * q * rest
  ///   m = x % c:      m <= x     so  p >= 0  if  p + f * m * rest - f * x * rest >= 0
  bool isMadeUpFor(const Polynomial &p, const Polynomial::Product &product, int64_t factor, int budget) {
    for (auto [index, scalar] : llvm::enumerate(product)) {
      Operation *op = scalar.getDefiningOp();
      if (!isa_and_nonnull<arith::DivSIOp, arith::RemSIOp>(op) || !axes.getAxisInfo(op->getOperand(0)).nonNegative)
        continue;
      const std::optional<AffineTile> dividend = tiles.of(op->getOperand(0)), divisor = tiles.of(op->getOperand(1));
      if (!dividend || !divisor || !dividend->perTurn.isZero())
        continue;
      Polynomial::Product others = product;
      others.erase(others.begin() + index);
      if (isa<arith::RemSIOp>(op)) {
        if (isNonNegative(p - term(product, factor) + dividend->offset * term(others, factor), budget))
          return true;
        continue;
      }
      if (const std::optional<int64_t> number = divisor->offset.constant()) {
        const Polynomial scaled = (p - term(product, factor)) * Polynomial(*number);
        if (*number > 0 && isNonNegative(scaled + dividend->offset * term(others, factor), budget))
          return true;
        continue;
      }
      auto same = llvm::find(others, singleValue(divisor->offset));
      if (same == others.end())
        continue;
      others.erase(same);
      if (isNonNegative(p - term(product, factor) + dividend->offset * term(others, factor), budget))
        return true;
    }
    return false;
  }

  static Polynomial term(const Polynomial::Product &product, int64_t factor) {
    Polynomial result(factor);
    for (Value scalar : product)
      result = result * Polynomial(scalar);
    return result;
  }

  const analysis::AxisInfoAnalysis &axes;
  AffineTiles &tiles;
};

/// Finds the loads of a kernel that can be described.
class Search {
public:
  explicit Search(func::FuncOp kernel) : kernel(kernel), axes(kernel), slice(kernel) {}

  /// In program order, the same for copies of a kernel. `refuse` is told of matrices of dots, and of rows beside such, that cannot be described.
  SmallVector<Candidate> run(llvm::function_ref<void(tile::LoadOp, StringRef)> refuse) {
    SmallVector<Candidate> found;
    llvm::DenseSet<Block *> blocks;
    SmallVector<tile::LoadOp> rows;
    kernel.walk([&](Operation *op) {
      if (isa<tile::DescriptorLoadOp>(op))
        blocks.insert(op->getBlock());
      auto load = dyn_cast<tile::LoadOp>(op);
      auto type = load ? dyn_cast<RankedTensorType>(load.getType()) : RankedTensorType();
      if (!type)
        return;
      if (type.getRank() == 1)
        rows.push_back(load);
      else if (std::optional<SmallVector<tile::DotOp>> dots = dotsOf(load.getResult());
               type.getRank() == 2 && dots && !dots->empty())
        if (add(load, found, refuse))
          blocks.insert(load->getBlock());
    });
    // Outside of loops the threads' own loads cost little: something else is waited for there.
    for (tile::LoadOp row : rows)
      if (blocks.contains(row->getBlock()) && isa<scf::ForOp>(row->getParentOp()))
        add(row, found, refuse);
    return found;
  }

private:
  bool add(tile::LoadOp load, SmallVector<Candidate> &found, llvm::function_ref<void(tile::LoadOp, StringRef)> refuse) {
    Candidate candidate{load, {}};
    std::string reason = whyNot(candidate);
    if (reason.empty())
      found.push_back(std::move(candidate));
    else
      refuse(load, reason);
    return reason.empty();
  }

  std::string whyNot(Candidate &candidate) {
    tile::LoadOp load = candidate.load;
    const Type element = candidate.type().getElementType();
    if (load.getMask())
      return "it has a mask";
    if (load.getIsVolatile() || load.getCache() != tile::CacheModifier::None)
      return "its author says how it goes through the caches";
    if (!element.isIntOrFloat() || !llvm::is_contained({8u, 16u, 32u}, element.getIntOrFloatBitWidth()))
      return "its elements have neither 8 nor 16 nor 32 bits";
    if (!candidate.isRow() && element.isF32())
      return "threads and copies round fp32 to tf32 in different ways";
    auto loop = load->getParentOfType<scf::ForOp>();
    AffineTiles tiles(loop);
    std::optional<AffineTile> tile = tiles.of(load.getPtr());
    if (!tile)
      return "its addresses are not the sum of a place and of a multiple of each index";
    candidate.tile = *tile;
    if (std::string reason = whyNoWindow(candidate); !reason.empty())
      return reason;
    AddressFacts facts(axes, tiles);
    if (std::string reason = whyNoPlace(candidate, facts); !reason.empty())
      return reason;
    return whyNotAhead(candidate);
  }

  /// Whether base and coefficients can stand in a tensor map.
  std::string whyNoWindow(Candidate &candidate) {
    const AffineTile &tile = candidate.tile;
    if (!tile.base || !isArgumentOf(kernel, tile.base))
      return "it does not begin at an argument of the kernel";
    if (divisorOf(tile.base) % copyAlignmentBytes != 0)
      return "the argument it begins at is not known to be divisible by 16";
    const Polynomial one(1);
    if (!(tile.coefficients.back() == one)) {
      if (candidate.isRow() || !(tile.coefficients.front() == one))
        return "neither its rows nor its columns are contiguous";
      candidate.isTransposed = true;
    }
    if (candidate.isRow())
      return {};
    const std::optional<int64_t> number = candidate.stride().constant();
    Value argument = singleValue(candidate.stride());
    if (number ? *number <= 0 : !argument || !isArgumentOf(kernel, argument))
      return "its stride is neither a number nor an argument of the kernel";
    if (!AddressFacts::isMultiple(candidate.stride(), candidate.unit()))
      return "its stride is not known to be a multiple of 16 bytes";
    return {};
  }

  /// Whether the window can stand where the tile begins, in each turn.
  std::string whyNoPlace(Candidate &candidate, AddressFacts &facts) {
    for (const Polynomial *part : {&candidate.tile.offset, &candidate.tile.perTurn}) {
      for (const auto &[product, factor] : part->products())
        for (Value scalar : product)
          // Extensions are not told apart: a byte of 200 is taken for -56.
          if (scalar.getType().isIntOrFloat() && scalar.getType().getIntOrFloatBitWidth() < 32)
            return "its place depends on a narrow integer";
      if (!AddressFacts::isMultiple(*part, candidate.unit()))
        return "it is not known to begin at a multiple of 16 bytes";
      if (!facts.isNonNegative(*part))
        return "it may begin in front of the argument";
    }
    return {};
  }

  /// Whether a producer may fetch it, and can compute its place.
  std::string whyNotAhead(Candidate &candidate) {
    bool mayWait = false;
    kernel.walk([&](dist::WaitOp wait) { mayWait |= mayPrecede(wait, candidate.load); });
    if (mayWait)
      return "a wait before it may be for what it reads";
    if (std::string reason = slice.whyNotAhead(candidate.tile.base, /*readsAfterWait=*/false); !reason.empty())
      return reason;
    ProducerSlice trial = slice; // whatever it finds concerns this load alone
    for (const Polynomial *part : {&candidate.tile.offset, &candidate.tile.perTurn})
      for (const auto &[product, factor] : part->products())
        for (Value scalar : product)
          if (std::string reason = trial.addValue(scalar); !reason.empty())
            return "its place cannot be computed ahead: " + reason;
    if (std::string reason = trial.addControlAround(candidate.load); !reason.empty())
      return "its control flow cannot be run ahead: " + reason;
    return {};
  }

  func::FuncOp kernel;
  analysis::AxisInfoAnalysis axes;
  ProducerSlice slice;
};

//===--------------------------------------------------------------------------------------------------------------===//
// Rewriting
//===--------------------------------------------------------------------------------------------------------------===//

/// Makes loads of descriptors of candidates.
class Rewrite {
public:
  explicit Rewrite(func::FuncOp kernel) : kernel(kernel), dominance(kernel) { numberValues(); }

  /// The new loads, in the order of the candidates.
  SmallVector<tile::DescriptorLoadOp> run(MutableArrayRef<Candidate> candidates) {
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
  Value inUnits(const Polynomial &polynomial, Candidate &candidate) {
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
  void carry(MutableArrayRef<Candidate> candidates, ArrayRef<size_t> members, MutableArrayRef<Place> places) {
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

  tile::DescriptorLoadOp replace(Candidate &candidate, Value place) {
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

  static void replaceMatrix(Candidate &candidate, Value fetched, ArrayRef<int64_t> shape, OpBuilder &builder) {
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
  Value describe(Candidate &candidate, ArrayRef<int64_t> shape, Location loc) {
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
      strides.push_back(number ? number64(*number, builder, loc) : widen(singleValue(stride), builder, loc));
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

//===--------------------------------------------------------------------------------------------------------------===//
// What pays
//===--------------------------------------------------------------------------------------------------------------===//

/// Tries candidates on copies of a kernel.
class Trial {
public:
  Trial(func::FuncOp kernel, int warps, int64_t limitBytes) : kernel(kernel), warps(warps), limitBytes(limitBytes) {
    RingPlan plan(kernel, warps, limitBytes);
    if (plan.servesLoops())
      kernel.walk([&](tile::DescriptorLoadOp load) {
        if (plan.fetches(load))
          fetchedBefore.push_back(load);
      });
  }

  /// Takes those candidates away that would not be fetched; `reasons` says why.
  void reduce(SmallVectorImpl<size_t> &chosen, MutableArrayRef<std::string> reasons) {
    while (!chosen.empty()) {
      const size_t before = chosen.size();
      plan(chosen, reasons);
      if (chosen.size() == before)
        return;
    }
  }

private:
  void plan(SmallVectorImpl<size_t> &chosen, MutableArrayRef<std::string> reasons) {
    auto module = kernel->getParentOfType<ModuleOp>();
    OwningOpRef<ModuleOp> around = ModuleOp::create(module.getLoc());
    (*around)->setAttrs(module->getAttrDictionary());
    IRMapping mapping;
    auto copy = cast<func::FuncOp>(kernel->clone(mapping));
    around->push_back(copy);
    SmallVector<Candidate> all = Search(copy).run([](tile::LoadOp, StringRef) {}), some;
    for (size_t index : chosen)
      some.push_back(all[index]);
    const SmallVector<tile::DescriptorLoadOp> made = Rewrite(copy).run(some);
    RingPlan rings(copy, warps, limitBytes);
    const bool servesLoops = rings.servesLoops();
    const bool losesTiles = llvm::any_of(fetchedBefore, [&](tile::DescriptorLoadOp load) {
      return !rings.fetches(mapping.lookup(load.getOperation()));
    });
    const llvm::DenseSet<Operation *> described(made.begin(), made.end());
    std::string reason;
    if (losesTiles)
      reason = "tiles of descriptors would not be fetched any more";
    else if (!servesLoops)
      reason = "no tile of a loop would be fetched";
    else if (llvm::any_of(rings.rings(), [&](const Ring &ring) { return waitsInEachTurn(ring, described); }))
      reason = "rings of two slots do not fit shared memory";
    SmallVector<size_t> left;
    for (auto [index, load] : llvm::zip_equal(chosen, made)) {
      if (rings.fetches(load) && reason.empty()) {
        left.push_back(index);
        continue;
      }
      reasons[index] = rings.whyNotFetched(load);
      if (reasons[index].empty())
        reasons[index] = reason;
    }
    chosen.assign(left.begin(), left.end());
  }

  /// True for a ring of described tiles that has room for one turn only: the threads' own copies, which run ahead, are better.
  static bool waitsInEachTurn(const Ring &ring, const llvm::DenseSet<Operation *> &described) {
    auto loop = dyn_cast<scf::ForOp>(ring.block->getParentOp());
    return loop && ring.slots == 1 && pipelineStagesOf(loop) > 1 &&
           llvm::any_of(ring.dots, [&](tile::DotOp dot) { return dot->getBlock() == ring.block; }) &&
           llvm::any_of(ring.copies(), [&](Operation *load) { return described.contains(load); });
  }

  func::FuncOp kernel;
  int warps;
  int64_t limitBytes;
  SmallVector<tile::DescriptorLoadOp> fetchedBefore;
};

void describe(func::FuncOp kernel, int warps, int64_t limitBytes, bool isSilent) {
  constexpr auto options = [] { return remark::RemarkOpts::name("describe").category("dgpu-describe-tiles"); };
  const auto refuse = [&](tile::LoadOp load, StringRef reason) {
    if (!isSilent)
      remark::missed(load.getLoc(), options()) << ("the tile comes through pointers: " + reason).str();
  };
  SmallVector<Candidate> candidates = Search(kernel).run(refuse);
  if (candidates.empty())
    return;
  SmallVector<size_t> chosen = llvm::to_vector(llvm::seq(candidates.size()));
  SmallVector<std::string> reasons(candidates.size());
  Trial(kernel, warps, limitBytes).reduce(chosen, reasons);
  SmallVector<Candidate> described;
  for (auto [index, candidate] : llvm::enumerate(candidates)) {
    if (!llvm::is_contained(chosen, index)) {
      refuse(candidate.load, "no producer would fetch it: " + reasons[index]);
      continue;
    }
    described.push_back(candidate);
    if (!isSilent)
      remark::passed(candidate.load.getLoc(), options())
          << (candidate.isRow()        ? "the row is described, and comes with the tiles of its block"
              : candidate.isTransposed ? "the tile is described as it lies, transposed, for a producer to fetch"
                                       : "the tile is described, for a producer to fetch");
  }
  if (!described.empty())
    Rewrite(kernel).run(described);
}

class DescribeTilesPass : public impl::DescribeTilesBase<DescribeTilesPass> {
public:
  using Base::Base;

private:
  void runOnOperation() override { describeTiles(getOperation(), limitBytes, /*isSilent=*/false); }
};

} // namespace

void describeTiles(ModuleOp module, int64_t limitBytes, bool isSilent) {
  if (!hasProducers(module))
    return;
  for (auto kernel : module.getOps<func::FuncOp>())
    if (!kernel.isExternal() && kernel.getBody().hasOneBlock() &&
        kernel.getBody().front().getTerminator()->getNumOperands() == 0)
      describe(kernel, dgpu::numWarpsOf(module), limitBytes, isSilent);
}

} // namespace ditron::transforms
