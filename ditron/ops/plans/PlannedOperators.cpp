//===- PlannedOperators.cpp - What tables may say of which operator -------------------------------------------------------===//
#include "ditron/ops/Gemm.h"
#include "ditron/ops/attention/Attention.h"
#include "ditron/ops/collectives/CollectivePlans.h"
#include "ditron/ops/expert_parallel/ExpertParallelPlan.h"
#include "ditron/ops/expert_parallel/FusedExpertParallelPlan.h"
#include "ditron/ops/plans/PlanTable.h"
#include "ditron/ops/plans/TensorParallelPlan.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

Status verifyGemmPlan(std::string_view, std::string_view plan, uint32_t, std::optional<uint32_t>) {
  return parseGemmPlan(plan, {}).status();
}

Status verifyAttentionPlanText(std::string_view, std::string_view plan, uint32_t, std::optional<uint32_t>) {
  return parseAttentionPlan(plan).status();
}

Status verifyTensorParallelPlan(std::string_view op, std::string_view plan, uint32_t, std::optional<uint32_t>) {
  return parseTensorParallelPlan(op, plan).status();
}

Status verifyExpertParallelPlan(std::string_view, std::string_view plan, uint32_t, std::optional<uint32_t> numNodes) {
  DITRON_ASSIGN_OR_RETURN(const ExpertParallelPlan parsed, parseExpertParallelPlan(plan));
  return numNodes ? verifyForm(parsed.form, *numNodes) : Status::ok();
}

Status verifyExpertParallelMoePlan(std::string_view, std::string_view plan, uint32_t,
                                   std::optional<uint32_t> numNodes) {
  if (plan == unfusedPlan)
    return Status::ok();
  DITRON_RETURN_IF_ERROR(parseFusedExpertParallelPlan(plan).status());
  return numNodes.value_or(1) == 1
             ? Status::ok()
             : unsupported(fmt::format("expert_parallel_moe on {} nodes; {} is accepted", *numNodes, unfusedPlan));
}

Status verifyCollectivePlan(std::string_view op, std::string_view plan, uint32_t numRanks,
                            std::optional<uint32_t> numNodes) {
  DITRON_ASSIGN_OR_RETURN(const CollectiveKind kind, parseCollectiveKind(op));
  DITRON_ASSIGN_OR_RETURN(const CollectivePlan parsed, parseCollectivePlan(plan));
  return parsed.verify(kind, numRanks, numNodes.value_or(isForNodes(parsed.form) ? 2 : 1));
}

Status verifyPlanTextOf(std::string_view op, std::string_view plan, uint32_t numRanks,
                        std::optional<uint32_t> numNodes) {
  DITRON_ASSIGN_OR_RETURN(const CollectivePlan parsed, parseCollectivePlan(plan));
  return numNodes.value_or(1) == 1 ? verifyPlanOf(op, parsed, numRanks)
                                   : unsupported(fmt::format("{} on {} nodes; one is accepted", op, *numNodes));
}

std::vector<PlannedOperator> makeOperators() {
  const std::vector<std::string> product = {"m", "n", "k"}, grouped = {"m", "n", "k", "experts"};
  const std::vector<std::string> attention = {"queries", "dim", "heads"};
  std::vector<PlannedOperator> operators = {
      {"gemm", product, verifyGemmPlan},
      {"grouped_gemm", grouped, verifyGemmPlan},
      {"gathered_gemm", grouped, verifyGemmPlan},
      {"attention", attention, verifyAttentionPlanText},
      {"causal_attention", attention, verifyAttentionPlanText},
      {"ag_gemm", product, verifyTensorParallelPlan},
      {"gemm_rs", product, verifyTensorParallelPlan},
      {"gemm_ar", product, verifyTensorParallelPlan},
      {"expert_parallel", {"tokens", "hidden"}, verifyExpertParallelPlan, false},
      {"expert_parallel_moe", {"tokens", "hidden", "inner"}, verifyExpertParallelMoePlan, false}};
  for (CollectiveKind kind : allCollectiveKinds())
    operators.push_back({std::string(toString(kind)), {"bytes"}, verifyCollectivePlan});
  operators.push_back({std::string(pairsOperator), {"bytes"}, verifyPlanTextOf, false});
  operators.push_back({std::string(rmsNormOperator), {"bytes", "columns"}, verifyPlanTextOf});
  return operators;
}

} // namespace

const std::vector<PlannedOperator> &plannedOperators() {
  static const std::vector<PlannedOperator> operators = makeOperators();
  return operators;
}

} // namespace ditron::ops
