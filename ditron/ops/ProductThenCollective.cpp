//===- ProductThenCollective.cpp - A product, and a collective of it behind it --------------------------------------------===//
#include "ditron/ops/ProductThenCollective.h"

namespace ditron::ops {

Expected<ProductPlan::Parts> makeProductThenCollective(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                                       Collective &collective, const OperandPointers &operands,
                                                       const ProductThenCollective &call) {
  const GemmProblem &problem = call.problem;
  const int64_t columns = problem.n;
  const runtime::Pointer out = operands[Operand::Result];
  ProductPlan::Parts parts;
  const bool isDense = call.resultStride == columns;
  if (!isDense) {
    DITRON_ASSIGN_OR_RETURN(parts.dense, rank.allocate(problem.typeOfResult(), call.resultRows * columns, "dense"));
  }
  const runtime::Pointer result = isDense ? out : parts.dense.pointer();
  const runtime::Pointer product = call.product.value_or(result);
  GemmPlan plan = {GemmMovement::Descriptors, call.tile};
  const bool aligned = alignmentOf(operands[Operand::A]) == planAlignment &&
                       alignmentOf(operands[Operand::B]) == planAlignment && alignmentOf(product) == planAlignment;
  if (!aligned || !allowsDescriptors(problem))
    plan.movement = GemmMovement::Pointers;
  DITRON_ASSIGN_OR_RETURN(PreparedCall prepared, prepareGemm(kernels, rank, problem, operands[Operand::A],
                                                             operands[Operand::B], product, plan, operands.epilogue()));
  OperandLaunch::Names names =
      OperandLaunch::withEpilogue({{"a_ptr", Operand::A}, {"b_ptr", Operand::B}}, problem.epilogue);
  if (isDense && !call.product)
    names.emplace_back("c_ptr", Operand::Result);
  DITRON_ASSIGN_OR_RETURN(OperandLaunch launch, OperandLaunch::create(std::move(prepared), names));
  parts.sequence.launch(runtime::Lane::Main, launch.call.prepared());
  parts.launches.push_back(std::move(launch));
  parts.exchanged = call.product;
  DITRON_ASSIGN_OR_RETURN(parts.exchange, collective.plan(rank, product, result, call.elements));
  if (isDense)
    return parts;
  constexpr int64_t block = 1024;
  KernelCall spread;
  spread.source = "tensor_parallel_gemm";
  spread.kernel = "copy_rows";
  spread.grid = {static_cast<uint32_t>(std::min<int64_t>(call.resultRows * ceilDivide(columns, block),
                                                         2 * rank.attributes().multiprocessors)),
                 1, 1};
  spread.arguments = {{"from_ptr", result}, {"to_ptr", out},          {"rows", call.resultRows},
                      {"columns", columns}, {"stride_from", columns}, {"stride_to", call.resultStride},
                      {"BLOCK", block}};
  DITRON_ASSIGN_OR_RETURN(parts.spread, OperandLaunch::create(kernels, rank, spread, {{"to_ptr", Operand::Result}}));
  return parts;
}

} // namespace ditron::ops
