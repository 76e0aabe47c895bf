//===- HeadAttention.cpp - Attention of a rank's heads, wherever their rows lie ----------------------------------------------===//
#include "ditron/ops/sequence_parallel/HeadAttention.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/attention/Heads.h"
#include "ditron/support/TargetName.h"

#include <cmath>
#include <fmt/format.h>
#include <numbers>

namespace ditron::ops {

std::string HeadAttentionTile::text() const {
  return fmt::format("{}x{} warps {} stages {}", blockM, blockN, numWarps, numStages);
}

Status HeadAttentionTile::verify(std::string_view operation) const {
  for (auto [name, block] : {std::pair("blockM", blockM), std::pair("blockN", blockN)})
    if (block != 0 && !isTileSize(block))
      return invalidArgument(
          fmt::format("{}: {} {}; powers of two from 16 to 256 are accepted, or 0 for the library's choice", operation,
                      name, block));
  return Status::ok();
}

HeadAttentionTile HeadAttentionTile::chosen(int64_t headDim, std::string_view target) const {
  const bool isWide = headDim > 128;
  HeadAttentionTile tile = *this;
  const auto set = [](uint32_t &value, uint32_t byDefault) { value = value ? value : byDefault; };
  set(tile.blockM, isWide ? 64 : 128);
  set(tile.blockN, isWide ? 32 : hasTensorCopies(target) ? 128 : 64);
  set(tile.numWarps, tile.blockM >= 128 ? 8 : 4);
  set(tile.numStages, 2);
  return tile;
}

double HeadAttentionProblem::scaleOfScores() const { return ops::scaleOfScores(scale, headDim); }

Status verifyHeads(std::string_view operation, const HeadAttentionProblem &problem) {
  DITRON_RETURN_IF_ERROR(verifyHalfOperands(operation, problem.dtype));
  constexpr int64_t mostTokens = int64_t{1} << 30; // positions are 32 bits wide
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"batch", problem.batch},
                                                       {"heads", problem.heads},
                                                       {"kvHeads", problem.kvHeads},
                                                       {"tokens", problem.tokens, 1, mostTokens}}));
  DITRON_RETURN_IF_ERROR(verifyHeadGroups(operation, problem.heads, problem.kvHeads));
  DITRON_RETURN_IF_ERROR(verifyPlainHeadSize(operation, problem.headDim));
  if (!isPositiveScale(problem.scaleOfScores()))
    return unsupported(fmt::format("{}: the scale {}; positive ones of fp32 are accepted", operation, problem.scaleOfScores()));
  return problem.tile.verify(operation);
}

Expected<PreparedCall> prepareHeadAttention(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                            const HeadAttentionProblem &problem, runtime::Pointer q, runtime::Pointer k,
                                            runtime::Pointer v, runtime::Pointer out) {
  constexpr std::string_view operation = "HeadAttention";
  DITRON_RETURN_IF_ERROR(verifyHeads(operation, problem));
  for (auto [name, pointer] : {std::pair("q", q), std::pair("k", k), std::pair("v", v), std::pair("out", out)})
    DITRON_RETURN_IF_ERROR(verifyAlignedPointer(operation, name, pointer, problem.dtype));
  const HeadAttentionTile tile = problem.tile.chosen(problem.headDim, kernels.target());
  KernelCall call;
  call.source = "sequence_parallel/attention";
  call.kernel = "all_gather_attention";
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.grid = {blocksFor(rank, ceilDivide(problem.tokens, tile.blockM) * problem.batch * problem.heads), 1, 1};
  call.arguments = {{"q_ptr", q},
                    {"k_ptr", k},
                    {"v_ptr", v},
                    {"out_ptr", out},
                    {"lse_ptr", runtime::None()},
                    {"ready_ptr", runtime::None()},
                    {"generation_ptr", runtime::None()},
                    {"batch", problem.batch},
                    {"heads", problem.heads},
                    {"kv_heads", problem.kvHeads},
                    {"all_batch", problem.batch},
                    {"group", problem.heads / problem.kvHeads},
                    {"tokens", problem.tokens},
                    {"section", problem.tokens},
                    {"first_rows", problem.tokens},
                    {"own_rows", problem.tokens},
                    {"stage_rows", problem.tokens},
                    {"q_batch_stride", problem.q.batch},
                    {"q_head_stride", problem.q.head},
                    {"q_row_stride", problem.q.row},
                    {"out_batch_stride", problem.out.batch},
                    {"out_head_stride", problem.out.head},
                    {"out_row_stride", problem.out.row},
                    {"kv_batch_stride", problem.keys.batch},
                    {"kv_head_stride", problem.keys.head},
                    {"kv_row_stride", problem.keys.row},
                    {"heads_per_piece", 1},
                    {"score_scale", problem.scaleOfScores() * std::numbers::log2e},
                    {"rank", 0},
                    {"WORLD_SIZE", 1},
                    {"PARTS", 1},
                    {"MOST_PIECES", 1},
                    {"CAUSAL", problem.causal},
                    {"HEAD_DIM", problem.headDim},
                    {"BLOCK_M", tile.blockM},
                    {"BLOCK_N", tile.blockN}};
  return PreparedCall::create(kernels, rank, call);
}

} // namespace ditron::ops
