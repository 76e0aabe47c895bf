//===- HeadAttention.h - Attention of a rank's heads, wherever their rows lie ------------------------------------*- C++ -*-===//
//
// What a rank computes between the two exchanges of Ulysses: all tokens of some heads, rows of Q, K and V side by side as a projection leaves them. The kernel is
// that of AllGatherAttention, with one rank's keys, all there.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SEQUENCE_PARALLEL_HEADATTENTION_H
#define DITRON_OPS_SEQUENCE_PARALLEL_HEADATTENTION_H

#include "ditron/ops/KernelLaunch.h"

#include <optional>

namespace ditron::ops {

/// Elements from sequence to sequence, head to head and token to token; multiples of 16 bytes. Those of a head's row follow each other.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;
};

/// How attention is cut: rows and keys of a tile, warps, stages; 0: the library's choice.
struct HeadAttentionTile {
  uint32_t blockM = 0, blockN = 0, numWarps = 0, numStages = 0;

  /// "128x128 warps 8 stages 2"
  std::string text() const;
  /// Refuses what kernels cannot do; zeros are right.
  Status verify(std::string_view operation) const;
  /// Without zeros, for heads of so many elements.
  HeadAttentionTile chosen(int64_t headDim, std::string_view target) const;
};

struct HeadAttentionProblem {
  int64_t batch = 1, heads = 1;
  int64_t kvHeads = 1; ///< Divides heads.
  int64_t tokens = 0;
  int64_t headDim = 128;                      ///< 16, 32, 64, 128 or 256.
  DataType dtype = DataType::BF16;            ///< bf16 or fp16.
  bool causal = false;                        ///< A query sees the keys up to its own token.
  std::optional<double> scale = std::nullopt; ///< 1 / sqrt(headDim) unless given; positive.
  HeadStrides q = {}, keys = {}, out = {};    ///< keys: of K and V alike.
  HeadAttentionTile tile = {};

  double scaleOfScores() const;
};

/// The largest call of an operator over ranks, by its options.
template <typename Options> HeadAttentionProblem largestProblem(const Options &options) {
  HeadAttentionProblem problem;
  problem.batch = options.batch;
  problem.heads = options.heads;
  problem.kvHeads = options.kvHeads;
  problem.tokens = options.maxTokens;
  problem.headDim = options.headDim;
  problem.dtype = options.dtype;
  problem.causal = options.causal;
  problem.scale = options.scale;
  return problem;
}

/// Types, heads and scale; `operation` begins messages.
Status verifyHeads(std::string_view operation, const HeadAttentionProblem &problem);

Expected<PreparedCall> prepareHeadAttention(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                            const HeadAttentionProblem &problem, runtime::Pointer q, runtime::Pointer k,
                                            runtime::Pointer v, runtime::Pointer out);

} // namespace ditron::ops
#endif // DITRON_OPS_SEQUENCE_PARALLEL_HEADATTENTION_H
