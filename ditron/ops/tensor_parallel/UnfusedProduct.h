//===- UnfusedProduct.h - A product, with a collective before or behind it ---------------------------------------*- C++ -*-===//
//
// The unfused forms of the tensor-parallel products: the library's collective and the product by the kernel of one GPU, which are two
// launches; a third where the caller's rows have gaps between them, since collectives take elements that follow each other.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_TENSOR_PARALLEL_UNFUSEDPRODUCT_H
#define DITRON_OPS_TENSOR_PARALLEL_UNFUSEDPRODUCT_H

#include "ditron/ops/Gemm.h"
#include "ditron/ops/PlannedProduct.h"
#include "ditron/ops/plans/TensorParallelPlan.h"

namespace ditron::ops {

/// Rows of a matrix.
struct MatrixRows {
  runtime::Pointer pointer;
  int64_t stride;
};
/// A copy of rows from here to there, on one GPU.
KernelCall copyRowsCall(const runtime::Rank &rank, const MatrixRows &from, const MatrixRows &to, int64_t rows,
                        int64_t columns);

/// The collective of an operator's unfused calls, each rank's part of which has as many rows; none where no call is unfused. `others`: sizes for the
/// tables besides the rows. `options` are those of the operator.
template <typename Options>
Expected<std::optional<Collective>> collectiveOfUnfused(runtime::World &world, runtime::KernelProvider &kernels,
                                                        const TensorParallelChoice &choice, const Options &options,
                                                        const PlanSizes &others, CollectiveKind kind, DataType dtype,
                                                        int64_t rowElements) {
  const int64_t rows = choice.mostRows(options.maxRows, others, [&](const auto &plan) {
    return scheduleOf(plan, options.schedule) == Schedule::Unfused;
  });
  if (rows == 0)
    return std::optional<Collective>();
  DITRON_ASSIGN_OR_RETURN(Collective made,
                          Collective::create(world, kernels,
                                             {.kind = kind,
                                              .dtype = dtype,
                                              .maxElements = ceilDivide(rows, int64_t{world.numRanks()}) * rowElements,
                                              .concurrentCalls = options.concurrentCalls,
                                              .gpu = options.gpu}));
  return std::optional(std::move(made));
}

/// The product of a rank's unfused call.
struct UnfusedProduct {
  GemmProblem problem;
  std::optional<TileConfig>
      tile; ///< Moved by descriptors where rows and addresses allow them; none: libraryGemmPlan says how.
};
/// "unfused 128x128x64 warps 8 stages 5 group 8", or "unfused, product descriptors ... tail-splits 6"; of a product whose depth is 0, not known, what is
/// given.
std::string textOf(const UnfusedProduct &product, runtime::World &world);

/// One rank's call of GEMM+AllReduce or GEMM+ReduceScatter.
struct ProductThenCollective {
  UnfusedProduct product; ///< With a dense result.
  std::optional<runtime::Pointer> partial =
      {};               ///< Where the product goes; else where the collective's result does, which is in place.
  int64_t elements = 0; ///< Of the collective.
  int64_t resultRows = 0, resultStride = 0; ///< Of the caller's.
};

/// A rank's part of a product that the ranks add: rows without gaps between them, and the bias once. `options` are those of the operator.
template <typename Options>
GemmProblem addedProductOf(const Options &options, const ProductShape &shape, bool addsBias = true) {
  return {.m = shape.rows,
          .n = options.columns,
          .k = shape.size,
          .dtype = options.dtype,
          .resultType = options.typeOfResult(),
          .order = options.weightOrder,
          .strides = {shape.strides.a, shape.strides.b, options.columns},
          .precision = options.precision,
          .epilogue = options.epilogue,
          .addsBias = addsBias};
}

Expected<ProductPlan::Parts> makeProductThenCollective(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                                       Collective &collective, GemmWorkspace &workspace,
                                                       const OperandPointers &operands,
                                                       const ProductThenCollective &call);

/// One rank's call of AllGather+GEMM, whose ranks all give as many rows.
struct CollectiveThenProduct {
  UnfusedProduct product;             ///< Of all rows, without gaps between those of A.
  runtime::Pointer gathered;          ///< [m, k] of the product, the rank's own.
  int64_t ownRows = 0, ownStride = 0; ///< Of the caller's A.
};
Expected<ProductPlan::Parts> makeCollectiveThenProduct(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                                       Collective &allGather, GemmWorkspace &workspace,
                                                       const OperandPointers &operands,
                                                       const CollectiveThenProduct &call);

} // namespace ditron::ops
#endif // DITRON_OPS_TENSOR_PARALLEL_UNFUSEDPRODUCT_H
