//===- ExpertParallelMoeBackward.h - Gradients of a mixture of experts each of which is on one rank ---------------*- C++ -*-===//
//
// What follows a call of an ExpertParallelMoe with options.training, from dy, the gradient of its y:
//
//   D, choices = dispatch(dy), dispatch(weights)      where the rows of x are
//   z = rows * up;  g = D * down^T                    grouped products; z is computed again instead of kept
//   dz, h = backward of swiglu(z) from g, weighted    with the gradients of the weights, which are sums of g * swiglu(z)
//   of down += D^T h;  of up += dz^T rows
//   dx = combine(dz * up^T) + router's + shared experts'
//
// Of a fused layer, where hidden and 2 * inner are multiples of 16, the dispatch of dy and the product g are one launch, and the last product and combine another.
//
// A dispatch's backward is a combine without weights, a combine's a dispatch. Gradients of router and shared experts, which all ranks have, are of the
// own tokens: adding them up over the ranks is the caller's, with what else is replicated.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_LAYERS_EXPERTPARALLELMOEBACKWARD_H
#define DITRON_OPS_LAYERS_EXPERTPARALLELMOEBACKWARD_H

#include "ditron/ops/layers/ExpertParallelMoe.h"
#include "ditron/ops/moe/MoeCall.h"

namespace ditron::ops {

struct ExpertParallelMoeBackwardOptions {
  DataType gradientType = DataType::F32; ///< Of the weights' gradients: bf16, fp16 or fp32. Sums are fp32.
  bool adds = true;                      ///< To the weights' gradients that are there; else they are overwritten.
};

/// One rank's memory, at multiples of 16 bytes.
struct ExpertParallelMoeGradients {
  runtime::Pointer x;  ///< [tokens, hidden], as it was in the call.
  runtime::Pointer dy; ///< [tokens, hidden]
  runtime::Pointer dx; ///< Result: [tokens, hidden]; may be dy.
  /// Results of the gradients' type, shaped like the weights; the last two where there are shared experts.
  runtime::Pointer router, up, down, sharedUp = {}, sharedDown = {};
};

class ExpertParallelMoeBackward {
public:
  /// The layer must have been made with options.training, and outlive this.
  static Expected<ExpertParallelMoeBackward> create(runtime::World &world, runtime::KernelProvider &kernels,
                                                    const ExpertParallelMoe &layer,
                                                    const ExpertParallelMoeBackwardOptions &options = {});

  /// Compiles and loads what calls with so many own tokens need, 0 to maxTokens.
  Status prepare(runtime::Rank &rank, int64_t tokens);
  /// Enqueues the backward of the layer's last call on the rank, behind it. All ranks make the same sequence of calls. Captured like the layer's.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const ExpertParallelMoeGradients &operands,
                 int64_t tokens);

  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const {
    return (fused ? fused->workspaceBytes() : exchange->workspaceBytes()) + scalars->workspaceBytes();
  }

private:
  /// What a call gives, by number.
  enum Given : size_t { X, Dy, Router, Up, Down, SharedUp, SharedDown };
  /// Of one number of tokens: before dispatch, between combine of the weights' gradients and that of the rows.
  struct TokenPlan {
    MoeCall before, dense;
    runtime::Buffer offsets; ///< [2]: 0, tokens.
  };
  struct PerRank {
    runtime::Buffer gradients, z, inner, dz, weighted, results; ///< [rows, ...]
    runtime::Buffer offsets, handle;
    runtime::Buffer choices, rowChoices, values, choiceGradients, scalarHandle, scalarOffsets;
    runtime::Buffer dlogits, fromRouter;
    runtime::Buffer sharedZ, sharedInner, sharedDz, sharedWeighted, fromShared;
    std::optional<MoeCall> rows; ///< Between the dispatches and combine.
    std::map<int64_t, TokenPlan> plans;
  };
  const ExpertParallelMoeOptions &of() const { return layer->options(); }
  bool hasShared() const { return of().sharedInner > 0; }
  Status allocate(runtime::Rank &rank);
  /// Where its products can be.
  Status createFused();
  /// The gradients of the experts' results, with the first product that needs them; and the last product, with what brings its rows back.
  Status dispatch(runtime::Rank &rank, runtime::Stream &stream, const ExpertParallelMoeGradients &operands,
                  int64_t tokens);
  Status combine(runtime::Rank &rank, runtime::Stream &stream, const ExpertParallelMoeGradients &operands,
                 int64_t tokens);
  Status prepareRows(runtime::Rank &rank);
  Expected<TokenPlan> makePlan(runtime::Rank &rank, int64_t tokens) const;
  Status addShared(runtime::Rank &rank, int64_t tokens, TokenPlan &plan) const;
  Status addRouter(runtime::Rank &rank, int64_t tokens, TokenPlan &plan) const;
  /// A weight's gradient; `which` is it, `names` what of a_ptr and b_ptr the call gives.
  Status addGradient(runtime::Rank &rank, MoeCall &call, Given which, uint32_t experts, int64_t m, int64_t n,
                     runtime::Pointer a, runtime::Pointer b, runtime::Pointer offsets, MoeCall::Names names = {}) const;
  Status verify(const ExpertParallelMoeGradients &operands, int64_t tokens) const;

  ExpertParallelMoeBackwardOptions optionValues;
  const ExpertParallelMoe *layer = nullptr;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  std::optional<ExpertParallel> exchange, scalars; ///< Of rows; of weights with their experts, and of their gradients.
  std::optional<FusedExpertParallel> fused;        ///< In the place of `exchange`, with two of the products.
  std::vector<std::unique_ptr<PerRank>> ranks;     ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_LAYERS_EXPERTPARALLELMOEBACKWARD_H
