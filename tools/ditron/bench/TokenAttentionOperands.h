//===- TokenAttentionOperands.h - Operands of ditron bench ag_attention and ring_attention ---------------------*- C++ -*-===//
//
// What every rank has of attention whose tokens are dealt out to the ranks, and the comparison of results with the plain reference, which reads the same numbers.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_BENCH_TOKENATTENTIONOPERANDS_H
#define DITRON_TOOLS_DITRON_BENCH_TOKENATTENTIONOPERANDS_H

#include "base/NormalData.h"

#include "ditron/ops/attention/AttentionReference.h"
#include "ditron/ops/sequence_parallel/RingAttention.h"

#include <vector>

namespace ditron::tool {

class TokenAttentionOperands {
public:
  /// A rank's own tokens; of the backward only: lse and what is behind it. Offsets of packed sequences.
  struct Memory {
    runtime::Buffer q, k, v, out, lse, gradient, dq, dk, dv, offsets;
  };

  /// Of the options: sizes, types, causal, and packedSequences, the i-th of which has a part of the tokens that grows with i. The world and the data outlive this.
  static Expected<TokenAttentionOperands> create(runtime::World &world, const NormalData &data,
                                                 const ops::RingAttentionOptions &attention, bool backward);

  const Memory &of(uint32_t rank) const { return memory[rank]; }
  /// What calls are given of packed sequences; null where none are packed.
  runtime::Pointer offsetsOf(uint32_t rank) const {
    return offsets.empty() ? runtime::Pointer() : memory[rank].offsets.pointer();
  }
  /// Necessary floating point operations of a rank.
  double flops() const;

  /// Fills the results with NaN, in front of a call: an element that was not written shows.
  Status poisonForward() { return poison({&Memory::out, &Memory::lse}); }
  Status poisonBackward() { return poison({&Memory::dq, &Memory::dk, &Memory::dv}); }
  /// Some rows of all ranks' results against the reference: the RelativeError.
  Expected<double> forwardError() const;
  /// The worst of dq, dk and dv; it reads the forward call's out and lse.
  Expected<double> backwardError() const;

private:
  /// What all ranks have of a tensor.
  using Downloads = std::vector<std::vector<float>>;

  TokenAttentionOperands(runtime::World &world, const NormalData &data, const ops::RingAttentionOptions &attention,
                         bool backward)
      : world(&world), data(&data), attention(attention), backward(backward) {}
  Status allocate();
  Status poison(std::initializer_list<runtime::Buffer Memory::*> results);
  Expected<Downloads> download(runtime::Buffer Memory::*which) const;
  ops::TokenSections sections() const { return {attention.maxTokens, world->numRanks(), attention.causal}; }
  /// The i-th of `count` heads and tokens, of so many heads of all batches, from the first to the last.
  std::pair<int64_t, int64_t> sample(int64_t i, int64_t count, int64_t heads) const {
    const int64_t index = i * (heads * attention.maxTokens - 1) / (count - 1);
    return {index / attention.maxTokens, index % attention.maxTokens};
  }
  /// Where a head's token is among a rank's rows of so many heads: the rank, and the row.
  std::pair<uint32_t, int64_t> placeOf(int64_t head, int64_t token) const;
  /// Where a head's token is for the reference, to which packed sequences are batches: batch, and row.
  std::pair<int64_t, int64_t> rowOf(int64_t head, int64_t headsOfBatch, int64_t token) const;
  /// A head of all batches, and a token among all, of what the reference calls so.
  std::pair<int64_t, int64_t> headAndToken(int64_t batch, int64_t head, int64_t headsOfBatch, int64_t row) const;
  ops::AttentionElement element(uint64_t salt, int64_t headsOfBatch) const;
  ops::AttentionReference reference() const;

  runtime::World *world;
  const NormalData *data;
  ops::RingAttentionOptions attention;
  bool backward;
  std::vector<int64_t> offsets; ///< Of packed sequences; empty: none.
  std::vector<Memory> memory;   ///< By rank.
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_BENCH_TOKENATTENTIONOPERANDS_H
