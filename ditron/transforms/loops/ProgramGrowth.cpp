//===- ProgramGrowth.cpp - Which programs of a launch have the most to do -------------------------------------------------===//
//
// See ProgramGrowth.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/loops/ProgramGrowth.h"

#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/Constants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace ditron::transforms {

namespace {

/// What an integer grows by from one program to the next.
struct Slope {
  bool isKnown = false;
  int sign = 0;                  ///< -1, 0 or 1; 0: the same in all programs.
  std::optional<int64_t> number; ///< If it is always the same.

  static Slope unknown() { return {}; }
  static Slope of(int64_t number) { return {true, number < 0 ? -1 : number > 0 ? 1 : 0, number}; }
  static Slope ofSign(int sign) { return sign == 0 ? of(0) : Slope{true, sign, std::nullopt}; }

  bool isZero() const { return isKnown && sign == 0; }
  Slope negated() const { return {isKnown, -sign, number ? std::optional(-*number) : std::nullopt}; }
};

Slope sum(Slope a, Slope b) {
  if (!a.isKnown || !b.isKnown)
    return Slope::unknown();
  if (a.number && b.number)
    return Slope::of(*a.number + *b.number);
  if (a.sign * b.sign < 0)
    return Slope::unknown();
  return Slope::ofSign(a.sign + b.sign < 0 ? -1 : a.sign + b.sign > 0 ? 1 : 0);
}

/// That of one or the other.
Slope either(Slope a, Slope b) {
  if (a.isKnown && b.isKnown && a.number && a.number == b.number)
    return a;
  if (!a.isKnown || !b.isKnown || a.sign * b.sign < 0)
    return Slope::unknown();
  return Slope::ofSign(a.sign != 0 ? a.sign : b.sign);
}

class SlopesAlong {
public:
  explicit SlopesAlong(int axis) : axis(axis) {}

  Slope of(Value value) {
    auto [known, isNew] = slopes.try_emplace(value, Slope::unknown());
    if (!isNew)
      return known->second;
    const Slope slope = derive(value);
    return slopes[value] = slope;
  }

private:
  Slope derive(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return isa<func::FuncOp>(argument.getOwner()->getParentOp()) ? Slope::of(0) : Slope::unknown();
    Operation *op = value.getDefiningOp();
    if (auto program = dyn_cast<tile::ProgramIdOp>(op))
      return Slope::of(program.getAxis() == static_cast<uint32_t>(axis) ? 1 : 0);
    if (op->getNumRegions() != 0)
      return Slope::unknown();
    if (llvm::all_of(op->getOperands(), [&](Value operand) { return of(operand).isZero(); }))
      return Slope::of(0);
    if (isa<arith::AddIOp>(op))
      return sum(of(op->getOperand(0)), of(op->getOperand(1)));
    if (isa<arith::SubIOp>(op))
      return sum(of(op->getOperand(0)), of(op->getOperand(1)).negated());
    if (isa<arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>(op))
      return either(of(op->getOperand(0)), of(op->getOperand(1)));
    if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp, tile::HintOp>(op))
      return of(op->getOperand(0));
    if (auto select = dyn_cast<arith::SelectOp>(op))
      return of(select.getCondition()).isZero() ? either(of(select.getTrueValue()), of(select.getFalseValue()))
                                                : Slope::unknown();
    if (isa<arith::MulIOp>(op))
      for (auto [factor, other] : {std::pair(0, 1), std::pair(1, 0)})
        if (std::optional<int64_t> number = constantOf(op->getOperand(factor)))
          return multiplied(of(op->getOperand(other)), *number);
    if (isa<arith::ShLIOp>(op))
      if (std::optional<int64_t> bits = constantOf(op->getOperand(1)); bits && *bits >= 0 && *bits < 32)
        return multiplied(of(op->getOperand(0)), int64_t(1) << *bits);
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp, arith::ShRSIOp>(op))
      if (std::optional<int64_t> divisor = constantOf(op->getOperand(1)); divisor && *divisor > 0)
        if (const Slope dividend = of(op->getOperand(0)); dividend.isKnown)
          return Slope::ofSign(dividend.sign);
    return Slope::unknown();
  }

  static Slope multiplied(Slope slope, int64_t factor) {
    if (!slope.isKnown)
      return slope;
    if (slope.number)
      return Slope::of(*slope.number * factor);
    return factor < 0 ? slope.negated() : factor > 0 ? slope : Slope::of(0);
  }

  int axis;
  llvm::DenseMap<Value, Slope> slopes;
};

/// True if no branch around the loop is taken by some of the programs only.
bool runsInAllPrograms(scf::ForOp loop, SlopesAlong &slopes) {
  for (auto branch = loop->getParentOfType<scf::IfOp>(); branch; branch = branch->getParentOfType<scf::IfOp>())
    if (!slopes.of(branch.getCondition()).isZero())
      return false;
  return true;
}

} // namespace

std::optional<ProgramGrowth> growthOfPrograms(func::FuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
    loops.push_back(loop);
    return WalkResult::skip();
  });
  ProgramGrowth growth;
  for (int axis = 0; axis < 3; ++axis) {
    SlopesAlong slopes(axis);
    Slope turns = Slope::of(0);
    for (scf::ForOp loop : loops) {
      if (!slopes.of(loop.getStep()).isZero() || !runsInAllPrograms(loop, slopes))
        return std::nullopt;
      Slope ofLoop = sum(slopes.of(loop.getUpperBound()), slopes.of(loop.getLowerBound()).negated());
      // Of loops with different steps only the directions agree.
      turns = sum(turns, ofLoop.isKnown ? Slope::ofSign(ofLoop.sign) : ofLoop);
    }
    if (!turns.isKnown || (turns.sign != 0 && growth.axis))
      return std::nullopt;
    if (turns.sign != 0)
      growth = {axis, turns.sign > 0};
  }
  return growth;
}

} // namespace ditron::transforms
