//===- AttentionBackward.cpp - Attention, backward ------------------------------------------------------------------------===//
#include "ditron/ops/attention/AttentionBackward.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/attention/AttentionArguments.h"

#include "ditron/ops/attention/Heads.h"
#include "ditron/support/TargetName.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "AttentionBackward";
/// PAD of kernels/attention/backward.py.
constexpr int64_t rowPadding = 128;

Status verify(const AttentionProblem &problem, const AttentionBackwardOperands &operands,
              const AttentionBackwardPlan &plan) {
  DITRON_RETURN_IF_ERROR(verifyHalfOperands(operation, problem.dtype));
  DITRON_RETURN_IF_ERROR(verifyAttention(operation, problem));
  if (problem.headDim > 128 || problem.dimOfValues() != problem.headDim)
    return unsupported(fmt::format("{}: heads of {} elements, of V {}; up to 128 are accepted, the same of both",
                                   operation, problem.headDim, problem.dimOfValues()));
  if (problem.pages || problem.valuesTransposed)
    return unsupported(fmt::format("{}: {}; contiguous K and V are accepted", operation,
                                   problem.pages ? "K and V in pages" : "transposed V"));
  for (auto [name, pointer] :
       {std::pair("q", operands.q), std::pair("k", operands.k), std::pair("v", operands.v),
        std::pair("out", operands.out), std::pair("gradient", operands.gradient), std::pair("dq", operands.dq),
        std::pair("dk", operands.dk), std::pair("dv", operands.dv)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, problem.dtype));
  DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "lse", operands.lse, DataType::F32));
  DITRON_RETURN_IF_ERROR(verifyOptional(operation, "slopes", operands.slopes, DataType::F32));
  DITRON_RETURN_IF_ERROR(verifyOptional(operation, "sinks", operands.sinks, DataType::F32));
  DITRON_RETURN_IF_ERROR(verifyOptional(operation, "dsinks", operands.dsinks, DataType::F32));
  if (operands.sinks.has_value() != operands.dsinks.has_value())
    return invalidArgument(fmt::format("{}: sinks and dsinks are accepted together; one is missing", operation));
  DITRON_RETURN_IF_ERROR(verifyOffsets(operation, problem, operands.queryOffsets, operands.keyOffsets));
  for (const AttentionPlan &part : {plan.keys, plan.queries})
    DITRON_RETURN_IF_ERROR(verifyAttentionPlan(operation, problem, part));
  if (rowPadding % plan.keys.blockM != 0)
    return invalidArgument(fmt::format("{}: tiles of {} queries for dK and dV; powers of two up to {} are accepted",
                                       operation, plan.keys.blockM, rowPadding));
  return Status::ok();
}

/// The three kernels of one problem.
class BackwardCalls {
public:
  BackwardCalls(runtime::KernelProvider &kernels, runtime::Rank &rank, const AttentionProblem &problem,
                const AttentionBackwardOperands &operands)
      : kernels(kernels), rank(rank), problem(problem), operands(operands) {}

  Expected<AttentionBackwardCall> prepare(const AttentionBackwardPlan &plan) {
    padded = problem.packedQueries ? *problem.packedQueries + problem.batch * rowPadding : problem.queries;
    padded = ceilDivide(padded, rowPadding) * rowPadding;
    const int64_t rows = padded * rowHeads();
    DITRON_ASSIGN_OR_RETURN(runtime::Buffer lse, rank.allocate(DataType::F32, rows, "padded log-sum-exp"));
    DITRON_ASSIGN_OR_RETURN(runtime::Buffer delta, rank.allocate(DataType::F32, rows, "delta"));
    paddedLse = lse.pointer();
    deltaPointer = delta.pointer();
    AttentionBackwardCall result;
    DITRON_ASSIGN_OR_RETURN(result.rows, prepareRows());
    DITRON_ASSIGN_OR_RETURN(result.keys, prepareKeys(plan.keys));
    DITRON_ASSIGN_OR_RETURN(result.queries, prepareQueries(plan.queries));
    if (operands.sinks) {
      DITRON_ASSIGN_OR_RETURN(result.sinks, prepareSinks());
    }
    std::vector<runtime::Buffer> workspace;
    workspace.push_back(std::move(lse));
    workspace.push_back(std::move(delta));
    result.rows.keep(std::move(workspace));
    return result;
  }

private:
  /// Rows of `padded` elements.
  int64_t rowHeads() const { return problem.heads * (problem.packedQueries ? 1 : problem.batch); }

