//===- SumsToDots.cpp - Sums of broadcast products are matrix products ---------------------------------------------------===//
//
// tl.sum(a[:, :, None] * b[None, :, :], 1) is a matrix product that is written as a block of three dimensions. As such it would
// need a register for every product. For each sum of fp32 whose order is free (a dot adds in an order of its own):
//
// 1. What is summed is a product of two broadcasts. A dimension in which only one factor has more than one element belongs to
//    the rows (left) or the columns (right); one in which both have all elements is the summed one, or of a batch.
// 2. With b batches, p rows, q columns, depth k and T threads, the block has v = b p q k / T products and the result
//    r = b p q / T sums per thread. As a block, every product costs a multiplication and an addition and, until it is summed, a
//    register; as a dot one fused operation, but the operands of a thread's sums are fetched: 2 sqrt(r) k words through shared
//    memory, and b (p + q) k / T are put there. So the dot is made if the products would not stay in registers or the saved
//    additions outweigh the words:
//                    v > 64   or   r >= 2 sqrt(r) + b (p + q) / T
// 3. The factors are brought into the form [batch, rows, summed] and [batch, summed, columns] and multiplied in fp32, with the
//    precision ieee: products are exact before they are added, sums are fp32.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/Passes.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace ditron::transforms {
#define GEN_PASS_DEF_SUMSTODOTS
#include "ditron/transforms/TransformsPasses.h.inc"

using namespace mlir;

namespace {

/// Products per thread that registers hold beside everything else.
constexpr double mostProducts = 64;

using Dims = SmallVector<int64_t>;

/// A sum over one dimension of a product of two broadcasts.
struct SummedProduct {
  tile::ReduceOp reduce;
  Value left, right;         ///< What is broadcast, with sizes of 1.
  SmallVector<int64_t> sizes; ///< Of the product.
  int64_t summed = 0;
  Dims batch, rows, columns; ///< Its other dimensions, in ascending order.

  int64_t count(ArrayRef<int64_t> dims) const {
    int64_t product = 1;
    for (int64_t dim : dims)
      product *= sizes[dim];
    return product;
  }
};

bool addsScalars(tile::ReduceOp reduce) {
  Block &block = reduce.getCombine().front();
  auto add = dyn_cast<arith::AddFOp>(block.front());
  auto yield = dyn_cast<tile::YieldOp>(block.getTerminator());
  return add && block.getOperations().size() == 2 && block.getNumArguments() == 2 && yield.getValues()[0] == add.getResult() &&
         llvm::is_contained(add->getOperands(), block.getArgument(0)) &&
         llvm::is_contained(add->getOperands(), block.getArgument(1));
}

std::optional<SummedProduct> matchSum(tile::ReduceOp reduce) {
  const bool isOrdered = reduce.getOrdering() == tile::ReductionOrdering::InnerTree;
  if (isOrdered || reduce.getSources().size() != 1 || !addsScalars(reduce))
    return std::nullopt;
  auto product = reduce.getSources()[0].getDefiningOp<arith::MulFOp>();
  auto type = product ? dyn_cast<RankedTensorType>(product.getType()) : RankedTensorType();
  if (!type || !product->hasOneUse() || !type.getElementType().isF32())
    return std::nullopt;
  auto left = product.getLhs().getDefiningOp<tile::BroadcastOp>(), right = product.getRhs().getDefiningOp<tile::BroadcastOp>();
  if (!left || !right)
    return std::nullopt;
  SummedProduct match{reduce, left.getSource(), right.getSource(), SmallVector<int64_t>(type.getShape()),
                      static_cast<int64_t>(reduce.getAxis()), {}, {}, {}};
  auto isFull = [&](Value factor, int64_t dim) {
    return cast<RankedTensorType>(factor.getType()).getDimSize(dim) == type.getDimSize(dim);
  };
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    const bool isLeft = isFull(match.left, dim), isRight = isFull(match.right, dim);
    if (dim == match.summed) {
      if (!isLeft || !isRight)
        return std::nullopt;
    } else if (isLeft && isRight) {
      match.batch.push_back(dim);
    } else if (isLeft) {
      match.rows.push_back(dim);
    } else if (isRight) {
      match.columns.push_back(dim);
    } else {
      return std::nullopt; // all products along it are the same
    }
  }
  if (match.rows.empty() || match.columns.empty())
    return std::nullopt;
  return match;
}

/// The inequality above.
bool isWorthwhile(const SummedProduct &sum, double threads) {
  const double batch = sum.count(sum.batch), rows = sum.count(sum.rows), columns = sum.count(sum.columns);
  const double sums = batch * rows * columns / threads, products = sums * sum.sizes[sum.summed];
  return products > mostProducts || sums >= 2 * std::sqrt(sums) + batch * (rows + columns) / threads;
}

