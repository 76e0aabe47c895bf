//===- TwoLevelPacketProtocol.cpp - Small collectives of several nodes ------------------------------------------------===//
//
// Host side of two_level_packet_exchange (kernels/collectives/two_level_packets.py, where the protocol is).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/collectives/CollectiveProtocol.h"

namespace ditron::ops {

namespace {

class TwoLevelPacketProtocol final : public CollectiveProtocol {
public:
  explicit TwoLevelPacketProtocol(CollectiveSetting setting) : CollectiveProtocol(std::move(setting)) {}

  Status allocate(std::span<const SizedPlan> plans) override;
  Expected<CollectiveCall> call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                runtime::Pointer out, int64_t elements) const override;
  runtime::Pointer memory(uint32_t rank) const override { return slots.on(rank); }
  uint64_t workspaceBytes() const override { return slots.bytes() + wire.bytes() + words.bytes(); }

private:
  int64_t perPacket() const { return packetDataBytes / elementBytes(); }

  runtime::SymmetricBuffer slots;           ///< [blocks, 2, ranks, capacity] packets of 16 bytes
  runtime::SymmetricBuffer wire;            ///< [blocks, 2, nodes, capacity, elements of a packet]
  runtime::SymmetricBuffer words;           ///< [blocks, 2, nodes] signals
  std::vector<runtime::Buffer> generations; ///< Per rank [blocks]: calls so far
  int64_t capacity = 0;                     ///< Packets of a block from one source.
};

Status TwoLevelPacketProtocol::allocate(std::span<const SizedPlan> plans) {
  uint32_t blocks = 0;
  for (const auto &[plan, mostElements] : plans) {
    blocks = std::max(blocks, plan.blocks);
    capacity = std::max(capacity, packetsPerBlock(plan, ceilDivide(mostElements, perPacket())));
  }
  constexpr uint64_t wordsPerPacket = 2, sets = 2;
  const uint64_t nodes = world().numNodes(), packets = uint64_t{blocks} * sets * capacity;
  DITRON_ASSIGN_OR_RETURN(
      slots, world().allocateSymmetric(DataType::I64, packets * numRanks() * wordsPerPacket, name("_node_packets")));
  DITRON_ASSIGN_OR_RETURN(
      wire, world().allocateSymmetric(options().dtype, packets * nodes * perPacket(), name("_from_nodes")));
  DITRON_ASSIGN_OR_RETURN(
      words, world().allocateSymmetric(DataType::I64, uint64_t{blocks} * sets * nodes, name("_from_nodes_signals")));
  DITRON_ASSIGN_OR_RETURN(generations, allocateCounters(world(), blocks, name("_node_packet_calls")));
  return Status::ok();
}

Expected<CollectiveCall> TwoLevelPacketProtocol::call(runtime::Rank &rank, const CollectivePlan &plan,
                                                      runtime::Pointer in, runtime::Pointer out,
                                                      int64_t elements) const {
  const int64_t packets = ceilDivide(elements, perPacket()), perBlock = packetsPerBlock(plan, packets);
  const uint32_t me = rank.id();
  KernelCall call;
  call.source = "collectives/two_level_packets";
  call.kernel = "two_level_packet_exchange";
  call.numWarps = plan.numWarps;
  // Each block has a packet, as the protocol needs.
  call.grid = {static_cast<uint32_t>(ceilDivide(packets, perBlock)), 1, 1};
  call.arguments = {{"x_ptr", in},
                    {"out_ptr", out},
                    {"slots_ptr", slots.on(me)},
                    {"wire_ptr", wire.on(me)},
                    {"words_ptr", words.on(me)},
                    {"generation_ptr", generations[me].pointer()},
                    {"n", elements},
                    {"rank", me},
                    {"packets_per_block", perBlock},
                    {"capacity", capacity},
                    {"NODES", world().numNodes()},
                    {"LOCAL", world().ranksPerNode()},
                    {"PER_PACKET", perPacket()}};
  call.arguments.emplace_back("REDUCE", reduces());
  call.arguments.emplace_back("ALIGNED", elements % perPacket() == 0 && alignmentOf(in) == planAlignment &&
                                             alignmentOf(out) == planAlignment);
  appendReduction(call);
  return oneLaunch(rank, call);
}

} // namespace

std::unique_ptr<CollectiveProtocol> makeTwoLevelPacketProtocol(CollectiveSetting setting) {
  return std::make_unique<TwoLevelPacketProtocol>(std::move(setting));
}

} // namespace ditron::ops