  Expected<PreparedCall> prepareRows() {
    constexpr int64_t blockM = 32;
    KernelCall call;
    call.source = "attention/backward";
    call.kernel = "gradient_rows";
    call.grid = {static_cast<uint32_t>(ceilDivide(problem.queries, rowPadding) * rowPadding / blockM),
                 static_cast<uint32_t>(problem.batch * problem.heads), 1};
    call.arguments = {{"out_ptr", operands.out},   {"gradient_ptr", operands.gradient},
                      {"lse_ptr", operands.lse},   {"padded_lse_ptr", paddedLse},
                      {"delta_ptr", deltaPointer}, {"batches", problem.batch},
                      {"heads", problem.heads},    {"queries", problem.queries},
                      {"padded", padded},          {"HEAD_DIM", problem.headDim},
                      {"BLOCK_M", blockM},         {"query_offsets_ptr", orNone(operands.queryOffsets)}};
    addStrides(call, "q", queryStrides(problem, problem.headDim));
    return PreparedCall::create(kernels, rank, call);
  }

  Expected<PreparedCall> prepareSinks() {
    KernelCall call;
    call.source = "attention/backward";
    call.kernel = "sink_gradients";
    call.grid = {static_cast<uint32_t>(problem.heads), 1, 1};
    call.arguments = {{"padded_lse_ptr", paddedLse},
                      {"delta_ptr", deltaPointer},
                      {"sinks_ptr", *operands.sinks},
                      {"dsinks_ptr", *operands.dsinks},
                      {"batches", problem.packedQueries ? 1 : problem.batch},
                      {"heads", problem.heads},
                      {"padded", padded},
                      {"BLOCK", 1024}};
    return PreparedCall::create(kernels, rank, call);
  }

  Expected<PreparedCall> prepareKeys(const AttentionPlan &plan) {
    KernelCall call = products(plan, "key_gradients", ceilDivide(problem.keys, plan.blockN), problem.kvHeads);
    call.arguments.insert(call.arguments.end(), {{"dk_ptr", operands.dk}, {"dv_ptr", operands.dv}});
    if (plan.movement == AttentionMovement::Descriptors)
      call.arguments.push_back({"row_heads", rowHeads()});
    return PreparedCall::create(kernels, rank, call);
  }

  Expected<PreparedCall> prepareQueries(const AttentionPlan &plan) {
    KernelCall call = products(plan, "query_gradient", ceilDivide(problem.queries, plan.blockM), problem.heads);
    call.arguments.push_back({"dq_ptr", operands.dq});
    return PreparedCall::create(kernels, rank, call);
  }

