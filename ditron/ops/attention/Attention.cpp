//===- Attention.cpp - Attention, forward ---------------------------------------------------------------------------------===//
#include "ditron/ops/attention/AttentionArguments.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/attention/Heads.h"
#include "ditron/ops/plans/PlanTable.h"

#include "ditron/support/TargetName.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>

namespace ditron::ops {

namespace {

constexpr std::string_view operation = "Attention";
constexpr std::string_view descriptorsSuffix = " descriptors";

Status verify(const AttentionProblem &problem, const AttentionOperands &operands) {
  if (problem.dtype != DataType::BF16 && problem.dtype != DataType::F16 && problem.dtype != DataType::F8E4NV)
    return unsupported(fmt::format("{}: operands of type {}; bf16, fp16 and fp8e4nv are accepted", operation,
                                   ditron::toString(problem.dtype)));
  DITRON_RETURN_IF_ERROR(verifyAttention(operation, problem));
  for (auto [name, pointer] : {std::pair("q", operands.q), std::pair("k", operands.k), std::pair("v", operands.v)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, problem.dtype));
  DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "out", operands.out, problem.typeOfResult()));
  for (auto [name, pointer] :
       {std::pair("lse", operands.lse), std::pair("sinks", operands.sinks), std::pair("slopes", operands.slopes)})
    DITRON_RETURN_IF_ERROR(verifyOptional(operation, name, pointer, DataType::F32));
  DITRON_RETURN_IF_ERROR(verifyOffsets(operation, problem, operands.queryOffsets, operands.keyOffsets));
  DITRON_RETURN_IF_ERROR(verifyOptional(operation, "keyLengths", operands.keyLengths, DataType::I32));
  DITRON_RETURN_IF_ERROR(verifyOptional(operation, "blockTable", operands.blockTable, DataType::I32));
  if (problem.pages.has_value() != operands.blockTable.has_value())
    return invalidArgument(fmt::format("{}: pages and blockTable are accepted together; one is missing", operation));
  if (operands.keyLengths && problem.packedKeys)
    return invalidArgument(fmt::format("{}: keyLengths of packed keys; keyOffsets have them", operation));
  if (problem.valuesTransposed && (problem.layout != AttentionLayout::HeadsFirst || problem.pages))
    return unsupported(fmt::format("{}: transposed V RowsFirst or in pages; HeadsFirst is accepted", operation));
  if (problem.valuesTransposed && problem.keys * sizeOf(problem.dtype) % 16 != 0)
    return unsupported(fmt::format("{}: transposed V of {} keys; columns of a multiple of 16 bytes are accepted",
                                   operation, problem.keys));
  return Status::ok();
}

} // namespace

double AttentionProblem::scaleOfScores() const { return ops::scaleOfScores(scale, headDim); }

double AttentionProblem::flops() const {
  double pairs = static_cast<double>(queries) * static_cast<double>(keys);
  if (causal || window) {
    pairs = 0;
    for (int64_t query = 0; query < queries; ++query) {
      const int64_t place = query + keys - queries;
      const int64_t end = causal ? std::clamp<int64_t>(place + 1, 0, keys) : keys;
      pairs += static_cast<double>(std::max<int64_t>(end - (window ? std::max<int64_t>(place - *window, 0) : 0), 0));
    }
  }
  return 2.0 * static_cast<double>(batch * heads * (headDim + dimOfValues())) * pairs;
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
  const int64_t widest = std::max(problem.headDim, problem.dimOfValues());
  const bool readsTransposed = problem.dtype == DataType::F8E4NV && !problem.valuesTransposed;
  if (hasTensorCopies(target) && widest >= 64 && !readsTransposed &&
      (problem.queries > 64 || problem.valuesTransposed)) {
    plan.blockN = widest <= 128 ? 128 : 64;
    if (problem.pages) // the largest power of two that divides a page
      plan.blockN = static_cast<uint32_t>(std::min<int64_t>(plan.blockN, problem.pages->size & -problem.pages->size));
    if (!problem.pages || plan.blockN >= 64) {
      plan.movement = AttentionMovement::Descriptors;
      return plan;
    }
  }
  plan = {};
  if (problem.valuesTransposed) // there is no other way to read it
    plan.movement = AttentionMovement::Descriptors;
  if (widest > 128)
    plan.blockN = 32;
  if (widest <= 64)
    plan.numStages = 3;
  if (problem.queries <= 64)
    plan.blockM = 64, plan.numWarps = 4;
  return plan;
}

