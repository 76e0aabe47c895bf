//===- Attention.cpp - Attention, forward ---------------------------------------------------------------------------------===//
#include "ditron/ops/attention/Attention.h"

#include "ditron/ops/GemmKernels.h"

#include "ditron/support/TargetName.h"

#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <numbers>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "Attention";

constexpr std::string_view descriptorsSuffix = " descriptors";

Status verify(const AttentionProblem &problem, const AttentionPlan &plan) {
  if (problem.dtype != DataType::BF16 && problem.dtype != DataType::F16)
    return unsupported(
        fmt::format("{}: operands of type {}; bf16 and fp16 are accepted", operation, ditron::toString(problem.dtype)));
  if (problem.batch < 1 || problem.heads < 1 || problem.kvHeads < 1 || problem.queries < 1 || problem.keys < 1)
    return invalidArgument(fmt::format("{}: batch {}, heads {}, kvHeads {}, queries {}, keys {}; all must be positive",
                                       operation, problem.batch, problem.heads, problem.kvHeads, problem.queries,
                                       problem.keys));
  if (problem.heads % problem.kvHeads != 0)
    return invalidArgument(fmt::format("{}: {} heads on {} heads of K and V; the second must divide the first",
                                       operation, problem.heads, problem.kvHeads));
  if (problem.headDim != 16 && problem.headDim != 32 && problem.headDim != 64 && problem.headDim != 128 &&
      problem.headDim != 256)
    return unsupported(
        fmt::format("{}: heads of {} elements; 16, 32, 64, 128 and 256 are accepted", operation, problem.headDim));
  constexpr int64_t mostBlocks = 65535, mostElements = std::numeric_limits<int32_t>::max();
  if (problem.batch * problem.heads > mostBlocks)
    return invalidArgument(fmt::format("{}: batch {} times heads {}; at most {} are accepted", operation, problem.batch,
                                       problem.heads, mostBlocks));
  if (std::max(problem.queries, problem.keys) * problem.headDim > mostElements)
    return invalidArgument(fmt::format("{}: {} queries and {} keys of {} elements; a head may have {} elements",
                                       operation, problem.queries, problem.keys, problem.headDim, mostElements));
  if (plan.blockM < 16 || plan.blockN < 16)
    return invalidArgument(
        fmt::format("{}: blocks {}x{}; at least 16 is accepted", operation, plan.blockM, plan.blockN));
  if (plan.movement == AttentionMovement::Descriptors && problem.scaleOfScores() <= 0)
    return unsupported(
        fmt::format("{}: the scale {} by descriptors; positive ones are accepted", operation, problem.scaleOfScores()));
  return Status::ok();
}

} // namespace

double AttentionProblem::scaleOfScores() const { return scale.value_or(1.0 / std::sqrt(static_cast<double>(headDim))); }

double AttentionProblem::flops() const {
  double pairs = static_cast<double>(queries) * static_cast<double>(keys);
  if (causal) {
    pairs = 0;
    for (int64_t query = 0; query < queries; ++query)
      pairs += static_cast<double>(std::clamp<int64_t>(query + keys - queries + 1, 0, keys));
  }
  return 4.0 * static_cast<double>(batch * heads * headDim) * pairs;
}

std::string AttentionPlan::text() const {
  return fmt::format("{}x{} warps {} stages {}{}", blockM, blockN, numWarps, numStages,
                     movement == AttentionMovement::Descriptors ? descriptorsSuffix : "");
}

Expected<AttentionPlan> parseAttentionPlan(std::string_view text) {
  AttentionPlan plan;
  std::string blocks(text);
  if (text.ends_with(descriptorsSuffix)) {
    plan.movement = AttentionMovement::Descriptors;
    blocks.resize(text.size() - descriptorsSuffix.size());
  }
  int read = 0;
  if (std::sscanf(blocks.c_str(), "%ux%u warps %u stages %u%n", &plan.blockM, &plan.blockN, &plan.numWarps,
                  &plan.numStages, &read) != 4 ||
      size_t(read) != blocks.size())
    return invalidArgument(fmt::format("plan '{}': a plan is written like '{}', with '{}' behind it for tensor copies",
                                       text, AttentionPlan().text(), descriptorsSuffix));
  return plan;
}

