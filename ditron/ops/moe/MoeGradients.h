//===- MoeGradients.h - The pieces of a backward of mixtures of experts -------------------------------------------*- C++ -*-===//
//
// Calls that the backward of layers consists of besides grouped products, dispatch and combine. Rows, slots and offsets: Routing.h. Device code, and
// what is computed: kernels/moe/backward.py. All buffers row-major and at multiples of 16 bytes, or at what an operand of a call says.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_MOE_MOEGRADIENTS_H
#define DITRON_OPS_MOE_MOEGRADIENTS_H

#include "ditron/ops/moe/Routing.h"

namespace ditron::ops {

/// Where the weights of rows are, and where their gradients go; at most one of the two ways, and with neither all weights are one.
struct RowWeights {
  /// Rows that came from other ranks: [rows, 2 * topK] fp32, of a row's token the weights and the experts' numbers; the row's own is that of its expert,
  /// firstExpert and on. values: likewise, the gradient at the place of that weight, zeros elsewhere.
  runtime::Pointer choices = {}, values = {};
  uint32_t firstExpert = 0, topK = 1;
  /// Rows of slots of this rank: [slots] fp32 of slotOfRow [rows], and the gradients [slots] fp32.
  runtime::Pointer weights = {}, slotOfRow = {}, slotValues = {};
};
/// Backward of rows = swiglu(z), weighted, from `gradient` [rows, inner], that of the unweighted rows: dz [rows, 2 * inner], and `weighted` [rows, inner], the rows
/// times their weights, of which the gradient of down is made. offsets: [experts + 1] int32; rows beyond the last are not touched.
Expected<PreparedCall> prepareRowsBackward(runtime::KernelProvider &kernels, runtime::Rank &rank, int64_t maxRows,
                                           int64_t inner, uint32_t experts, runtime::Pointer z,
                                           runtime::Pointer gradient, runtime::Pointer offsets, runtime::Pointer dz,
                                           runtime::Pointer weighted, const RowWeights &weights = {});

/// choices [tokens, 2 * topK] fp32 from weights [tokens, topK] fp32 and ids [tokens, topK] int32.
Expected<PreparedCall> preparePackedChoices(runtime::KernelProvider &kernels, runtime::Rank &rank, int64_t tokens,
                                            uint32_t topK, runtime::Pointer ids, runtime::Pointer weights,
                                            runtime::Pointer choices);

struct WeightGradientProblem {
  uint32_t experts = 1;
  int64_t m = 0, n = 0;
  DataType dtype = DataType::BF16; ///< Of a and b: bf16, fp16 or fp32.
  /// Slots of a token, where a or b is [tokens, ...]: row r is row slotOfRow[r] / slots. 0: row r itself.
  uint32_t aSlots = 0, bSlots = 0;
  bool adds = false; ///< To what is there.
};
/// c[e] = a[rows of e]^T * b[rows of e], [experts, m, n] of bf16, fp16 or fp32, sums in fp32 in the order of the rows; zeros for experts without
/// rows. a: [rows, m], b: [rows, n]; offsets: [experts + 1] int32. Parameters a_ptr, b_ptr, c_ptr.
Expected<PreparedCall> prepareWeightGradient(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                             const WeightGradientProblem &problem, runtime::Pointer a,
                                             runtime::Pointer b, runtime::Pointer c, runtime::Pointer offsets,
                                             runtime::Pointer slotOfRow = {});

/// Backward of prepareRouter: dlogits [tokens, experts] of bf16, fp16 or fp32 from gradients [tokens, stride] fp32 of the weights, the first topK of each row.
/// logits: fp32.
Expected<PreparedCall> prepareRouterBackward(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                             const RouterProblem &problem, runtime::Pointer logits,
                                             runtime::Pointer ids, runtime::Pointer weights, runtime::Pointer gradients,
                                             int64_t stride, runtime::Pointer dlogits);

/// out = a + b, in fp32, element by element; parameters a_ptr, b_ptr, out_ptr.
Expected<PreparedCall> prepareElementSum(runtime::KernelProvider &kernels, runtime::Rank &rank, int64_t elements,
                                         runtime::Pointer a, runtime::Pointer b, runtime::Pointer out);

} // namespace ditron::ops
#endif // DITRON_OPS_MOE_MOEGRADIENTS_H
