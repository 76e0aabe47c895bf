//===- TurnTiles.cpp - Loops whose turns go along tiles that follow each other --------------------------------------------===//
//
// See TurnTiles.h.
//
//===--------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/loops/TurnTiles.h"

#include "ditron/transforms/Constants.h"
#include "ditron/transforms/dots/WarpgroupDotRules.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace ditron::transforms {

using analysis::AffineTile;
using analysis::Polynomial;

constexpr int64_t largestStep = 1 << 20; ///< Of a loop's counter: some times as much is still a number of 32 bits.
constexpr int alongRows = 0, alongColumns = 1; ///< Of a matrix.

static int64_t extentOf(Value tile, int dimension) {
  return cast<RankedTensorType>(tile.getType()).getDimSize(dimension);
}

int dimensionOfOperand(OpOperand &operand, int dimension) {
  Operation *op = operand.getOwner();
  if (dimension == asItIs || !isTensor(operand.get()))
    return asItIs;
  if (auto expand = dyn_cast<tile::ExpandDimsOp>(op))
    return dimension < int(expand.getAxis()) ? dimension : dimension - 1;
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return dimension < int(reduce.getAxis()) ? dimension : dimension + 1;
  if (auto transpose = dyn_cast<tile::TransOp>(op))
    return transpose.getOrder()[dimension];
  if (isa<tile::BroadcastOp>(op))
    return extentOf(operand.get(), dimension) == 1 ? asItIs : dimension;
  if (isa<tile::DotOp>(op)) // along its columns
    return operand.getOperandNumber() == 0 ? asItIs : dimension;
  return dimension;
}

bool isInvariant(Value value, scf::ForOp loop) {
  llvm::SetVector<Value> leading;
  leading.insert(value);
  for (size_t index = 0; index < leading.size(); ++index) {
    if (loop.isDefinedOutsideOfLoop(leading[index]))
      continue;
    Operation *op = leading[index].getDefiningOp();
    if (!op || op->getNumRegions() > 0 || !isMemoryEffectFree(op))
      return false;
    leading.insert(op->operand_begin(), op->operand_end());
  }
  return true;
}

/// True for operations that compute each element from the same elements of their operands, and do nothing else. Not for assembly, which takes
/// several elements at a time.
static bool isFunctionOfElements(Operation *op) {
  return (op->hasTrait<OpTrait::Elementwise>() || isa<tile::ExternCallOp>(op)) && op->getNumRegions() == 0 &&
         isMemoryEffectFree(op);
}

/// True if the regions of `op` use values of the body around it.
static bool usesBody(Operation *op, scf::ForOp loop) {
  return op
      ->walk([&](Operation *inner) {
        const bool uses =
            inner != op && llvm::any_of(inner->getOperands(), [&](Value operand) {
              return !loop.isDefinedOutsideOfLoop(operand) && !op->isAncestor(operand.getParentRegion()->getParentOp());
            });
        return uses ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool TurnTiles::refuse(StringRef why) {
  if (reason.empty())
    reason = why.str();
  return false;
}

std::string TurnTiles::find() {
  const int64_t step = constantOf(loop.getStep()).value_or(0);
  if (loop.getUnsignedCmp() || step <= 0 || step > largestStep)
    return "its counter has no sign, or no small positive step that is known";
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (op.getNumRegions() > 0 && !isa<tile::ReduceOp>(op))
      return ("there is control flow in it, of '" + op.getName().getStringRef() + "'").str();
    auto load = dyn_cast<tile::LoadOp>(op);
    if (!isMemoryEffectFree(&op) && (!load || load.getIsVolatile()))
      return ("it has other effects, of '" + op.getName().getStringRef() + "'").str();
  }
  if (!findCarried())
    return reason;
  for (Operation *sum : sums)
    if (sum && (!follows(sum->getOperand(0), alongColumns) || !follows(sum->getOperand(1), alongRows)))
      return reason;
  if (dots.empty())
    refuse("no dot's columns follow the turns");
  return reason;
}

//===--------------------------------------------------------------------------------------------------------------------===//
// What the loop carries
//===--------------------------------------------------------------------------------------------------------------------===//

bool TurnTiles::findCarried() {
  sums.assign(loop.getNumResults(), nullptr);
  amounts.assign(loop.getNumResults(), {});
  for (unsigned carried = 0; carried < loop.getNumResults(); ++carried) {
    const bool isFound = affine.of(loop.getRegionIterArg(carried)) ? findAmount(carried) : findSum(carried);
    if (!isFound)
      return false;
  }
  return rows != 0 || refuse("it carries no sum of dots");
}

/// The order of a sum's addends stays if one dot of a turn adds to it, step by step of K.
bool TurnTiles::findSum(unsigned carried) {
  BlockArgument argument = loop.getRegionIterArg(carried);
  auto dot = loop.getYieldedValues()[carried].getDefiningOp<tile::DotOp>();
  if (!dot || dot.getC() != argument || dot.getA() == argument || dot.getB() == argument || !argument.hasOneUse() ||
      !dot->hasOneUse() || loop.isDefinedOutsideOfLoop(dot))
    return refuse("it carries what is neither the sum of one dot nor moves on by a fixed amount");
  if (std::string why = whyNoWarpgroupDot(dot, warps); !why.empty())
    return refuse("warpgroups cannot add to its sums: " + why);
  if (dot.getMaxImpreciseAcc())
    return refuse("its sums of fp8 are added up exactly at certain elements");
  const int64_t depth = extentOf(dot.getA(), alongColumns);
  if (rows != 0 && rows != depth)
    return refuse("its sums contract tiles of different extents");
  rows = depth;
  sums[carried] = dot;
  return true;
}

/// affine says that it moves on by a fixed amount; here it must also be a number that can be written in front of the loop.
bool TurnTiles::findAmount(unsigned carried) {
  BlockArgument argument = loop.getRegionIterArg(carried);
  Operation *moved = loop.getYieldedValues()[carried].getDefiningOp();
  if (!isa_and_nonnull<tile::AddPtrOp, arith::AddIOp>(moved))
    return refuse("what it moves on by is not added in each turn");
  Value amount = moved->getOperand(moved->getOperand(0) == argument ? 1 : 0);
  const bool isNumber = !isTensor(amount) || amount.getDefiningOp<tile::SplatOp>() || constantOf(amount);
  if (!isNumber || !isInvariant(amount, loop))
    return refuse("what it moves on by is computed in each turn");
  amounts[carried] = amount;
  return true;
}

//===--------------------------------------------------------------------------------------------------------------------===//
// What follows the turns
//===--------------------------------------------------------------------------------------------------------------------===//

bool TurnTiles::isContinued(const AffineTile &tile, int dimension) const {
  return tile.perTurn == Polynomial(rows) * tile.coefficients[dimension];
}

/// Of scalars and of parts of indices: they are computed as they stand, from what the turn that is the first of several begins with.
bool TurnTiles::needWithOperands(Value value, int dimension) {
  if ((dimension == asItIs && loop.isDefinedOutsideOfLoop(value)) || !need.insert({value, dimension}))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  // A part that is negative would become a large number, in one turn and not in another: AffineTiles takes no notice of that.
  if (isa<arith::ExtUIOp>(op) && (dimension != asItIs || !isInvariant(value, loop)))
    return refuse("an index is widened without its sign");
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    return needWithOperands(operand.get(), dimensionOfOperand(operand, dimension));
  });
}