class DotBuilder {
public:
  explicit DotBuilder(SummedProduct product) : sum(std::move(product)), builder(sum.reduce), loc(sum.reduce.getLoc()) {}

  void replace() {
    const Dims depth = {sum.summed};
    Value a = matrix(sum.left, sum.rows, depth), b = matrix(sum.right, depth, sum.columns);
    auto element = builder.getF32Type();
    auto type = RankedTensorType::get(matrixShape(sum.rows, sum.columns), element);
    Value zero = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, builder.getF32FloatAttr(0)));
    Value product = tile::DotOp::create(builder, loc, type, a, b, zero, tile::DotPrecision::IEEE, IntegerAttr());
    // The dimensions of the product without the summed one, in their order.
    Dims order = ordered(sum.rows, sum.columns);
    Value apart = reshaped(product, sizesOf(order));
    Dims wanted = order;
    llvm::sort(wanted);
    Value result = permuted(apart, order, wanted);
    sum.reduce.getResults()[0].replaceAllUsesWith(result);
    removeBlock();
  }

private:
  /// The sum, the product, and broadcasts that were for it alone.
  void removeBlock() {
    Operation *product = sum.reduce.getSources()[0].getDefiningOp();
    sum.reduce.erase();
    Operation *broadcasts[] = {product->getOperand(0).getDefiningOp(), product->getOperand(1).getDefiningOp()};
    product->erase();
    for (Operation *broadcast : broadcasts)
      if (broadcast->use_empty())
        broadcast->erase();
  }

  Dims ordered(ArrayRef<int64_t> first, ArrayRef<int64_t> second) const {
    Dims dims = sum.batch;
    dims.append(first.begin(), first.end());
    dims.append(second.begin(), second.end());
    return dims;
  }
  Dims sizesOf(ArrayRef<int64_t> dims) const {
    return llvm::map_to_vector(dims, [&](int64_t dim) { return sum.sizes[dim]; });
  }
  Dims matrixShape(ArrayRef<int64_t> first, ArrayRef<int64_t> second) const {
    Dims shape;
    if (!sum.batch.empty())
      shape.push_back(sum.count(sum.batch));
    shape.push_back(sum.count(first));
    shape.push_back(sum.count(second));
    return shape;
  }

  /// A factor without its dimensions of size 1, as [batch, first, second].
  Value matrix(Value factor, ArrayRef<int64_t> first, ArrayRef<int64_t> second) {
    const Dims order = ordered(first, second);
    Dims kept = order;
    llvm::sort(kept);
    Value narrow = reshaped(withoutExpansion(factor, kept), sizesOf(kept));
    return reshaped(permuted(narrow, kept, order), matrixShape(first, second));
  }

  /// What x[:, None] was made of, where that has just the dimensions that are kept.
  Value withoutExpansion(Value factor, ArrayRef<int64_t> kept) const {
    Value source = factor;
    while (auto expand = source.getDefiningOp<tile::ExpandDimsOp>())
      source = expand.getSource();
    auto type = cast<RankedTensorType>(source.getType());
    return type.getShape() == ArrayRef<int64_t>(sizesOf(kept)) ? source : factor;
  }

  Value reshaped(Value value, ArrayRef<int64_t> shape) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getShape() == shape ? value : tile::ReshapeOp::create(builder, loc, type.clone(shape), value).getResult();
  }

  /// The dimensions named by `from`, in the order of `to`.
  Value permuted(Value value, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
    if (from == to)
      return value;
    SmallVector<int32_t> order;
    for (int64_t dim : to)
      order.push_back(static_cast<int32_t>(llvm::find(from, dim) - from.begin()));
    auto type = cast<RankedTensorType>(value.getType());
    return tile::TransOp::create(builder, loc, type.clone(sizesOf(to)), value, order);
  }

  SummedProduct sum;
  OpBuilder builder;
  Location loc;
};

class SumsToDotsPass : public impl::SumsToDotsBase<SumsToDotsPass> {
  void runOnOperation() override {
    const double threads = double(dgpu::numWarpsOf(getOperation())) * dgpu::threadsPerWarpOf(getOperation());
    SmallVector<tile::ReduceOp> sums;
    getOperation().walk([&](tile::ReduceOp reduce) { sums.push_back(reduce); });
    for (tile::ReduceOp reduce : sums)
      if (std::optional<SummedProduct> match = matchSum(reduce); match && isWorthwhile(*match, threads))
        DotBuilder(std::move(*match)).replace();
  }
};

} // namespace
} // namespace ditron::transforms
