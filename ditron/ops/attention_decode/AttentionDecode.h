//===- AttentionDecode.h - Attention of few queries over many keys, on one GPU -------------------------------------*- C++ -*-===//
//
// One launch reads K and V once, cut over all multiprocessors whatever the lengths of the sequences are, and combines what they give. Lengths
// and tables of pages are read on the device. Device code, and how the work is cut: kernels/attention_decode.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ATTENTION_DECODE_ATTENTIONDECODE_H
#define DITRON_OPS_ATTENTION_DECODE_ATTENTIONDECODE_H

#include "ditron/ops/attention_decode/DecodeProblem.h"

namespace ditron::ops {

/// Without a plan the library chooses one. The call owns what its programs leave for each other: calls follow each other on one stream, eagerly
/// or replayed, with whatever lengths, pages and data stand in memory then.
Expected<PreparedCall> prepareAttentionDecode(runtime::KernelProvider &kernels, runtime::Rank &rank,
                                              const DecodeProblem &problem, const DecodeOperands &operands,
                                              const std::optional<DecodePlan> &plan = std::nullopt);

/// The same as an object of one rank, for callers who give operands and the number of sequences with each call. All calls work in the same
/// memory: they follow each other.
class AttentionDecode {
public:
  /// `problem.batch`: the most sequences. The rank and the kernels must outlive this.
  static Expected<AttentionDecode> create(runtime::Rank &rank, runtime::KernelProvider &kernels,
                                          const DecodeProblem &problem,
                                          const std::optional<DecodePlan> &plan = std::nullopt);

  /// Compiles and loads what calls with so many sequences need, with operands at multiples of 16 bytes, with lse and sinks or without.
  Status prepare(int64_t batch, bool withLse = false, bool withSinks = false);
  /// A call that was not prepared is prepared now, which a capture does not allow.
  Status enqueue(runtime::Stream &stream, const DecodeOperands &operands, int64_t batch);

  const DecodeProblem &problem() const { return problemValue; }

private:
  Expected<KeptDecode> makePlan(const DecodeOperands &operands, int64_t batch) const;

  DecodeProblem problemValue;
  DecodePlan plan;
  runtime::Rank *rank = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  DecodeWorkspace workspace;
  KeptPlans<KeptDecode> kept;
};

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_DECODE_ATTENTIONDECODE_H
