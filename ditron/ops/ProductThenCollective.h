//===- ProductThenCollective.h - A product, and a collective of it behind it ------------------------------------*- C++ -*-===//
//
// The unfused forms of GEMM+AllReduce and GEMM+ReduceScatter: the product by the kernel of one GPU, then the library's collective, which are two
// launches; a third where the caller's result has gaps between its rows, since collectives take elements that follow each other.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_PRODUCTTHENCOLLECTIVE_H
#define DITRON_OPS_PRODUCTTHENCOLLECTIVE_H

#include "ditron/ops/Gemm.h"
#include "ditron/ops/PlannedProduct.h"

namespace ditron::ops {

/// One rank's.
struct ProductThenCollective {
  GemmProblem problem; ///< With a dense result.
  TileConfig tile;     ///< Moved by descriptors where rows and addresses allow them.
  std::optional<runtime::Pointer> product =
      {};               ///< Where the product goes; else where the collective's result does, which is in place.
  int64_t elements = 0; ///< Of the collective.
  int64_t resultRows = 0, resultStride = 0; ///< Of the caller's.
};

/// A rank's part of a product that the ranks add: rows without gaps between them, and the bias on rank 0 alone. `options` are those of the operator.
template <typename Options>
GemmProblem addedProductOf(const Options &options, const ProductShape &shape, const runtime::Rank &rank) {
  return {.m = shape.rows,
          .n = options.columns,
          .k = shape.size,
          .dtype = options.dtype,
          .resultType = options.typeOfResult(),
          .order = options.weightOrder,
          .strides = {shape.strides.a, shape.strides.b, options.columns},
          .precision = options.precision,
          .epilogue = options.epilogue,
          .addsBias = rank.id() == 0};
}

Expected<ProductPlan::Parts> makeProductThenCollective(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                                       Collective &collective, const OperandPointers &operands,
                                                       const ProductThenCollective &call);

} // namespace ditron::ops
#endif // DITRON_OPS_PRODUCTTHENCOLLECTIVE_H
