//===- ExpertParallelMoe.h - A mixture of experts each of which is on one rank ------------------------------------*- C++ -*-===//
//
//   y[t] = shared(x[t]) + sum over j of weight[t, j] * down(expert[t, j], swiglu(up(expert[t, j], x[t])))
//
// Rank r has the experts [r * experts / ranks, (r + 1) * experts / ranks), and its own tokens, as many as it likes in every call:
//
//   ids, weights = router(x)                          MoeRouter.h
//   rows, offsets = dispatch(x, ids, weights)         ExpertParallel.h: to the ranks of the experts, sorted by expert
//   results = swiglu(rows * up) * down                GroupedGemm.h
//   y = combine(results) + shared(x)                  back to the tokens
//
// Shared experts are one dense layer of the own tokens, whose weights all ranks have; where the form has parts they are computed while the rows
// are on their way. With `fp8` rows travel as fp8 with block scales and the experts' weights are fp8 with block scales, too.
// No step waits for the host, which knows the number of the own tokens and nothing of where they go.
//
// Or dispatch and the first product are one launch, and the second product and combine another (FusedExpertParallel.h): `fused`, or where the tables say so
// (expert_parallel_moe in expert_parallel.plans) of layers that can have it: without fp8, on one node, of sizes that descriptors take.
//
// Else the form is that of ExpertParallel's tables by maxTokens: low_latency for decoding, high_throughput for prefill. A model that does both has two
// layers over the same weights.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_LAYERS_EXPERTPARALLELMOE_H
#define DITRON_OPS_LAYERS_EXPERTPARALLELMOE_H

#include "ditron/ops/expert_parallel/ExpertParallel.h"
#include "ditron/ops/expert_parallel/FusedExpertParallel.h"
#include "ditron/ops/layers/MoeRouter.h"
#include "ditron/ops/moe/GroupedGemm.h"

#include <set>

namespace ditron::ops {

struct ExpertParallelMoeOptions {
  DataType dtype = DataType::BF16; ///< Of x, y and weights: bf16, fp16 or fp32. All sums are fp32.
  int64_t hidden = 0;
  int64_t inner = 0;       ///< Of an expert.
  int64_t sharedInner = 0; ///< Of all shared experts together; 0: there are none.
  uint32_t experts = 0;    ///< Of all ranks; a multiple of their number.
  uint32_t topK = 1;
  RouterScore score = RouterScore::Softmax;
  bool normalized = true; ///< As RouterProblem's, like the next.
  double scale = 1;
  int64_t maxTokens = 0; ///< Of a rank in a call; sizes the workspaces.
  /// Rows travel as fp8 e4m3 with a scale for each 128 elements; weights of experts are fp8 e4m3 with a scale for each block of 128 x 128, and
  /// what comes between up and down is made fp8 likewise.
  bool fp8 = false;
  int64_t capacity = 0, maxRows = 0; ///< As ExpertParallelOptions', like those below.
  uint32_t concurrentCalls = 1;
  std::optional<ExpertParallelPlan> plan = std::nullopt; ///< Of what is not fused.
  std::optional<FusedExpertParallelPlan> fused =
      std::nullopt; ///< Exchange and products in common launches, by this plan.
  std::string gpu = {};
  /// A call's rows stay until the next one, for ExpertParallelMoeBackward.h. Not with fp8.
  bool training = false;
};

/// One rank's weights; they stay where they are as long as the layer. At multiples of 16 bytes.
struct ExpertParallelMoeWeights {
  runtime::Pointer router; ///< [experts, hidden], the same on all ranks.
  runtime::Pointer bias;   ///< [experts] fp32, for the choice only; null: none.
  runtime::Pointer
      up; ///< [experts / ranks, 2 * inner, hidden]: of each inner column the gate, then what it lets through.
  runtime::Pointer down; ///< [experts / ranks, hidden, inner]
  /// With fp8, fp32: [experts / ranks, ceil(2 * inner / 128), ceil(hidden / 128)] and [experts / ranks, ceil(hidden / 128), ceil(inner / 128)].
  runtime::Pointer upScale = {}, downScale = {};
  /// With shared experts: [2 * sharedInner, hidden], in pairs like up, and [hidden, sharedInner].
  runtime::Pointer sharedUp = {}, sharedDown = {};
};

class ExpertParallelMoe {
public:
  /// `weights`: by rank; those of ranks of other processes are not looked at. What ExpertParallel refuses is refused.
  static Expected<ExpertParallelMoe> create(runtime::World &world, runtime::KernelProvider &kernels,
                                            const ExpertParallelMoeOptions &options,
                                            const std::vector<ExpertParallelMoeWeights> &weights);

