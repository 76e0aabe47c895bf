//===- ProgramTransfers.cpp - What goes from rank to rank in a call -------------------------------------------------===//
//
// The orders of copies by copy engines (pushes, rings, over nodes), the sums behind them, and exchanges through symmetric memory.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/predict/Program.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace ditron::predict {

/// The streams that a rank's copies go through: one; in a mesh, where each peer has a link of its own, one for each peer.
class Program::PeerStreams {
public:
  PeerStreams(Program &program, uint32_t rank, SignalId begun)
      : program(program), rank(rank), begun(begun), isMesh(program.machine.node.fabric == Fabric::Mesh) {}

  Stream &to(uint32_t peer) {
    const auto [found, isNew] = streams.try_emplace(isMesh ? peer : 0, nullptr);
    if (isNew)
      found->second = &program.sideStream(rank, isMesh ? fmt::format("copies to {}", peer) : "copies", begun);
    return *found->second;
  }
  /// Raises the signal once everything so far is done.
  void join(SignalId sent) {
    const SignalId part = program.fleet.simulation.addSignal(fmt::format("copied of rank {}", rank));
    for (const auto &[peer, stream] : streams)
      stream->raise(part);
    program.fleet.simulation.when(part, streams.size(),
                                  [&program = program, sent] { program.fleet.simulation.raise(sent); });
  }

private:
  Program &program;
  const uint32_t rank;
  const SignalId begun;
  const bool isMesh;
  std::map<uint32_t, Stream *> streams;
};

//===- AllGather by copy engines --------------------------------------------------------------------------------------===//

void Program::gather(uint32_t rank, const Gather &what, SignalId begun, SignalId sent) {
  if (fleet.numNodes() > 1)
    gatherOverNodes(rank, what, begun, sent);
  else if (machine.node.fabric == Fabric::Pcie)
    gatherInRing(rank, what, begun, sent);
  else
    gatherDirectly(rank, what, begun, sent);
}

/// As ops::AllGatherGemm pushes.
void Program::gatherDirectly(uint32_t rank, const Gather &what, SignalId begun, SignalId sent) {
  PeerStreams streams(*this, rank, begun);
  for (const ops::Push &push : ops::allGatherPushes(what.shards, rank, request.gpus, what.chunks)) {
    Stream &stream = streams.to(push.peer);
    if (push.rows > 0)
      stream.copy(push.peer, what.rowBytes * static_cast<double>(push.rows),
                  fmt::format("{} to {}", what.kind, push.peer));
    stream.signalCopy(push.peer, signalAt(rank, push.peer, what.kind, what.chunks, push.chunk));
  }
  streams.join(sent);
}

/// Each shard travels downwards from rank to rank, so that no more than one transfer at a time crosses between NUMA domains in each
/// direction. Shards arrive in the same order as by pushes.
void Program::gatherInRing(uint32_t rank, const Gather &what, SignalId begun, SignalId sent) {
  const uint32_t ranks = request.gpus, next = (rank + ranks - 1) % ranks;
  Stream &stream = sideStream(rank, "copies", begun);
  for (uint32_t step = 0; step + 1 < ranks; ++step) {
    const uint32_t shard = (rank + step) % ranks;
    for (uint32_t chunk = 0; chunk < what.chunks; ++chunk) {
      const uint64_t word = uint64_t(shard) * what.chunks + chunk;
      if (step > 0)
        stream.wait(signal(rank, what.kind, word));
      stream.copy(next, what.rowBytes * static_cast<double>(what.shards.rowsOf(shard)) / what.chunks,
                  fmt::format("{} {}", what.kind, shard));
      stream.signalCopy(next, signal(next, what.kind, word));
    }
  }
  stream.raise(sent);
}

