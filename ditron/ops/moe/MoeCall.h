//===- MoeCall.h - The operations of a call over the ranks, and its operands -------------------------------------*- C++ -*-===//
//
// What AllGatherMoe and MoeReduction enqueue with every call of one shape: the sequence of operations, and which parameters of which launches
// are the operands that the caller gives. PlannedProduct has the same for products of two matrices.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_MOE_MOECALL_H
#define DITRON_OPS_MOE_MOECALL_H

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/KeptPlans.h"
#include "ditron/runtime/CallSequence.h"

namespace ditron::ops {

class MoeCall {
public:
  /// Parameters of a launch, and the number of the operand that each is.
  using Names = std::vector<std::pair<std::string_view, size_t>>;

  MoeCall() = default;
  explicit MoeCall(std::shared_ptr<runtime::SideStream> side) : sequence(std::move(side)) {}

  /// Behind what the lane has got so far.
  Status launch(runtime::Lane lane, PreparedCall call, const Names &names = {}) {
    Launch launch;
    for (const auto &[name, operand] : names) {
      DITRON_ASSIGN_OR_RETURN(const uint32_t parameter, call.pointerParameter(name));
      launch.parameters.emplace_back(parameter, operand);
    }
    sequence.launch(lane, call.prepared());
    launch.call = std::move(call);
    launches.push_back(std::move(launch));
    return Status::ok();
  }

  /// Enqueues one call with these operands, by their number.
  Status enqueue(runtime::Stream &stream, const std::vector<runtime::Pointer> &operands) {
    for (Launch &launch : launches)
      for (const auto &[parameter, operand] : launch.parameters)
        DITRON_RETURN_IF_ERROR(launch.call.setPointer(parameter, operands[operand]));
    return sequence.enqueue(stream);
  }

  /// Keeps the call of a key, made where there is none yet (graphs may have its kernels), and records it.
  template <typename Make>
  static Status prepare(KeptPlans<MoeCall> &kept, const KeptPlans<MoeCall>::Key &key, runtime::Rank &rank,
                        std::string_view operation, const Make &make) {
    if (!kept.has(key)) {
      DITRON_ASSIGN_OR_RETURN(MoeCall made, make());
      kept.keep(key, std::move(made));
    }
    runtime::CallSequence &sequence = kept.get(key)->sequence;
    return sequence.isRecorded() ? Status::ok() : sequence.record(rank).withContext(operation);
  }

  runtime::CallSequence sequence;

private:
  struct Launch {
    PreparedCall call;
    std::vector<std::pair<uint32_t, size_t>> parameters;
  };
  std::vector<Launch> launches;
};

} // namespace ditron::ops
#endif // DITRON_OPS_MOE_MOECALL_H
