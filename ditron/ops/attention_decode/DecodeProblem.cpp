//===- DecodeProblem.cpp - Attention of few queries over many keys, and how it is carried out ------------------------------===//
#include "ditron/ops/attention_decode/DecodeProblem.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/attention/Heads.h"

#include <bit>
#include <cstdio>
#include <fmt/format.h>
#include <numbers>

namespace ditron::ops {

namespace {

/// Rows of a tile: what the tensor cores take at least, and what leaves room for the sums of each warp.
constexpr int64_t leastRows = 16, mostRows = 64;
/// Of the sequences' lengths, which every program adds up.
constexpr int64_t mostBatch = 4096;
/// Elements of parts that are combined at a time.
constexpr int64_t combinedElements = 8192;

int64_t rowsOfItem(const DecodeProblem &problem) { return problem.heads / problem.kvHeads * problem.queries; }

int64_t blockM(const DecodeProblem &problem) {
  return std::clamp<int64_t>(std::bit_ceil(static_cast<uint64_t>(rowsOfItem(problem))), leastRows, mostRows);
}

uint32_t programs(const runtime::Rank &rank, const DecodePlan &plan) {
  return plan.blocksPerMultiprocessor * static_cast<uint32_t>(rank.attributes().multiprocessors);
}

} // namespace

std::string DecodePlan::text() const {
  return fmt::format("{} warps {} stages {} blocks {}", blockN, numWarps, numStages, blocksPerMultiprocessor);
}

Expected<DecodePlan> parseDecodePlan(std::string_view text) {
  DecodePlan plan;
  const std::string copy(text);
  int read = 0;
  if (std::sscanf(copy.c_str(), "%u warps %u stages %u blocks %u%n", &plan.blockN, &plan.numWarps, &plan.numStages,
                  &plan.blocksPerMultiprocessor, &read) != 4 ||
      size_t(read) != copy.size())
    return invalidArgument(fmt::format("plan '{}': a plan is written like '{}'", text, DecodePlan().text()));
  return plan;
}

DecodePlan chooseDecodePlan(const DecodeProblem &problem, const runtime::DeviceAttributes &gpu) {
  DecodePlan plan;
  constexpr int64_t tileElements = 8192;
  plan.blockN = static_cast<uint32_t>(std::clamp<int64_t>(tileElements / problem.headDim, 32, 128));
  // Many sums would not fit the registers of few threads.
  if (blockM(problem) * problem.headDim >= 2 * tileElements)
    plan.numWarps = 8, plan.blocksPerMultiprocessor = 1;
  // Of K and V, and what layouts are converted through.
  const auto bytes = [&] {
    constexpr uint64_t scratch = 8192;
    return plan.blocksPerMultiprocessor *
           (plan.numStages * 2 * plan.blockN * static_cast<uint64_t>(problem.headDim) * sizeOf(problem.dtype) +
            scratch);
  };
  if (bytes() > gpu.sharedBytesPerBlock)
    plan.numStages = 2;
  if (bytes() > gpu.sharedBytesPerBlock)
    plan.blocksPerMultiprocessor = 1;
  return plan;
}

Status verifyDecode(std::string_view operation, const DecodeProblem &problem, const DecodePlan &plan) {
  DITRON_RETURN_IF_ERROR(verifyHalfOperands(operation, problem.dtype));
  if (problem.batch < 1 || problem.heads < 1 || problem.kvHeads < 1 || problem.queries < 1)
    return invalidArgument(fmt::format("{}: batch {}, heads {}, kvHeads {}, queries {}; all must be positive",
                                       operation, problem.batch, problem.heads, problem.kvHeads, problem.queries));
  if (problem.batch > mostBatch)
    return invalidArgument(fmt::format("{}: batch {}; at most {} is accepted", operation, problem.batch, mostBatch));
  DITRON_RETURN_IF_ERROR(verifyHeadGroups(operation, problem.heads, problem.kvHeads));
  DITRON_RETURN_IF_ERROR(verifyPlainHeadSize(operation, problem.headDim));
  const KeyLayout &keys = problem.keys;
  if (keys.pageSize < 0 || keys.pageStride < 0 || keys.rowStride < 0 || keys.headStride < 0 || keys.tableStride < 0)
    return invalidArgument(
        fmt::format("{}: pages of {} keys, strides of pages {}, rows {}, heads {}, and of the table {}; none may "
                    "be negative",
                    operation, keys.pageSize, keys.pageStride, keys.rowStride, keys.headStride, keys.tableStride));
  if (keys.rowStride == 0)
    return invalidArgument(
        fmt::format("{}: keys 0 elements apart; KeyLayout says where they lie, and it is not given", operation));
  if (!isTileSize(plan.blockN))
    return invalidArgument(
        fmt::format("{}: steps of {} keys; powers of two from 16 to 256 are accepted", operation, plan.blockN));
  if (plan.blocksPerMultiprocessor < 1 || plan.blocksPerMultiprocessor > 32)
    return invalidArgument(fmt::format("{}: {} blocks for a multiprocessor; 1 to 32 are accepted", operation,
                                       plan.blocksPerMultiprocessor));
  return Status::ok();
}

Status verifyDecodeOperands(std::string_view operation, const DecodeProblem &problem, const DecodeOperands &operands) {
  for (auto [name, pointer] : {std::pair("q", operands.q), std::pair("k", operands.k), std::pair("v", operands.v),
                               std::pair("out", operands.out)})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, problem.dtype));
  DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "lengths", operands.lengths, DataType::I32));
  if (problem.keys.pageSize > 0)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "table", operands.table, DataType::I32));
  if (operands.lse.address)
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, "lse", operands.lse, DataType::F32));
  return Status::ok();
}