  /// Compiles and loads what calls with so many own tokens need, 0 to maxTokens.
  Status prepare(runtime::Rank &rank, int64_t tokens);
  /// Enqueues one call; all ranks make the same sequence of calls, each with as many tokens of its own as it likes, on one stream after the other. x, y:
  /// [tokens, hidden] at multiples of 16 bytes, which may be the same; not looked at without tokens. They may be reused once the work enqueued on
  /// `stream` so far has run. What was not prepared is prepared now, which a capture does not allow. A captured call's number of tokens is that of the
  /// capture; where they go is found anew in every replay.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x, runtime::Pointer y, int64_t tokens);

  /// As ExpertParallel's: Ok, or the first slots or rows that were dropped since the last check.
  Status check(const runtime::Rank &rank) { return fused ? fused->check(rank) : experts->check(rank); }

  const ExpertParallelMoeOptions &options() const { return optionValues; }
  /// Of an exchange that brings the same rows to the same places.
  ExpertParallelOptions exchangeOptions() const;
  /// What a backward needs of a rank's last call, with options.training; the addresses stay.
  struct Saved {
    ExpertParallelMoeWeights weights;
    runtime::Pointer rows, offsets, tiles;     ///< Of the experts of this rank.
    runtime::Pointer ids, slotWeights, logits; ///< Of the own tokens.
    GroupedGemmProblem up;                     ///< Of the first product.
    int64_t evenRows = 0;                      ///< That come where tokens are dealt out evenly.
    uint32_t blockM = 0;                       ///< Of the tiles.
  };
  Saved saved(const runtime::Rank &rank) const;
  bool isFused() const { return fused.has_value(); }
  /// What was chosen; of a fused layer fusedPlan().
  const ExpertParallelPlan &plan() const { return experts->plan(); }
  const FusedExpertParallelPlan &fusedPlan() const { return fused->plan(); }
  std::string planText() const { return fused ? fusedPlan().text() : plan().text(); }
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const { return fused ? fused->workspaceBytes() : experts->workspaceBytes(); }

private:
  /// Of one number of tokens.
  struct SharedPlan {
    PreparedCall up, down;
    uint32_t tokensParameter = 0; ///< Of up: x.
  };
  struct PerRank {
    ExpertParallelMoeWeights weights;
    std::optional<MoeRouter> router;
    runtime::Buffer rows, scales, offsets, handle, tiles; ///< Of dispatch.
    runtime::Buffer inner, narrow, narrowScales;          ///< Between up and down; the last two with fp8.
    runtime::Buffer results;                              ///< With fp8, or for training; else the rows' memory.
    runtime::Buffer sharedInner, sharedOut;
    std::vector<PreparedCall> products; ///< From dispatch's results to those for combine.
    std::map<int64_t, SharedPlan> shared;
    std::set<int64_t> prepared; ///< Numbers of tokens.
  };
  bool hasShared() const { return optionValues.sharedInner > 0; }
  /// Shared experts are computed between sending and receiving.
  bool sendsAhead() const { return hasShared() && !isFused() && hasParts(plan().form); }
  runtime::Pointer resultsOf(const PerRank &own) const {
    return own.results.isValid() ? own.results.pointer() : own.rows.pointer();
  }
  int64_t maxRows() const { return fused ? fused->maxRows() : experts->maxRows(); }
  int64_t evenRows() const { return std::min(maxRows(), optionValues.maxTokens * optionValues.topK); }
  GroupedGemmProblem upProblem() const;
  GroupedGemmProblem downProblem() const;
  Status verifyWeights(const ExpertParallelMoeWeights &weights) const;
  Status allocate(runtime::Rank &rank, const ExpertParallelMoeWeights &weights);
  /// The plan of a fused layer; none where it is not to be one.
  Expected<std::optional<FusedExpertParallelPlan>> fusedPlanFor() const;
  FusedExpertParallelOptions fusedOptions(const FusedExpertParallelPlan &plan) const;
  Status createFused(const FusedExpertParallelPlan &plan);
  Status createUnfused();
  Status prepareProducts(runtime::Rank &rank);
  Status enqueueFused(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x, runtime::Pointer y,
                      int64_t tokens);
  Status enqueueShared(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer x, int64_t tokens);
  Expected<SharedPlan> makeShared(runtime::Rank &rank, int64_t tokens) const;
  Status verifyTokens(int64_t tokens) const;

  ExpertParallelMoeOptions optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  std::optional<ExpertParallel> experts; ///< Or, in its place:
  std::optional<FusedExpertParallel> fused;
  GemmPlan upPlan, downPlan;
  std::vector<std::unique_ptr<PerRank>> ranks; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_LAYERS_EXPERTPARALLELMOE_H
