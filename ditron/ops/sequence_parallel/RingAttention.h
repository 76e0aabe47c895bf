//===- RingAttention.h - Attention to the keys of all ranks, which go round them ----------------------------------*- C++ -*-===//
//
// Context parallelism with memory for three shards of K and V, whatever the number of ranks (on several nodes, one more for each other node): K and V go
// from rank to rank, and while a rank attends to one shard the next one arrives. What shards give is merged by the logarithms of their sums, in the order
// in which they come. On so few ranks that all shards take no more memory than that and the sums they are gathered, and one launch attends to them (RingAttentionOptions::gather). Tokens are dealt out as for AllGatherAttention, zig-zag where queries see only what came before them. How shards go round:
// ShardRing. Device code: kernels/sequence_parallel/ring.py.
//
//   RingAttention attention = *RingAttention::create(world, kernels, {.heads = 32, .kvHeads = 8, .causal = true, .maxTokens = 131072});
//   attention.prepare(rank, tokens);
//   attention.enqueue(rank, stream, {.q = q, .k = k, .v = v, .out = out}, tokens);
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SEQUENCE_PARALLEL_RINGATTENTION_H
#define DITRON_OPS_SEQUENCE_PARALLEL_RINGATTENTION_H

#include "ditron/ops/sequence_parallel/AllGatherAttention.h"
#include "ditron/ops/sequence_parallel/RingCalls.h"

namespace ditron::ops {

class RingAttention : public RingCalls {
public:
  /// Memory of a rank, as AllGatherAttention's: q and out [batch, heads, own tokens, headDim], k and v [batch, kvHeads, own tokens, headDim], with a rank's
  /// sections one behind the other (TokenSections), lse, natural logarithms of the sums of powers, fp32 [batch, heads, own tokens], or null. Multiples of 16 bytes.
  struct Operands {
    runtime::Pointer q, k, v, out, lse = {}, offsets = {}; ///< offsets: where packed sequences are (SequenceBounds).
  };

  /// Allocates on all ranks. Refuses options that make no sense.
  static Expected<RingAttention> create(runtime::World &world, runtime::KernelProvider &kernels,
                                        const RingAttentionOptions &options);

  /// Compiles and loads what calls with so many tokens in a sequence need, with lse or without. Every rank prepares the same calls in the same order.
  Status prepare(runtime::Rank &rank, int64_t tokens, bool withLse = false) {
    return gathered ? gathered->prepare(rank, tokens, withLse) : RingCalls::prepare(rank, tokens, withLse);
  }
  /// One call. Every rank makes the same sequence of calls, on one stream after the other. A call that was not prepared is prepared now, which a capture
  /// does not allow.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands, int64_t tokens);

  Status enqueueWithoutExchange(runtime::Rank &rank, runtime::Stream &stream, int64_t tokens, bool withLse = false) {
    return gathered ? gathered->enqueueWithoutExchange(rank, stream, tokens, withLse)
                    : RingCalls::enqueueWithoutExchange(rank, stream, tokens, withLse);
  }
  uint64_t workspaceBytes() const { return gathered ? gathered->workspaceBytes() : RingCalls::workspaceBytes(); }

  /// Tiles, and whether shards are gathered or go round.
  std::string planText() const { return (gathered ? "gathered " : "ring ") + optionValues.tile.text(); }

private:
  Expected<Plan> makePlan(runtime::Rank &rank, int64_t tokens, bool withLse) const override;
  KernelCall stepCall(const runtime::Rank &rank, uint32_t step, int64_t tokens, const StepTiles &tiles,
                      bool withLse) const;

  std::optional<AllGatherAttention> gathered; ///< Instead of all that follows.
  std::vector<runtime::Buffer> partial,
      logs; ///< By rank: results so far [batch, heads, tiles, blockM, headDim], and logarithms of their sums.
};

} // namespace ditron::ops
#endif // DITRON_OPS_SEQUENCE_PARALLEL_RINGATTENTION_H
