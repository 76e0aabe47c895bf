//===- MoeRouter.cpp - The choice of each token's experts from the token itself ---------------------------------------------===//
#include "ditron/ops/layers/MoeRouter.h"

#include "ditron/ops/Gemm.h"
#include "ditron/ops/SizeOptions.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {
constexpr std::string_view operation = "MoeRouter";
} // namespace

Status verifyChoice(std::string_view operation, uint32_t experts, uint32_t topK) {
  if (experts == 0 || experts > mostExperts || topK == 0 || topK > std::min(experts, mostTopK))
    return invalidArgument(
        fmt::format("{}: topK is {} of {} experts; 1 to {} of both are accepted, and topK no more than {}", operation,
                    topK, experts, mostExperts, std::min(std::max(experts, 1u), mostTopK)));
  return Status::ok();
}

Expected<MoeRouter> MoeRouter::create(runtime::Rank &rank, runtime::KernelProvider &kernels,
                                      const MoeRouterOptions &options, runtime::Pointer router, runtime::Pointer bias) {
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, options.dtype));
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"hidden", options.hidden}, {"maxTokens", options.maxTokens}}));
  DITRON_RETURN_IF_ERROR(verifyChoice(operation, options.experts, options.topK));
  DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "router", router, options.dtype));
  if (bias.address)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "bias", bias, DataType::F32));
  MoeRouter made;
  made.optionValues = options;
  made.rank = &rank;
  made.kernels = &kernels;
  made.router = router;
  made.bias = bias;
  DITRON_ASSIGN_OR_RETURN(made.logitsOf,
                          rank.allocate(DataType::F32, options.maxTokens * options.experts, "moe_logits"));
  DITRON_ASSIGN_OR_RETURN(made.idsOf, rank.allocate(DataType::I32, options.maxTokens * options.topK, "moe_ids"));
  DITRON_ASSIGN_OR_RETURN(made.weightsOf,
                          rank.allocate(DataType::F32, options.maxTokens * options.topK, "moe_weights"));
  return made;
}

Expected<MoeRouter::Plan> MoeRouter::makePlan(int64_t tokens) const {
  const MoeRouterOptions &options = optionValues;
  DITRON_RETURN_IF_ERROR(verifyTokenCount(operation, tokens, 1, options.maxTokens));
  GemmProblem product;
  product.m = tokens;
  product.n = options.experts;
  product.k = options.hidden;
  product.dtype = options.dtype;
  product.resultType = DataType::F32;
  product.precision = MultiplyPrecision::Ieee;
  Plan made;
  // Any buffer stands for the caller's x: only its type and alignment matter.
  const runtime::Pointer x = idsOf.pointer().as(options.dtype);
  DITRON_ASSIGN_OR_RETURN(made.logits, prepareGemm(*kernels, *rank, product, x, router, logits()));
  DITRON_ASSIGN_OR_RETURN(made.tokensParameter, made.logits.pointerParameter("a_ptr"));
  const RouterProblem problem = {.tokens = tokens,
                                 .experts = options.experts,
                                 .topK = options.topK,
                                 .score = options.score,
                                 .normalized = options.normalized,
                                 .scale = options.scale};
  DITRON_ASSIGN_OR_RETURN(made.choice, prepareRouter(*kernels, *rank, problem, logits(), bias, ids(), weights()));
  return made;
}

Status MoeRouter::prepare(int64_t tokens) {
  if (kept.has({tokens})) // graphs may have its kernels
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(Plan made, makePlan(tokens));
  kept.keep({tokens}, std::move(made));
  return Status::ok();
}

Status MoeRouter::enqueue(runtime::Stream &stream, runtime::Pointer x, int64_t tokens) {
  DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, "x", x, optionValues.dtype));
  const auto describe = [&] { return fmt::format("{} tokens", tokens); };
  DITRON_ASSIGN_OR_RETURN(Plan * found,
                          kept.find(operation, stream, {tokens}, describe, [&] { return makePlan(tokens); }));
  DITRON_RETURN_IF_ERROR(found->logits.setPointer(found->tokensParameter, x));
  DITRON_RETURN_IF_ERROR(found->logits.enqueue(stream));
  return found->choice.enqueue(stream);
}

} // namespace ditron::ops
