//===- AttentionBackward.h - Attention, backward ----------------------------------------------------------*- C++ -*-===//
//
// Gradients of Q, K and V from that of the result, Q, K, V, the result itself and its log-sum-exp. The same bits every time: no sum depends
// on which block comes first. Device code: kernels/attention. Mathematics, memory and limits: docs/ops/attention.md.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ATTENTION_ATTENTIONBACKWARD_H
#define DITRON_OPS_ATTENTION_ATTENTIONBACKWARD_H

#include "ditron/ops/attention/Attention.h"

namespace ditron::ops {

/// Of the kernel that sums over the queries, for dK and dV, and of the one that sums over the keys, for dQ. blockM are rows of queries and
/// blockN rows of keys in both; blockM of `keys` divides 128.
struct AttentionBackwardPlan {
  AttentionPlan keys = {.blockM = 64, .blockN = 64};
  AttentionPlan queries = {.blockM = 64, .blockN = 64};

  /// "64x128 warps 8 stages 4 descriptors, 128x64 warps 8 stages 3 descriptors"
  std::string text() const;
};
/// Reads what text() writes.
Expected<AttentionBackwardPlan> parseAttentionBackwardPlan(std::string_view text);
AttentionBackwardPlan chooseAttentionBackwardPlan(const AttentionProblem &problem, std::string_view target);

struct AttentionBackwardOperands {
  runtime::Pointer q, k, v, out;
  runtime::Pointer lse;        ///< As the forward call wrote it.
  runtime::Pointer gradient;   ///< Of the result, and like it in memory.
  runtime::Pointer dq, dk, dv; ///< Like q, k, v.
  /// As in AttentionOperands.
  std::optional<runtime::Pointer> slopes = std::nullopt, queryOffsets = std::nullopt, keyOffsets = std::nullopt;
  /// The forward's sinks and their gradient, fp32 [heads], where that is wanted.
  std::optional<runtime::Pointer> sinks = std::nullopt, dsinks = std::nullopt;
};

/// Three kernels, one more for the sinks, and 8 bytes of memory for each query of each head.
class AttentionBackwardCall {
public:
  Status enqueue(runtime::Stream &stream) const;

  PreparedCall rows, keys, queries;
  std::optional<PreparedCall> sinks;
};

/// bf16 and fp16, heads of up to 128 elements, V as wide as K; no pages and no transposed V. The other gradients need no sinks: log-sum-exp has them.
Expected<AttentionBackwardCall>
prepareAttentionBackward(runtime::KernelProvider &kernels, runtime::Rank &rank, const AttentionProblem &problem,
                         const AttentionBackwardOperands &operands,
                         const std::optional<AttentionBackwardPlan> &plan = std::nullopt);

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_ATTENTIONBACKWARD_H