bool TurnTiles::follows(Value value, int dimension) {
  if (!visited.insert({value, dimension}).second)
    return true; // a refusal ends the search
  const Type element = getElementTypeOrSelf(value.getType());
  if (!element.isInteger(1)) // truth values are no indices
    if (std::optional<AffineTile> tile = affine.of(value)) {
      if (!isContinued(*tile, dimension))
        return refuse(tile->perTurn.isZero()
                          ? "a tile varies by itself along the dimension in which turns follow each other"
                          : "a tile does not move by its extent in each turn");
      return needWithOperands(value, dimension);
    }
  need.insert({value, dimension});
  Operation *op = value.getDefiningOp();
  if (!op)
    return refuse("a tile that it carries, or that comes from outside, is used in the turns' dimension");
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto numbers = dyn_cast<SplatElementsAttr>(constant.getValue());
    return numbers || refuse("a constant tile varies along the dimension in which turns follow each other");
  }
  const bool follows = isComparisonOfPlaces(op, dimension) || followsByOperands(op, dimension);
  return follows && reason.empty();
}

/// Both sides are moved on by the same amount if their difference follows the turns, which signed comparisons do not see.
bool TurnTiles::isComparisonOfPlaces(Operation *op, int dimension) {
  auto comparison = dyn_cast<arith::CmpIOp>(op);
  if (!comparison || getElementTypeOrSelf(comparison.getLhs().getType()).isInteger(1))
    return false;
  switch (comparison.getPredicate()) {
  case arith::CmpIPredicate::ult:
  case arith::CmpIPredicate::ule:
  case arith::CmpIPredicate::ugt:
  case arith::CmpIPredicate::uge: return false;
  default: break;
  }
  const std::optional<AffineTile> left = affine.of(comparison.getLhs()), right = affine.of(comparison.getRhs());
  if (!left || !right || !isTensor(comparison.getLhs()))
    return false;
  if (!(left->perTurn - right->perTurn ==
        Polynomial(rows) * (left->coefficients[dimension] - right->coefficients[dimension])))
    return false;
  return needWithOperands(comparison.getLhs(), dimension) && needWithOperands(comparison.getRhs(), dimension);
}

bool TurnTiles::followsByOperands(Operation *op, int dimension) {
  const bool isOutside = loop.isDefinedOutsideOfLoop(op->getResult(0));
  if (isa<tile::LoadOp, tile::DotOp, tile::ReduceOp>(op) && isOutside)
    return refuse("a tile varies by itself along the dimension in which turns follow each other");
  if (auto load = dyn_cast<tile::LoadOp>(op)) {
    std::optional<AffineTile> places = affine.of(load.getPtr());
    if (!places || places->perTurn.isZero())
      return refuse("a load's pointers are not moved on by a fixed amount in each turn");
  } else if (auto dot = dyn_cast<tile::DotOp>(op)) {
    if (std::string why = whyNoWarpgroupDot(dot, warps); !why.empty())
      return refuse("warpgroups cannot do a dot that follows the turns: " + why);
    if (dimension != alongColumns || !isInvariant(dot.getA(), loop))
      return refuse("a dot's rows change from turn to turn");
    dots.push_back(dot);
  } else if (isa<tile::ReduceOp>(op)) {
    if (usesBody(op, loop))
      return refuse("the function of a reduction changes from turn to turn");
  } else if (!isFunctionOfElements(op) &&
             !isa<tile::SplatOp, tile::BroadcastOp, tile::ExpandDimsOp, tile::TransOp>(op)) {
    return refuse(("it is not known how '" + op->getName().getStringRef() + "' follows the turns").str());
  }
  for (OpOperand &operand : op->getOpOperands()) {
    const int along = dimensionOfOperand(operand, dimension);
    if (along != asItIs) {
      if (!follows(operand.get(), along))
        return false;
      continue;
    }
    if (!isInvariant(operand.get(), loop))
      return refuse("what all rows of a tile have in common changes from turn to turn");
    if (!needWithOperands(operand.get(), asItIs))
      return false;
  }
  return true;
}

} // namespace ditron::transforms
