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
  /// The most memory, in MiB, for the gradients of scores, which the first kernel keeps and the second one multiplies: so many heads as
  /// fit at a time. 0: the second one computes them again. Both by descriptors, rows not packed, the same blockM, and blockN of `queries`
  /// divides that of `keys`.
  uint32_t keptMebibytes = 0;

  /// "64x128 warps 8 stages 4 descriptors, 128x64 warps 8 stages 3 descriptors", behind that " kept 2048 MiB".
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

/// A launch for the rows, one for the sinks, then two for each part of the heads. Memory: 8 bytes for each query of each head, and what the plan keeps.
class AttentionBackwardCall {
public:
  Status enqueue(runtime::Stream &stream) const;

  struct Part {
    PreparedCall keys, queries;
  };
  PreparedCall rows;
  std::optional<PreparedCall> sinks;
  bool keepsScores = false; ///< Their gradients: `queries` then take them and K.
  std::vector<Part> parts;  ///< One, unless gradients of scores are kept and not all of them fit.
};

/// Where gradients of scores are kept, for several calls that follow each other. Not thread-safe.
class AttentionWorkspace {
public:
  /// At least so many elements of 16 bits; what was given before stays for as long as somebody has it.
  Expected<std::shared_ptr<const runtime::Buffer>> atLeast(runtime::Rank &rank, uint64_t count);

private:
  std::shared_ptr<const runtime::Buffer> latest;
};

/// bf16 and fp16, heads of up to 128 elements, V as wide as K; no pages and no transposed V. The other gradients need no sinks: log-sum-exp has them.
/// Calls with the same workspace must follow each other; a result that is given none has one of its own. Without a plan, one that keeps nothing is taken where
/// the memory for that cannot be had.
Expected<AttentionBackwardCall>
prepareAttentionBackward(runtime::KernelProvider &kernels, runtime::Rank &rank, const AttentionProblem &problem,
                         const AttentionBackwardOperands &operands,
                         const std::optional<AttentionBackwardPlan> &plan = std::nullopt,
                         AttentionWorkspace *workspace = nullptr);

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_ATTENTIONBACKWARD_H
