//===- PacketProtocol.cpp - Collectives by packets --------------------------------------------------------------------===//
//
// Host side of packet_exchange and packet_all_reduce (kernels/collectives/packets.py), and of lamport_exchange and lamport_all_reduce
// (lamport.py), whose packets are all data. Each has memory of its own: what one left would be data to the other.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/collectives/Channels.h"
#include "ditron/ops/collectives/CollectiveProtocol.h"

namespace ditron::ops {

namespace {

class PacketProtocol final : public CollectiveProtocol {
public:
  PacketProtocol(CollectiveSetting setting, bool isLamport)
      : CollectiveProtocol(std::move(setting)), isLamport(isLamport) {}

  Status allocate(std::span<const SizedPlan> plans) override;
  Expected<CollectiveCall> call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                runtime::Pointer out, int64_t elements) const override;
  runtime::Pointer memory(uint32_t rank) const override { return slots.on(rank); }
  uint64_t workspaceBytes() const override { return slots.bytes() + (isLamport ? doubts.bytes() : 0); }

private:
  uint32_t dataBytes() const { return isLamport ? lamportDataBytes : packetDataBytes; }
  /// That a rank deals with.
  int64_t ownPackets(const CollectivePlan &plan, int64_t elements) const;

  bool isLamport;
  runtime::SymmetricBuffer slots;           ///< [blocks, 2, sources, capacity] packets of 16 bytes
  runtime::SymmetricBuffer doubts;          ///< Of Lamport packets: what a word that may be two is.
  std::vector<runtime::Buffer> generations; ///< Per rank [blocks]: calls so far
  int64_t capacity = 0;                     ///< Packets of a block from one source.
  uint32_t sources = 0;                     ///< Of the form that has the most.
};

bool isTwoShot(CollectiveForm form) {
  return form == CollectiveForm::TwoShotPackets || form == CollectiveForm::TwoShotLamport;
}
/// Slots of a rank in a set of packets: its contribution, and in two shots its results.
uint32_t sourcesOfRank(CollectiveForm form) { return isTwoShot(form) ? 2 : 1; }

int64_t PacketProtocol::ownPackets(const CollectivePlan &plan, int64_t elements) const {
  const int64_t packets = ceilDivide(elements * elementBytes(), int64_t{dataBytes()});
  return isTwoShot(plan.form) ? ceilDivide(packets, numRanks()) : packets;
}

Status PacketProtocol::allocate(std::span<const SizedPlan> plans) {
  uint32_t blocks = 0;
  for (const auto &[plan, mostElements] : plans) {
    blocks = std::max(blocks, plan.blocks);
    capacity = std::max(capacity, packetsPerBlock(plan, ownPackets(plan, mostElements)));
    sources = std::max(sources, numRanks() * sourcesOfRank(plan.form));
  }
  constexpr uint64_t wordsPerPacket = 2, sets = 2;
  const uint64_t count = blocks * sets * sources * capacity * wordsPerPacket;
  DITRON_ASSIGN_OR_RETURN(
      slots, world().allocateSymmetric(DataType::I64, count, name(isLamport ? "_lamport_packets" : "_packets")));
  if (isLamport) {
    DITRON_ASSIGN_OR_RETURN(doubts, world().allocateSymmetric(DataType::I64, count, name("_lamport_doubts")));
  }
  DITRON_ASSIGN_OR_RETURN(generations,
                          allocateCounters(world(), blocks, name(isLamport ? "_lamport_calls" : "_packet_calls")));
  return Status::ok();
}

Expected<CollectiveCall> PacketProtocol::call(runtime::Rank &rank, const CollectivePlan &plan, runtime::Pointer in,
                                              runtime::Pointer out, int64_t elements) const {
  const bool twoShot = isTwoShot(plan.form);
  const int64_t perPacket = dataBytes() / elementBytes();
  const int64_t own = ownPackets(plan, elements), perBlock = packetsPerBlock(plan, own);
  // A block has the same memory in both forms, whose calls may alternate.
  const int64_t sourceStride = capacity * (sources / (numRanks() * sourcesOfRank(plan.form)));
  KernelCall call;
  call.source = isLamport ? "collectives/lamport" : "collectives/packets";
  constexpr std::string_view names[2][2] = {{"packet_exchange", "packet_all_reduce"},
                                            {"lamport_exchange", "lamport_all_reduce"}};
  call.kernel = names[isLamport][twoShot];
  call.numWarps = plan.numWarps;
  // Each block has a packet, as the protocol needs.
  call.grid = {static_cast<uint32_t>(ceilDivide(own, perBlock)), 1, 1};
  call.arguments = {{"x_ptr", in},
                    {"out_ptr", out},
                    {"slots_ptr", slots.on(rank.id())},
                    {"generation_ptr", generations[rank.id()].pointer()},
                    {"n", elements},
                    {"rank", rank.id()},
                    {"packets_per_block", perBlock},
                    {"capacity", sourceStride},
                    {"WORLD", numRanks()},
                    {"PER_PACKET", perPacket}};
  call.arguments.emplace_back("ALIGNED", elements % perPacket == 0 && alignmentOf(in) == planAlignment &&
                                             alignmentOf(out) == planAlignment);
  if (isLamport)
    call.arguments.emplace_back("doubts_ptr", doubts.on(rank.id()));
  if (!twoShot) {
    call.arguments.emplace_back("SCATTER", scatters());
    call.arguments.emplace_back("REDUCE", reduces());
  }
  appendReduction(call);
  return oneLaunch(rank, call);
}

} // namespace

std::unique_ptr<CollectiveProtocol> makePacketProtocol(CollectiveSetting setting) {
  return std::make_unique<PacketProtocol>(std::move(setting), false);
}

std::unique_ptr<CollectiveProtocol> makeLamportProtocol(CollectiveSetting setting) {
  return std::make_unique<PacketProtocol>(std::move(setting), true);
}

} // namespace ditron::ops
