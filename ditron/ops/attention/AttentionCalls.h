//===- AttentionCalls.h - Attention of the caller's shapes and operands --------------------------------------------*- C++ -*-===//
//
// Attention.h and AttentionBackward.h as an object of one rank, for callers who give shape and operands with each call instead of holding a
// prepared one.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ATTENTION_ATTENTIONCALLS_H
#define DITRON_OPS_ATTENTION_ATTENTIONCALLS_H

#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/attention/AttentionBackward.h"

namespace ditron::ops {

/// Whether calls can have these options, whatever their shape.
Status verifyAttentionOptions(const AttentionProblem &problem);

class AttentionCalls {
public:
  /// Both must outlive this.
  AttentionCalls(runtime::Rank &rank, runtime::KernelProvider &kernels) : rank(&rank), kernels(&kernels) {}

  /// Compiles and loads what calls like this one need. Of the operands it counts which are given, and which are at multiples of 16 bytes. What is
  /// there already stays, since graphs may have its kernels.
  Status prepare(const AttentionProblem &problem, const AttentionOperands &operands);
  /// A call that was not prepared is prepared now, which a capture does not allow.
  Status enqueue(runtime::Stream &stream, const AttentionProblem &problem, const AttentionOperands &operands);

  /// The same of the backward, which has memory of its own for each shape: calls of one shape follow each other.
  Status prepareBackward(const AttentionProblem &problem, const AttentionBackwardOperands &operands);
  Status enqueueBackward(runtime::Stream &stream, const AttentionProblem &problem,
                         const AttentionBackwardOperands &operands);

private:
  struct Launch {
    PreparedCall call;
    std::vector<std::pair<uint32_t, size_t>> parameters; ///< And which operand each of them is.
  };
  using Plan = std::vector<Launch>;

  template <typename Operands>
  Status prepareIn(KeptPlans<Plan> &kept, const AttentionProblem &problem, const Operands &operands);
  template <typename Operands>
  Status enqueueIn(KeptPlans<Plan> &kept, runtime::Stream &stream, const AttentionProblem &problem,
                   const Operands &operands);
  Expected<Plan> makePlan(const AttentionProblem &problem, const AttentionOperands &operands) const;
  Expected<Plan> makePlan(const AttentionProblem &problem, const AttentionBackwardOperands &operands) const;

  runtime::Rank *rank;
  runtime::KernelProvider *kernels;
  KeptPlans<Plan> forward, backward;
};

} // namespace ditron::ops
#endif // DITRON_OPS_ATTENTION_ATTENTIONCALLS_H
