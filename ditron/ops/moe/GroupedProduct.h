//===- GroupedProduct.h - Grouped products of the caller's operands -----------------------------------------------*- C++ -*-===//
//
// GroupedGemm.h as an object of one rank, for callers who give operands with each call: the tiles are found from the offsets in each call.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_MOE_GROUPEDPRODUCT_H
#define DITRON_OPS_MOE_GROUPEDPRODUCT_H

#include "ditron/ops/moe/GroupedGemm.h"

namespace ditron::ops {

class GroupedProduct {
public:
  /// Allocates on the rank, which must outlive this. `plan`: instead of the library's choice.
  static Expected<GroupedProduct> create(runtime::Rank &rank, runtime::KernelProvider &kernels,
                                         const GroupedGemmProblem &problem,
                                         const std::optional<GemmPlan> &plan = std::nullopt);

  /// Compiles and loads what calls need; once.
  Status prepare();
  /// `tiles` and `ranks` of the operands are not looked at; all others at multiples of 16 bytes. One call after the other. Not prepared under
  /// capture is an error.
  Status enqueue(runtime::Stream &stream, const GroupedGemmOperands &operands);

  const GroupedGemmProblem &problem() const { return problemValue; }

private:
  struct Call {
    PreparedCall tiles, product;
    std::vector<std::pair<uint32_t, runtime::Pointer GroupedGemmOperands::*>> pointers; ///< Of the product.
    uint32_t offsets = 0;                                                               ///< Of the tiles.
  };
  Expected<Call> makeCall() const;

  GroupedGemmProblem problemValue;
  GemmPlan plan;
  runtime::Rank *rank = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  runtime::Buffer tilesOf;
  std::optional<Call> call;
};

} // namespace ditron::ops
#endif // DITRON_OPS_MOE_GROUPEDPRODUCT_H
