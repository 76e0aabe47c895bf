//===- SequenceParallelAttention.h - A layer of attention over ranks that have some tokens each -------------------*- C++ -*-===//
//
// Ulysses: the projection to Q, K and V with its all-to-all, attention of the rank's heads to all tokens, the all-to-all with the projection back. Between
// them nothing is copied: attention reads where tiles of the first product arrive, and writes where copy engines take the second one's operand.
//
//   SequenceParallelAttention layer = *SequenceParallelAttention::create(world, kernels, options);
//   layer.prepare(rank, tokens);
//   layer.enqueue(rank, stream, x, {.qkv = qkv, .out = out}, y, tokens);
//
// With a cache each rank keeps the keys of its tokens, of all heads, and steps of decoding follow, in which keys stay spread over the ranks (SpreadKeys.h).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_LAYERS_SEQUENCEPARALLELATTENTION_H
#define DITRON_OPS_LAYERS_SEQUENCEPARALLELATTENTION_H

#include "ditron/ops/layers/SpreadKeys.h"
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
  RotaryEmbedding rotary = {};
  std::optional<double> normEpsilon = std::nullopt;   ///< Heads of Q and K are normed.
  std::optional<SpreadKeyCache> cache = std::nullopt; ///< For steps of decoding.
  int64_t maxTokens = 0;                              ///< Of a sequence, on all ranks together.
  uint32_t chunks = 0;                                ///< AllToAllGemm::create
  TileConfig tile = libraryTile;                      ///< Of both products.
  HeadAttentionTile attentionTile = {};
};

class SequenceParallelAttention {
public:
  using Options = SequenceParallelAttentionOptions;
  /// On every rank, whole: qkv [(heads + 2 kvHeads) headDim, hidden] with its rows in the order of qkvRows(), out [hidden, heads * headDim], norms
  /// [headDim], rotary fp32 [positions, rotary.dim]: of each angle the cosine, then of each the sine.
  struct Weights {
    runtime::Pointer qkv, out, qNorm = {}, kNorm = {}, rotary = {};
  };
  /// A rank's, as SpreadKeyCache says; table: i32 [sequences, ceil(maxKeys / pageSize)].
  struct Cache {
    runtime::Pointer keys, values, table = {};
  };
  struct DecodeOperands {
    runtime::Pointer x, y; ///< [batch, hidden], the same x on all ranks.
    Cache cache;
    runtime::Pointer
        lengths; ///< i32 [batch]: keys of each sequence on this rank, with the token's if it is dealt to it.
    runtime::Pointer places;    ///< i32 [batch]: where the token's key goes among this rank's; -1: another rank has it.
    runtime::Pointer positions; ///< i32 [batch]: of the token in its sequence.
  };

  static Expected<SequenceParallelAttention> create(runtime::World &world, runtime::KernelProvider &kernels,
                                                    const Options &options);

  /// Which row of [Q; K; V] stands at each row of Weights::qkv: rank by rank its heads of Q, of K, of V.
  static std::vector<int64_t> qkvRows(const Options &options, uint32_t ranks);

  /// Makes the plans of calls with so many tokens in a sequence, in the same order on all ranks.
  Status prepare(runtime::Rank &rank, int64_t tokens);
  /// x and y: [batch, rowsOf(rank) of RowShards(tokens), hidden], null where the rank has none. Every rank makes the same sequence of calls, on one stream after the other.
  /// `cache`: gets the rank's tokens as the first keys of sequences 0 to batch - 1.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x, const Weights &weights,
                 runtime::Pointer y, int64_t tokens, const std::optional<Cache> &cache = std::nullopt);

  /// Of layers with a cache: the next token of each of so many sequences, on all ranks, whose results are the same bits.
  Status prepareDecode(runtime::Rank &rank, int64_t batch);
  Status decode(runtime::Rank &rank, runtime::Stream &stream, const Weights &weights, const DecodeOperands &operands,
                int64_t batch);
  /// Elements of a rank's cache of K, and of that of V; 0 without one.
  int64_t cacheElements() const { return spread ? spread->cacheElements() : 0; }

  const Options &options() const { return optionValues; }
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const {
    return before.workspaceBytes() + behind.workspaceBytes() + (spread ? spread->workspaceBytes() : 0);
  }

private:
  /// Between the products.
  struct Plan {
    std::optional<PreparedCall> heads;                                      ///< Of layers that norm or rotate.
    std::vector<std::pair<uint32_t, runtime::Pointer Weights::*>> pointers; ///< Of heads.
    PreparedCall attention;
  };
  struct PerRank {
    runtime::Buffer q, keys, values; ///< Where heads are normed or rotated: [batch, maxTokens, own heads, headDim]
    KeptPlans<Plan> kept;            ///< By tokens.
  };
  bool changesHeads() const { return optionValues.rotary.dim != 0 || optionValues.normEpsilon; }
  Expected<PreparedCall> makeHeads(runtime::Rank &rank, int64_t tokens, const Weights &weights) const;
  Expected<PreparedCall> makeAttention(runtime::Rank &rank, int64_t tokens) const;
  Expected<Plan> makePlan(runtime::Rank &rank, int64_t tokens, const Weights &weights) const;
  Status verifyTokens(int64_t tokens) const;
  Status verifyDecodes() const;
  SpreadKeysMemory memoryOf(const Weights &weights, const Cache &cache) const;

  Options optionValues;
  runtime::KernelProvider *kernels = nullptr;
  uint32_t ranks = 1;
  GemmAllToAll before;
  AllToAllGemm behind;
  std::optional<SpreadKeys> spread;
  std::vector<std::unique_ptr<PerRank>> ofRanks; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_LAYERS_SEQUENCEPARALLELATTENTION_H
