//===- TensorParallelAttention.h - A layer of attention whose heads are dealt out to the ranks --------------------*- C++ -*-===//
//
//   q, k, v = x Wqkv^T (+ bias), heads of q and k normed and rotated;   k, v to the cache;   y = attention(q, cache) Wout^T
//
// Each rank has heads / ranks heads of Q with the heads of K and V that they read, a cache of those, and the columns of Wout of its heads. Where ranks
// outnumber the heads of K and V, several ranks have the same one. Tokens are dealt out to the ranks before and after (AllGather+GEMM, GEMM+
// ReduceScatter), or all ranks have all of them (GEMM, GEMM+AllReduce).
//
//   TensorParallelAttention layer = *TensorParallelAttention::create(world, kernels, options, weights);
//   layer.preparePrefill(rank, tokens, batch, longest);   layer.prepareDecode(rank, batch);        // on every rank, in the same order
//   layer.prefill(rank, stream, operands, tokens, batch, longest);
//   layer.decode(rank, stream, operands, batch);          // again and again: lengths are read on the device
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_LAYERS_TENSORPARALLELATTENTION_H
#define DITRON_OPS_LAYERS_TENSORPARALLELATTENTION_H

#include "ditron/ops/attention/AttentionCalls.h"
#include "ditron/ops/attention_decode/AttentionDecode.h"
#include "ditron/ops/layers/AttentionHeads.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmAllReduce.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"

namespace ditron::ops {

/// Who has x and y.
enum class AttentionTokens {
  Replicated, ///< Every rank has all of them.
  Dealt,      ///< Each rank has its rows of RowShards(tokens).
};

struct TensorParallelAttentionOptions {
  DataType dtype = DataType::BF16; ///< bf16 or fp16.
  int64_t hidden = 0;
  int64_t heads = 1;     ///< Of all ranks, whose number divides them.
  int64_t kvHeads = 1;   ///< Divides heads; the number of ranks divides it, or is a multiple of it.
  int64_t headDim = 128; ///< 16, 32, 64, 128 or 256.
  std::optional<double> scale = std::nullopt; ///< 1 / sqrt(headDim) unless given.
  RotaryEmbedding rotary = {};
  std::optional<double> normEpsilon = std::nullopt; ///< Heads of Q and K are normed.
  bool qkvBias = false;
  AttentionTokens tokens = AttentionTokens::Replicated;
  int64_t maxTokens = 0; ///< Of a prefill, on all ranks together.
  int64_t maxBatch = 1;  ///< Sequences of a call, up to 4096.
  int64_t maxKeys = 0;   ///< Of a sequence.
  /// Keys of a page of the cache, a multiple of 16; 0: sequence s of a call has the rows from s * maxKeys on.
  int64_t pageSize = 0;
  int64_t pages = 0; ///< Of the cache, where it has pages.
  Schedule schedule = Schedule::Overlapped;
  uint32_t concurrentCalls = 2; ///< Of products of one launch: OneLaunchOptions.
};

/// One rank's weights, of options.dtype; they stay where they are as long as the layer.
struct TensorParallelAttentionWeights {
  runtime::Pointer qkv; ///< [own rows, hidden]: the rows of [Q; K; V] that TensorParallelAttention::qkvRows says.
  runtime::Pointer out; ///< [hidden, heads / ranks * headDim]: the columns of the rank's heads.
  runtime::Pointer qkvBias = {};           ///< [own rows]
  runtime::Pointer qNorm = {}, kNorm = {}; ///< [headDim], the same on all ranks.
  runtime::Pointer rotary = {}; ///< fp32 [maxKeys, rotary.dim]: of each angle the cosine, then of each the sine.
};

/// One rank's memory of a call.
struct TensorParallelAttentionOperands {
  runtime::Pointer x,
      y; ///< [tokens, hidden], or the rank's rows, null where it has none; at multiples of 16 bytes, like the next two.
  /// The cache: [pages, pageSize, kvHeads of the rank, headDim], without pages [maxBatch, maxKeys, kvHeads of the rank, headDim]. Finite numbers also
  /// where no key is yet.
  runtime::Pointer keys, values;
  /// i32 [batch]: keys of each sequence with those of this call, which become its last ones. 0: the sequence is not there.
  runtime::Pointer lengths;
  runtime::Pointer offsets =
      {};                      ///< prefill: i32 [batch + 1]: where each sequence's tokens begin, at last their number.
  runtime::Pointer table = {}; ///< With pages: i32 [batch, ceil(maxKeys / pageSize)].
};

class TensorParallelAttention {
public:
  using Options = TensorParallelAttentionOptions;

