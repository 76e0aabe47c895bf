//===- RowWise.h - Softmax, RMSNorm and layer norm of the rows of a matrix --------------------------------------*- C++ -*-===//
//
// Kernels that read a row once and write it once: their limit is the memory's bandwidth. Device code: kernels/row_wise.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ROWWISE_H
#define DITRON_OPS_ROWWISE_H

#include "ditron/ops/KernelLaunch.h"

#include <optional>

namespace ditron::ops {

struct RowProblem {
  int64_t rows = 0, columns = 0;
  DataType dtype = DataType::BF16; ///< bf16, fp16 or fp32.
  /// Elements from row to row; 0 where rows follow each other without a gap.
  int64_t strideX = 0, strideY = 0;
};

/// How rows are dealt out.
struct RowPlan {
  bool pairs = false; ///< The form that asks for its next row early; 16-bit elements, even columns and strides.
  uint32_t numWarps = 4;
  uint32_t blocksPerMultiprocessor = 0; ///< 0: a block per row.

  /// "pairs warps 32 blocks 1"
  std::string text() const;
};

/// Widest row: it has to fit the registers of a block.
inline constexpr int64_t widestRow = 65536;

RowPlan chooseRowPlan(const RowProblem &problem);

/// y = softmax of each row of x.
Expected<PreparedCall> prepareSoftmax(runtime::KernelProvider &kernels, runtime::Rank &rank, const RowProblem &problem, runtime::Pointer x,
                                      runtime::Pointer y, const std::optional<RowPlan> &plan = std::nullopt);
/// y = x / sqrt(mean(x * x) + epsilon) * weight of each row of x.
Expected<PreparedCall> prepareRmsNorm(runtime::KernelProvider &kernels, runtime::Rank &rank, const RowProblem &problem, runtime::Pointer x,
                                      runtime::Pointer weight, runtime::Pointer y, double epsilon = 1e-6,
                                      const std::optional<RowPlan> &plan = std::nullopt);
/// y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * weight + bias of each row of x. Has no form in pairs.
Expected<PreparedCall> prepareLayerNorm(runtime::KernelProvider &kernels, runtime::Rank &rank, const RowProblem &problem,
                                        runtime::Pointer x, runtime::Pointer weight, runtime::Pointer bias,
                                        runtime::Pointer y, double epsilon = 1e-6,
                                        const std::optional<RowPlan> &plan = std::nullopt);

} // namespace ditron::ops
#endif // DITRON_OPS_ROWWISE_H
