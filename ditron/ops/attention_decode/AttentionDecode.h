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

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_DECODE_ATTENTIONDECODE_H
