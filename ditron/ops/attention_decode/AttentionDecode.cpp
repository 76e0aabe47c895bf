//===- AttentionDecode.cpp - Attention of few queries over many keys, on one GPU --------------------------------------------===//
#include "ditron/ops/attention_decode/AttentionDecode.h"

namespace ditron::ops {

Expected<PreparedCall> prepareAttentionDecode(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                              const DecodeProblem &problem, const DecodeOperands &operands,
                                              const std::optional<DecodePlan> &plan) {
  constexpr std::string_view operation = "AttentionDecode";
  const DecodePlan chosen = plan ? *plan : chooseDecodePlan(problem, rank.attributes());
  DITRON_RETURN_IF_ERROR(verifyDecode(operation, problem, chosen));
  DITRON_RETURN_IF_ERROR(verifyDecodeOperands(operation, problem, operands));
  DITRON_ASSIGN_OR_RETURN(DecodeWorkspace workspace, DecodeWorkspace::allocate(rank, problem, chosen));
  KernelCall call = decodeCall(rank, problem, chosen, operands, workspace);
  call.kernel = "attention_decode";
  call.arguments.insert(call.arguments.end(), {{"out_ptr", operands.out},
                                               {"lse_ptr", orNone(operands.lse)},
                                               {"window", problem.window ? runtime::Argument(*problem.window)
                                                                         : runtime::Argument(runtime::None())}});
  DITRON_ASSIGN_OR_RETURN(PreparedCall prepared, PreparedCall::create(kernels, rank, call));
  std::vector<runtime::Buffer> kept;
  kept.push_back(std::move(workspace.parts));
  kept.push_back(std::move(workspace.sums));
  kept.push_back(std::move(workspace.counters));
  prepared.keep(std::move(kept));
  return prepared;
}

} // namespace ditron::ops
