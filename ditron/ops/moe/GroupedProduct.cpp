//===- GroupedProduct.cpp - Grouped products of the caller's operands -------------------------------------------------------===//
#include "ditron/ops/moe/GroupedProduct.h"

#include "ditron/ops/moe/Routing.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "GroupedGemm";

struct Operand {
  std::string_view name, parameter;
  runtime::Pointer GroupedGemmOperands::*pointer;
  DataType type;
};
/// Those that the caller gives.
std::vector<Operand> operandsOf(const GroupedGemmProblem &problem) {
  std::vector<Operand> operands = {{"a", "a_ptr", &GroupedGemmOperands::a, problem.dtype},
                                   {"b", "b_ptr", &GroupedGemmOperands::b, problem.dtype},
                                   {"c", "c_ptr", &GroupedGemmOperands::c, problem.resultType},
                                   {"offsets", "offsets_ptr", &GroupedGemmOperands::offsets, DataType::I32}};
  if (problem.slots > 0)
    operands.push_back({"slotOfRow", "slot_of_row_ptr", &GroupedGemmOperands::slotOfRow, DataType::I32});
  if (problem.blockScales) {
    operands.push_back({"aScale", "a_scale_ptr", &GroupedGemmOperands::aScale, DataType::F32});
    operands.push_back({"bScale", "b_scale_ptr", &GroupedGemmOperands::bScale, DataType::F32});
  }
  return operands;
}

} // namespace

Expected<GroupedProduct> GroupedProduct::create(runtime::Rank &rank, runtime::KernelProvider &kernels,
                                                const GroupedGemmProblem &problem,
                                                const std::optional<GemmPlan> &plan) {
  GroupedProduct made;
  made.problemValue = problem;
  made.rank = &rank;
  made.kernels = &kernels;
  if (plan) {
    made.plan = *plan;
  } else {
    DITRON_ASSIGN_OR_RETURN(made.plan, libraryGroupedGemmPlan(problem, rank.world()));
  }
  DITRON_RETURN_IF_ERROR(verifyGroupedGemm(problem, made.plan));
  const int64_t tiles = mostTilesOf(problem.maxRows, problem.experts, made.plan.tile.blockM);
  DITRON_ASSIGN_OR_RETURN(made.tilesOf, rank.allocate(DataType::I32, 1 + 2 * tiles, "grouped_gemm_tiles"));
  return made;
}

Expected<GroupedProduct::Call> GroupedProduct::makeCall() const {
  // Any buffer stands for the caller's: only types and alignment matter.
  GroupedGemmOperands operands;
  for (const Operand &operand : operandsOf(problemValue))
    operands.*operand.pointer = tilesOf.pointer().as(operand.type);
  operands.tiles = tilesOf.pointer();
  Call made;
  DITRON_ASSIGN_OR_RETURN(made.tiles, prepareTiles(*kernels, *rank, problemValue.experts, problemValue.maxRows,
                                                   plan.tile.blockM, operands.offsets, operands.tiles));
  DITRON_ASSIGN_OR_RETURN(made.offsets, made.tiles.pointerParameter("offsets_ptr"));
  DITRON_ASSIGN_OR_RETURN(made.product, prepareGroupedGemm(*kernels, *rank, problemValue, operands, plan));
  for (const Operand &operand : operandsOf(problemValue)) {
    DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, made.product.pointerParameter(operand.parameter));
    made.pointers.emplace_back(parameter, operand.pointer);
  }
  return made;
}

Status GroupedProduct::prepare() {
  if (call) // graphs may have its kernels
    return Status::ok();
  DITRON_ASSIGN_OR_RETURN(call, makeCall());
  return Status::ok();
}

Status GroupedProduct::enqueue(runtime::Stream &stream, const GroupedGemmOperands &operands) {
  for (const Operand &operand : operandsOf(problemValue))
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, operand.name, operands.*operand.pointer, operand.type));
  if (!call && stream.isCapturing())
    return invalidArgument(fmt::format(
        "{}: not prepared, and the stream is being captured: call prepare before the capture begins", operation));
  DITRON_RETURN_IF_ERROR(prepare());
  DITRON_RETURN_IF_ERROR(call->tiles.setPointer(call->offsets, operands.offsets));
  for (const auto &[parameter, pointer] : call->pointers)
    DITRON_RETURN_IF_ERROR(call->product.setPointer(parameter, operands.*pointer));
  DITRON_RETURN_IF_ERROR(call->tiles.enqueue(stream));
  return call->product.enqueue(stream);
}

} // namespace ditron::ops
