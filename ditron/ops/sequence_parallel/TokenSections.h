//===- TokenSections.h - Tokens of a sequence dealt out to the ranks for attention -------------------------------*- C++ -*-===//
//
// Which tokens a rank has where keys come to the queries, and where they are put for other ranks. The device's side: kernels/sequence_parallel/sections.py.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SEQUENCE_PARALLEL_TOKENSECTIONS_H
#define DITRON_OPS_SEQUENCE_PARALLEL_TOKENSECTIONS_H

#include "ditron/ops/GemmKernels.h"

#include <optional>

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

/// Copies a rank's K and V, `heads` times tokensOf(rank) rows of headDim elements, to `heads` times shardRows() rows, with zeros behind them. K and V are
/// parameters, k_ptr and v_ptr; here they are any addresses of their type.
KernelCall stageKeysCall(const runtime::Rank &rank, const TokenSections &sections, int64_t heads, int64_t headDim,
                         runtime::Pointer k, runtime::Pointer v);

/// Packed sequences: tokens are those of several, one behind the other, that do not see each other and of which some may be empty. Where they are says
/// int32 [sequences + 1] on the device of every rank: the first token of each among all tokens, ascending from 0 on, and at last the end. What is behind
/// that is padding, and its results mean nothing. Kernels want for each of a rank's tokens where its sequence begins and ends.
class SequenceBounds {
public:
  SequenceBounds() = default;
  /// Memory for calls with at most the tokens of `largest`.
  static Expected<SequenceBounds> create(runtime::Rank &rank, const TokenSections &largest);
  /// Computes them from offsets_ptr; here it is any address.
  KernelCall find(const runtime::Rank &rank, const TokenSections &sections, int64_t sequences) const;
  /// Tells a kernel.
  void addTo(KernelCall &call) const;

private:
  runtime::Buffer begins, ends;
};
/// At least one sequence, in a batch of one.
Status verifyPackedSequences(std::string_view operation, const std::optional<int64_t> &sequences, int64_t batch);
/// Offsets are there where sequences are packed, and nowhere else.
Status verifySequenceOffsets(std::string_view operation, const std::optional<int64_t> &sequences,
                             runtime::Pointer offsets);

} // namespace ditron::ops
#endif // DITRON_OPS_SEQUENCE_PARALLEL_TOKENSECTIONS_H
