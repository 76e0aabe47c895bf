//===- AttentionArguments.h - What the kernels of attention are told --------------------------------------*- C++ -*-===//
//
// Checks and arguments that forward, backward and attention of few queries have in common. Internal to ops.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ATTENTION_ATTENTIONARGUMENTS_H
#define DITRON_OPS_ATTENTION_ATTENTIONARGUMENTS_H

#include "ditron/ops/attention/Attention.h"

namespace ditron::ops {

/// Elements from one to the next.
struct AttentionStrides {
  int64_t batch, head, row;
};
/// Of a tensor of `rows` rows of `dim` elements in each batch.
AttentionStrides stridesOf(AttentionLayout layout, int64_t heads, int64_t rows, int64_t dim);
/// Of Q, and of what lies like it.
AttentionStrides queryStrides(const AttentionProblem &problem, int64_t dim);
/// Of K and V.
AttentionStrides keyStrides(const AttentionProblem &problem, int64_t dim);

/// Adds NAME_batch, NAME_head and NAME_row.
void addStrides(KernelCall &call, const std::string &name, const AttentionStrides &strides);
/// Adds what says which keys a query sees, which rows a batch has, and what changes scores.
void addOptions(KernelCall &call, const AttentionProblem &problem, const std::optional<runtime::Pointer> &slopes,
                const std::optional<runtime::Pointer> &queryOffsets, const std::optional<runtime::Pointer> &keyOffsets);
/// Adds what tensor descriptors need besides: batches and rows in memory.
void addExtents(KernelCall &call, const AttentionProblem &problem);

/// A cap of scores that fp32 can compute.
Status verifySoftCap(std::string_view operation, std::optional<double> cap);
/// Sizes and options, of forward and backward.
Status verifyAttention(std::string_view operation, const AttentionProblem &problem);
Status verifyAttentionPlan(std::string_view operation, const AttentionProblem &problem, const AttentionPlan &plan);
/// Packed rows and their offsets come together.
Status verifyOffsets(std::string_view operation, const AttentionProblem &problem,
                     const std::optional<runtime::Pointer> &queryOffsets,
                     const std::optional<runtime::Pointer> &keyOffsets);
/// An operand that may be absent.
Status verifyOptional(std::string_view operation, std::string_view name, const std::optional<runtime::Pointer> &pointer,
                      DataType type);
/// True if tensor copies can have all of these addresses.
bool areAlignedForCopies(std::initializer_list<runtime::Pointer> pointers);

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_ATTENTIONARGUMENTS_H
