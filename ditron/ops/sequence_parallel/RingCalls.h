//===- RingCalls.h - What ring attention and its backward have in common on the host -----------------------------*- C++ -*-===//
//
// Options and their checks, plans of calls by tokens, and which tiles a launch has. The operators say what a plan launches.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SEQUENCE_PARALLEL_RINGCALLS_H
#define DITRON_OPS_SEQUENCE_PARALLEL_RINGCALLS_H

#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/plans/PlanAgreement.h"
#include "ditron/ops/sequence_parallel/HeadAttention.h"
#include "ditron/ops/sequence_parallel/ShardRing.h"
#include "ditron/ops/sequence_parallel/TokenSections.h"
#include "ditron/runtime/CallAgreement.h"

namespace ditron::ops {

struct RingAttentionOptions {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kvHeads = 1;             ///< Divides heads.
  int64_t headDim = 128;           ///< 16, 32, 64, 128 or 256; of the backward up to 128.
  DataType dtype = DataType::BF16; ///< bf16 or fp16.
  bool causal = false;             ///< A query sees the keys up to its own token; then tokens are dealt out zig-zag.
  std::optional<double> scale = std::nullopt; ///< 1 / sqrt(headDim) unless given; positive.
  int64_t maxTokens = 0;                      ///< Of a sequence, on all ranks together, in any call.
  /// Tokens are those of so many sequences one behind the other (SequenceBounds); batch is 1.
  std::optional<int64_t> packedSequences = std::nullopt;
  Schedule schedule = Schedule::Overlapped; ///< Unfused: a shard goes on behind the work with it, to compare with.
  HeadAttentionTile tile = {};              ///< Of the forward.
  /// Of the forward, on one node: whether all shards are gathered and one launch attends to them (AllGatherAttention), instead of going round. None: where that takes no more memory than three
  /// shards and the fp32 sums between launches, as many bytes as heads / kvHeads shards: on up to 3 + heads / kvHeads ranks.
  std::optional<bool> gather = std::nullopt;
};

/// A call's operand: its name in messages, and what it must be.
struct RingOperand {
  std::string_view name;
  runtime::Pointer pointer;
  DataType type;
  bool isOptional = false;
};

class RingCalls {
public:
  const RingAttentionOptions &options() const { return optionValues; }
  TokenSections sections(int64_t tokens) const { return {tokens, world->numRanks(), optionValues.causal}; }
  /// The kernels of the last call with so many tokens, and `variant`, once more, on whatever shards are there: to measure how much of the exchange a call hides. Not
  /// for its results.
  Status enqueueWithoutExchange(runtime::Rank &rank, runtime::Stream &stream, int64_t tokens, bool variant = false);
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const { return ring.workspaceBytes(); }

protected:
  /// A launch, and which of its parameters are operands of the call, by their numbers.
  struct BoundCall {
    PreparedCall call;
    std::vector<std::pair<uint32_t, size_t>> operands;
  };
  struct Plan {
    std::vector<BoundCall> calls;
    std::optional<PreparedCall> sequences; ///< Of packed ones.
    uint32_t offsetsParameter = 0;
    runtime::CallSequence sequence;
  };
  /// What a launch of a step does of the tiles of a rank's tokens; those from firstComplete to endComplete have then seen all shards.
  struct StepTiles {
    int64_t first = 0, count = 0, all = 0, firstComplete = 0, endComplete = 0;
  };
  enum class TilesOf { Queries, Keys };

  RingCalls() = default;
  virtual ~RingCalls() = default;
  RingCalls(RingCalls &&) = default;
  RingCalls &operator=(RingCalls &&) = default;

  /// Checks options and takes them over; `operation`, a literal, begins messages.
  Status take(std::string_view operation, runtime::World &world, runtime::KernelProvider &kernels,
              const RingAttentionOptions &options);
  /// What calls need whose shards go round, of so many bytes in the largest one, on all ranks.
  Status makeRing(std::string_view name, int64_t bytes);

  virtual Expected<Plan> makePlan(runtime::Rank &rank, int64_t tokens, bool variant) const = 0;
  /// `variant`: whatever else a plan is for; `call` names it in messages.
  Status prepare(runtime::Rank &rank, int64_t tokens, bool variant);
  /// `offsets`: of packed sequences.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, std::span<const RingOperand> operands,
                 runtime::Pointer offsets, int64_t tokens, bool variant, std::string_view call);

  /// Adds a call to a plan; `names`: parameters that are operands.
  Status bind(runtime::Rank &rank, const KernelCall &wanted,
              std::initializer_list<std::pair<std::string_view, size_t>> names, Plan &plan) const;
  /// Adds what finds packed sequences, where there are such, to a plan and its sequence.
  Status findSequences(runtime::Rank &rank, int64_t tokens, Plan &plan) const;
  StepTiles tilesOf(TilesOf what, uint32_t rank, uint32_t step, int64_t tokens, uint32_t block) const;
  /// Tiles of a rank in the largest call.
  int64_t mostTiles(uint32_t block) const {
    const TokenSections largest = sections(optionValues.maxTokens);
    return largest.parts() * ceilDivide(largest.sectionTokens(), block);
  }
  /// What all kernels of a step are told.
  void addStepArguments(KernelCall &call, const runtime::Rank &rank, uint32_t step, int64_t tokens,
                        const StepTiles &tiles) const;
  HeadAttentionProblem heads() const { return largestProblem(optionValues); }
  int64_t allHeads() const { return optionValues.batch * optionValues.heads; }
  int64_t allKeyHeads() const { return optionValues.batch * optionValues.kvHeads; }

  std::string_view operationName;
  RingAttentionOptions optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  ShardRing ring;

private:
  Status verifyTokens(int64_t tokens) const;
  Status verifyOperands(std::span<const RingOperand> operands, runtime::Pointer offsets) const;

  std::vector<SequenceBounds> bounds; ///< By rank; of packed sequences.
  PlanAgreement agreement;
  std::shared_ptr<runtime::CallAgreement> callAgreement;
  std::vector<std::unique_ptr<KeptPlans<Plan>>> kept; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_SEQUENCE_PARALLEL_RINGCALLS_H
