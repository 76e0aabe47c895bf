//===- RowWise.cpp - Softmax, RMSNorm and layer norm of the rows of a matrix ----------------------------------------------===//
#include "ditron/ops/RowWise.h"

#include "ditron/ops/GemmKernels.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::ops {

namespace {

int64_t strideOf(int64_t given, const RowProblem &problem) { return given == 0 ? problem.columns : given; }

bool fitsPairs(const RowProblem &problem) {
  return sizeOf(problem.dtype) == 2 && problem.columns % 2 == 0 && strideOf(problem.strideX, problem) % 2 == 0 &&
         strideOf(problem.strideY, problem) % 2 == 0;
}

Status verify(std::string_view operation, const RowProblem &problem, const RowPlan &plan) {
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, problem.dtype));
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  if (problem.rows < 1 || problem.rows > limit || problem.columns < 1 || problem.columns > widestRow)
    return invalidArgument(fmt::format("{}: {} rows of {} columns; 1 to {} rows of 1 to {} columns are accepted",
                                       operation, problem.rows, problem.columns, limit, widestRow));
  for (int64_t stride : {strideOf(problem.strideX, problem), strideOf(problem.strideY, problem)})
    if (stride < problem.columns || stride > limit)
      return invalidArgument(fmt::format("{}: rows are {} elements apart and have {} columns", operation, stride,
                                         problem.columns));
  if (plan.pairs && !fitsPairs(problem))
    return unsupported(fmt::format("{}: the form in pairs needs 16-bit elements and even columns and strides", operation));
  if (!std::has_single_bit(plan.numWarps) || plan.numWarps > 32)
    return invalidArgument(fmt::format("{}: {} warps; 1, 2, 4, 8, 16 or 32 are accepted", operation, plan.numWarps));
  return Status::ok();
}

/// All of the call but the kernel's name and its own arguments.
KernelCall rowCall(const runtime::Rank &rank, const RowProblem &problem, const RowPlan &plan, runtime::Pointer x,
                   runtime::Pointer y) {
  KernelCall call;
  call.source = "row_wise";
  call.numWarps = plan.numWarps;
  int64_t blocks = problem.rows;
  if (plan.blocksPerMultiprocessor > 0)
    blocks = std::min<int64_t>(blocks, int64_t(rank.attributes().multiprocessors) * plan.blocksPerMultiprocessor);
  call.grid = {static_cast<uint32_t>(blocks), 1, 1};
  const uint32_t block = std::bit_ceil(static_cast<uint32_t>(std::max<int64_t>(problem.columns, 32)));
  call.arguments = {{"x_ptr", x},
                    {"y_ptr", y},
                    {"rows", problem.rows},
                    {"columns", problem.columns},
                    {"stride_x", strideOf(problem.strideX, problem)},
                    {"stride_y", strideOf(problem.strideY, problem)},
                    {"BLOCK", block}};
  return call;
}

} // namespace

std::string RowPlan::text() const {
  return fmt::format("{} warps {} {}", pairs ? "pairs" : "plain", numWarps,
                     blocksPerMultiprocessor ? fmt::format("blocks {}", blocksPerMultiprocessor) : "block per row");
}

RowPlan chooseRowPlan(const RowProblem &problem) {
  // 32 elements a thread: four 16-byte loads of 16-bit elements in flight, and no spills.
  const uint32_t block = std::bit_ceil(static_cast<uint32_t>(std::max<int64_t>(problem.columns, 1)));
  RowPlan plan;
  plan.numWarps = std::clamp(std::max(block / 1024, std::min(block / 512, 8u)), 1u, 32u);
  // One block of such a row fills a multiprocessor, see kernels/row_wise.
  if (block >= 32768 && fitsPairs(problem)) {
    plan.pairs = true;
    plan.numWarps = 16;
    plan.blocksPerMultiprocessor = 2;
  }
  return plan;
}

Expected<PreparedCall> prepareSoftmax(runtime::KernelProvider &kernels, runtime::Rank &rank, const RowProblem &problem, runtime::Pointer x,
                                      runtime::Pointer y, const std::optional<RowPlan> &plan) {
  constexpr std::string_view operation = "Softmax";
  const RowPlan chosen = plan ? *plan : chooseRowPlan(problem);
  DITRON_RETURN_IF_ERROR(verify(operation, problem, chosen));
  for (auto [name, pointer] : {std::pair("x", x), std::pair("y", y)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, problem.dtype));
  KernelCall call = rowCall(rank, problem, chosen, x, y);
  call.kernel = chosen.pairs ? "softmax_pairs" : "softmax";
  return PreparedCall::create(kernels, rank, call);
}

Expected<PreparedCall> prepareRmsNorm(runtime::KernelProvider &kernels, runtime::Rank &rank, const RowProblem &problem, runtime::Pointer x,
                                      runtime::Pointer weight, runtime::Pointer y, double epsilon,
                                      const std::optional<RowPlan> &plan) {
  constexpr std::string_view operation = "RmsNorm";
  const RowPlan chosen = plan ? *plan : chooseRowPlan(problem);
  DITRON_RETURN_IF_ERROR(verify(operation, problem, chosen));
  for (auto [name, pointer] : {std::pair("x", x), std::pair("weight", weight), std::pair("y", y)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, problem.dtype));
  KernelCall call = rowCall(rank, problem, chosen, x, y);
  call.kernel = chosen.pairs ? "rms_norm_pairs" : "rms_norm";
  call.arguments.emplace_back("weight_ptr", weight);
  call.arguments.emplace_back("epsilon", epsilon);
  return PreparedCall::create(kernels, rank, call);
}

/// What the library chooses where there is no form in pairs.
static RowPlan choosePlainPlan(const RowProblem &problem) {
  RowPlan plan = chooseRowPlan(problem);
  if (plan.pairs)
    plan = {.numWarps = 32};
  return plan;
}

Expected<PreparedCall> prepareLayerNorm(runtime::KernelProvider &kernels, runtime::Rank &rank, const RowProblem &problem,
                                        runtime::Pointer x, runtime::Pointer weight, runtime::Pointer bias,
                                        runtime::Pointer y, double epsilon, const std::optional<RowPlan> &plan) {
  constexpr std::string_view operation = "LayerNorm";
  const RowPlan chosen = plan ? *plan : choosePlainPlan(problem);
  DITRON_RETURN_IF_ERROR(verify(operation, problem, chosen));
  if (chosen.pairs)
    return unsupported(fmt::format("{}: there is no form in pairs; use a plain plan", operation));
  for (auto [name, pointer] :
       {std::pair("x", x), std::pair("weight", weight), std::pair("bias", bias), std::pair("y", y)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, problem.dtype));
  KernelCall call = rowCall(rank, problem, chosen, x, y);
  call.kernel = "layer_norm";
  call.arguments.emplace_back("weight_ptr", weight);
  call.arguments.emplace_back("bias_ptr", bias);
  call.arguments.emplace_back("epsilon", epsilon);
  return PreparedCall::create(kernels, rank, call);
}

} // namespace ditron::ops
