//===- TensorParallelMoeBackward.h - Gradients of a mixture of experts spread over the ranks ----------------------*- C++ -*-===//
//
// What follows a call of a TensorParallelMoe, from x and dy, the gradient of its y. With tokens dealt out:
//
//   X, D = AllGather(x), AllGather(dy);  ids, weights = router(X)
//   z = rows of X * up;  g = rows of D * down^T          [rows, inner / ranks]; z is computed again instead of kept
//   dz, h = backward of swiglu(z) from g, weighted       with this rank's part of the gradients of the weights
//   of down += rows of D^T h;  of up += dz^T rows of X
//   dx = ReduceScatter(sum of slots(dz * up^T)) + router's, from ReduceScatter(gradients of the weights)
//
// Where all ranks have all tokens nothing is gathered, and ReduceScatter is AllReduce. Each step is done on all ranks before the next. Nothing of the
// layer but its options and weights is used, so that any schedule of it is right, and calls may lie between.
//
// The gradient of the router, which all ranks have, is of the own tokens where these are dealt out: adding it up over the ranks is the
// caller's, with what else is replicated. Where all have all tokens it is whole on every rank.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_LAYERS_TENSORPARALLELMOEBACKWARD_H
#define DITRON_OPS_LAYERS_TENSORPARALLELMOEBACKWARD_H

#include "ditron/ops/layers/TensorParallelMoe.h"

namespace ditron::ops {

struct TensorParallelMoeBackwardOptions {
  DataType gradientType = DataType::F32; ///< Of the weights' gradients: bf16, fp16 or fp32. Sums are fp32.
  bool adds = true;                      ///< To the weights' gradients that are there; else they are overwritten.
};

/// One rank's memory, at multiples of 16 bytes.
struct TensorParallelMoeGradients {
  runtime::Pointer x;                ///< [tokensPerRank, hidden], as it was in the call.
  runtime::Pointer dy;               ///< [tokensPerRank, hidden]
  runtime::Pointer dx;               ///< Result: [tokensPerRank, hidden]; may be dy.
  runtime::Pointer router, up, down; ///< Results of the gradients' type, shaped like the weights.
};

class TensorParallelMoeBackward {
public:
  /// `options`, `weights`: those of the layer.
  static Expected<TensorParallelMoeBackward> create(runtime::World &world, runtime::KernelProvider &kernels,
                                                    const TensorParallelMoeOptions &options,
                                                    const std::vector<TensorParallelMoeWeights> &weights,
                                                    const TensorParallelMoeBackwardOptions &backward = {});

  /// Compiles and loads what calls with so many tokens of each rank need.
  Status prepare(runtime::Rank &rank, int64_t tokensPerRank);
  /// Enqueues one call; all ranks make the same sequence of calls, with the same number. Captured like the layer's. Every rank has tokensPerRank tokens.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const TensorParallelMoeGradients &operands,
                 int64_t tokensPerRank);

private:
  /// What a call gives, by number.
  enum Given : size_t { X, Dy, Dx, Router, Up, Down };
  /// Of one number of tokens: from the sorted slots to the sums of ranks, and behind them.
  struct TokenPlan {
    MoeCall rows, dense;
    runtime::Buffer offsets; ///< [2]: 0, tokens that this rank has.
  };
  struct PerRank {
    TensorParallelMoeWeights weights;
    std::optional<MoeRouter> router;
    std::optional<Routing> routing;
    runtime::Buffer gathered, gatheredGradients;              ///< Of all tokens; tokens dealt out.
    runtime::Buffer z, inner, dz, weighted, results, partial; ///< [rows, ...]; the last [tokens, hidden].
    runtime::Buffer slotValues, weightGradients, sums;        ///< Before and after the sums over the ranks.
    runtime::Buffer dlogits, fromRouter;
    std::map<int64_t, TokenPlan> plans;
  };
  bool areDealt() const { return optionValues.tokens == MoeTokens::Dealt; }
  int64_t allTokens(int64_t tokensPerRank) const {
    return areDealt() ? tokensPerRank * world->numRanks() : tokensPerRank;
  }
  int64_t innerOfRank() const { return optionValues.inner / world->numRanks(); }
  Status createCollectives();
  Status allocate(runtime::Rank &rank, const TensorParallelMoeWeights &weights);
  Expected<TokenPlan> makePlan(runtime::Rank &rank, int64_t tokensPerRank) const;
  Status addRows(runtime::Rank &rank, int64_t tokens, MoeCall &call) const;
  Status addRouter(runtime::Rank &rank, int64_t tokensPerRank, TokenPlan &plan) const;
  Status verify(const TensorParallelMoeGradients &operands, int64_t tokensPerRank) const;

  TensorParallelMoeOptions optionValues;
  TensorParallelMoeBackwardOptions backwardValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  GemmPlan upPlan;                             ///< Whose tiles are those of all grouped products.
  std::optional<Collective> gather;            ///< Tokens dealt out.
  std::optional<Collective> sumRows, sumSlots; ///< Over the ranks.
  std::vector<std::unique_ptr<PerRank>> ranks; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_LAYERS_TENSORPARALLELMOEBACKWARD_H
