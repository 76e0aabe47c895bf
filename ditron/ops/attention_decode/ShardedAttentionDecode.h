//===- ShardedAttentionDecode.h - Attention of few queries over keys that are spread over the ranks -------------*- C++ -*-===//
//
// Distributed flash decoding in one launch: each rank has some keys of every sequence, perhaps none, and all queries. What a rank's keys give goes
// to all ranks by packets with the logarithm of its sum, and every rank combines them in ascending order: all ranks have the same bits. Device code,
// and why nothing is overwritten too early: kernels/attention_decode.
//
//   ShardedAttentionDecode decode = *ShardedAttentionDecode::create(world, kernels, {.problem = problem});
//   decode.prepare(rank, batch);                                   // on every rank, before the first call anywhere
//   decode.enqueue(rank, stream, operands, batch);
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ATTENTION_DECODE_SHARDEDATTENTIONDECODE_H
#define DITRON_OPS_ATTENTION_DECODE_SHARDEDATTENTIONDECODE_H

#include "ditron/ops/attention_decode/DecodeProblem.h"
#include "ditron/ops/plans/PlanAgreement.h"
#include "ditron/runtime/CallAgreement.h"

namespace ditron::ops {

struct ShardedAttentionDecodeOptions {
  /// Of the largest call: `batch` is the most sequences. Where keys lie may differ between ranks, all else may not.
  DecodeProblem problem;
  /// Calls of so many operators at once, on streams that nothing orders, must find places for the programs that wait for other ranks.
  uint32_t concurrentCalls = 2;
  std::optional<DecodePlan> plan = std::nullopt; ///< Instead of the chosen one; may differ between ranks.
};

class ShardedAttentionDecode {
public:
  /// Allocates on all ranks. Refuses options that make no sense, and worlds of several nodes.
  static Expected<ShardedAttentionDecode> create(runtime::World &world, runtime::KernelProvider &kernels,
                                                 const ShardedAttentionDecodeOptions &options);

  /// Compiles and loads what calls with so many sequences need, with operands at multiples of 16 bytes, with lse and sinks or without.
  /// Every rank prepares the same calls in the same order.
  Status prepare(runtime::Rank &rank, int64_t batch, bool withLse = false, bool withSinks = false);
  /// One call. Every rank makes the same sequence of calls, on one stream after the other. `operands` are this rank's: lengths says how many of
  /// its own keys each query sees. A call that was not prepared is prepared now, which a capture does not allow.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const DecodeOperands &operands, int64_t batch);

  const ShardedAttentionDecodeOptions &options() const { return optionValues; }
  const DecodePlan &plan() const { return chosen; }
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const { return slots.bytes(); }

private:
  struct PerRank {
    DecodeWorkspace workspace;
    runtime::Buffer own, ownLse; ///< What the rank's keys give.
    runtime::Buffer call; ///< Calls that have ended, and programs of the present one that have attended, and ended.
  };
  Expected<KeptDecode> makePlan(runtime::Rank &rank, const DecodeOperands &operands, int64_t batch) const;

  ShardedAttentionDecodeOptions optionValues;
  DecodePlan chosen;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  PlanAgreement agreement;
  std::shared_ptr<runtime::CallAgreement> callAgreement;
  runtime::SymmetricBuffer slots; ///< [2, ranks, rows * (valueDim / 2 + 1)] packets of 16 bytes
  std::vector<PerRank> ranks;
  std::vector<std::unique_ptr<KeptPlans<KeptDecode>>> kept; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_DECODE_SHARDEDATTENTIONDECODE_H
