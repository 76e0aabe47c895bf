//===- AttentionBackward.cpp - Attention, backward ------------------------------------------------------------------------===//
#include "ditron/ops/attention/AttentionBackward.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/attention/AttentionArguments.h"

#include "ditron/ops/attention/Heads.h"
#include "ditron/support/TargetName.h"

#include <fmt/format.h>

#include <bit>
#include <cstdio>
#include <limits>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "AttentionBackward";
/// PAD of kernels/attention/backward.py.
constexpr int64_t rowPadding = 128;

/// Words of a row of the sums of dQ, and the most rows that a tensor copy has: ROW of kernels/attention/backward_by_turns.py.
constexpr int64_t sumsRow = 32, mostSumsRows = 256;

int64_t headBlockOf(const AttentionProblem &problem) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(problem.headDim)));
}

/// What two warpgroups divide between them: the keys, and in the sums of dQ the queries or, if they are less than 128, the head.
Status verifyTurns(const AttentionProblem &problem, const AttentionPlan &plan) {
  const int64_t head = headBlockOf(problem), rows = plan.numWarps / 4 * 64;
  const int64_t divided = plan.blockM < 128 ? head : plan.blockM;
  if (plan.movement != AttentionMovement::Descriptors || plan.numWarps % 4 != 0 || plan.numWarps == 0 ||
      plan.blockN % rows != 0 || divided % rows != 0 || plan.blockM * head > mostSumsRows * sumsRow)
    return invalidArgument(fmt::format(
        "{}: plan '{}' by turns, heads of {}; accepted are descriptors, a multiple of 64 keys and of 64 queries (below 128: of 64 elements of a head) "
        "for each 4 warps, and up to {} elements of dQ in a tile",
        operation, plan.text(), problem.headDim, mostSumsRows * sumsRow));
  return Status::ok();
}

/// How many programs share a head so that the GPU is done soonest: `heads` are dealt out to groups, the tiles of one to the programs of its group.
int64_t programsOfHead(int64_t multiprocessors, int64_t heads, int64_t tiles) {
  int64_t best = 1, least = std::numeric_limits<int64_t>::max();
  for (int64_t programs = 1; programs <= std::min(multiprocessors, tiles); ++programs) {
    const int64_t items = ceilDivide(heads, multiprocessors / programs) * ceilDivide(tiles, programs);
    if (items < least) {
      best = programs;
      least = items;
    }
  }
  return best;
}

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
  if (plan.isByTurns)
    DITRON_RETURN_IF_ERROR(verifyTurns(problem, plan.keys));
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
    const int64_t rows = padded * problem.heads * (problem.packedQueries ? 1 : problem.batch);
    DITRON_ASSIGN_OR_RETURN(runtime::Buffer lse, rank.allocate(DataType::F32, rows, "padded log-sum-exp"));
    DITRON_ASSIGN_OR_RETURN(runtime::Buffer delta, rank.allocate(DataType::F32, rows, "delta"));
    paddedLse = lse.pointer();
    deltaPointer = delta.pointer();
    std::vector<runtime::Buffer> workspace;
    workspace.push_back(std::move(lse));
    workspace.push_back(std::move(delta));
    AttentionBackwardCall result;
    if (plan.isByTurns) {
      const int64_t sumsSize = rows * headBlockOf(problem);
      DITRON_ASSIGN_OR_RETURN(runtime::Buffer sums, rank.allocate(DataType::F32, sumsSize, "sums of dQ"));
      DITRON_ASSIGN_OR_RETURN(runtime::Buffer counters,
                              rank.allocate(DataType::I32, rows / plan.keys.blockM, "turns of dQ"));
      turns = Turns{sums.pointer(), counters.pointer(), sumsSize / sumsRow, plan.keys.blockM};
      workspace.push_back(std::move(sums));
      workspace.push_back(std::move(counters));
      DITRON_ASSIGN_OR_RETURN(result.keys, prepareByTurns(plan));
      DITRON_ASSIGN_OR_RETURN(result.queries, prepareQueriesOfSums());
    } else {
      DITRON_ASSIGN_OR_RETURN(result.keys, prepareKeys(plan.keys));
      DITRON_ASSIGN_OR_RETURN(result.queries, prepareQueries(plan.queries));
    }
    DITRON_ASSIGN_OR_RETURN(result.rows, prepareRows());
    if (operands.sinks) {
      DITRON_ASSIGN_OR_RETURN(result.sinks, prepareSinks());
    }
    result.rows.keep(std::move(workspace));
    return result;
  }

