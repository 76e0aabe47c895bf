//===- AffineTiles.cpp - Tiles of integers and pointers as sums over their indices ----------------------------------------===//
//
// See AffineTiles.h.
//
//===--------------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/AffineTiles.h"

#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <algorithm>

using namespace mlir;

namespace ditron::analysis {

//===--------------------------------------------------------------------------------------------------------------===//
// Polynomials
//===--------------------------------------------------------------------------------------------------------------===//

static bool comesBefore(Value a, Value b) { return std::less<>()(a.getAsOpaquePointer(), b.getAsOpaquePointer()); }

bool Polynomial::Order::operator()(const Product &a, const Product &b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), comesBefore);
}

void Polynomial::add(Product product, int64_t factor) {
  if (factor == 0)
    return;
  auto [term, isNew] = terms.try_emplace(std::move(product), factor);
  if (!isNew && (term->second += factor) == 0)
    terms.erase(term);
}

Polynomial Polynomial::operator+(const Polynomial &other) const {
  Polynomial sum = *this;
  for (const auto &[product, factor] : other.terms)
    sum.add(product, factor);
  return sum;
}

Polynomial Polynomial::operator-(const Polynomial &other) const { return *this + other * Polynomial(-1); }

Polynomial Polynomial::operator*(const Polynomial &other) const {
  Polynomial result;
  for (const auto &[product, factor] : terms)
    for (const auto &[otherProduct, otherFactor] : other.terms) {
      Product both;
      std::merge(product.begin(), product.end(), otherProduct.begin(), otherProduct.end(), std::back_inserter(both),
                 comesBefore);
      result.add(std::move(both), factor * otherFactor);
    }
  return result;
}

std::optional<int64_t> Polynomial::constant() const {
  if (terms.empty())
    return 0;
  return terms.size() == 1 && terms.begin()->first.empty() ? std::optional(terms.begin()->second) : std::nullopt;
}

Value Polynomial::scalar() const {
  if (terms.size() != 1)
    return {};
  const auto &[product, factor] = *terms.begin();
  return product.size() == 1 && factor == 1 ? product.front() : Value();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Tiles
//===--------------------------------------------------------------------------------------------------------------===//

bool AffineTile::isUniform() const {
  return llvm::all_of(coefficients, [](const Polynomial &coefficient) { return coefficient.isZero(); });
}

static ArrayRef<int64_t> shapeOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? tensor.getShape() : ArrayRef<int64_t>();
}

/// The same offset everywhere.
static AffineTile uniform(ArrayRef<int64_t> shape, Polynomial offset) {
  return {{}, std::move(offset), SmallVector<Polynomial>(shape.size()), {}, {}};
}

/// A dimension is put in front of `axis`: those from there on come later.
static void insertDimension(MutableArrayRef<IndexLimit> limits, unsigned axis) {
  for (IndexLimit &limit : limits)
    limit.dimension += limit.dimension >= axis;
}

/// `a` with `b`, an integer tile, behind it: of the same shape.
static AffineTile sum(const AffineTile &a, const AffineTile &b, const Polynomial &factor) {
  AffineTile result = a;
  result.offset = a.offset + b.offset * factor;
  result.perTurn = a.perTurn + b.perTurn * factor;
  for (auto [coefficient, other] : llvm::zip_equal(result.coefficients, b.coefficients))
    coefficient = coefficient + other * factor;
  result.limits.append(b.limits);
  return result;
}

static std::optional<AffineTile> product(const AffineTile &a, const AffineTile &b) {
  for (auto [tile, factor] : {std::pair(&a, &b), std::pair(&b, &a)})
    if (factor->isUniform() && factor->perTurn.isZero() && factor->limits.empty()) {
      AffineTile result = *tile;
      result.offset = tile->offset * factor->offset;
      result.perTurn = tile->perTurn * factor->offset;
      for (Polynomial &coefficient : result.coefficients)
        coefficient = coefficient * factor->offset;
      return result;
    }
  return std::nullopt;
}

std::optional<AffineTile> AffineTiles::of(Value value) {
  auto [entry, isNew] = known.try_emplace(value, std::nullopt); // what a loop carries does not help to explain itself
  if (!isNew)
    return entry->second;
  Type element = getElementTypeOrSelf(value.getType());
  std::optional<AffineTile> tile;
  if (isa<IntegerType, IndexType, tile::PointerType>(element))
    tile = derive(value);
  return known[value] = tile;
}

