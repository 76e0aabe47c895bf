//===- AttentionBackward.cpp - Attention, backward ------------------------------------------------------------------------===//
#include "ditron/ops/attention/AttentionBackward.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/attention/AttentionArguments.h"

#include "ditron/ops/attention/Heads.h"
#include "ditron/support/TargetName.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "AttentionBackward";
/// PAD of kernels/attention/backward.py.
constexpr int64_t rowPadding = 128;
/// What the library's own plans keep at most.
constexpr uint32_t mostKeptMebibytes = 2048;

/// Gradients of scores that are kept, as the kernels have them: [heads, tiles, keys, blockM].
struct KeptScores {
  KeptScores(const AttentionProblem &problem, const AttentionBackwardPlan &plan)
      : tiles(ceilDivide(problem.queries, plan.queries.blockM)),
        keys(ceilDivide(problem.keys, plan.keys.blockN) * plan.keys.blockN), group(problem.heads / problem.kvHeads),
        blockM(plan.queries.blockM) {
    const double bytesOfHead = static_cast<double>(group) * static_cast<double>(tiles) * static_cast<double>(keys) *
                               static_cast<double>(blockM * sizeOf(problem.dtype));
    const double most = std::min(static_cast<double>(plan.keptMebibytes) * (1 << 20),
                                 mostRows * static_cast<double>(blockM * sizeOf(problem.dtype)));
    heads = std::min(problem.batch * problem.kvHeads, static_cast<int64_t>(most / bytesOfHead));
  }
  /// Of blockM elements, of so many heads of K and V with their query heads.
  int64_t rows(int64_t count) const { return count * group * tiles * keys; }

  static constexpr double mostRows = INT32_MAX;
  int64_t tiles, keys, group, blockM;
  int64_t heads; ///< Of K and V, of all batches, whose gradients fit at a time.
};

Status verifyKept(const AttentionProblem &problem, const AttentionBackwardPlan &plan) {
  if (plan.keptMebibytes == 0)
    return Status::ok();
  for (const AttentionPlan &part : {plan.keys, plan.queries})
    if (part.movement != AttentionMovement::Descriptors)
      return invalidArgument(
          fmt::format("{}: plan '{}' keeps gradients of scores; both kernels by descriptors are accepted with that",
                      operation, plan.text()));
  if (problem.packedQueries || problem.packedKeys)
    return unsupported(fmt::format("{}: plan '{}' keeps gradients of scores, of packed rows; a plan that does not, "
                                   "or rows of one length are accepted",
                                   operation, plan.text()));
  if (plan.queries.blockM != plan.keys.blockM || plan.keys.blockN % plan.queries.blockN != 0)
    return invalidArgument(fmt::format(
        "{}: plan '{}' keeps gradients of scores; tiles for dQ of as many queries as those for dK and dV, and of as "
        "many keys or a part of them are accepted with that",
        operation, plan.text()));
  if (KeptScores(problem, plan).heads == 0)
    return invalidArgument(fmt::format(
        "{}: plan '{}' for {} queries and {} keys, {} query heads on each of K and V, has not enough memory for the "
        "gradients of the scores of one head of K and V",
        operation, plan.text(), problem.queries, problem.keys, problem.heads / problem.kvHeads));
  return Status::ok();
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
  if (rowPadding % plan.keys.blockM != 0)
    return invalidArgument(fmt::format("{}: tiles of {} queries for dK and dV; powers of two up to {} are accepted",
                                       operation, plan.keys.blockM, rowPadding));
  return verifyKept(problem, plan);
}

/// The kernels of one problem.
class BackwardCalls {
public:
  BackwardCalls(runtime::KernelProvider &kernels, runtime::Rank &rank, const AttentionProblem &problem,
                const AttentionBackwardOperands &operands, AttentionWorkspace &workspace)
      : kernels(kernels), rank(rank), problem(problem), operands(operands), workspace(workspace) {}

