//===- SkipFactors.cpp - Products with factors that are mostly one --------------------------------------------------------===//
//
// Sums over several turns that follow a running maximum are rescaled in each of them: by 2 to the power of the old maximum less the new one, which
// is one wherever the maximum stands. In a long loop it stands for most rows of most turns, and the sums fill most of a thread's registers. Works on
// what is ready for the lowering, after layouts.
//
//   %m1 = maxnumf %m0, %rows                         becomes     the same
//   %f = exp2 (%m0 - %m1)
//   %s1 = mulf %s0, broadcast %f                                 %s1 = dgpu.scale %s0, broadcast %f
//
// A warp all of whose factors are one then goes on with the sums as they are. A product with one is its other factor, bit for bit, whichever that
// is; so nothing is rounded otherwise.
// 1. Products in a consumer's loop of a tile that was waited for, which stays in its registers either way, with a row or column that is broadcast.
// 2. Factors that are powers of a difference between a value and a maximum of it with others; behind selects and branches it is enough that one
//    way leads to such a maximum.
// 3. A thread has at most `mostFactors`, 16 rows of a warp: of more, some have mostly changed, and the branch keeps the assembler from doing the
//    products beside other work. On an H200 (causal attention, 8192 rows) 16 rows are worth 6 per cent with heads of 64 and 1 with heads of 128;
//    with 32 rows it was 5 per cent slower. At least `leastUses` registers must make use of each.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_SKIPFACTORS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

constexpr int mostFactors = 2, leastUses = 8;

/// True if `value` is a maximum of `other` and something, at least where control takes one of its ways.
bool mayStand(Value value, Value other) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::MaxNumFOp, arith::MaximumFOp>(op))
    return llvm::is_contained(op->getOperands(), other);
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return mayStand(select.getTrueValue(), other) || mayStand(select.getFalseValue(), other);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    const unsigned number = cast<OpResult>(value).getResultNumber();
    return mayStand(branch.thenYield().getOperand(number), other) ||
           mayStand(branch.elseYield().getOperand(number), other);
  }
  return false;
}

/// The row or column that a tile repeats, or null.
Value repeated(Value tile) {
  Operation *op = tile.getDefiningOp();
  bool isBroadcast = false;
  while (isa_and_nonnull<tile::BroadcastOp, tile::ExpandDimsOp, dgpu::ConvertLayoutOp>(op)) {
    isBroadcast |= isa<tile::BroadcastOp>(op);
    tile = op->getOperand(0);
    op = tile.getDefiningOp();
  }
  return isBroadcast ? tile : Value();
}

/// True for a power whose exponent is zero where a maximum stands.
bool isOftenOne(Value factor) {
  Operation *power = factor.getDefiningOp();
  if (!isa_and_nonnull<math::Exp2Op, math::ExpOp>(power))
    return false;
  auto difference = power->getOperand(0).getDefiningOp<arith::SubFOp>();
  return difference && mayStand(difference.getRhs(), difference.getLhs());
}

class SkipFactorsPass : public impl::SkipFactorsBase<SkipFactorsPass> {
  void runOnOperation() override {
    SmallVector<arith::MulFOp> products;
    getOperation().walk([&](arith::MulFOp product) { products.push_back(product); });
    for (arith::MulFOp product : products)
      for (unsigned place : {0, 1})
        if (isWorthwhile(product, place)) {
          OpBuilder builder(product);
          auto scaled = dgpu::ScaleOp::create(builder, product.getLoc(), product.getOperand(place),
                                              product.getOperand(1 - place));
          remark::passed(product.getLoc(), remark::RemarkOpts::name("factors").category("dgpu-skip-factors"))
              << "warps whose factors are all one skip the product";
          product.replaceAllUsesWith(scaled.getResult());
          product.erase();
          break;
        }
  }

  /// `place`: which operand is scaled by the other one.
  static bool isWorthwhile(arith::MulFOp product, unsigned place) {
    auto type = dyn_cast<RankedTensorType>(product.getType());
    if (!type || !type.getElementType().isF32() || !isa<scf::ForOp>(product->getParentOp()) ||
        !product->getParentOfType<dgpu::WarpSpecializeOp>() ||
        !product.getOperand(place).getDefiningOp<dgpu::WarpgroupWaitOp>())
      return false;
    Value row = repeated(product.getOperand(1 - place));
    if (!row || !isOftenOne(row))
      return false;
    const int factors = dgpu::layoutOf(cast<RankedTensorType>(row.getType())).numRegs();
    return factors <= mostFactors && dgpu::layoutOf(type).numRegs() >= leastUses * factors;
  }
};

} // namespace
} // namespace ditron::transforms