std::optional<AffineTile> AffineTiles::symbol(Value scalar) {
  if (isa<RankedTensorType>(scalar.getType()) || (loop && !loop.isDefinedOutsideOfLoop(scalar)))
    return std::nullopt;
  if (isa<tile::PointerType>(scalar.getType()))
    return AffineTile{scalar, {}, {}, {}, {}};
  return AffineTile{{}, Polynomial(scalar), {}, {}, {}};
}

std::optional<AffineTile> AffineTiles::ofArgument(BlockArgument argument) {
  auto around = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  if (!around || around != loop)
    return symbol(argument);
  if (argument == loop.getInductionVar()) {
    std::optional<AffineTile> first = of(loop.getLowerBound()), step = of(loop.getStep());
    if (!first || !step)
      return std::nullopt;
    first->perTurn = step->offset;
    return first;
  }
  // Carried: moved on by the same amount everywhere and in each turn.
  Operation *moved = loop.getTiedLoopYieldedValue(argument)->get().getDefiningOp();
  Value by;
  if (isa_and_nonnull<tile::AddPtrOp, arith::AddIOp>(moved) && moved->getOperand(0) == argument)
    by = moved->getOperand(1);
  else if (isa_and_nonnull<arith::AddIOp>(moved) && moved->getOperand(1) == argument)
    by = moved->getOperand(0);
  if (!by)
    return std::nullopt;
  std::optional<AffineTile> first = of(loop.getTiedLoopInit(argument)->get()), step = of(by);
  if (!first || !step || !step->isUniform() || !step->perTurn.isZero() || !step->limits.empty())
    return std::nullopt;
  first->perTurn = step->offset;
  return first;
}

std::optional<AffineTile> AffineTiles::derive(Value value) {
  const ArrayRef<int64_t> shape = shapeOf(value);
  if (llvm::APInt number; matchPattern(value, m_ConstantInt(&number)))
    return uniform(shape, Polynomial(number.getSExtValue()));
  if (auto argument = dyn_cast<BlockArgument>(value))
    return ofArgument(argument);
  Operation *op = value.getDefiningOp();
  const auto operand = [&](unsigned index) { return of(op->getOperand(index)); };
  if (auto range = dyn_cast<tile::ArangeOp>(op)) {
    AffineTile tile = uniform(shape, Polynomial(int64_t(range.getStart())));
    if (shape.front() > 1)
      tile.coefficients.front() = Polynomial(1);
    return tile;
  }
  if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::IndexCastOp, tile::HintOp>(op)) {
    if (getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1))
      return symbol(value);
    return operand(0);
  }
  if (isa<tile::SplatOp>(op)) {
    std::optional<AffineTile> tile = operand(0);
    if (tile)
      tile->coefficients.resize(shape.size());
    return tile;
  }
  if (isa<tile::BroadcastOp>(op))
    return operand(0); // what is of extent 1 has the coefficient 0
  if (auto expand = dyn_cast<tile::ExpandDimsOp>(op)) {
    std::optional<AffineTile> tile = operand(0);
    if (tile) {
      tile->coefficients.insert(tile->coefficients.begin() + expand.getAxis(), Polynomial());
      insertDimension(tile->limits, expand.getAxis());
    }
    return tile;
  }
  if (auto transpose = dyn_cast<tile::TransOp>(op)) {
    std::optional<AffineTile> tile = operand(0);
    if (!tile)
      return tile;
    AffineTile permuted = *tile;
    for (auto [to, from] : llvm::enumerate(transpose.getOrder())) {
      permuted.coefficients[to] = tile->coefficients[from];
      for (auto [was, limit] : llvm::zip_equal(tile->limits, permuted.limits))
        if (was.dimension == unsigned(from))
          limit.dimension = to;
    }
    return permuted;
  }
  if (isa<arith::AddIOp, arith::SubIOp, tile::AddPtrOp>(op)) {
    std::optional<AffineTile> a = operand(0), b = operand(1);
    if (a && b)
      return sum(*a, *b, Polynomial(isa<arith::SubIOp>(op) ? -1 : 1));
  }
  if (isa<arith::MulIOp>(op)) {
    std::optional<AffineTile> a = operand(0), b = operand(1);
    if (a && b)
      if (std::optional<AffineTile> result = product(*a, *b))
        return result;
  }
  if (mayWrap && isa<RankedTensorType>(value.getType()) && isa<arith::RemSIOp, arith::SelectOp>(op))
    return wrapped(op);
  return symbol(value);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Limits