private:
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
    if (turns)
      call.arguments.insert(call.arguments.end(), {{"sums_ptr", turns->sums},
                                                   {"counters_ptr", turns->counters},
                                                   {"TILE", turns->blockM}});
    addStrides(call, "q", queryStrides(problem, problem.headDim));
    return PreparedCall::create(kernels, rank, call);
  }

  Expected<PreparedCall> prepareByTurns(const AttentionBackwardPlan &plan) {
    const int64_t tiles = ceilDivide(problem.keys, plan.keys.blockN), heads = problem.batch * problem.kvHeads;
    const int64_t multiprocessors = rank.attributes().multiprocessors;
    const int64_t programs = plan.programs ? plan.programs : programsOfHead(multiprocessors, heads, tiles);
    if (programs > multiprocessors)
      return invalidArgument(fmt::format("{}: {} programs share a head by turns; they must run at the same time, and the GPU has {} multiprocessors",
                                         operation, programs, multiprocessors));
    KernelCall call = products(plan.keys, "gradients_by_turns", tiles, problem.kvHeads);
    call.source = "attention/backward_by_turns";
    call.grid = {static_cast<uint32_t>(std::min(heads, multiprocessors / programs) * programs), 1, 1};
    call.arguments.insert(call.arguments.end(), {{"dk_ptr", operands.dk},
                                                 {"dv_ptr", operands.dv},
                                                 {"sums_ptr", turns->sums},
                                                 {"counters_ptr", turns->counters},
                                                 {"sums_rows", turns->rows},
                                                 {"PROGRAMS", programs}});
    return PreparedCall::create(kernels, rank, call);
  }

  Expected<PreparedCall> prepareQueriesOfSums() {
    KernelCall call;
    call.source = "attention/backward_by_turns";
    call.kernel = "query_gradient_of_sums";
    call.numWarps = 8; // whose accumulators the sums are
    call.grid = {static_cast<uint32_t>(ceilDivide(problem.queries, turns->blockM)),
                 static_cast<uint32_t>(problem.batch * problem.heads), 1};
    call.arguments = {{"sums_ptr", turns->sums},
                      {"dq_ptr", operands.dq},
                      {"heads", problem.heads},
                      {"queries", problem.queries},
                      {"padded", padded},
                      {"scale", problem.scaleOfScores()},
                      {"HEAD_DIM", problem.headDim},
                      {"BLOCK_M", turns->blockM},
                      {"query_offsets_ptr", orNone(operands.queryOffsets)}};
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
      if (!turns)
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
  /// The sums of dQ and who is next to add to each tile of `blockM` queries.
  struct Turns {
    runtime::Pointer sums, counters;
    int64_t rows; ///< Of the sums.
    int64_t blockM;
  };

  int64_t padded = 0;
  runtime::Pointer paddedLse, deltaPointer;
  std::optional<Turns> turns;
};

} // namespace

static constexpr std::string_view turnsText = "by turns";

std::string AttentionBackwardPlan::text() const {
  if (!isByTurns)
    return fmt::format("{}, {}", keys.text(), queries.text());
  return fmt::format("{}, {}{}", keys.text(), turnsText, programs ? fmt::format(" of {}", programs) : "");
}

Expected<AttentionBackwardPlan> parseAttentionBackwardPlan(std::string_view text) {
  const size_t comma = text.find(", ");
  if (comma == std::string_view::npos)
    return invalidArgument(
        fmt::format("plan '{}': a plan of the backward is written like '{}'", text, AttentionBackwardPlan().text()));
  AttentionBackwardPlan plan;
  DITRON_ASSIGN_OR_RETURN(plan.keys, parseAttentionPlan(text.substr(0, comma)));
  const std::string_view rest = text.substr(comma + 2);
  if (!rest.starts_with(turnsText)) {
    DITRON_ASSIGN_OR_RETURN(plan.queries, parseAttentionPlan(rest));
    return plan;
  }
  plan.isByTurns = true;
  if (const std::string number(rest.substr(turnsText.size())); !number.empty()) {
    int read = 0;
    if (std::sscanf(number.c_str(), " of %u%n", &plan.programs, &read) != 1 || size_t(read) != number.size() ||
        plan.programs == 0)
      return invalidArgument(
          fmt::format("plan '{}': '{}' is followed by nothing or by ' of' and the programs of a head", text, turnsText));
  }
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
