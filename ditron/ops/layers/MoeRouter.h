//===- MoeRouter.h - The choice of each token's experts from the token itself -------------------------------------*- C++ -*-===//
//
//   logits[t] = x[t] * router^T in fp32;   ids[t], weights[t] = the topK best of them (Routing.h, prepareRouter)
//
// What the layers of mixtures of experts begin with. On one rank, for its own tokens or for all.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_LAYERS_MOEROUTER_H
#define DITRON_OPS_LAYERS_MOEROUTER_H

#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/moe/Routing.h"

namespace ditron::ops {

struct MoeRouterOptions {
  DataType dtype = DataType::BF16; ///< Of x and the weights: bf16, fp16 or fp32.
  int64_t hidden = 0;
  uint32_t experts = 0;
  uint32_t topK = 1; ///< At most `experts` and mostTopK.
  RouterScore score = RouterScore::Softmax;
  bool normalized = true; ///< As RouterProblem's, like the next.
  double scale = 1;
  int64_t maxTokens = 0;
};

/// That of a layer, whose options have the same names.
template <typename LayerOptions> MoeRouterOptions routerOf(const LayerOptions &layer, int64_t maxTokens) {
  return {.dtype = layer.dtype,
          .hidden = layer.hidden,
          .experts = layer.experts,
          .topK = layer.topK,
          .score = layer.score,
          .normalized = layer.normalized,
          .scale = layer.scale,
          .maxTokens = maxTokens};
}

/// Ok, or what is wrong with the choice of topK of so many experts.
Status verifyChoice(std::string_view operation, uint32_t experts, uint32_t topK);

/// Results are valid from a call's end to the next call.
class MoeRouter {
public:
  /// Allocates on the rank, which must outlive this. `router`: [experts, hidden]; `bias`: [experts] fp32, for the choice only, null: none.
  static Expected<MoeRouter> create(runtime::Rank &rank, runtime::KernelProvider &kernels,
                                    const MoeRouterOptions &options, runtime::Pointer router, runtime::Pointer bias);

  /// Compiles and loads what calls with so many tokens need, 1 to maxTokens.
  Status prepare(int64_t tokens);
  /// x: [tokens, hidden] at a multiple of 16 bytes. What was not prepared is made now, which a capture does not allow.
  Status enqueue(runtime::Stream &stream, runtime::Pointer x, int64_t tokens);

  runtime::Pointer ids() const { return idsOf.pointer(); }         ///< [tokens, topK] int32
  runtime::Pointer weights() const { return weightsOf.pointer(); } ///< [tokens, topK] fp32
  runtime::Pointer logits() const { return logitsOf.pointer(); }   ///< [tokens, experts] fp32
  const MoeRouterOptions &options() const { return optionValues; }

private:
  struct Plan {
    PreparedCall logits, choice;
    uint32_t tokensParameter = 0; ///< Of logits: x.
  };
  Expected<Plan> makePlan(int64_t tokens) const;

  MoeRouterOptions optionValues;
  runtime::Rank *rank = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  runtime::Pointer router, bias;
  runtime::Buffer logitsOf, idsOf, weightsOf;
  KeptPlans<Plan> kept;
};

} // namespace ditron::ops
#endif // DITRON_OPS_LAYERS_MOEROUTER_H
