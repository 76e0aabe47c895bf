//===- RingProtocol.cpp - Collectives around a ring of ranks ----------------------------------------------------------===//
//
// Host side of ring_exchange and ring_broadcast (kernels/collectives/ring.py, where the protocol is).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/collectives/CollectiveProtocol.h"

namespace ditron::ops {

namespace {

/// SLOTS of the device code.
constexpr uint64_t slotsPerBlock = 4;

class RingProtocol final : public CollectiveProtocol {
public:
  explicit RingProtocol(CollectiveSetting setting) : CollectiveProtocol(std::move(setting)) {}

  Status allocate(std::span<const SizedPlan> plans) override;
  Expected<CollectiveCall> call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                runtime::Pointer out, int64_t elements) const override;
  runtime::Pointer memory(uint32_t rank) const override { return slots.on(rank); }
  uint64_t workspaceBytes() const override { return slots.bytes() + words.bytes(); }

private:
  runtime::SymmetricBuffer slots, words;
  std::vector<runtime::Buffer> generations; ///< Per rank [blocks]: messages so far
  int64_t slotElements = 0;
};

Status RingProtocol::allocate(std::span<const SizedPlan> plans) {
  const auto [blocks, largestChunk] = chunkSpace(plans);
  slotElements = largestChunk;
  DITRON_ASSIGN_OR_RETURN(
      slots, world().allocateSymmetric(partialSumType(), blocks * slotsPerBlock * slotElements, name("_ring")));
  DITRON_ASSIGN_OR_RETURN(words, world().allocateSymmetric(DataType::I64, uint64_t{blocks} * 2, name("_ring_words")));
  DITRON_ASSIGN_OR_RETURN(generations, allocateCounters(world(), blocks, name("_ring_messages")));
  return Status::ok();
}

Expected<CollectiveCall> RingProtocol::call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                            runtime::Pointer out, int64_t elements) const {
  using enum CollectiveKind;
  const int64_t part = options().kind == AllReduce ? partElements(elements) : elements;
  const int64_t chunk = chunkElements(plan, part);
  KernelCall call;
  call.source = "collectives/ring";
  call.kernel = options().kind == Broadcast ? "ring_broadcast" : "ring_exchange";
  call.numWarps = plan.numWarps;
  call.grid = chunkGrid(plan, part, chunk);
  call.arguments = {
      {"x_ptr", in},
      {"out_ptr", out},
      {"slots_ptr", slots.on(rank.id())},
      {"words_ptr", words.on(rank.id())},
      {"generation_ptr", generations[rank.id()].pointer()},
      {"n", options().kind == AllReduce || options().kind == Broadcast ? elements : elements * numRanks()},
      {"rank", rank.id()},
      {"slot_elements", slotElements},
      {"WORLD", numRanks()},
      {"CHUNK", chunk}};
  if (options().kind == Broadcast) {
    call.arguments.emplace_back("root", options().root);
  } else {
    call.arguments.emplace_back("part", part);
    call.arguments.emplace_back("REDUCE", reduces());
    call.arguments.emplace_back("GATHER", !scatters());
    appendReduction(call);
  }
  return oneLaunch(rank, call);
}

} // namespace

std::unique_ptr<CollectiveProtocol> makeRingProtocol(CollectiveSetting setting) {
  return std::make_unique<RingProtocol>(std::move(setting));
}

} // namespace ditron::ops
