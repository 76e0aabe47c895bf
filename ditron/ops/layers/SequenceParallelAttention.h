//===- SequenceParallelAttention.h - A layer of attention over ranks that have some tokens each -------------------*- C++ -*-===//
//
// Ulysses: the projection to Q, K and V with its all-to-all, attention of the rank's heads to all tokens, the all-to-all with the projection back. Between
// them nothing is copied: attention reads where tiles of the first product arrive, and writes where copy engines take the second one's operand.
//
//   SequenceParallelAttention layer = *SequenceParallelAttention::create(world, kernels, options);
//   layer.prepare(rank, tokens);
//   layer.enqueue(rank, stream, x, {.qkv = qkv, .out = out}, y, tokens);
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_LAYERS_SEQUENCEPARALLELATTENTION_H
#define DITRON_OPS_LAYERS_SEQUENCEPARALLELATTENTION_H

#include "ditron/ops/sequence_parallel/AllToAllGemm.h"
#include "ditron/ops/sequence_parallel/GemmAllToAll.h"
#include "ditron/ops/sequence_parallel/HeadAttention.h"

namespace ditron::ops {

struct SequenceParallelAttentionOptions {
  int64_t batch = 1;
  int64_t hidden = 0;
  int64_t heads = 1, kvHeads = 1; ///< Of all ranks, whose number divides both.
  int64_t headDim = 128;
  DataType dtype = DataType::BF16; ///< bf16 or fp16.
  bool causal = true;
  std::optional<double> scale = std::nullopt;
  int64_t maxTokens = 0;         ///< Of a sequence, on all ranks together.
  uint32_t chunks = 1;           ///< AllToAllGemm::create
  TileConfig tile = libraryTile; ///< Of both products.
  HeadAttentionTile attentionTile = {};
};

class SequenceParallelAttention {
public:
  using Options = SequenceParallelAttentionOptions;
  /// On every rank, whole: qkv [(heads + 2 kvHeads) headDim, hidden] with its rows in the order of qkvRows(), out [hidden, heads * headDim].
  struct Weights {
    runtime::Pointer qkv, out;
  };

  static Expected<SequenceParallelAttention> create(runtime::World &world, runtime::KernelProvider &kernels,
                                                    const Options &options);

  /// Which row of [Q; K; V] stands at each row of Weights::qkv: rank by rank its heads of Q, of K, of V.
  static std::vector<int64_t> qkvRows(const Options &options, uint32_t ranks);

  /// Makes the plans of calls with so many tokens in a sequence, in the same order on all ranks.
  Status prepare(runtime::Rank &rank, int64_t tokens);
  /// x and y: [batch, rowsOf(rank) of RowShards(tokens), hidden]. Every rank makes the same sequence of calls, on one stream after the other.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x, const Weights &weights,
                 runtime::Pointer y, int64_t tokens);

  const Options &options() const { return optionValues; }
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const { return before.workspaceBytes() + behind.workspaceBytes(); }

private:
  Expected<PreparedCall> makeAttention(runtime::Rank &rank, int64_t tokens) const;

  Options optionValues;
  runtime::KernelProvider *kernels = nullptr;
  uint32_t ranks = 1;
  GemmAllToAll before;
  AllToAllGemm behind;
  std::vector<std::unique_ptr<KeptPlans<PreparedCall>>> attention; ///< By tokens; null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_LAYERS_SEQUENCEPARALLELATTENTION_H
