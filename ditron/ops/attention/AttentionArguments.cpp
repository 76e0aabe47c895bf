//===- AttentionArguments.cpp - What the kernels of attention are told ----------------------------------------------------===//
#include "ditron/ops/attention/AttentionArguments.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/SizeOptions.h"
#include "ditron/ops/attention/Heads.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>

namespace ditron::ops {

namespace {

constexpr int64_t mostBlocks = 65535, mostElements = mostSize;
constexpr uint64_t copyAlignmentBytes = 16;

bool isHeadSize(int64_t dim) {
  constexpr int64_t sizes[] = {16, 32, 64, 96, 128, 192, 256};
  return std::ranges::find(sizes, dim) != std::end(sizes);
}

Status verifySizes(std::string_view operation, const AttentionProblem &problem) {
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"batch", problem.batch},
                                                       {"heads", problem.heads},
                                                       {"kvHeads", problem.kvHeads},
                                                       {"queries", problem.queries},
                                                       {"keys", problem.keys},
                                                       {"packedQueries", problem.packedQueries.value_or(1)},
                                                       {"packedKeys", problem.packedKeys.value_or(1)}}));
  DITRON_RETURN_IF_ERROR(verifyHeadGroups(operation, problem.heads, problem.kvHeads));
  for (int64_t dim : {problem.headDim, problem.dimOfValues()})
    if (!isHeadSize(dim))
      return unsupported(
          fmt::format("{}: heads of {} elements; 16, 32, 64, 96, 128, 192 and 256 are accepted", operation, dim));
  DITRON_RETURN_IF_ERROR(
      verifyProductOfSizes(operation, "all heads", {{"batch", problem.batch}, {"heads", problem.heads}}, mostBlocks));
  const int64_t widest = std::max(problem.headDim, problem.dimOfValues());
  for (const SizeOption &rows : {SizeOption{"queries", problem.queries}, SizeOption{"keys", problem.keys},
                                 SizeOption{"packedQueries", problem.packedQueries.value_or(0)},
                                 SizeOption{"packedKeys", problem.packedKeys.value_or(0)}})
    DITRON_RETURN_IF_ERROR(
        verifyProductOfSizes(operation, "elements of a head", {rows, {"headDim", widest}}, mostElements));
  return Status::ok();
}

} // namespace

AttentionStrides stridesOf(AttentionLayout layout, int64_t heads, int64_t rows, int64_t dim) {
  if (layout == AttentionLayout::HeadsFirst)
    return {heads * rows * dim, rows * dim, dim};
  return {heads * rows * dim, dim, heads * dim};
}

AttentionStrides queryStrides(const AttentionProblem &problem, int64_t dim) {
  return stridesOf(problem.layout, problem.heads, problem.packedQueries.value_or(problem.queries), dim);
}

AttentionStrides keyStrides(const AttentionProblem &problem, int64_t dim) {
  const int64_t rows = problem.pages ? problem.pages->size : problem.packedKeys.value_or(problem.keys);
  return stridesOf(problem.layout, problem.kvHeads, rows, dim);
}

void addStrides(KernelCall &call, const std::string &name, const AttentionStrides &strides) {
  call.arguments.insert(
      call.arguments.end(),
      {{name + "_batch", strides.batch}, {name + "_head", strides.head}, {name + "_row", strides.row}});
}

void addOptions(KernelCall &call, const AttentionProblem &problem, const std::optional<runtime::Pointer> &slopes,
                const std::optional<runtime::Pointer> &queryOffsets,
                const std::optional<runtime::Pointer> &keyOffsets) {
  const runtime::None none;
  call.arguments.insert(call.arguments.end(),
                        {{"CAUSAL", problem.causal},
                         {"HEAD_DIM", problem.headDim},
                         {"score_scale", problem.scaleOfScores() * std::numbers::log2e},
                         {"window", problem.window ? runtime::Argument(*problem.window) : runtime::Argument(none)},
                         {"soft_cap", problem.softCap ? runtime::Argument(*problem.softCap * std::numbers::log2e)
                                                      : runtime::Argument(none)},
                         {"slopes_ptr", orNone(slopes)},
                         {"query_offsets_ptr", orNone(queryOffsets)},
                         {"key_offsets_ptr", orNone(keyOffsets)}});
}

void addExtents(KernelCall &call, const AttentionProblem &problem) {
  call.arguments.insert(call.arguments.end(),
                        {{"batches", problem.batch},
                         {"q_batches", problem.packedQueries ? 1 : problem.batch},
                         {"q_rows", problem.packedQueries.value_or(problem.queries)},
                         {"k_batches", problem.pages        ? problem.pages->count
                                       : problem.packedKeys ? 1
                                                            : problem.batch},
                         {"k_rows", problem.pages ? problem.pages->size : problem.packedKeys.value_or(problem.keys)}});
}

