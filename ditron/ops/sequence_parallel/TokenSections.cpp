//===- TokenSections.cpp - Tokens of a sequence dealt out to the ranks for attention ------------------------------------------===//
#include "ditron/ops/sequence_parallel/TokenSections.h"

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

} // namespace ditron::ops