  Expected<AttentionBackwardCall> prepare(const AttentionBackwardPlan &plan) {
    padded = problem.packedQueries ? *problem.packedQueries + problem.batch * rowPadding : problem.queries;
    padded = ceilDivide(padded, rowPadding) * rowPadding;
    const int64_t rows = padded * problem.heads * (problem.packedQueries ? 1 : problem.batch);
    DITRON_ASSIGN_OR_RETURN(runtime::Buffer lse, rank.allocate(DataType::F32, rows, "padded log-sum-exp"));
    DITRON_ASSIGN_OR_RETURN(runtime::Buffer delta, rank.allocate(DataType::F32, rows, "delta"));
    paddedLse = lse.pointer();
    deltaPointer = delta.pointer();
    AttentionBackwardCall result;
    DITRON_ASSIGN_OR_RETURN(result.rows, prepareRows());
    result.keepsScores = plan.keptMebibytes > 0;
    if (!result.keepsScores) {
      KernelCall keys = keysCall(plan.keys);
      if (plan.keys.movement == AttentionMovement::Descriptors)
        keys.arguments.insert(keys.arguments.end(), {{"score_gradients_ptr", runtime::None()},
                                                     {"kept_rows", 0},
                                                     {"kept_tiles", 0},
                                                     {"kept_keys", 0},
                                                     {"first_head", 0},
                                                     {"count", problem.batch * problem.kvHeads}});
      AttentionBackwardCall::Part all;
      DITRON_ASSIGN_OR_RETURN(all.keys, PreparedCall::create(kernels, rank, keys));
      DITRON_ASSIGN_OR_RETURN(all.queries, prepareQueries(plan.queries));
      result.parts.push_back(std::move(all));
    } else {
      DITRON_ASSIGN_OR_RETURN(result.parts, prepareKept(plan));
    }
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

  KernelCall keysCall(const AttentionPlan &plan) {
    KernelCall call = products(plan, "key_gradients", ceilDivide(problem.keys, plan.blockN), problem.kvHeads);
    call.arguments.insert(call.arguments.end(), {{"dk_ptr", operands.dk}, {"dv_ptr", operands.dv}});
    if (plan.movement == AttentionMovement::Descriptors) {
      call.arguments.emplace_back("row_heads", problem.packedQueries ? problem.heads : problem.batch * problem.heads);
    }
    return call;
  }

  Expected<PreparedCall> prepareQueries(const AttentionPlan &plan) {
    KernelCall call = products(plan, "query_gradient", ceilDivide(problem.queries, plan.blockM), problem.heads);
    call.arguments.push_back({"dq_ptr", operands.dq});
    return PreparedCall::create(kernels, rank, call);
  }

  /// As few parts as the memory allows, of equally many heads.
  Expected<std::vector<AttentionBackwardCall::Part>> prepareKept(const AttentionBackwardPlan &plan) {
    const KeptScores kept(problem, plan);
    const int64_t heads = problem.batch * problem.kvHeads;
    const int64_t headsOfPart = ceilDivide(heads, ceilDivide(heads, kept.heads));
    const int64_t rows = kept.rows(headsOfPart);
    DITRON_ASSIGN_OR_RETURN(std::shared_ptr<const runtime::Buffer> memory,
                            workspace.atLeast(rank, static_cast<uint64_t>(rows * kept.blockM)));
    std::vector<AttentionBackwardCall::Part> parts;
    for (int64_t first = 0; first < heads; first += headsOfPart) {
      const int64_t count = std::min(headsOfPart, heads - first);
      const auto prepare = [&](KernelCall call, int64_t tiles) -> Expected<PreparedCall> {
        call.arguments.insert(call.arguments.end(), {{"score_gradients_ptr", memory->pointer().as(problem.dtype)},
                                                     {"kept_rows", rows},
                                                     {"kept_tiles", kept.tiles},
                                                     {"kept_keys", kept.keys},
                                                     {"first_head", first},
                                                     {"count", count}});
        call.grid = {blocksFor(rank, tiles), 1, 1};
        DITRON_ASSIGN_OR_RETURN(PreparedCall prepared, PreparedCall::create(kernels, rank, call));
        prepared.keep(memory);
        return prepared;
      };
      AttentionBackwardCall::Part part;
      DITRON_ASSIGN_OR_RETURN(part.keys, prepare(keysCall(plan.keys), kept.keys / plan.keys.blockN * count));
      DITRON_ASSIGN_OR_RETURN(part.queries, prepare(keptQueriesCall(plan), kept.tiles * count * kept.group));
      parts.push_back(std::move(part));
    }
    return parts;
  }

  KernelCall keptQueriesCall(const AttentionBackwardPlan &plan) {
    KernelCall call;
    call.source = "attention/backward_by_descriptors";
    call.kernel = "query_gradient_of_kept";
    call.numWarps = plan.queries.numWarps;
    call.numStages = plan.queries.numStages;
    call.arguments = {
        {"k_ptr", operands.k},
        {"dq_ptr", operands.dq},
        {"heads", problem.heads},
        {"kv_heads", problem.kvHeads},
        {"queries", problem.queries},
        {"keys", problem.keys},
        {"q_batches", problem.batch},
        {"q_rows", problem.queries},
        {"k_batches", problem.batch},
        {"k_rows", problem.keys},
        {"scale", problem.scaleOfScores()},
        {"CAUSAL", problem.causal},
        {"HEAD_DIM", problem.headDim},
        {"BLOCK_M", plan.queries.blockM},
        {"BLOCK_N", plan.queries.blockN},
        {"KEPT_N", plan.keys.blockN},
        {"window", problem.window ? runtime::Argument(*problem.window) : runtime::Argument(runtime::None())}};
    addStrides(call, "q", queryStrides(problem, problem.headDim));
    addStrides(call, "k", keyStrides(problem, problem.headDim));
    return call;
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
  AttentionWorkspace &workspace;
  int64_t padded = 0;
  runtime::Pointer paddedLse, deltaPointer;
};

} // namespace

std::string AttentionBackwardPlan::text() const {
  return fmt::format("{}, {}{}", keys.text(), queries.text(),
                     keptMebibytes == 0 ? "" : fmt::format(" kept {} MiB", keptMebibytes));
}

Expected<AttentionBackwardPlan> parseAttentionBackwardPlan(std::string_view text) {
  const size_t comma = text.find(", ");
  if (comma == std::string_view::npos)
    return invalidArgument(
        fmt::format("plan '{}': a plan of the backward is written like '{}'", text, AttentionBackwardPlan().text()));
  AttentionBackwardPlan plan;
  const size_t kept = text.find(" kept ", comma);
  if (kept != std::string_view::npos) {
    const std::string amount(text.substr(kept));
    int read = 0;
    if (std::sscanf(amount.c_str(), " kept %9u MiB%n", &plan.keptMebibytes, &read) != 1 ||
        static_cast<size_t>(read) != amount.size() || plan.keptMebibytes == 0)
      return invalidArgument(fmt::format("plan '{}': memory for gradients of scores is written like '{}'", text,
                                         AttentionBackwardPlan{.keptMebibytes = mostKeptMebibytes}.text()));
  }
  DITRON_ASSIGN_OR_RETURN(plan.keys, parseAttentionPlan(text.substr(0, comma)));
  DITRON_ASSIGN_OR_RETURN(plan.queries, parseAttentionPlan(text.substr(comma + 2, kept - std::min(kept, comma + 2))));
  return plan;
}

/// What is chosen where nothing can be kept.
static AttentionBackwardPlan planOfSevenProducts(const AttentionProblem &problem, std::string_view target) {
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

AttentionBackwardPlan chooseAttentionBackwardPlan(const AttentionProblem &problem, std::string_view target) {
  const AttentionBackwardPlan plan = planOfSevenProducts(problem, target);
  AttentionBackwardPlan keeping = plan;
  keeping.queries.blockM = plan.keys.blockM;
  keeping.queries.blockN = 64;
  keeping.queries.numWarps = plan.keys.blockM / 16;
  keeping.queries.numStages = 4;
  keeping.keptMebibytes = mostKeptMebibytes;
  return verifyKept(problem, keeping).isOk() ? keeping : plan;
}

Expected<std::shared_ptr<const runtime::Buffer>> AttentionWorkspace::atLeast(runtime::Rank &rank, uint64_t count) {
  if (latest && latest->count() >= count)
    return latest;
  // Callers with ever more rows then have at most twice the memory of the largest one.
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer,
                          rank.allocate(DataType::BF16, std::bit_ceil(count), "attention_score_gradients"));
  latest = std::make_shared<const runtime::Buffer>(std::move(buffer));
  return latest;
}

Status AttentionBackwardCall::enqueue(runtime::Stream &stream) const {
  DITRON_RETURN_IF_ERROR(rows.enqueue(stream));
  if (sinks)
    DITRON_RETURN_IF_ERROR(sinks->enqueue(stream));
  for (const Part &part : parts) {
    DITRON_RETURN_IF_ERROR(part.keys.enqueue(stream));
    DITRON_RETURN_IF_ERROR(part.queries.enqueue(stream));
  }
  return Status::ok();
}

Expected<AttentionBackwardCall> prepareAttentionBackward(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                                         const AttentionProblem &problem,
                                                         const AttentionBackwardOperands &operands,
                                                         const std::optional<AttentionBackwardPlan> &plan,
                                                         AttentionWorkspace *workspace) {
  const auto &o = operands;
  const bool isAligned = areAlignedForCopies({o.q, o.k, o.v, o.gradient, o.dq, o.dk, o.dv});
  const std::string target = isAligned ? std::string(kernels.target()) : std::string();
  const AttentionBackwardPlan chosen = plan ? *plan : chooseAttentionBackwardPlan(problem, target);
  DITRON_RETURN_IF_ERROR(verify(problem, operands, chosen));
  AttentionWorkspace own;
  BackwardCalls calls(kernels, rank, problem, operands, workspace ? *workspace : own);
  Expected<AttentionBackwardCall> call = calls.prepare(chosen);
  if (!plan && chosen.keptMebibytes > 0 && !call.isOk() && call.status().code() == StatusCode::ResourceExhausted)
    return calls.prepare(planOfSevenProducts(problem, target));
  return call;
}

} // namespace ditron::ops
