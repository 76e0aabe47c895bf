//===- ChunkProtocol.cpp - Collectives by chunks ----------------------------------------------------------------------===//
//
// Host side of chunk_exchange and chunk_all_reduce (kernels/collectives/chunks.py).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/collectives/CollectiveProtocol.h"

namespace ditron::ops {

namespace {

class ChunkProtocol final : public CollectiveProtocol {
public:
  explicit ChunkProtocol(CollectiveSetting setting) : CollectiveProtocol(std::move(setting)) {}

  Status allocate(std::span<const SizedPlan> plans) override;
  Expected<CollectiveCall> call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                runtime::Pointer out, int64_t elements) const override;
  runtime::Pointer memory(uint32_t rank) const override { return slots.on(rank); }
  uint64_t workspaceBytes() const override { return slots.bytes() + signals.bytes(); }

private:
  runtime::SymmetricBuffer slots, signals;
  std::vector<runtime::Buffer> generations; ///< Per rank [blocks]: chunks so far
  int64_t slotElements = 0;
};

Status ChunkProtocol::allocate(std::span<const SizedPlan> plans) {
  const auto [blocks, largestChunk] = chunkSpace(plans);
  slotElements = largestChunk;
  const uint64_t shots = options().kind == CollectiveKind::AllReduce ? 2 : 1, ranks = numRanks();
  DITRON_ASSIGN_OR_RETURN(
      slots,
      world().allocateSymmetric(options().dtype, shots * blocks * slotsOfRing * ranks * slotElements, name("_chunks")));
  DITRON_ASSIGN_OR_RETURN(signals, world().allocateSymmetric(DataType::I64, shots * blocks * ranks, name("_arrived")));
  DITRON_ASSIGN_OR_RETURN(generations, allocateCounters(world(), blocks, name("_chunks_done")));
  return Status::ok();
}

Expected<CollectiveCall> ChunkProtocol::call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                             runtime::Pointer out, int64_t elements) const {
  const bool allReduce = options().kind == CollectiveKind::AllReduce;
  const int64_t part = allReduce ? partElements(elements) : elements;
  const int64_t chunk = chunkElements(plan, part);
  KernelCall call;
  call.source = "collectives/chunks";
  call.kernel = allReduce ? "chunk_all_reduce" : "chunk_exchange";
  call.numWarps = plan.numWarps;
  call.grid = chunkGrid(plan, part, chunk);
  call.arguments = {{"x_ptr", in},
                    {"out_ptr", out},
                    {"slots_ptr", slots.on(rank.id())},
                    {"signals_ptr", signals.on(rank.id())},
                    {"generation_ptr", generations[rank.id()].pointer()},
                    {"n", elements},
                    {"rank", rank.id()},
                    {"slot_elements", slotElements},
                    {"WORLD", numRanks()},
                    {"CHUNK", chunk}};
  if (allReduce) {
    call.arguments.emplace_back("part", part);
  } else {
    call.arguments.emplace_back("root", options().root);
    call.arguments.emplace_back("SCATTER", scatters());
    call.arguments.emplace_back("REDUCE", reduces());
    call.arguments.emplace_back("ROOTED", options().kind == CollectiveKind::Broadcast);
  }
  appendReduction(call);
  return oneLaunch(rank, call);
}

} // namespace

std::unique_ptr<CollectiveProtocol> makeChunkProtocol(CollectiveSetting setting) {
  return std::make_unique<ChunkProtocol>(std::move(setting));
}

} // namespace ditron::ops
