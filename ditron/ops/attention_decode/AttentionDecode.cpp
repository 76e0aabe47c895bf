//===- AttentionDecode.cpp - Attention of few queries over many keys, on one GPU --------------------------------------------===//
#include "ditron/ops/attention_decode/AttentionDecode.h"

#include "ditron/support/TargetName.h"

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "AttentionDecode";

Expected<PreparedCall> prepareIn(const DecodeWorkspace &workspace, runtime::KernelProvider &kernels,
                                 runtime::Rank &rank, const DecodeProblem &problem, const DecodeOperands &operands,
                                 const DecodePlan &plan) {
  KernelCall call = decodeCall(rank, problem, plan, operands, workspace);
  call.kernel = "attention_decode";
  call.arguments.insert(call.arguments.end(), {{"out_ptr", operands.out},
                                               {"lse_ptr", orNone(operands.lse)},
                                               {"STARTS_EARLY", hasTensorCopies(kernels.target())},
                                               {"window", problem.window ? runtime::Argument(*problem.window)
                                                                         : runtime::Argument(runtime::None())}});
  return PreparedCall::create(kernels, rank, call);
}

} // namespace

Expected<PreparedCall> prepareAttentionDecode(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                              const DecodeProblem &problem, const DecodeOperands &operands,
                                              const std::optional<DecodePlan> &plan) {
  const DecodePlan chosen = plan ? *plan : chooseDecodePlan(problem, rank.attributes());
  DITRON_RETURN_IF_ERROR(verifyDecode(operation, problem, chosen));
  DITRON_RETURN_IF_ERROR(verifyDecodeOperands(operation, problem, operands));
  DITRON_ASSIGN_OR_RETURN(DecodeWorkspace workspace, DecodeWorkspace::allocate(rank, problem, chosen));
  DITRON_ASSIGN_OR_RETURN(PreparedCall prepared, prepareIn(workspace, kernels, rank, problem, operands, chosen));
  std::vector<runtime::Buffer> kept;
  kept.push_back(std::move(workspace.parts));
  kept.push_back(std::move(workspace.sums));
  kept.push_back(std::move(workspace.counters));
  prepared.keep(std::move(kept));
  return prepared;
}

Expected<AttentionDecode> AttentionDecode::create(runtime::Rank &rank, runtime::KernelProvider &kernels,
                                                  const DecodeProblem &problem, const std::optional<DecodePlan> &plan) {
  AttentionDecode made;
  made.problemValue = problem;
  made.plan = plan ? *plan : chooseDecodePlan(problem, rank.attributes());
  made.rank = &rank;
  made.kernels = &kernels;
  DITRON_RETURN_IF_ERROR(verifyDecode(operation, problem, made.plan));
  DITRON_ASSIGN_OR_RETURN(made.workspace, DecodeWorkspace::allocate(rank, problem, made.plan));
  return made;
}

Expected<KeptDecode> AttentionDecode::makePlan(const DecodeOperands &operands, int64_t batch) const {
  DecodeProblem problem = problemValue;
  problem.batch = batch;
  DITRON_ASSIGN_OR_RETURN(PreparedCall call, prepareIn(workspace, *kernels, *rank, problem, operands, plan));
  return KeptDecode::create(std::move(call), problem, operands);
}

Status AttentionDecode::prepare(int64_t batch, bool withLse, bool withSinks) {
  DITRON_RETURN_IF_ERROR(verifyDecodeBatch(operation, problemValue, batch));
  const DecodeOperands operands = KeptDecode::anyOperands(problemValue, workspace.parts.pointer(), withLse, withSinks);
  const KeptPlans<KeptDecode>::Key key = KeptDecode::keyOf(problemValue, operands, batch);
  if (kept.has(key)) // graphs may have its kernel
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(KeptDecode made, makePlan(operands, batch));
  kept.keep(key, std::move(made));
  return Status::ok();
}

Status AttentionDecode::enqueue(runtime::Stream &stream, const DecodeOperands &operands, int64_t batch) {
  DITRON_RETURN_IF_ERROR(verifyDecodeBatch(operation, problemValue, batch));
  DITRON_RETURN_IF_ERROR(verifyDecodeOperands(operation, problemValue, operands));
  DITRON_ASSIGN_OR_RETURN(KeptDecode * found, kept.find(
                                                  operation, stream, KeptDecode::keyOf(problemValue, operands, batch),
                                                  [&] { return KeptDecode::describe(problemValue, operands, batch); },
                                                  [&] { return makePlan(operands, batch); }));
  return found->enqueue(stream, problemValue, operands);
}

} // namespace ditron::ops