/// Between nodes to the GPU of the same number, which hands on what arrives inside its node (Triton-distributed, section 3), as
/// ops::AllGatherGemm does. The node below gets the shard first, as it visits this node's shards right after its own.
void Program::gatherOverNodes(uint32_t rank, const Gather &what, SignalId begun, SignalId sent) {
  const uint32_t local = fleet.ranksPerNode(), nodes = fleet.numNodes(), own = fleet.nodeOf(rank), place = rank % local;
  const int64_t shardRows = what.shards.rowsOf(rank), chunkRows = ops::rowsPerChunk(what.shards, what.chunks);
  Stream &network = sideStream(rank, "network", begun);
  for (uint32_t distance = 1; distance < nodes; ++distance)
    for (uint32_t chunk = 0; chunk < what.chunks; ++chunk) {
      const uint32_t to = (own + nodes - distance) % nodes * local + place;
      const int64_t rows = std::min(chunkRows, shardRows - std::min(chunk * chunkRows, shardRows));
      put(network, to, what.rowBytes * static_cast<double>(rows), signalAt(rank, to, what.kind, what.chunks, chunk));
    }
  Stream &copies = sideStream(rank, "copies", begun);
  std::optional<uint64_t> arrived;
  for (const ops::Push &push : ops::allGatherPushes(what.shards, rank, request.gpus, what.chunks, nodes)) {
    const uint64_t word = uint64_t(push.source) * what.chunks + push.chunk;
    if (push.source != rank && arrived != word)
      copies.wait(signal(rank, what.kind, word));
    arrived = word;
    if (push.rows > 0)
      copies.copy(push.peer, what.rowBytes * static_cast<double>(push.rows),
                  fmt::format("{} {} to {}", what.kind, push.source, push.peer));
    copies.signalCopy(push.peer, signal(push.peer, what.kind, word));
  }
  copies.raise(sent);
}

//===- ReduceScatter by copy engines ----------------------------------------------------------------------------------===//

void Program::scatter(uint32_t rank, const Scatter &what, SignalId begun, SignalId sent) {
  if (fleet.numNodes() > 1)
    return scatterOverNodes(rank, what, begun, sent);
  if (machine.node.fabric == Fabric::Pcie)
    return scatterInRing(rank, what, begun, sent);
  PeerStreams streams(*this, rank, begun);
  for (const ops::Push &push : ops::reduceScatterPushes(what.shards, rank, request.gpus)) {
    Stream &stream = streams.to(push.peer);
    stream.wait(signal(rank, "gate", push.peer));
    if (what.reducedRowBytes > 0)
      stream.launchMemoryBound("sum over experts", what.reducedRowBytes * static_cast<double>(push.rows));
    stream.copy(push.peer, what.rowBytes * static_cast<double>(push.rows), fmt::format("segment to {}", push.peer));
    stream.signalCopy(push.peer, signalAt(rank, push.peer, "arrived"));
  }
  streams.join(sent);
}

/// Each segment travels downwards through all ranks, which add their part, and ends at its owner.
void Program::scatterInRing(uint32_t rank, const Scatter &what, SignalId begun, SignalId sent) {
  const uint32_t ranks = request.gpus, next = (rank + ranks - 1) % ranks;
  Stream &stream = sideStream(rank, "copies", begun);
  for (uint32_t step = 0; step + 1 < ranks; ++step) {
    const uint32_t segment = (rank + 1 + step) % ranks;
    const double rows = static_cast<double>(what.shards.rowsOf(segment));
    stream.wait(signal(rank, "gate", segment));
    if (what.reducedRowBytes > 0)
      stream.launchMemoryBound("sum over experts", what.reducedRowBytes * rows);
    if (step > 0) {
      stream.wait(signal(rank, "arrived", segment));
      stream.launchMemoryBound("add", 3 * what.rowBytes * rows);
    }
    stream.copy(next, what.rowBytes * rows, fmt::format("segment {}", segment));
    stream.signalCopy(next, signal(next, "arrived", segment));
  }
  stream.raise(sent);
}

