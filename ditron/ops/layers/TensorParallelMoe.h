//===- TensorParallelMoe.h - A mixture of experts whose every expert is spread over the ranks --------------------*- C++ -*-===//
//
//   y[t] = sum over j of weight[t, j] * down(expert[t, j], swiglu(up(expert[t, j], x[t])))
//
// Each rank has a slice of the inner columns of every expert. Tokens are dealt out to the ranks before and after (training, prefill):
//
//   gathered, ids, weights = AllGather(x, router(x))   [tokens, hidden], [tokens, topK]
//   inner = swiglu(gathered rows * up)                 [rows, inner / ranks], without a copy of the rows
//   y = ReduceScatter(sum of slots(inner * down))
//
// or all ranks have all of them (decoding), and AllGather and ReduceScatter become nothing and AllReduce.
//
// Overlapped these are two operators, AllGatherMoe and MoeReduction; unfused each step is done on all ranks before the next, and the router
// is applied to the gathered tokens. No step waits for the host, which knows the number of tokens and nothing of where they go.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_LAYERS_TENSORPARALLELMOE_H
#define DITRON_OPS_LAYERS_TENSORPARALLELMOE_H

#include "ditron/ops/collectives/Collective.h"
#include "ditron/ops/layers/MoeRouter.h"
#include "ditron/ops/moe/AllGatherMoe.h"
#include "ditron/ops/moe/MoeReduction.h"

namespace ditron::ops {

/// Who has x and y.
enum class MoeTokens {
  Dealt,      ///< Each rank has its own.
  Replicated, ///< Every rank has all of them.
};

struct TensorParallelMoeOptions {
  DataType dtype = DataType::BF16; ///< Of x, y and weights: bf16, fp16 or fp32. All sums are fp32.
  int64_t hidden = 0;
  int64_t inner = 0; ///< Of an expert on all ranks together; a multiple of the number of ranks.
  uint32_t experts = 0;
  uint32_t topK = 1;
  RouterScore score = RouterScore::Softmax;
  bool normalized = true; ///< As RouterProblem's, like the next.
  double scale = 1;
  int64_t maxTokensPerRank = 0; ///< Sizes the workspaces; where tokens are replicated, of all.
  MoeTokens tokens = MoeTokens::Dealt;
  /// Not given: overlapped on one node, unfused between nodes, where there is no overlapped form.
  std::optional<Schedule> schedule = std::nullopt;
};

/// One rank's weights; they stay where they are as long as the layer.
struct TensorParallelMoeWeights {
  runtime::Pointer router; ///< [experts, hidden], the same on all ranks.
  runtime::Pointer bias;   ///< [experts] fp32, for the choice only; null: none.
  runtime::Pointer
      up; ///< [experts, 2 * inner / ranks, hidden]: of each inner column the gate, then what it lets through.
  runtime::Pointer down; ///< [experts, hidden, inner / ranks]
};

/// Ok, or what is wrong with the layer's options, or with the number of ranks whose weights are given.
Status verifyTensorParallelMoe(std::string_view operation, const TensorParallelMoeOptions &options,
                               size_t ranksWithWeights, uint32_t numRanks);

class TensorParallelMoe {
public:
  /// `weights`: by rank; those of ranks of other processes are not looked at.
  static Expected<TensorParallelMoe> create(runtime::World &world, runtime::KernelProvider &kernels,
                                            const TensorParallelMoeOptions &options,
                                            const std::vector<TensorParallelMoeWeights> &weights);

  /// Compiles and loads what calls with so many tokens of each rank need. `ownTokens`: as enqueue's.
  Status prepare(runtime::Rank &rank, int64_t tokensPerRank, std::optional<int64_t> ownTokens = std::nullopt);
  /// Enqueues one call; all ranks make the same sequence of calls, with the same number. x, y: [tokensPerRank, hidden] of options.dtype;
  /// they may be the same, and are multiples of 16 bytes but where the schedule is unfused and tokens are dealt out. They may be reused once the work enqueued on `stream` so far has run.
  /// tokensPerRank: of all ranks' tokens where they are replicated.
  /// `ownTokens`, of the overlapped schedule and tokens that are dealt out: how many of them this rank has, 0 to tokensPerRank, and as many rows x; rows of y beyond them
  /// become zero. All by default.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x, runtime::Pointer y,
                 int64_t tokensPerRank, std::optional<int64_t> ownTokens = std::nullopt);

  /// With the schedule that was chosen.
  const TensorParallelMoeOptions &options() const { return optionValues; }

private:
  struct Plan {
    std::vector<PreparedCall> calls;
    std::vector<std::pair<size_t, uint32_t>> tokenParameters; ///< Calls, and which of their parameters is x.
  };
  struct PerRank {
    TensorParallelMoeWeights weights;
    std::optional<MoeRouter> router; ///< Overlapped of the own tokens, else of all.
    runtime::Buffer inner;
    runtime::Buffer gathered;       ///< Unfused, tokens dealt out.
    runtime::Buffer rows, sums;     ///< Unfused.
    std::optional<Routing> routing; ///< Where AllGatherMoe has none.
    KeptPlans<Plan> kept;
  };
  bool overlaps() const { return optionValues.schedule == Schedule::Overlapped; }
  bool areDealt() const { return optionValues.tokens == MoeTokens::Dealt; }
  /// Of all ranks together.
  int64_t allTokens(int64_t tokensPerRank) const {
    return areDealt() ? tokensPerRank * world->numRanks() : tokensPerRank;
  }
  Status createOverlapped();
  Status createUnfused();
  Status createRouting(runtime::Rank &rank);
  Status allocate(runtime::Rank &rank, const TensorParallelMoeWeights &weights);
  /// A product whose rows are the tokens: the gathered ones, or those of the caller's x.
  static Status appendTokenProduct(const PerRank &own, PreparedCall product, Plan &plan);
  /// Tokens that a rank chooses experts for.
  int64_t routedTokens(int64_t tokensPerRank, int64_t ownTokens) const {
    return gatherMoe ? ownTokens : allTokens(tokensPerRank);
  }
  Status verifyTokens(int64_t tokensPerRank, int64_t ownTokens) const;
  Expected<Plan> plan(runtime::Rank &rank, int64_t tokensPerRank);

  TensorParallelMoeOptions optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  std::optional<AllGatherMoe> gatherMoe;       ///< Overlapped, tokens dealt out.
  std::optional<MoeReduction> reduction;       ///< Overlapped.
  GemmPlan upPlan, downPlan;                   ///< Of the products that are not AllGatherMoe's and MoeReduction's.
  std::optional<Collective> gather, exchange;  ///< Unfused; gather: tokens dealt out.
  std::vector<std::unique_ptr<PerRank>> ranks; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_LAYERS_TENSORPARALLELMOE_H