//===--------------------------------------------------------------------------------------------------------------===//

/// i + t * perTurn < room where smaller < larger, if one index decides.
static std::optional<IndexLimit> limitWhere(const AffineTile &smaller, const AffineTile &larger) {
  if (smaller.base || larger.base || !smaller.limits.empty() || !larger.limits.empty())
    return std::nullopt;
  const AffineTile difference = sum(smaller, larger, Polynomial(-1));
  std::optional<IndexLimit> limit;
  for (auto [dimension, coefficient] : llvm::enumerate(difference.coefficients)) {
    if (coefficient.isZero())
      continue;
    if (limit || !(coefficient == Polynomial(1)))
      return std::nullopt;
    limit = {unsigned(dimension), Polynomial(0) - difference.offset, difference.perTurn};
  }
  return limit;
}

std::optional<AffineTile> AffineTiles::wrapped(Operation *op) {
  std::optional<AffineTile> tile;
  std::optional<IndexLimit> limit;
  if (isa<arith::RemSIOp>(op)) {
    std::optional<AffineTile> bound = of(op->getOperand(1));
    tile = of(op->getOperand(0));
    if (tile && bound && (bound->offset.scalar() || bound->offset.constant()) && bound->perTurn.isZero())
      limit = limitWhere(*tile, *bound);
  } else {
    tile = of(op->getOperand(1));
    if (auto comparison = op->getOperand(0).getDefiningOp<arith::CmpIOp>())
      limit = limitOf(comparison);
  }
  if (!tile || !limit)
    return std::nullopt;
  tile->limits.push_back(*limit);
  return tile;
}

std::optional<IndexLimit> AffineTiles::limitOf(arith::CmpIOp comparison) {
  using Predicate = arith::CmpIPredicate;
  const Predicate predicate = comparison.getPredicate();
  const bool isTurned = predicate == Predicate::sgt || predicate == Predicate::sge;
  if (!isTurned && predicate != Predicate::slt && predicate != Predicate::sle)
    return std::nullopt;
  if (!isa<RankedTensorType>(comparison.getLhs().getType()))
    return std::nullopt;
  const std::optional<AffineTile> left = of(comparison.getLhs()), right = of(comparison.getRhs());
  if (!left || !right)
    return std::nullopt;
  std::optional<IndexLimit> limit = isTurned ? limitWhere(*right, *left) : limitWhere(*left, *right);
  if (limit && (predicate == Predicate::sle || predicate == Predicate::sge))
    limit->room = limit->room + Polynomial(1);
  return limit;
}

std::optional<SmallVector<IndexLimit>> AffineTiles::limitsOf(Value mask) {
  Operation *op = mask.getDefiningOp();
  if (isa_and_nonnull<arith::AndIOp>(op)) {
    std::optional<SmallVector<IndexLimit>> left = limitsOf(op->getOperand(0)), right = limitsOf(op->getOperand(1));
    if (!left || !right)
      return std::nullopt;
    left->append(*right);
    return left;
  }
  if (isa_and_nonnull<tile::BroadcastOp>(op))
    return limitsOf(op->getOperand(0)); // an extent of 1 has no limits of its own
  if (auto expand = dyn_cast_or_null<tile::ExpandDimsOp>(op)) {
    std::optional<SmallVector<IndexLimit>> limits = limitsOf(op->getOperand(0));
    if (limits)
      insertDimension(*limits, expand.getAxis());
    return limits;
  }
  if (auto comparison = dyn_cast_or_null<arith::CmpIOp>(op))
    if (std::optional<IndexLimit> limit = limitOf(comparison))
      return SmallVector<IndexLimit>{*limit};
  return std::nullopt;
}

} // namespace ditron::analysis
