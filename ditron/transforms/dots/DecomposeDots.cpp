//===- DecomposeDots.cpp - Dots that no instruction does as they stand ----------------------------------------------------===//
//
// Rewrites dots, before anything else looks at them, into dots that the hardware has:
//
// 1. A batch of one is a plain product.
// 2. fp32 operands with precision tf32x3, bf16x3 or bf16x6 are split into pieces of few bits, and the products of pieces that
//    matter are added, the smallest first:
//      a = a0 + a1,  b = b0 + b1       a * b ~ a1 * b0 + a0 * b1 + a0 * b0              (a1 * b1 is below the result's last bit)
//    Where the small products are NaN (an infinity less itself) they count as zero, since a0 * b0 says what the result is.
//    Tiles too small for tensor cores are multiplied in fp32, which is at least as precise.
// 3. Dots of multiply-adds keep all of K of their operands in registers: those that would need too many are cut along K.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/dots/DotLayouts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

namespace ditron::transforms {
#define GEN_PASS_DEF_DECOMPOSEDOTS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// 32-bit registers that an operand of a multiply-add dot may take of a thread.
constexpr int64_t mostOperandRegisters = 256;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Rewrites one dot.
class DotDecomposition {
public:
  explicit DotDecomposition(tile::DotOp dot) : dot(dot), builder(dot), loc(dot.getLoc()) {}

  /// A product of matrices instead of a batch of one; the new dot.
  tile::DotOp dropBatch() {
    auto matrix = [&](Value value) -> Value {
      RankedTensorType type = typeOf(value);
      return tile::ReshapeOp::create(builder, loc, RankedTensorType::get(type.getShape().drop_front(), type.getElementType()),
                                     value);
    };
    tile::DotOp flat = product(matrix(dot.getA()), matrix(dot.getB()), matrix(dot.getC()));
    flat->setAttrs(dot->getAttrs());
    replaceBy(tile::ReshapeOp::create(builder, loc, dot.getType(), flat.getResult()));
    return flat;
  }

  /// The products of two or three pieces of each operand. `isTf32`: pieces are fp32 numbers with 10 fraction bits, else bf16.
  void splitPrecision(bool isTf32, int pieces) {
    const SmallVector<Value> a = piecesOf(dot.getA(), isTf32, pieces), b = piecesOf(dot.getB(), isTf32, pieces);
    Value sum = constantLike(dot.getC(), 0);
    // Products of the pieces i and j with i + j = order, the small ones first; order pieces and more are lost.
    const int smallest = pieces == 2 ? 1 : 2;
    for (int order = smallest; order > 0; --order)
      for (int i = order; i >= 0; --i)
        sum = product(a[i], b[order - i], sum).getResult();
    Value isNumber = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::ORD, sum, sum);
    sum = arith::SelectOp::create(builder, loc, isNumber, sum, constantLike(sum, 0));
    sum = product(a[0], b[0], sum).getResult();
    replaceBy(arith::AddFOp::create(builder, loc, sum, dot.getC()));
  }

  /// Two dots of half the depth.
  std::pair<tile::DotOp, tile::DotOp> halveDepth() {
    const int64_t rank = typeOf(dot.getA()).getRank();
    auto [a0, a1] = halves(dot.getA(), rank - 1);
    auto [b0, b1] = halves(dot.getB(), rank - 2);
    tile::DotOp first = product(a0, b0, dot.getC()), second = product(a1, b1, first.getResult());
    first.setPrecision(dot.getPrecision());
    second.setPrecision(dot.getPrecision());
    replaceBy(second.getResult());
    return {first, second};
  }

private:
  tile::DotOp product(Value a, Value b, Value c) {
    return tile::DotOp::create(builder, loc, c.getType(), a, b, c, tile::DotPrecision::TF32, IntegerAttr());
  }

  void replaceBy(Value value) {
    dot.getResult().replaceAllUsesWith(value);
    dot.erase();
  }

