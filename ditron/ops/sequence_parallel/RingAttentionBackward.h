//===- RingAttentionBackward.h - Gradients of attention to the keys of all ranks ----------------------------------*- C++ -*-===//
//
// Backward of RingAttention and of AllGatherAttention, which deal out tokens alike: each rank gets the gradients of its own tokens. What goes round is K
// and V together with Q, the gradient of the result, log-sum-exp and delta, and every sum stays at home: a rank adds to dQ what a shard's keys give, and
// to dK and dV what its queries give, in fp32 and in the order in which shards come. If dK and dV went round instead, in fp32, with a shard of K and V,
// each hop would wait for the work of the one before. Device code: kernels/sequence_parallel/ring_backward.py.
//
//   RingAttentionBackward backward = *RingAttentionBackward::create(world, kernels, attention.options());
//   backward.prepare(rank, tokens);
//   backward.enqueue(rank, stream, {.q = q, .k = k, .v = v, .out = out, .lse = lse, .gradient = gradient, .dq = dq, .dk = dk, .dv = dv}, tokens);
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SEQUENCE_PARALLEL_RINGATTENTIONBACKWARD_H
#define DITRON_OPS_SEQUENCE_PARALLEL_RINGATTENTIONBACKWARD_H

#include "ditron/ops/sequence_parallel/RingCalls.h"

namespace ditron::ops {

/// Of the kernel that sums over queries, for dK and dV, and of the one that sums over keys, for dQ. blockM are rows of queries and blockN rows of keys in both; 0: the
/// library's choice. blockM is at most 128.
struct RingBackwardTiles {
  HeadAttentionTile keys = {}, queries = {};

  /// "64x128 warps 8 stages 4, 128x64 warps 8 stages 3"
  std::string text() const { return keys.text() + ", " + queries.text(); }
};

class RingAttentionBackward : public RingCalls {
public:
  /// Like RingAttention's; lse as the forward wrote it, gradient like out, dq, dk and dv like q, k and v.
  struct Operands {
    runtime::Pointer q, k, v, out, lse, gradient, dq, dk, dv, offsets = {};
  };

  /// Allocates on all ranks. Refuses options that make no sense, and heads of more than 128 elements. options.tile does not matter.
  static Expected<RingAttentionBackward> create(runtime::World &world, runtime::KernelProvider &kernels,
                                                const RingAttentionOptions &options,
                                                const RingBackwardTiles &tiles = {});

  /// As RingAttention's.
  Status prepare(runtime::Rank &rank, int64_t tokens) { return RingCalls::prepare(rank, tokens, false); }
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands, int64_t tokens);

  std::string planText() const { return tiles.text(); }

private:
  /// Where the parts of a shard begin.
  struct Shard {
    runtime::Pointer k, v, q, gradient, logs, delta;
    uint64_t bytes;
  };
  Shard shardAt(runtime::Pointer begin, int64_t tokens) const;
  int64_t paddedRows(int64_t tokens) const;
  Expected<Plan> makePlan(runtime::Rank &rank, int64_t tokens, bool variant) const override;
  KernelCall stageCall(const runtime::Rank &rank, int64_t tokens) const;
  /// A step's kernel, without its own arguments.
  KernelCall stepCall(const char *kernel, const runtime::Rank &rank, uint32_t step, int64_t tokens,
                      const HeadAttentionTile &tile, const StepTiles &work, int64_t heads) const;
  Expected<std::vector<PreparedCall>> stepWork(runtime::Rank &rank, uint32_t step, int64_t tokens, Plan &plan) const;

  RingBackwardTiles tiles;
  std::vector<runtime::Buffer> dq, dk, dv; ///< Sums so far, by rank: [batch, heads, tiles, rows of a tile, headDim]
};

} // namespace ditron::ops
#endif // DITRON_OPS_SEQUENCE_PARALLEL_RINGATTENTIONBACKWARD_H
