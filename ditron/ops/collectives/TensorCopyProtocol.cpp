//===- TensorCopyProtocol.cpp - Collectives by bulk copies through shared memory --------------------------------------===//
//
// Host side of tensor_copy_exchange and tensor_copy_reduce (kernels/collectives/tensor_copies.py, where the protocols are).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/collectives/CollectiveProtocol.h"
#include "ditron/support/TargetName.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {

/// STAGES of the device code, and the sums on their way out.
constexpr uint64_t stagesOfBlock = 5;
/// Of addresses and sizes that bulk copies take.
constexpr int64_t copyAlignment = 16;

class TensorCopyProtocol final : public CollectiveProtocol {
public:
  explicit TensorCopyProtocol(CollectiveSetting setting) : CollectiveProtocol(std::move(setting)) {}

  Status allocate(std::span<const SizedPlan> plans) override;
  Expected<CollectiveCall> call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                runtime::Pointer out, int64_t elements) const override;
  runtime::Pointer memory(uint32_t rank) const override { return slots.on(rank); }
  uint64_t workspaceBytes() const override {
    return slots.bytes() + signals.bytes() + (isAllReduce() ? results.bytes() : 0);
  }

private:
  bool isAllReduce() const { return options().kind == CollectiveKind::AllReduce; }
  Status verifyDevice(std::span<const SizedPlan> plans) const;
  void appendExchange(KernelCall &call, bool copies) const;

  runtime::SymmetricBuffer slots, signals;
  runtime::SymmetricBuffer results;         ///< AllReduce: sums.
  std::vector<runtime::Buffer> generations; ///< Per rank [blocks]: chunks so far
  int64_t slotElements = 0;
};

Status TensorCopyProtocol::verifyDevice(std::span<const SizedPlan> plans) const {
  const std::string what = fmt::format("{} by tensor_copies", toString(options().kind));
  DITRON_ASSIGN_OR_RETURN(const TargetName target, parseTargetName(world().target()));
  if (!target.hasTensorCopies())
    return unsupported(fmt::format("{} on {}: GPUs of compute capability 9.0 have such copies", what, target.text));
  const uint64_t shared = world().rank(world().localRanks().front()).attributes().sharedBytesPerBlock;
  for (const SizedPlan &each : plans)
    if (stagesOfBlock * each.plan.chunkBytes + copyAlignment * stagesOfBlock > shared)
      return unsupported(fmt::format("{}: chunks of {} bytes, of which a block keeps {} in {} bytes of shared memory",
                                     what, each.plan.chunkBytes, stagesOfBlock, shared));
  return Status::ok();
}

Status TensorCopyProtocol::allocate(std::span<const SizedPlan> plans) {
  DITRON_RETURN_IF_ERROR(verifyDevice(plans));
  const auto [blocks, largestChunk] = chunkSpace(plans);
  slotElements = largestChunk;
  const uint64_t count = uint64_t{blocks} * slotsOfRing * numRanks() * slotElements, shots = reduces() ? 2 : 1;
  DITRON_ASSIGN_OR_RETURN(slots, world().allocateSymmetric(options().dtype, count, name("_tensor_copies")));
  if (isAllReduce()) {
    DITRON_ASSIGN_OR_RETURN(results, world().allocateSymmetric(options().dtype, count, name("_sums")));
  }
  DITRON_ASSIGN_OR_RETURN(
      signals, world().allocateSymmetric(DataType::I64, shots * blocks * numRanks(), name("_copies_arrived")));
  DITRON_ASSIGN_OR_RETURN(generations, allocateCounters(world(), blocks, name("_copied_chunks")));
  return Status::ok();
}

Expected<CollectiveCall> TensorCopyProtocol::call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                                  runtime::Pointer out, int64_t elements) const {
  const int64_t part = isAllReduce() ? partElements(elements) : elements;
  const int64_t chunk = chunkElements(plan, part);
  const bool wholeBytes = elements * elementBytes() % copyAlignment == 0;
  const bool inAligned = wholeBytes && alignmentOf(in) == planAlignment,
             outAligned = wholeBytes && alignmentOf(out) == planAlignment;
  KernelCall call;
  call.numWarps = plan.numWarps;
  call.grid = chunkGrid(plan, part, chunk);
  call.arguments = {{"x_ptr", in},
                    {"out_ptr", out},
                    {"slots_ptr", slots.on(rank.id())},
                    {"signals_ptr", signals.on(rank.id())},
                    {"generation_ptr", generations[rank.id()].pointer()},
                    {"n", options().kind == CollectiveKind::ReduceScatter ? elements * numRanks() : elements},
                    {"rank", rank.id()},
                    {"slot_elements", slotElements},
                    {"WORLD", numRanks()},
                    {"CHUNK", chunk}};
  if (!reduces()) {
    appendExchange(call, inAligned && outAligned);
    return oneLaunch(rank, call);
  }
  call.source = "collectives/tensor_copies";
  call.kernel = "tensor_copy_reduce";
  call.arguments.emplace_back("results_ptr", (isAllReduce() ? results : slots).on(rank.id()));
  call.arguments.emplace_back("part", part);
  call.arguments.emplace_back("GATHER", isAllReduce());
  call.arguments.emplace_back("X_ALIGNED", inAligned);
  call.arguments.emplace_back("OUT_ALIGNED", outAligned);
  appendReduction(call);
  return oneLaunch(rank, call);
}

void TensorCopyProtocol::appendExchange(KernelCall &call, bool copies) const {
  call.source = copies ? "collectives/tensor_copies" : "collectives/chunks";
  call.kernel = copies ? "tensor_copy_exchange" : "chunk_exchange";
  call.arguments.emplace_back("SCATTER", scatters());
  if (copies)
    return;
  call.arguments.emplace_back("root", options().root);
  call.arguments.emplace_back("REDUCE", false);
  call.arguments.emplace_back("ROOTED", false);
  appendReduction(call);
}

} // namespace

std::unique_ptr<CollectiveProtocol> makeTensorCopyProtocol(CollectiveSetting setting) {
  return std::make_unique<TensorCopyProtocol>(std::move(setting));
}

} // namespace ditron::ops
