//===- TokenSections.cpp - Tokens of a sequence dealt out to the ranks for attention ------------------------------------------===//
#include "ditron/ops/sequence_parallel/TokenSections.h"

#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

KernelCall stageKeysCall(const runtime::Rank &rank, const TokenSections &sections, int64_t heads, int64_t headDim,
                         runtime::Pointer k, runtime::Pointer v) {
  /// Elements of a block, and blocks of a multiprocessor.
  constexpr uint32_t block = 4096, blocksPerMultiprocessor = 2;
  const int64_t blocks = heads * ceilDivide(sections.shardRows() * headDim, block);
  KernelCall call;
  call.source = "sequence_parallel/attention";
  call.kernel = "stage_shard";
  call.grid = {
      static_cast<uint32_t>(std::min<int64_t>(blocks, blocksPerMultiprocessor * rank.attributes().multiprocessors)), 2,
      1};
  call.arguments = {{"k_ptr", k},
                    {"v_ptr", v},
                    {"staged_k_ptr", k},
                    {"staged_v_ptr", v},
                    {"heads", heads},
                    {"own_rows", sections.tokensOf(rank.id())},
                    {"stage_rows", sections.shardRows()},
                    {"HEAD_DIM", headDim},
                    {"BLOCK", block}};
  return call;
}

Expected<SequenceBounds> SequenceBounds::create(runtime::Rank &rank, const TokenSections &largest) {
  SequenceBounds bounds;
  DITRON_ASSIGN_OR_RETURN(bounds.begins, rank.allocate(DataType::I32, largest.shardRows(), "sequence_begins"));
  DITRON_ASSIGN_OR_RETURN(bounds.ends, rank.allocate(DataType::I32, largest.shardRows(), "sequence_ends"));
  return bounds;
}

KernelCall SequenceBounds::find(const runtime::Rank &rank, const TokenSections &sections, int64_t sequences) const {
  constexpr int64_t block = 256;
  const uint32_t id = rank.id();
  KernelCall call;
  call.source = "sequence_parallel/attention";
  call.kernel = "find_sequences";
  call.grid = {static_cast<uint32_t>(
                   std::clamp<int64_t>(ceilDivide(sections.tokensOf(id), block), 1, rank.attributes().multiprocessors)),
               1, 1};
  call.arguments = {{"offsets_ptr", begins.pointer()},     {"begins_ptr", begins.pointer()},
                    {"ends_ptr", ends.pointer()},          {"sequences", sequences},
                    {"section", sections.sectionTokens()}, {"first_rows", sections.tokensOf(id, 0)},
                    {"own_rows", sections.tokensOf(id)},   {"rank", id},
                    {"world_size", rank.numRanks()},       {"BLOCK", block}};
  return call;
}

void SequenceBounds::addTo(KernelCall &call) const {
  call.arguments.insert(call.arguments.end(), {{"begins_ptr", begins.pointer()}, {"ends_ptr", ends.pointer()}});
}

Status verifyPackedSequences(std::string_view operation, const std::optional<int64_t> &sequences, int64_t batch) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (!sequences || (*sequences >= 1 && *sequences <= most && batch == 1))
    return Status::ok();
  return invalidArgument(fmt::format("{}: {} packed sequences in a batch of {}; 1 to {} are accepted, in a batch of 1",
                                     operation, *sequences, batch, most));
}

Status verifySequenceOffsets(std::string_view operation, const std::optional<int64_t> &sequences,
                             runtime::Pointer offsets) {
  if (sequences)
    return verifyAlignedPointer(operation, "offsets", offsets, DataType::I32);
  if (!offsets.address)
    return Status::ok();
  return invalidArgument(
      fmt::format("{}: offsets of sequences that are not packed; packedSequences says that they are", operation));
}

} // namespace ditron::ops
