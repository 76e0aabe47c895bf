//===- OrderReductions.cpp - Reductions that must keep the order of their elements ----------------------------------------===//
//
// The pass tile-order-reductions. Combining what is nearest first is cheap and reorders the elements. Named reductions allow that,
// and so do nearly all functions of users, but whether an arbitrary function commutes cannot be read off its text (Welford's does,
// up to rounding). So the function is tried: constant folding evaluates it on pairs of small numbers, in both orders. A pair that
// gives something else the other way round proves that order matters; equal numbers are among them since many functions differ
// in what they do with a tie only.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/tile/Tile.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"

#include <array>
#include <cmath>
#include <optional>
#include <random>

namespace ditron::transforms {
#define GEN_PASS_DEF_ORDERREDUCTIONS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

using Numbers = SmallVector<Attribute>;

/// Evaluates a combine region by constant folding.
class Trial {
public:
  /// `reduce` is not changed: folding may rewrite an operation, so that a copy is folded.
  explicit Trial(tile::ReduceOp reduce) : copy(reduce->clone()), block(copy->getRegion(0).front()) {}
  ~Trial() { copy->destroy(); }

  /// What the region yields; nullopt if that cannot be folded.
  std::optional<Numbers> apply(ArrayRef<Attribute> left, ArrayRef<Attribute> right) {
    known.clear();
    for (auto [argument, value] : llvm::zip_equal(block.getArguments(), llvm::concat<const Attribute>(left, right)))
      known[argument] = value;
    for (Operation &op : block.without_terminator())
      if (!fold(op))
        return std::nullopt;
    Numbers results;
    for (Value yielded : block.getTerminator()->getOperands())
      results.push_back(valueOf(yielded));
    return llvm::is_contained(results, Attribute()) ? std::nullopt : std::optional(std::move(results));
  }

private:
  Attribute valueOf(Value value) {
    if (Attribute found = known.lookup(value))
      return found;
    Attribute constant;
    return matchPattern(value, m_Constant(&constant)) ? constant : Attribute();
  }

  bool fold(Operation &op) {
    Numbers operands = llvm::map_to_vector(op.getOperands(), [&](Value operand) { return valueOf(operand); });
    SmallVector<OpFoldResult> results;
    if (op.getNumRegions() != 0 || failed(op.fold(operands, results)) || results.size() != op.getNumResults())
      return false;
    for (auto [result, folded] : llvm::zip_equal(op.getResults(), results)) {
      auto value = dyn_cast<Value>(folded);
      Attribute number = value ? valueOf(value) : cast<Attribute>(folded);
      if (!number)
        return false;
      known[result] = number;
    }
    return true;
  }

  Operation *copy;
  Block &block;
  DenseMap<Value, Attribute> known;
};

/// A small number of a type; null if the type has none.
Attribute numberOf(Type type, std::mt19937 &random) {
  static constexpr std::array values{0.5, 1.0, 2.0, 3.0};
  const double value = values[random() % values.size()];
  if (auto floating = dyn_cast<FloatType>(type))
    return FloatAttr::get(floating, value);
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerAttr::get(integer, integer.getWidth() == 1 ? value > 1.0 : static_cast<int64_t>(value));
  return {};
}

/// True unless the numbers differ by no more than their rounding can explain, or are no numbers.
bool differ(Attribute a, Attribute b) {
  auto left = dyn_cast<FloatAttr>(a), right = dyn_cast<FloatAttr>(b);
  if (!left || !right)
    return a != b;
  const double x = left.getValueAsDouble(), y = right.getValueAsDouble();
  constexpr double tolerance = 0.05;
  return std::abs(x - y) > tolerance * (std::abs(x) + std::abs(y)); // false for NaN
}

/// True if some pair of operands proves that the region does not commute.
bool mattersWhichIsLeft(tile::ReduceOp reduce) {
  Trial trial(reduce);
  std::mt19937 random(1);
  constexpr int trials = 48;
  for (int round = 0; round < trials; ++round) {
    Numbers sides[2];
    for (Numbers &side : sides)
      for (Value source : reduce.getSources())
        side.push_back(numberOf(tile::elementTypeOf(source.getType()), random));
    if (llvm::is_contained(sides[0], Attribute()))
      return false;
    std::optional<Numbers> forth = trial.apply(sides[0], sides[1]), back = trial.apply(sides[1], sides[0]);
    if (!forth || !back)
      return false;
    for (auto [a, b] : llvm::zip_equal(*forth, *back))
      if (differ(a, b))
        return true;
  }
  return false;
}

struct OrderReductionsPass : public impl::OrderReductionsBase<OrderReductionsPass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([&](tile::ReduceOp reduce) {
      if (reduce.getOrdering())
        return;
      if (strict) {
        reduce.setOrdering(tile::ReductionOrdering::InnerTree);
      } else if (mattersWhichIsLeft(reduce)) {
        reduce.setOrdering(tile::ReductionOrdering::InnerTree);
        remark::analysis(reduce.getLoc(), remark::RemarkOpts::name("order").category("tile-order-reductions"))
            << "keeps the order of the elements: the combine function gives something else when its operands are "
               "exchanged";
      }
    });
  }
};

} // namespace
} // namespace ditron::transforms