Expected<AttentionPlan> libraryAttentionPlan(const AttentionProblem &problem, runtime::World &world,
                                             std::string_view gpu) {
  const AttentionPlan chosen = chooseAttentionPlan(problem, world.target());
  DITRON_ASSIGN_OR_RETURN(
      const PlanChoice tables,
      PlanChoice::ofOneGpu(world, problem.causal ? "causal_attention" : "attention", problem.dtype, gpu));
  const PlanRow *row =
      tables.find({{"queries", problem.queries}, {"dim", problem.headDim}, {"heads", problem.batch * problem.heads}});
  if (!row)
    return chosen;
  DITRON_ASSIGN_OR_RETURN(const AttentionPlan plan, parseAttentionPlan(row->plan));
  return verifyAttentionPlan(operation, problem, plan).isOk() ? plan : chosen;
}

/// The library's plan for these addresses.
static Expected<AttentionPlan> chooseFor(const AttentionProblem &problem, runtime::World &world,
                                         const AttentionOperands &operands) {
  if (areAlignedForCopies({operands.q, operands.k, operands.v, operands.out}))
    return libraryAttentionPlan(problem, world);
  return chooseAttentionPlan(problem, "");
}

Expected<PreparedCall> prepareAttention(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                        const AttentionProblem &problem, const AttentionOperands &operands,
                                        const std::optional<AttentionPlan> &plan) {
  DITRON_RETURN_IF_ERROR(verify(problem, operands));
  AttentionPlan chosen;
  if (plan) {
    chosen = *plan;
  } else {
    DITRON_ASSIGN_OR_RETURN(chosen, chooseFor(problem, rank.world(), operands));
  }
  DITRON_RETURN_IF_ERROR(verifyAttentionPlan(operation, problem, chosen));
  KernelCall call;
  call.numWarps = chosen.numWarps;
  call.numStages = chosen.numStages;
  call.arguments = {{"q_ptr", operands.q},
                    {"k_ptr", operands.k},
                    {"v_ptr", operands.v},
                    {"out_ptr", operands.out},
                    {"lse_ptr", orNone(operands.lse)},
                    {"sinks_ptr", orNone(operands.sinks)},
                    {"key_lengths_ptr", orNone(operands.keyLengths)},
                    {"table_ptr", orNone(operands.blockTable)},
                    {"heads", problem.heads},
                    {"queries", problem.queries},
                    {"keys", problem.keys},
                    {"VALUE_DIM", problem.dimOfValues()},
                    {"BLOCK_M", chosen.blockM},
                    {"BLOCK_N", chosen.blockN}};
  if (problem.pages)
    call.arguments.insert(call.arguments.end(), {{"table_stride", ceilDivide(problem.keys, problem.pages->size)},
                                                 {"PAGE", problem.pages->size}});
  AttentionStrides values = keyStrides(problem, problem.dimOfValues());
  if (problem.valuesTransposed)
    values.row = problem.keys;
  addStrides(call, "q", queryStrides(problem, problem.headDim));
  addStrides(call, "k", keyStrides(problem, problem.headDim));
  addStrides(call, "v", values);
  addStrides(call, "out", queryStrides(problem, problem.dimOfValues()));
  addOptions(call, problem, operands.slopes, operands.queryOffsets, operands.keyOffsets);
  const int64_t tiles = ceilDivide(problem.queries, chosen.blockM);
  if (chosen.movement == AttentionMovement::Descriptors) {
    call.source = "attention/forward_by_descriptors";
    call.kernel = "attention_forward_by_descriptors";
    call.grid = {blocksFor(rank, tiles * problem.batch * problem.heads), 1, 1};
    addExtents(call, problem);
    call.arguments.insert(call.arguments.end(),
                          {{"kv_heads", problem.kvHeads}, {"VALUES_TRANSPOSED", problem.valuesTransposed}});
  } else {
    call.source = "attention/forward";
    call.kernel = "attention_forward";
    call.grid = {static_cast<uint32_t>(tiles), static_cast<uint32_t>(problem.batch * problem.heads), 1};
    call.arguments.push_back({"group", problem.heads / problem.kvHeads});
  }
  return PreparedCall::create(kernels, rank, call);
}

} // namespace ditron::ops