  /// What the two large kernels have in common; a batch has tiles * heads pieces of work.
  KernelCall products(const AttentionPlan &plan, const char *kernel, int64_t tiles, int64_t heads) {
    KernelCall call;
    const bool byDescriptors = plan.movement == AttentionMovement::Descriptors;
    call.source = byDescriptors ? "attention/backward_by_descriptors" : "attention/backward";
    call.kernel = kernel;
    call.numWarps = plan.numWarps;
    call.numStages = plan.numStages;
    call.arguments = {{"q_ptr", operands.q},
                      {"k_ptr", operands.k},
                      {"v_ptr", operands.v},
                      {"gradient_ptr", operands.gradient},
                      {"padded_lse_ptr", paddedLse},
                      {"delta_ptr", deltaPointer},
                      {"heads", problem.heads},
                      {"kv_heads", problem.kvHeads},
                      {"queries", problem.queries},
                      {"keys", problem.keys},
                      {"padded", padded},
                      {"scale", problem.scaleOfScores()},
                      {"BLOCK_M", plan.blockM},
                      {"BLOCK_N", plan.blockN}};
    addStrides(call, "q", queryStrides(problem, problem.headDim));
    addStrides(call, "k", keyStrides(problem, problem.headDim));
    addOptions(call, problem, operands.slopes, operands.queryOffsets, operands.keyOffsets);
    call.grid = {static_cast<uint32_t>(tiles), static_cast<uint32_t>(problem.batch * heads), 1};
    if (byDescriptors) {
      call.kernel = kernel == std::string_view("key_gradients") ? "key_gradients_by_descriptors"
                                                                : "query_gradient_by_descriptors";
      call.grid = {blocksFor(rank, tiles * problem.batch * heads), 1, 1};
      addExtents(call, problem);
    }
    return call;
  }

  runtime::KernelProvider &kernels;
  runtime::Rank &rank;
  const AttentionProblem &problem;
  const AttentionBackwardOperands &operands;
  int64_t padded = 0;
  runtime::Pointer paddedLse, deltaPointer;
};

} // namespace

std::string AttentionBackwardPlan::text() const { return fmt::format("{}, {}", keys.text(), queries.text()); }

Expected<AttentionBackwardPlan> parseAttentionBackwardPlan(std::string_view text) {
  const size_t comma = text.find(", ");
  if (comma == std::string_view::npos)
    return invalidArgument(
        fmt::format("plan '{}': a plan of the backward is written like '{}'", text, AttentionBackwardPlan().text()));
  AttentionBackwardPlan plan;
  DITRON_ASSIGN_OR_RETURN(plan.keys, parseAttentionPlan(text.substr(0, comma)));
  DITRON_ASSIGN_OR_RETURN(plan.queries, parseAttentionPlan(text.substr(comma + 2)));
  return plan;
}

AttentionBackwardPlan chooseAttentionBackwardPlan(const AttentionProblem &problem, std::string_view target) {
  AttentionBackwardPlan plan;
  if (hasTensorCopies(target) && problem.headDim >= 64) {
    plan.keys = {.blockM = 64, .blockN = 128, .numStages = 4, .movement = AttentionMovement::Descriptors};
    plan.queries = {.blockM = 128, .blockN = 64, .numStages = 3, .movement = AttentionMovement::Descriptors};
    if (problem.headDim == 64) {
      plan.keys.blockM = plan.queries.blockN = 128;
      plan.keys.numStages = 3;
    }
  }
  return plan;
}

Status AttentionBackwardCall::enqueue(runtime::Stream &stream) const {
  DITRON_RETURN_IF_ERROR(rows.enqueue(stream));
  if (sinks)
    DITRON_RETURN_IF_ERROR(sinks->enqueue(stream));
  DITRON_RETURN_IF_ERROR(keys.enqueue(stream));
  return queries.enqueue(stream);
}

Expected<AttentionBackwardCall> prepareAttentionBackward(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                                         const AttentionProblem &problem,
                                                         const AttentionBackwardOperands &operands,
                                                         const std::optional<AttentionBackwardPlan> &plan) {
  const auto &o = operands;
  const bool isAligned = areAlignedForCopies({o.q, o.k, o.v, o.gradient, o.dq, o.dk, o.dv});
  const AttentionBackwardPlan chosen =
      plan ? *plan : chooseAttentionBackwardPlan(problem, isAligned ? kernels.target() : "");
  DITRON_RETURN_IF_ERROR(verify(problem, operands, chosen));
  return BackwardCalls(kernels, rank, problem, operands).prepare(chosen);
}

} // namespace ditron::ops
