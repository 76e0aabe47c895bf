//===- SpreadKeys.h - A layer's decoding with keys that are spread over the ranks ---------------------------------*- C++ -*-===//
//
// Each rank has some keys of every sequence, of all heads, in a cache of its own; weights are whole on every rank. A step of decoding has all its tokens on all
// ranks: each projects them, the rank that a token's key is dealt to puts it into its cache, attention goes over the keys of all ranks
// (ShardedAttentionDecode), and each rank projects back: y is the same bits on all of them. What a prefill has computed of other ranks' tokens is
// of no use here, so filling the cache is a product of its own, of the rank's tokens.
//
// Internal to SequenceParallelAttention.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_LAYERS_SPREADKEYS_H
#define DITRON_OPS_LAYERS_SPREADKEYS_H

#include "ditron/ops/attention_decode/ShardedAttentionDecode.h"
#include "ditron/ops/layers/AttentionHeads.h"

namespace ditron::ops {

/// A rank's cache: [pages, pageSize, kvHeads, headDim], without pages [maxBatch, maxKeys, kvHeads, headDim].
struct SpreadKeyCache {
  int64_t maxBatch = 1; ///< Sequences of a step of decoding.
  int64_t maxKeys = 0;  ///< Of a sequence, on one rank.
  int64_t pageSize = 0; ///< 0: sequence s has the rows from s * maxKeys on.
  int64_t pages = 0;
  uint32_t concurrentCalls = 2; ///< ShardedAttentionDecodeOptions
};

struct SpreadKeysOptions {
  int64_t batch = 1; ///< Sequences of a prefill.
  int64_t hidden = 0;
  int64_t heads = 1, kvHeads = 1, headDim = 128;
  DataType dtype = DataType::BF16;
  std::optional<double> scale = std::nullopt;
  RotaryEmbedding rotary = {};
  std::optional<double> normEpsilon = std::nullopt;
  int64_t maxRows = 0; ///< Tokens of a sequence that a rank fills its cache with.
  SpreadKeyCache cache = {};
};

/// A rank's memory of a call; null of what it does not have.
struct SpreadKeysMemory {
  runtime::Pointer x, y;
  runtime::Pointer qkv, out, qNorm = {}, kNorm = {}, rotary = {}; ///< Weights.
  runtime::Pointer keys, values, table = {};                      ///< The cache.
  runtime::Pointer lengths = {}, places = {}, positions = {};     ///< Of decode.
};

class SpreadKeys {
public:
  /// The rows of the weight to Q, K and V stand in as many groups as there are ranks.
  static Expected<SpreadKeys> create(runtime::World &world, runtime::KernelProvider &kernels,
                                     const SpreadKeysOptions &options);

  /// x [batch, rows, hidden]: tokens of each sequence from firstPosition on, which become the first keys of the cache.
  Status prepareFill(runtime::Rank &rank, int64_t rows, int64_t firstPosition);
  Status fill(runtime::Rank &rank, runtime::Stream &stream, const SpreadKeysMemory &memory, int64_t rows,
              int64_t firstPosition);
  /// x and y [batch, hidden]. Every rank prepares and makes the same calls in the same order.
  Status prepareDecode(runtime::Rank &rank, int64_t batch);
  Status decode(runtime::Rank &rank, runtime::Stream &stream, const SpreadKeysMemory &memory, int64_t batch);

  KeyLayout keyLayout() const;
  int64_t cacheElements() const;
  uint64_t workspaceBytes() const { return attention->workspaceBytes(); }

private:
  struct Launch {
    PreparedCall call;
    std::vector<std::pair<uint32_t, runtime::Pointer SpreadKeysMemory::*>> pointers;

    Status enqueue(runtime::Stream &stream, const SpreadKeysMemory &memory);
  };
  /// Up to attention, and, of a step of decoding, behind it.
  struct Plan {
    Launch product, heads;
    std::optional<Launch> back;
  };
  struct PerRank {
    runtime::Buffer rows, q, attended;
    KeptPlans<Plan> kept;
  };
  /// Of tokens whose places the host knows, else of a step of decoding.
  struct Call {
    int64_t tokens = 0, batch = 0;
    std::optional<UniformTokens> uniform = std::nullopt;
  };
  int64_t columns() const { return (optionValues.heads + 2 * optionValues.kvHeads) * optionValues.headDim; }
  int64_t width() const { return optionValues.heads * optionValues.headDim; }
  SpreadKeysMemory anyMemory(uint32_t rank) const;
  Status verifyMemory(const Call &call, const SpreadKeysMemory &memory) const;
  KeptPlans<Plan>::Key keyOf(const Call &call, const SpreadKeysMemory &memory) const;
  static Expected<Launch>
  makeLaunch(Expected<PreparedCall> call,
             const std::vector<std::pair<std::string_view, runtime::Pointer SpreadKeysMemory::*>> &names);
  Expected<Plan> makePlan(runtime::Rank &rank, const Call &call, const SpreadKeysMemory &memory) const;
  Status keep(runtime::Rank &rank, const Call &call);
  Expected<Plan *> find(runtime::Rank &rank, runtime::Stream &stream, const Call &call, const SpreadKeysMemory &memory);

  SpreadKeysOptions optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  std::optional<ShardedAttentionDecode> attention;
  std::vector<std::unique_ptr<PerRank>> ofRanks; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_LAYERS_SPREADKEYS_H
