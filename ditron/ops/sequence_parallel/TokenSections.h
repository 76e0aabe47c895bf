//===- TokenSections.h - Tokens of a sequence dealt out to the ranks for attention -------------------------------*- C++ -*-===//
//
// Which tokens a rank has where keys come to the queries, and where they are put for other ranks. The device's side: kernels/sequence_parallel/sections.py.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SEQUENCE_PARALLEL_TOKENSECTIONS_H
#define DITRON_OPS_SEQUENCE_PARALLEL_TOKENSECTIONS_H

#include "ditron/ops/GemmKernels.h"

namespace ditron::ops {

/// How tokens are dealt out to the ranks: in sections of sectionTokens(), the last ones shorter or empty.
struct TokenSections {
  int64_t tokens = 0; ///< Of a sequence, on all ranks together.
  uint32_t ranks = 1;
  bool isZigZag = false; ///< Rank r has sections r and 2 * ranks - 1 - r, one behind the other; else section r.

  uint32_t parts() const { return isZigZag ? 2 : 1; }
  int64_t sectionTokens() const { return ceilDivide(tokens, int64_t{ranks} * parts()); }
  /// First token of a section that a rank has, and how many it has of it.
  int64_t firstToken(uint32_t rank, uint32_t part) const {
    return sectionTokens() * (part ? 2 * ranks - 1 - rank : rank);
  }
  int64_t tokensOf(uint32_t rank, uint32_t part) const {
    return std::clamp<int64_t>(tokens - firstToken(rank, part), 0, sectionTokens());
  }
  /// Rows of a head where shards of all ranks are alike: sections one behind the other, those that are short or empty as long as the others.
  int64_t shardRows() const { return sectionTokens() * parts(); }
  int64_t tokensOf(uint32_t rank) const { return tokensOf(rank, 0) + (isZigZag ? tokensOf(rank, 1) : 0); }
};

/// Copies a rank's K and V, `heads` times tokensOf(rank) rows of headDim elements, to `heads` times shardRows() rows, with zeros behind them. K and V are parameters, k_ptr and v_ptr; here
/// they are any addresses of their type.
KernelCall stageKeysCall(const runtime::Rank &rank, const TokenSections &sections, int64_t heads, int64_t headDim,
                         runtime::Pointer k, runtime::Pointer v);

} // namespace ditron::ops
#endif // DITRON_OPS_SEQUENCE_PARALLEL_TOKENSECTIONS_H
