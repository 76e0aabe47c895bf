//===- Attention.h - Attention, forward -----------------------------------------------------------------------*- C++ -*-===//
//
// softmax(Q K^T * scale) V without the matrix of scores in memory. Device code: kernels/attention.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ATTENTION_ATTENTION_H
#define DITRON_OPS_ATTENTION_ATTENTION_H

#include "ditron/ops/KernelLaunch.h"

#include <optional>

namespace ditron::ops {

/// Q and the result are [batch, heads, queries, headDim], K and V [batch, kvHeads, keys, headDim], contiguous.
struct AttentionProblem {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kvHeads = 1; ///< Divides heads; each is shared by heads / kvHeads query heads.
  int64_t queries = 0, keys = 0;
  int64_t headDim = 128;                      ///< 16, 32, 64, 128 or 256.
  bool causal = false;                        ///< Query i sees the keys up to i + keys - queries.
  DataType dtype = DataType::BF16;            ///< bf16 or fp16.
  std::optional<double> scale = std::nullopt; ///< 1 / sqrt(headDim) unless given.

  double scaleOfScores() const;
  /// Multiplications and additions of the scores that count.
  double flops() const;
};

/// How operands get to the products.
enum class AttentionMovement {
  Pointers, ///< Loads of the threads that multiply.
  Descriptors, ///< Tensor copies by a warp of their own, on GPUs that have them: addresses of 16 bytes' alignment, a positive scale.
};

struct AttentionPlan {
  uint32_t blockM = 128, blockN = 64;
  uint32_t numWarps = 8;
  uint32_t numStages = 2;
  AttentionMovement movement = AttentionMovement::Pointers;

  /// "128x64 warps 8 stages 2", behind that " descriptors".
  std::string text() const;
};
/// Reads what text() writes.
Expected<AttentionPlan> parseAttentionPlan(std::string_view text);
/// What the library takes on a target for operands of 16 bytes' alignment.
AttentionPlan chooseAttentionPlan(const AttentionProblem &problem, std::string_view target);

/// Where the problem's tensors are.
struct AttentionOperands {
  runtime::Pointer q, k, v, out;
  /// fp32 [batch, heads, queries]: the natural logarithm of each row's sum of exp(score); -inf of a query that sees no key.
  std::optional<runtime::Pointer> lse = std::nullopt;
};

/// Without a plan the library chooses one that the pointers allow.
Expected<PreparedCall> prepareAttention(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                        const AttentionProblem &problem, const AttentionOperands &operands,
                                        const std::optional<AttentionPlan> &plan = std::nullopt);

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_ATTENTION_H
