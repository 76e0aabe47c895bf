//===- VendorCollectives.cpp - How long NCCL's and RCCL's collectives take ------------------------------------------===//
#include "ditron/predict/VendorCollectives.h"

#include <algorithm>

namespace ditron::predict {

namespace {

/// Time of a collective's bytes, besides latencies.
struct ByteTime {
  double linkUs = 0; ///< Through the links of a node, at full efficiency; a protocol reaches a part of it.
  double nicUs = 0;  ///< Through the network cards, which limit whatever the protocol is.
};

/// Of `bytes` that each GPU sends on in a ring: through the slowest of what the ring goes through.
ByteTime ringTime(const MachineDescription &machine, uint32_t gpus, double bytes) {
  const NodeDescription &node = machine.node;
  // A mesh has several rings at once, over different links.
  double rate = node.linkGbPerS * (node.fabric == Fabric::Mesh ? std::min(gpus, node.gpus) - 1 : 1);
  const uint32_t perDomain = std::max(1u, node.gpus / node.numaDomains);
  if (node.numaDomains > 1 && gpus > perDomain)
    rate = std::min(rate, node.numaGbPerS); // one of the ring's hops, in each direction
  ByteTime time = {bytes / (rate * 1e3), 0};
  if (gpus > node.gpus) // as many rings as NICs, each through all GPUs
    time.nicUs =
        bytes / (machine.network.nicsPerNode * machine.network.nicGbPerS * machine.network.nicEfficiency * 1e3);
  return time;
}

/// Of everybody sending `bytes` to each peer.
ByteTime allToAllTime(const MachineDescription &machine, uint32_t gpus, double bytes) {
  const NodeDescription &node = machine.node;
  const uint32_t local = std::min(gpus, node.gpus), perDomain = std::max(1u, node.gpus / node.numaDomains);
  const double link = node.linkGbPerS * 1e3 * (node.fabric == Fabric::Mesh ? local - 1 : 1);
  ByteTime time = {bytes * (local - 1) / link, 0};
  if (node.numaDomains > 1 && local > perDomain)
    time.linkUs = std::max(time.linkUs, bytes * perDomain * (local - perDomain) / (node.numaGbPerS * 1e3));
  if (gpus > local)
    time.nicUs = bytes * (gpus - local) * node.gpus /
                 (machine.network.nicsPerNode * machine.network.nicGbPerS * machine.network.nicEfficiency * 1e3);
  return time;
}

} // namespace

Time vendorCollectiveUs(const MachineDescription &machine, Operator collective, uint32_t gpus, double bytes) {
  if (gpus < 2)
    return 0;
  const double sent = collective == Operator::AllReduce ? 2 * bytes * (gpus - 1) / gpus : bytes * (gpus - 1);
  const ByteTime time =
      collective == Operator::AllToAll ? allToAllTime(machine, gpus, bytes) : ringTime(machine, gpus, sent);
  const uint32_t nodes = (gpus + machine.node.gpus - 1) / machine.node.gpus;
  const LibrariesDescription &library = machine.libraries;
  // A ring goes through all GPUs, twice for AllReduce; AllToAll goes straight to each peer.
  const double rounds = collective == Operator::AllReduce ? 2 : 1;
  const double steps = collective == Operator::AllToAll ? 1 : rounds * (gpus - nodes);
  const double hops = steps * library.hopUs + rounds * (nodes - 1) * machine.network.latencyUs;
  auto protocol = [&](double latency, double efficiency) {
    return latency + std::max(time.linkUs / efficiency, time.nicUs);
  };
  return hops + std::min(protocol(library.lowLatencyUs, library.lowLatencyLinkEfficiency),
                         protocol(library.simpleUs, library.simpleLinkEfficiency));
}

} // namespace ditron::predict
