//===- AllGatherAttention.h - Attention to the keys of all ranks, which come meanwhile -----------------------------*- C++ -*-===//
//
// Context parallelism: each rank has some tokens of every sequence, and their queries see keys of all ranks. One launch computes while copy engines push
// the ranks' K and V, piece by piece with a signal behind each; the own tokens come first. Where queries see only what came before them each rank has an early
// and a late section of the tokens (zig-zag), so that all have as much to do. Device code: kernels/sequence_parallel.
//
//   AllGatherAttention attention = *AllGatherAttention::create(world, kernels, {.heads = 32, .kvHeads = 8, .maxTokens = 131072, .causal = true});
//   attention.prepare(rank, tokens);
//   attention.enqueue(rank, stream, {.q = q, .k = k, .v = v, .out = out}, tokens);
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SEQUENCE_PARALLEL_ALLGATHERATTENTION_H
#define DITRON_OPS_SEQUENCE_PARALLEL_ALLGATHERATTENTION_H

#include "ditron/ops/CallWords.h"
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/plans/PlanAgreement.h"
#include "ditron/ops/sequence_parallel/HeadAttention.h"
#include "ditron/ops/sequence_parallel/TokenSections.h"
#include "ditron/runtime/CallAgreement.h"
#include "ditron/runtime/CallSequence.h"

#include <optional>

namespace ditron::ops {

struct AllGatherAttentionOptions {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kvHeads = 1;             ///< Divides heads.
  int64_t headDim = 128;           ///< 16, 32, 64, 128 or 256.
  DataType dtype = DataType::BF16; ///< bf16 or fp16.
  bool causal = false;             ///< A query sees the keys up to its own token; then tokens are dealt out zig-zag.
  std::optional<double> scale = std::nullopt; ///< 1 / sqrt(headDim) unless given; positive.
  int64_t maxTokens = 0;                      ///< Of a sequence, on all ranks together, in any call.
  /// Tokens are those of so many sequences one behind the other (SequenceBounds); batch is 1.
  std::optional<int64_t> packedSequences = std::nullopt;
  /// Signals for a rank's heads of K and V: attention to the first ones begins when they are there. Divides batch * kvHeads; 0: up to 8, of at least 2 MiB of K each.
  uint32_t pieces = 0;
  Schedule schedule = Schedule::Overlapped; ///< Unfused: attention behind all copies, to compare with.
  HeadAttentionTile tile = {};
};

class AllGatherAttention {
public:
  /// Memory of a rank: q and out [batch, heads, own tokens, headDim], k and v [batch, kvHeads, own tokens, headDim], with a rank's sections one behind the
  /// other (TokenSections), lse, natural logarithms of the sums of powers, fp32 [batch, heads, own tokens], or null. Multiples of 16 bytes.
  /// offsets: where packed sequences are (SequenceBounds).
  struct Operands {
    runtime::Pointer q, k, v, out, lse = {}, offsets = {};
  };

  /// Allocates on all ranks. Refuses options that make no sense, and worlds of several nodes. `operation`, a literal, begins messages: the name of an operator that is made of this one.
  static Expected<AllGatherAttention> create(runtime::World &world, runtime::KernelProvider &kernels,
                                             const AllGatherAttentionOptions &options,
                                             std::string_view operation = "AllGatherAttention");

  /// Compiles and loads what calls with so many tokens in a sequence need, with lse or without. Every rank prepares the same calls in the same order.
  Status prepare(runtime::Rank &rank, int64_t tokens, bool withLse = false);
  /// One call. Every rank makes the same sequence of calls, on one stream after the other. A call that was not prepared is prepared now, which a capture
  /// does not allow.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands, int64_t tokens);
  /// What the rank computed in the last such call, once more, with the keys that came then: to measure how much of the exchange a call hides.
  Status enqueueWithoutExchange(runtime::Rank &rank, runtime::Stream &stream, int64_t tokens, bool withLse = false);

  const AllGatherAttentionOptions &options() const { return optionValues; }
  TokenSections sections(int64_t tokens) const { return {tokens, world->numRanks(), optionValues.causal}; }
  std::string planText() const { return optionValues.tile.text(); }
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const { return gathered[0].bytes() + gathered[1].bytes(); }

private:
  struct Plan {
    PreparedCall stage, attention;
    std::optional<PreparedCall> sequences; ///< Of packed ones.
    std::array<uint32_t, 2> stagePointers = {};
    uint32_t offsetsPointer = 0;
    std::vector<uint32_t> pointers; ///< q, out and, where it is wanted, lse.
    runtime::CallSequence sequence;
  };
  HeadAttentionProblem heads() const { return largestProblem(optionValues); }
  Status verifyTokens(int64_t tokens) const;
  Status verifyOperands(const Operands &operands) const;
  Expected<Plan> makePlan(runtime::Rank &rank, int64_t tokens, bool withLse) const;
  KernelCall attentionCall(const runtime::Rank &rank, int64_t tokens, bool withLse) const;
  void addPushes(const runtime::Rank &rank, int64_t tokens, runtime::CallSequence &sequence) const;
  /// Of a call with so many tokens.
  uint32_t piecesOf(int64_t tokens) const;
  int64_t keyHeads() const { return optionValues.batch * optionValues.kvHeads; }
  /// Rows of a head of a rank where they are gathered.
  int64_t stageRows(int64_t tokens) const { return sections(tokens).shardRows(); }

  std::string_view operation;
  AllGatherAttentionOptions optionValues;
  uint32_t mostPieces = 1; ///< Of any call.
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  PlanAgreement agreement;
  std::shared_ptr<runtime::CallAgreement> callAgreement;
  CallWords words;
  std::array<runtime::SymmetricBuffer, 2> gathered; ///< K and V: [ranks, batch, kvHeads, stageRows(), headDim]
  runtime::SymmetricBuffer ready;                   ///< [ranks, mostPieces] signals
  std::vector<SequenceBounds> bounds;               ///< By rank; of packed sequences.
  std::vector<std::shared_ptr<runtime::SideStream>> sides;
  std::vector<std::unique_ptr<KeptPlans<Plan>>> kept; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_SEQUENCE_PARALLEL_ALLGATHERATTENTION_H