Expected<DecodeWorkspace> DecodeWorkspace::allocate(runtime::Rank &rank, const DecodeProblem &problem,
                                                    const DecodePlan &plan) {
  DecodeWorkspace workspace;
  const int64_t blocks = programs(rank, plan), rows = 2 * blocks * blockM(problem);
  DITRON_ASSIGN_OR_RETURN(workspace.parts, rank.allocate(DataType::F32, rows * problem.headDim, "decode_parts"));
  DITRON_ASSIGN_OR_RETURN(workspace.sums, rank.allocate(DataType::F32, rows, "decode_sums"));
  DITRON_ASSIGN_OR_RETURN(workspace.counters, rank.allocate(DataType::I32, blocks, "decode_counters"));
  return workspace;
}

KernelCall decodeCall(const runtime::Rank &rank, const DecodeProblem &problem, const DecodePlan &plan,
                      const DecodeOperands &operands, const DecodeWorkspace &workspace) {
  const KeyLayout &keys = problem.keys;
  const int64_t rows = std::min<int64_t>(std::bit_ceil(static_cast<uint64_t>(rowsOfItem(problem))), blockM(problem));
  KernelCall call;
  call.source = "attention_decode";
  call.numWarps = plan.numWarps;
  call.numStages = plan.numStages;
  call.grid = {programs(rank, plan), 1, 1};
  call.arguments = {{"q_ptr", operands.q},
                    {"k_ptr", operands.k},
                    {"v_ptr", operands.v},
                    {"lengths_ptr", operands.lengths},
                    // Without pages nothing is read there.
                    {"table_ptr", operands.table.address ? operands.table : operands.lengths},
                    {"parts_ptr", workspace.parts.pointer()},
                    {"sums_ptr", workspace.sums.pointer()},
                    {"counter_ptr", workspace.counters.pointer()},
                    {"batch", problem.batch},
                    {"kv_heads", problem.kvHeads},
                    {"group", problem.heads / problem.kvHeads},
                    {"queries", problem.queries},
                    {"stride_page", keys.pageStride},
                    {"stride_row", keys.rowStride},
                    {"stride_head", keys.headStride},
                    {"stride_table", keys.tableStride},
                    {"score_scale", scaleOfScores(problem.scale, problem.headDim) * std::numbers::log2e},
                    {"HEAD_DIM", problem.headDim},
                    {"PAGE_SIZE", keys.pageSize},
                    {"BATCH", std::bit_ceil(static_cast<uint64_t>(problem.batch))},
                    {"BLOCK_M", blockM(problem)},
                    {"BLOCK_N", plan.blockN},
                    {"ROWS", rows},
                    {"PARTS", std::max<int64_t>(combinedElements / (rows * problem.headDim), 1)}};
  return call;
}

} // namespace ditron::ops