Status verifySoftCap(std::string_view operation, std::optional<double> cap) {
  constexpr double largest =
      8192; // fp32 leaves 2^-24 of the cap of tanh: twice that of the scores stays below the rounding of the powers
  constexpr double smallest = 1 / largest;
  if (cap && !(*cap >= smallest && *cap <= largest))
    return invalidArgument(
        fmt::format("{}: scores capped at {}; caps from {} to {} are accepted", operation, *cap, smallest, largest));
  return Status::ok();
}

Status verifyAttention(std::string_view operation, const AttentionProblem &problem) {
  DITRON_RETURN_IF_ERROR(verifySizes(operation, problem));
  if (!isPositiveScale(problem.scaleOfScores()))
    return unsupported(
        fmt::format("{}: the scale {}; positive, finite ones of fp32 are accepted", operation, problem.scaleOfScores()));
  if (problem.window && (*problem.window < 0 || *problem.window > mostElements))
    return invalidArgument(
        fmt::format("{}: a window of {} keys; 0 to {} are accepted", operation, *problem.window, mostElements));
  DITRON_RETURN_IF_ERROR(verifySoftCap(operation, problem.softCap));
  if ((problem.packedQueries || problem.packedKeys) && problem.layout != AttentionLayout::RowsFirst)
    return unsupported(fmt::format("{}: packed rows lie HeadsFirst; RowsFirst is accepted", operation));
  if (problem.packedKeys && problem.pages)
    return invalidArgument(fmt::format("{}: keys are packed and in pages; one of the two is accepted", operation));
  if (!problem.pages)
    return Status::ok();
  if (problem.pages->size < 16 || problem.pages->size % 16 != 0 || problem.pages->count < 1)
    return unsupported(fmt::format("{}: {} pages of {} rows; at least one is accepted, of a multiple of 16 rows",
                                   operation, problem.pages->count, problem.pages->size));
  DITRON_RETURN_IF_ERROR(
      verifySizeOptions(operation, {{"pages", problem.pages->count}, {"pageSize", problem.pages->size}}));
  return verifyProductOfSizes(
      operation, "elements of a page of a head",
      {{"pageSize", problem.pages->size}, {"headDim", std::max(problem.headDim, problem.dimOfValues())}}, mostElements);
}

Status verifyAttentionPlan(std::string_view operation, const AttentionProblem &problem, const AttentionPlan &plan) {
  if (!isTileSize(plan.blockM) || !isTileSize(plan.blockN))
    return invalidArgument(fmt::format("{}: tiles of {}x{}; powers of two from 16 to 256 are accepted", operation,
                                       plan.blockM, plan.blockN));
  if (plan.movement == AttentionMovement::Pointers) {
    if (problem.valuesTransposed)
      return unsupported(fmt::format("{}: transposed V by pointers; descriptors are accepted", operation));
    return Status::ok();
  }
  if (problem.pages && problem.pages->size % plan.blockN != 0)
    return unsupported(fmt::format("{}: tiles of {} keys by descriptors, which must divide a page; it has {} rows",
                                   operation, plan.blockN, problem.pages->size));
  return Status::ok();
}

Status verifyOptional(std::string_view operation, std::string_view name, const std::optional<runtime::Pointer> &pointer,
                      DataType type) {
  return pointer ? verifyPointerType(operation, name, *pointer, type) : Status::ok();
}

Status verifyOffsets(std::string_view operation, const AttentionProblem &problem,
                     const std::optional<runtime::Pointer> &queryOffsets,
                     const std::optional<runtime::Pointer> &keyOffsets) {
  DITRON_RETURN_IF_ERROR(verifyOptional(operation, "queryOffsets", queryOffsets, DataType::I32));
  DITRON_RETURN_IF_ERROR(verifyOptional(operation, "keyOffsets", keyOffsets, DataType::I32));
  if (problem.packedQueries.has_value() != queryOffsets.has_value())
    return invalidArgument(
        fmt::format("{}: packedQueries and queryOffsets are accepted together; one is missing", operation));
  if (problem.packedKeys.has_value() != keyOffsets.has_value())
    return invalidArgument(
        fmt::format("{}: packedKeys and keyOffsets are accepted together; one is missing", operation));
  return Status::ok();
}

bool areAlignedForCopies(std::initializer_list<runtime::Pointer> pointers) {
  return std::ranges::all_of(pointers, [](const runtime::Pointer &p) {
    return reinterpret_cast<uintptr_t>(p.address) % copyAlignmentBytes == 0;
  });
}

} // namespace ditron::ops