/// Inside the node to the GPU with the owner's number, which sums and sends one partial result over the network.
void Program::scatterOverNodes(uint32_t rank, const Scatter &what, SignalId begun, SignalId sent) {
  const uint32_t local = fleet.ranksPerNode(), nodes = fleet.numNodes(), own = fleet.nodeOf(rank), place = rank % local;
  const double bytes = what.rowBytes * static_cast<double>(what.shards.rowsPerRank);
  Stream &copies = sideStream(rank, "copies", begun);
  for (uint32_t distance = 1; distance <= nodes; ++distance)
    for (uint32_t step = 1; step <= local; ++step) {
      const uint32_t node = (own + distance) % nodes, peer = own * local + (place + step) % local;
      const uint32_t segment = node * local + (place + step) % local;
      copies.wait(signal(rank, "gate", segment));
      if (what.reducedRowBytes > 0)
        copies.launchMemoryBound("sum over experts",
                                 what.reducedRowBytes * static_cast<double>(what.shards.rowsPerRank));
      if (peer != rank)
        copies.copy(peer, bytes, fmt::format("segment {} to {}", segment, peer));
      // Words of a rank: for each node whose segment it collects, one that all of its own node raise.
      copies.signalCopy(peer, signal(peer, "collected", node));
    }
  copies.raise(sent);
  Stream &network = sideStream(rank, "network", begun);
  for (uint32_t distance = 1; distance < nodes; ++distance) {
    const uint32_t node = (own + distance) % nodes, to = node * local + place;
    network.wait(signal(rank, "collected", node), local);
    network.launchMemoryBound("sum in node", (local + 1) * bytes);
    put(network, to, bytes, signalAt(rank, to, "arrived"));
  }
}

/// ops' kernel reduce_segments: blocks sum the slots of all sources. The first tile of each is summed while the last slots are on their
/// way; the others find everything there.
void Program::reduceArrived(uint32_t rank, const Scatter &what) {
  const double bytes = what.rowBytes * static_cast<double>(what.shards.rowsOf(rank));
  if (bytes == 0)
    return;
  main(rank).pass("launch", machine.gpu.kernelLaunchUs * fleet.slowness(rank));
  auto read = [&](double part) {
    main(rank).push([this, rank, part](Action done) { fleet.transferMemory(rank, part, std::move(done)); });
  };
  if (fleet.numNodes() > 1) {
    main(rank).wait(signal(rank, "collected", fleet.nodeOf(rank)), fleet.ranksPerNode());
    for (uint32_t distance = 1; distance < fleet.numNodes(); ++distance)
      main(rank).wait(signalAt((fleet.nodeOf(rank) + distance) % fleet.numNodes() * fleet.ranksPerNode() +
                                   rank % fleet.ranksPerNode(),
                               rank, "arrived"));
    return read(bytes * (fleet.ranksPerNode() + fleet.numNodes()));
  }
  if (machine.node.fabric == Fabric::Pcie) {
    main(rank).wait(signal(rank, "arrived", rank));
    return read(3 * bytes);
  }
  const auto columns = static_cast<int64_t>(what.rowBytes / elementBytes);
  const ops::ReduceTiles tiles = ops::reduceTiles(what.shards.rowsOf(rank), columns, machine.gpu.smCount);
  const double inRegisters = static_cast<double>(tiles.blocks) * tiles.blockM * tiles.blockN;
  const double atOnce = std::min(1.0, inRegisters * elementBytes / bytes);
  for (uint32_t source = 0; source < request.gpus; ++source) {
    if (source != rank)
      main(rank).wait(signal(rank, "arrived", source));
    read(bytes * atOnce);
  }
  read(bytes * (1 - atOnce) * request.gpus + bytes);
}

/// Everything to everybody at once, by SMs through symmetric memory or by copies in rotated order; then everybody's words.
void Program::exchange(uint32_t rank, double bytesToEach, Mover mover, const std::string &name) {
  const uint32_t number = exchanges[rank]++;
  main(rank).push([this, rank, bytesToEach, mover, name, number](Action done) {
    const Time start = fleet.simulation.now();
    auto left = std::make_shared<uint32_t>(request.gpus - 1);
    for (uint32_t step = 1; step < request.gpus; ++step) {
      const uint32_t to = (rank + step) % request.gpus;
      const SignalId arrived = signal(fleet.seenBy(rank, to).owner, "exchanged", number);
      fleet.simulation.after(fleet.networkUs(rank, to), [=, this] {
        fleet.transfer(rank, to, bytesToEach, mover, [=, this] {
          fleet.simulation.after(fleet.communication(machine.node.signalUs),
                                 [this, arrived] { fleet.simulation.raise(arrived); });
          if (--*left > 0)
            return;
          fleet.recorder.span(
              {rank, "main", name, "collective", start, fleet.simulation.now(), bytesToEach * (request.gpus - 1)});
          done();
        });
      });
    }
  });
  main(rank).wait(signal(rank, "exchanged", number), request.gpus - 1);
}

} // namespace ditron::predict
