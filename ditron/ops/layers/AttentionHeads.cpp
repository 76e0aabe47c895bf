//===- AttentionHeads.cpp - From a projection's rows to Q and a cache of K and V --------------------------------------------===//
#include "ditron/ops/layers/AttentionHeads.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/attention/Heads.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace ditron::ops {

Status verifyHeadChanges(std::string_view operation, const RotaryEmbedding &rotary,
                         const std::optional<double> &normEpsilon, int64_t headDim) {
  if (rotary.dim < 0 || rotary.dim > headDim || rotary.dim % 2 != 0)
    return invalidArgument(
        fmt::format("{}: {} columns of a head are turned by its position; even numbers up to {} (headDim) are "
                    "accepted, 0 for none",
                    operation, rotary.dim, headDim));
  if (normEpsilon && !(*normEpsilon >= 0 && std::isfinite(*normEpsilon)))
    return invalidArgument(
        fmt::format("{}: the epsilon {} of a norm; finite ones from 0 on are accepted", operation, *normEpsilon));
  return Status::ok();
}

Status verifyProjectedHeads(std::string_view operation, int64_t heads, int64_t kvHeads, int64_t headDim) {
  return verifyProductOfSizes(operation, "columns of a projection",
                              {{"heads and kvHeads", heads + 2 * kvHeads}, {"headDim", headDim}}, mostSize);
}

Status verifyCacheElements(std::string_view operation, const CacheSizes &cache) {
  const bool isPaged = cache.pageSize != 0;
  return verifyProductOfSizes(operation, "elements of the cache",
                              {{"keys", isPaged ? cache.pageSize : cache.keys},
                               {isPaged ? "pages" : "maxBatch", isPaged ? cache.pages : cache.batch},
                               {"kvHeads", cache.kvHeads},
                               {"headDim", cache.headDim}});
}

Expected<PreparedCall> prepareAttentionHeads(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                             const AttentionHeadsProblem &problem,
                                             const AttentionHeadsOperands &operands) {
  constexpr std::string_view operation = "AttentionHeads";
  constexpr int64_t elementsOfBlock = 1024;
  DITRON_RETURN_IF_ERROR(verifyHalfOperands(operation, problem.dtype));
  DITRON_RETURN_IF_ERROR(verifyPlainHeadSize(operation, problem.headDim));
  DITRON_RETURN_IF_ERROR(verifyHeadChanges(operation, problem.rotary, problem.normEpsilon, problem.headDim));
  const KeyLayout &keys = problem.keys;
  const bool isNormed = problem.normEpsilon.has_value(), isRotated = problem.rotary.dim != 0,
             isPaged = keys.pageSize != 0;
  const DataType type = problem.dtype;
  struct Operand {
    std::string_view name;
    bool isTaken;
    runtime::Pointer pointer;
    DataType type;
  };
  const bool hasPlaces = operands.places.address != nullptr, isUniform = problem.uniform.has_value();
  for (const Operand &operand :
       {Operand{"rows", true, operands.rows, type}, Operand{"q", operands.q.address != nullptr, operands.q, type},
        Operand{"keys", true, operands.keys, type}, Operand{"values", true, operands.values, type},
        Operand{"lengths", !hasPlaces && !isUniform, operands.lengths, DataType::I32},
        Operand{"positions", hasPlaces, operands.positions, DataType::I32},
        Operand{"table", isPaged, operands.table, DataType::I32}, Operand{"qNorm", isNormed, operands.qNorm, type},
        Operand{"kNorm", isNormed, operands.kNorm, type}, Operand{"rotary", isRotated, operands.rotary, DataType::F32}})
    if (operand.isTaken)
      DITRON_RETURN_IF_ERROR(verifyPointerType(operation, operand.name, operand.pointer, operand.type));
  const int64_t blockHeads = std::max<int64_t>(elementsOfBlock / problem.headDim, 1);
  KernelCall call;
  call.source = "attention/heads";
  call.kernel = "place_heads";
  call.grid = {static_cast<uint32_t>(problem.tokens),
               static_cast<uint32_t>(ceilDivide(problem.heads + 2 * problem.kvHeads, blockHeads)), 1};
  call.arguments = {{"rows_ptr", operands.rows},
                    {"k_ptr", operands.keys},
                    {"v_ptr", operands.values},
                    {"batch", problem.batch},
                    {"heads", problem.heads},
                    {"kv_heads", problem.kvHeads},
                    {"page_stride", keys.pageStride},
                    {"row_stride", keys.rowStride},
                    {"head_stride", keys.headStride},
                    {"HEAD_DIM", problem.headDim},
                    {"BATCH", std::bit_ceil(static_cast<uint64_t>(problem.batch))},
                    {"BLOCK_HEADS", blockHeads},
                    {"GROUPS", problem.groups},
                    {"q_ptr", orNone(operands.q)},
                    {"lengths_ptr", orNone(operands.lengths)},
                    {"offsets_ptr", orNone(operands.offsets)},
                    {"places_ptr", orNone(operands.places)},
                    {"positions_ptr", orNone(operands.positions)},
                    {"table_ptr", orNone(isPaged, operands.table)},
                    {"q_weight_ptr", orNone(isNormed, operands.qNorm)},
                    {"k_weight_ptr", orNone(isNormed, operands.kNorm)},
                    {"rotary_ptr", orNone(isRotated, operands.rotary)},
                    {"ROTARY_DIM", problem.rotary.dim},
                    {"INTERLEAVED", problem.rotary.interleaved}};
  if (isPaged)
    call.arguments.insert(call.arguments.end(), {{"table_stride", keys.tableStride}, {"PAGE", keys.pageSize}});
  if (problem.uniform)
    call.arguments.insert(call.arguments.end(), {{"rows_of_sequence", problem.uniform->rowsOfSequence},
                                                 {"first_position", problem.uniform->firstPosition}});
  if (isNormed)
    call.arguments.push_back({"epsilon", *problem.normEpsilon});
  return PreparedCall::create(kernels, rank, call);
}

} // namespace ditron::ops
