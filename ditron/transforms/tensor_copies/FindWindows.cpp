//===- FindWindows.cpp - Which tiles of pointers can be windows of a tensor map --------------------------------------===//
//
// See TileWindows.h, and DescribeTiles.cpp for the rules.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/AxisInfo.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/transforms/ProgramOrder.h"
#include "ditron/transforms/tensor_copies/NeededRows.h"
#include "ditron/transforms/tensor_copies/TileWindows.h"
#include "ditron/transforms/warps/WarpRings.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace ditron::transforms {

using namespace mlir;
using analysis::AffineTile;
using analysis::AffineTiles;
using analysis::IndexLimit;
using analysis::Polynomial;

namespace {

bool isArgumentOf(func::FuncOp kernel, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner() == &kernel.getBody().front();
}

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
  bool isNonNegative(const Polynomial &polynomial, int budget = 8) const {
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
  bool isMadeUpFor(const Polynomial &p, const Polynomial::Product &product, int64_t factor, int budget) const {
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
      auto same = llvm::find(others, divisor->offset.scalar());
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

  std::vector<WindowLoad> run(llvm::function_ref<void(tile::LoadOp, StringRef)> refuse) {
    std::vector<WindowLoad> found;
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
  bool add(tile::LoadOp load, std::vector<WindowLoad> &found,
           llvm::function_ref<void(tile::LoadOp, StringRef)> refuse) {
    WindowLoad candidate{load, {}};
    std::string reason = whyNot(candidate);
    if (reason.empty())
      found.push_back(std::move(candidate));
    else
      refuse(load, reason);
    return reason.empty();
  }

  std::string whyNot(WindowLoad &candidate) {
    tile::LoadOp load = candidate.load;
    const Type element = candidate.type().getElementType();
    if (load.getMask() && candidate.isRow())
      return "it has a mask";
    if (load.getMask() && load.getOther() && !matchPattern(load.getOther(), m_AnyZeroFloat()) &&
        !matchPattern(load.getOther(), m_Zero()))
      return "outside of its mask is something else than zero";
    if (load.getIsVolatile() || load.getCache() != tile::CacheModifier::None)
      return "its author says how it goes through the caches";
    if (!element.isIntOrFloat() || !llvm::is_contained({8u, 16u, 32u}, element.getIntOrFloatBitWidth()))
      return "its elements have neither 8 nor 16 nor 32 bits";
    if (!candidate.isRow() && element.isF32())
      return "threads and copies round fp32 to tf32 in different ways";
    auto loop = load->getParentOfType<scf::ForOp>();
    AffineTiles tiles(loop, /*mayWrap=*/!candidate.isRow());
    std::optional<AffineTile> tile = tiles.of(load.getPtr());
    if (!tile)
      return "its addresses are not the sum of a place and of a multiple of each index";
    candidate.tile = *tile;
    if (std::string reason = whyNoWindow(candidate); !reason.empty())
      return reason;
    AddressFacts facts(axes, tiles);
    if (std::string reason = whyNoEnds(candidate, tiles, facts); !reason.empty())
      return reason;
    if (std::string reason = whyNoPlace(candidate, facts); !reason.empty())
      return reason;
    return whyNotAhead(candidate);
  }

  /// Whether what the mask says, and how far rows are where they seem to be, are ends of dimensions.
  std::string whyNoEnds(WindowLoad &candidate, AffineTiles &tiles, const AddressFacts &facts) {
    candidate.ends.resize(candidate.type().getRank());
    SmallVector<IndexLimit> limits;
    if (Value mask = candidate.load.getMask()) {
      std::optional<SmallVector<IndexLimit>> said = tiles.limitsOf(mask);
      if (!said)
        return "its mask says more than where an index ends";
      limits = *said;
    }
    for (const IndexLimit &limit : candidate.tile.limits) {
      if (llvm::is_contained(limits, limit))
        continue;
      if (!isNeededBelow(candidate.load.getResult(), limit))
        return "what it reads of other rows, behind the last one, may be used";
      limits.push_back(limit);
    }
    for (const IndexLimit &limit : limits) {
      std::optional<WindowEnd> end = endOf(limit, facts), &known = candidate.ends[limit.dimension];
      if (!end)
        return "where an index begins or ends is not known to be at an id or a counter, and at a number or an argument "
               "of the kernel";
      if (known && !(*known == *end))
        return "an index has two ends";
      known = end;
    }
    for (auto [end, coefficient] : llvm::zip_equal(candidate.ends, candidate.tile.coefficients))
      if (end) {
        candidate.tile.offset = candidate.tile.offset - end->start * coefficient;
        candidate.tile.perTurn = candidate.tile.perTurn - end->perTurn * coefficient;
      }
    return {};
  }

  /// The end is a term of the limit such that the rest is a start, which is not negative.
  std::optional<WindowEnd> endOf(const IndexLimit &limit, const AddressFacts &facts) {
    if (!facts.isNonNegative(limit.perTurn) || hasGivenTerm(limit.perTurn))
      return std::nullopt;
    SmallVector<WindowEnd> ends; // in the order of arguments, the number at last
    for (BlockArgument argument : kernel.getArguments())
      if (argument.getType().isSignlessInteger(32))
        if (auto term = limit.room.products().find({argument});
            term != limit.room.products().end() && term->second == 1)
          ends.push_back({argument, 0, Polynomial(Value(argument)) - limit.room, limit.perTurn});
    if (auto term = limit.room.products().find({});
        term != limit.room.products().end() && term->second > 0 && term->second <= std::numeric_limits<int32_t>::max())
      ends.push_back({{}, term->second, Polynomial(term->second) - limit.room, limit.perTurn});
    for (WindowEnd &end : ends)
      if (facts.isNonNegative(end.start) && !hasGivenTerm(end.start)) {
        end.isWide = hasWideScalar(end.start) || hasWideScalar(end.perTurn);
        return end;
      }
    return std::nullopt;
  }

  /// True for what follows from arguments and memory alone, without an id or a counter: it is not negative by convention only (analysis/AxisInfo.h). In
  /// front of a tensor zeros would be read, where a kernel that is given such a number means what lies there.
  static bool isGiven(Value value) {
    llvm::SetVector<Value> behind; // each once: what is used twice at each step would be looked at in so many ways
    behind.insert(value);
    for (size_t next = 0; next < behind.size(); ++next) {
      if (auto argument = dyn_cast<BlockArgument>(behind[next])) {
        if (!isa<func::FuncOp>(argument.getOwner()->getParentOp()))
          return false;
        continue;
      }
      Operation *op = behind[next].getDefiningOp();
      if (isa<tile::LoadOp>(op) || matchPattern(op, m_Constant()))
        continue;
      if (op->getNumOperands() == 0)
        return false;
      behind.insert(op->operand_begin(), op->operand_end());
    }
    return true;
  }
  static bool hasGivenTerm(const Polynomial &polynomial) {
    return llvm::any_of(polynomial.products(),
                        [](const auto &term) { return !term.first.empty() && llvm::all_of(term.first, isGiven); });
  }
  static bool hasWideScalar(const Polynomial &polynomial) {
    return llvm::any_of(polynomial.products(), [](const auto &term) {
      return llvm::any_of(term.first, [](Value scalar) { return !scalar.getType().isSignlessInteger(32); });
    });
  }

  /// Whether base and coefficients can stand in a tensor map.
  std::string whyNoWindow(WindowLoad &candidate) {
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
    Value argument = candidate.stride().scalar();
    if (number ? *number <= 0 : !argument || !isArgumentOf(kernel, argument))
      return "its stride is neither a number nor an argument of the kernel";
    if (!AddressFacts::isMultiple(candidate.stride(), candidate.unit()))
      return "its stride is not known to be a multiple of 16 bytes";
    return {};
  }

  /// Whether the window can stand where the tile begins, in each turn.
  std::string whyNoPlace(WindowLoad &candidate, AddressFacts &facts) {
    for (const Polynomial *part : partsOf(candidate))
      for (const auto &[product, factor] : part->products())
        for (Value scalar : product)
          // Extensions are not told apart: a byte of 200 is taken for -56.
          if (scalar.getType().isIntOrFloat() && scalar.getType().getIntOrFloatBitWidth() < 32)
            return "its place depends on a narrow integer";
    if (const std::optional<WindowEnd> &end =
            candidate.ends[candidate.isTransposed ? 0 : candidate.type().getRank() - 1])
      if (!AddressFacts::isMultiple(end->start, candidate.unit()) ||
          !AddressFacts::isMultiple(end->perTurn, candidate.unit()))
        return "it is not known to begin at a multiple of 16 bytes";
    for (const Polynomial *part : {&candidate.tile.offset, &candidate.tile.perTurn}) {
      if (!AddressFacts::isMultiple(*part, candidate.unit()))
        return "it is not known to begin at a multiple of 16 bytes";
      if (!facts.isNonNegative(*part))
        return "it may begin in front of the argument";
    }
    return {};
  }

  /// All sums that the producer has to compute.
  static SmallVector<const Polynomial *> partsOf(const WindowLoad &candidate) {
    SmallVector<const Polynomial *> parts{&candidate.tile.offset, &candidate.tile.perTurn};
    for (const std::optional<WindowEnd> &end : candidate.ends)
      if (end)
        parts.append({&end->start, &end->perTurn});
    return parts;
  }

  /// Whether a producer may fetch it, and can compute its place.
  std::string whyNotAhead(WindowLoad &candidate) {
    bool mayWait = false;
    kernel.walk([&](dist::WaitOp wait) { mayWait |= mayPrecede(wait, candidate.load); });
    if (mayWait)
      return "a wait before it may be for what it reads";
    bool mayMeet = false; // what other arguments are for is not known: two may be one tensor
    kernel.walk([&](dist::SyncThreadsOp barrier) { mayMeet |= mayPrecede(barrier, candidate.load); });
    if (mayMeet)
      return "a barrier before it may be for what it reads";
    if (std::string reason = slice.whyNotAhead(candidate.load, candidate.tile.base, /*readsAfterWait=*/false);
        !reason.empty())
      return reason;
    ProducerSlice trial = slice; // whatever it finds concerns this load alone
    for (const Polynomial *part : partsOf(candidate))
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

} // namespace

std::vector<WindowLoad> findWindows(func::FuncOp kernel, llvm::function_ref<void(tile::LoadOp, StringRef)> refuse) {
  return Search(kernel).run(refuse);
}

} // namespace ditron::transforms