AttentionPlan chooseAttentionPlan(const AttentionProblem &problem, std::string_view target) {
  AttentionPlan plan;
  Expected<TargetName> name = parseTargetName(target);
  if (name.isOk() && name->architecture.starts_with("sm_90") && (problem.headDim == 64 || problem.headDim == 128) &&
      problem.queries > 64 && problem.scaleOfScores() > 0) {
    plan.movement = AttentionMovement::Descriptors;
    plan.blockN = 128;
    return plan;
  }
  if (problem.headDim > 128)
    plan.blockN = 32;
  if (problem.headDim <= 64)
    plan.numStages = 3;
  if (problem.queries <= 64)
    plan.blockM = 64, plan.numWarps = 4;
  return plan;
}

/// The library's plan for these addresses.
static AttentionPlan chooseFor(const AttentionProblem &problem, std::string_view target,
                               std::initializer_list<runtime::Pointer> pointers) {
  AttentionPlan plan = chooseAttentionPlan(problem, target);
  constexpr uintptr_t copyAlignmentBytes = 16;
  const bool isAligned = std::ranges::all_of(pointers, [](const runtime::Pointer &p) {
    return reinterpret_cast<uintptr_t>(p.address) % copyAlignmentBytes == 0;
  });
  return isAligned ? plan : chooseAttentionPlan(problem, "");
}

Expected<PreparedCall> prepareAttention(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                        const AttentionProblem &problem, const AttentionOperands &operands,
                                        const std::optional<AttentionPlan> &plan) {
  const auto &[q, k, v, out, lse] = operands;
  const AttentionPlan chosen = plan ? *plan : chooseFor(problem, kernels.target(), {q, k, v, out});
  DITRON_RETURN_IF_ERROR(verify(problem, chosen));
  for (auto [name, pointer] : {std::pair("q", q), std::pair("k", k), std::pair("v", v), std::pair("out", out)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, problem.dtype));
  if (lse)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "lse", *lse, DataType::F32));
  KernelCall call;
  call.numWarps = chosen.numWarps;
  call.numStages = chosen.numStages;
  call.grid = {static_cast<uint32_t>(ceilDivide(problem.queries, chosen.blockM)),
               static_cast<uint32_t>(problem.batch * problem.heads), 1};
  call.arguments = {{"q_ptr", q},
                    {"k_ptr", k},
                    {"v_ptr", v},
                    {"out_ptr", out},
                    {"lse_ptr", orNone(lse.value_or(runtime::Pointer()))},
                    {"group", problem.heads / problem.kvHeads},
                    {"queries", problem.queries},
                    {"keys", problem.keys},
                    {"score_scale", problem.scaleOfScores() * std::numbers::log2e},
                    {"CAUSAL", problem.causal},
                    {"HEAD_DIM", problem.headDim},
                    {"BLOCK_M", chosen.blockM},
                    {"BLOCK_N", chosen.blockN}};
  if (chosen.movement == AttentionMovement::Descriptors) {
    call.source = "attention/forward_by_descriptors";
    call.kernel = "attention_forward_by_descriptors";
    call.grid = {blocksFor(rank, ceilDivide(problem.queries, chosen.blockM) * problem.batch * problem.heads), 1, 1};
    call.arguments.insert(call.arguments.end(), {{"batch_heads", problem.batch * problem.heads},
                                                 {"batch_kv_heads", problem.batch * problem.kvHeads},
                                                 {"q_stride", problem.queries * problem.headDim},
                                                 {"kv_stride", problem.keys * problem.headDim}});
  } else {
    call.source = "attention/forward";
    call.kernel = "attention_forward";
    call.arguments.push_back({"heads", problem.heads});
  }
  return PreparedCall::create(kernels, rank, call);
}

} // namespace ditron::ops