  /// `weights`: by rank; those of ranks of other processes are not looked at.
  static Expected<TensorParallelAttention> create(runtime::World &world, runtime::KernelProvider &kernels,
                                                  const Options &options,
                                                  const std::vector<TensorParallelAttentionWeights> &weights);

  /// Heads of K and V of a rank.
  static int64_t kvHeadsOf(const Options &options, uint32_t ranks) {
    return std::max<int64_t>(options.kvHeads / ranks, 1);
  }
  /// Which row of [Q; K; V], (heads + 2 kvHeads) headDim of them, stands at each row of a rank's qkv.
  static std::vector<int64_t> qkvRows(const Options &options, uint32_t ranks, uint32_t rank);

  /// Compiles and loads what calls with so many tokens and sequences need, where no sequence has more than `longest` tokens. Every rank
  /// prepares the same calls in the same order.
  Status preparePrefill(runtime::Rank &rank, int64_t tokens, int64_t batch, int64_t longest);
  Status prepareDecode(runtime::Rank &rank, int64_t batch);
  /// Tokens of several sequences, one sequence behind the other, perhaps behind keys that are there: offsets say how many each has. Rows of y
  /// behind the last offset are any numbers. Every rank makes the same sequence of calls, on one stream after the other. A call that was not
  /// prepared is prepared now, which a capture does not allow.
  Status prefill(runtime::Rank &rank, runtime::Stream &stream, const TensorParallelAttentionOperands &operands,
                 int64_t tokens, int64_t batch, int64_t longest);
  /// One token of each sequence.
  Status decode(runtime::Rank &rank, runtime::Stream &stream, const TensorParallelAttentionOperands &operands,
                int64_t batch);

  const Options &options() const { return optionValues; }
  /// How a rank's cache lies, of K and V alike.
  KeyLayout keyLayout() const;
  /// Elements of a rank's cache of K, and of that of V.
  int64_t cacheElements() const;

private:
  /// What is between the products and attention, in calls of one form.
  struct Plan {
    std::optional<PreparedCall> product; ///< Where tokens are replicated.
    uint32_t tokenParameter = 0;         ///< Of the product: x.
    PreparedCall heads;
    std::vector<std::pair<uint32_t, runtime::Pointer TensorParallelAttentionOperands::*>> pointers; ///< Of heads.
  };
  struct PerRank {
    TensorParallelAttentionWeights weights;
    runtime::Buffer rows, q, attended; ///< [most tokens, ...]
    KeptPlans<Plan> kept;
    AttentionCalls attention;
    AttentionDecode decode;
  };
  struct Call {
    int64_t tokens, batch;
    std::optional<int64_t> longest; ///< Of a prefill.
  };

  bool areDealt() const { return optionValues.tokens == AttentionTokens::Dealt; }
  int64_t ownHeads() const { return optionValues.heads / ranks; }
  int64_t ownColumns() const { return (ownHeads() + 2 * kvHeadsOf(optionValues, ranks)) * optionValues.headDim; }
  int64_t mostTokens() const { return std::max(optionValues.maxTokens, optionValues.maxBatch); }
  AttentionProblem attentionProblem(const Call &call) const;
  Status createProducts(runtime::World &world);
  Status allocate(runtime::Rank &rank, const TensorParallelAttentionWeights &weights);
  Status verifyCall(const Call &call) const;
  Status verifyOperands(const Call &call, const TensorParallelAttentionOperands &operands) const;
  KeptPlans<Plan>::Key keyOf(const Call &call, const TensorParallelAttentionOperands &operands) const;
  Expected<Plan> makePlan(runtime::Rank &rank, const Call &call, const TensorParallelAttentionOperands &operands) const;
  Status prepare(runtime::Rank &rank, const Call &call);
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const Call &call,
                 const TensorParallelAttentionOperands &given);

  Options optionValues;
  uint32_t ranks = 1;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  std::optional<AllGatherGemm> gatherProduct; ///< Where tokens are dealt out, like the next.
  std::optional<GemmReduceScatter> scatteredProduct;
  std::optional<GemmAllReduce> reducedProduct;   ///< Where they are replicated.
  std::vector<std::unique_ptr<PerRank>> ofRanks; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_LAYERS_TENSORPARALLELATTENTION_H