  Value constantLike(Value value, double number) {
    auto type = typeOf(value);
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), number)));
  }

  /// The value as a sum of numbers with few bits each, the largest first.
  SmallVector<Value> piecesOf(Value value, bool isTf32, int count) {
    SmallVector<Value> pieces;
    Value rest = value;
    for (int i = 0; i < count; ++i) {
      Value wide;
      if (isTf32) {
        RankedTensorType words = typeOf(value).clone(builder.getI32Type());
        Value bits = arith::BitcastOp::create(builder, loc, words, rest);
        Value mask = arith::ConstantOp::create(
            builder, loc, DenseElementsAttr::get(words, builder.getI32IntegerAttr(static_cast<int32_t>(0xffffe000u))));
        wide = arith::BitcastOp::create(builder, loc, value.getType(),
                                        arith::AndIOp::create(builder, loc, bits, mask).getResult());
        pieces.push_back(wide);
      } else {
        Value narrow =
            arith::TruncFOp::create(builder, loc, typeOf(value).clone(builder.getBF16Type()), rest);
        pieces.push_back(narrow);
        wide = arith::ExtFOp::create(builder, loc, value.getType(), narrow);
      }
      if (i + 1 < count)
        rest = arith::SubFOp::create(builder, loc, rest, wide);
    }
    return pieces;
  }

  /// The lower and the upper half of a tensor along a dimension.
  std::pair<Value, Value> halves(Value value, int64_t axis) {
    RankedTensorType type = typeOf(value);
    SmallVector<int64_t> shape(type.getShape());
    SmallVector<int64_t> cut(shape);
    cut[axis] /= 2;
    cut.insert(cut.begin() + axis, 2);
    Value paired = tile::ReshapeOp::create(builder, loc, type.clone(cut), value);
    SmallVector<int32_t> order;
    SmallVector<int64_t> moved;
    for (int64_t dim = 0; dim < static_cast<int64_t>(cut.size()); ++dim)
      if (dim != axis) {
        order.push_back(static_cast<int32_t>(dim));
        moved.push_back(cut[dim]);
      }
    order.push_back(static_cast<int32_t>(axis));
    moved.push_back(2);
    Value last = tile::TransOp::create(builder, loc, type.clone(moved), paired, order);
    shape[axis] /= 2;
    auto split = tile::SplitOp::create(builder, loc, TypeRange{type.clone(shape), type.clone(shape)}, last);
    return {split.getLhs(), split.getRhs()};
  }

  tile::DotOp dot;
  OpBuilder builder;
  Location loc;
};

/// Rewrites all dots of a module.
class DecomposeDotsPass : public impl::DecomposeDotsBase<DecomposeDotsPass> {
public:
  void runOnOperation() override {
    SmallVector<tile::DotOp> dots;
    getOperation().walk([&](tile::DotOp dot) { dots.push_back(dot); });
    for (tile::DotOp dot : dots)
      decompose(dot);
    dots.clear();
    getOperation().walk([&](tile::DotOp dot) { dots.push_back(dot); });
    for (tile::DotOp dot : dots)
      cut(dot);
  }

private:
  void decompose(tile::DotOp dot) {
    if (typeOf(dot.getA()).getRank() == 3 && typeOf(dot.getA()).getDimSize(0) == 1)
      dot = DotDecomposition(dot).dropBatch();
    RankedTensorType a = typeOf(dot.getA()), c = typeOf(dot.getC());
    const int64_t rank = a.getRank(), m = c.getDimSize(rank - 2), n = c.getDimSize(rank - 1), k = a.getDimSize(rank - 1);
    const tile::DotPrecision precision = dot.getPrecision();
    if (!a.getElementType().isF32() || precision == tile::DotPrecision::TF32 || precision == tile::DotPrecision::IEEE)
      return;
    const bool isTf32 = precision == tile::DotPrecision::TF32x3;
    if (m < 16 || n < 8 || k < (isTf32 ? 8 : 16))
      return dot.setPrecision(tile::DotPrecision::IEEE);
    DotDecomposition(dot).splitPrecision(isTf32, precision == tile::DotPrecision::BF16x6 ? 3 : 2);
  }

  /// Cuts a dot of multiply-adds until its operands fit.
  void cut(tile::DotOp dot) {
    const DotChoice choice =
        chooseDotLayouts(dot, dgpu::threadsPerWarpOf(getOperation()), dgpu::numWarpsOf(getOperation()));
    RankedTensorType a = typeOf(dot.getA());
    const int64_t words = std::max<int64_t>(1, typeOf(dot.getC()).getElementTypeBitWidth() / 32);
    const int64_t registers = words * std::max(choice.layouts.a.numRegs(), choice.layouts.b.numRegs());
    if (choice.usesTensorCores || registers <= mostOperandRegisters || a.getShape().back() < 2)
      return;
    auto [first, second] = DotDecomposition(dot).halveDepth();
    cut(first);
    cut(second);
  }
};

} // namespace

} // namespace ditron::transforms
