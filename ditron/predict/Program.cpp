//===- Program.cpp - An operator's call on all ranks, as it is simulated --------------------------------------------===//
#include "ditron/predict/Program.h"

#include "ditron/predict/VendorCollectives.h"

#include <fmt/format.h>
#include <numeric>

namespace ditron::predict {

Program::Program(Fleet &fleet, const Request &request)
    : fleet(fleet), request(request), machine(fleet.machine()), elementBytes(sizeOf(request.dtype)) {
  finishTimes.resize(fleet.simulatedRanks());
  exchanges.resize(fleet.simulatedRanks());
  for (uint32_t rank = 0; rank < fleet.simulatedRanks(); ++rank)
    mains.push_back(&fleet.addStream(rank, "main"));
}

void Program::build() {
  for (uint32_t rank = 0; rank < fleet.simulatedRanks(); ++rank) {
    buildRank(rank);
    main(rank).push([this, rank](Action done) {
      finishTimes[rank] = fleet.simulation.now();
      done();
    });
  }
}

void Program::describe(const ProductTiming &timing) {
  planText = fmt::format("{}x{}x{} tiles: {} on {} SMs, {} waves of {:.1f} us", timing.tile.blockM, timing.tile.blockN,
                         timing.tile.blockK, timing.tiles, timing.blocks,
                         (timing.tiles + timing.blocks - 1) / timing.blocks, timing.tileUs);
}

SignalId Program::signal(uint32_t owner, Kind kind, uint64_t index) {
  const auto [found, isNew] = words.try_emplace({owner, kind, index}, SignalId(0));
  if (isNew)
    found->second = fleet.simulation.addSignal(fmt::format("{}[{}] of rank {}", kind, index, owner));
  return found->second;
}

/// The word that `from` raises at `to`: each rank has `indexPerSource` words for each source.
SignalId Program::signalAt(uint32_t from, uint32_t to, Kind kind, uint32_t indexPerSource, uint32_t index) {
  const auto [owner, source] = fleet.seenBy(from, to);
  return signal(owner, kind, uint64_t(source) * indexPerSource + index);
}

//===- Beginnings and ends --------------------------------------------------------------------------------------------===//

/// ops::CallWords::enter: meets the other ranks, and copies inside the own memory beside that.
void Program::enter(uint32_t rank, double ownBytes) {
  main(rank).pass("launch", machine.gpu.kernelLaunchUs * fleet.slowness(rank));
  main(rank).push([this, rank, ownBytes](Action done) {
    auto left = std::make_shared<int>(2);
    const Time start = fleet.simulation.now();
    Action part = [this, rank, left, start, done = std::move(done)] {
      if (--*left > 0)
        return;
      fleet.recorder.span({rank, "main", "enter", "kernel", start, fleet.simulation.now()});
      done();
    };
    fleet.meet(rank, [this, rank, start, part] {
      fleet.recorder.wait(rank, "enter", "the other ranks", start, fleet.simulation.now());
      part();
    });
    fleet.transferMemory(rank, 2 * ownBytes, part);
  });
}

Stream &Program::sideStream(uint32_t rank, const std::string &name, SignalId after) {
  Stream &stream = fleet.addStream(rank, name);
  // An event of the main stream, no wait that a report should name.
  stream.push([this, after](Action done) { fleet.simulation.when(after, 1, std::move(done)); });
  return stream;
}

void Program::vendorCall(uint32_t rank, Operator collective, double bytes) {
  main(rank).push([this, rank](Action done) { fleet.meet(rank, std::move(done)); });
  main(rank).pass(std::string(toString(collective)),
                  fleet.communication(vendorCollectiveUs(machine, collective, request.gpus, bytes)));
}

void Program::meetThroughMemory(uint32_t rank) {
  main(rank).pass("meet", fleet.communication(machine.libraries.symmetricUs));
}

void Program::put(Stream &stream, uint32_t to, double bytes, SignalId arrived) {
  stream.pass("latency", fleet.networkUs(stream.rank, to));
  stream.push([this, &stream, to, bytes](Action done) {
    const Time start = fleet.simulation.now();
    fleet.transfer(stream.rank, to, bytes, Mover::Sm, [this, &stream, to, bytes, start, done = std::move(done)] {
      fleet.recorder.span(
          {stream.rank, stream.name, fmt::format("put to {}", to), "copy", start, fleet.simulation.now(), bytes});
      done();
    });
  });
  stream.raise(arrived);
}

void Program::vendorProduct(uint32_t rank, const Product &product, const std::string &name) {
  const ProductTiming timing = timeVendorProduct(machine.gpu, product);
  describe(timing);
  main(rank).launch({name, timing.blocks, timing.tiles, [us = timing.tileUs](uint64_t) { return Tile{{}, us, {}}; }});
}

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

/// Between nodes to the GPU of the same number, which hands on what arrives inside its node (Triton-distributed, section 3). The node
/// below gets the shard first, as it visits this node's shards right after its own.
void Program::gatherOverNodes(uint32_t rank, const Gather &what, SignalId begun, SignalId sent) {
  const uint32_t local = fleet.ranksPerNode(), nodes = fleet.numNodes(), own = fleet.nodeOf(rank), place = rank % local;
  const double bytes = what.rowBytes * static_cast<double>(what.shards.rowsPerRank);
  Stream &network = sideStream(rank, "network", begun);
  for (uint32_t distance = 1; distance < nodes; ++distance) {
    const uint32_t to = (own + nodes - distance) % nodes * local + place;
    put(network, to, bytes, signalAt(rank, to, what.kind));
  }
  Stream &copies = sideStream(rank, "copies", begun);
  for (uint32_t distance = 0; distance < nodes; ++distance) {
    const uint32_t source = (own + distance) % nodes * local + place;
    if (distance > 0)
      copies.wait(signal(rank, what.kind, source));
    for (uint32_t step = 1; step < local; ++step) {
      const uint32_t peer = own * local + (place + local - step) % local;
      copies.copy(peer, bytes, fmt::format("{} {} to {}", what.kind, source, peer));
      copies.signalCopy(peer, signal(peer, what.kind, source));
    }
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

/// ops' kernel reduce_segments: blocks sum the slots of all sources, waiting for each. Those that run at once work while the last
/// slots are on their way; the others find everything there.
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
  const double blocks =
      static_cast<double>(ops::ceilDivide(what.shards.rowsOf(rank), ops::reduceBlockM)) *
      static_cast<double>(ops::ceilDivide(static_cast<int64_t>(what.rowBytes / elementBytes), ops::reduceBlockN));
  constexpr double blocksPerSm = 16; // of four warps
  const double atOnce = std::min(1.0, blocksPerSm * machine.gpu.smCount / blocks);
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

//===- Overlapped products --------------------------------------------------------------------------------------------===//

Product Program::denseProduct() const {
  Product product = {request.m, request.n, request.k, 1, request.dtype, 1};
  if (request.op == Operator::AgGemm)
    product.n /= request.gpus;
  if (request.op == Operator::GemmRs || request.op == Operator::GemmAr)
    product.k /= request.gpus;
  return product;
}

/// Of one expert on one rank, tokens dealt out evenly.
Product Program::expertProduct(bool isFirst) const {
  const int64_t rows = std::max<int64_t>(1, request.tokens * request.topk / request.experts);
  const int64_t part = request.intermediate / request.gpus;
  return {rows,          isFirst ? part : request.hidden, isFirst ? request.hidden : part, request.experts,
          request.dtype, machine.gpu.gatherEfficiency};
}

TileKernel Program::gatherKernel(uint32_t rank, const Gather &what, const Product &product) {
  const ProductTiming timing = timeOwnProduct(machine.gpu, product, request.tile);
  describe(timing);
  auto rows = std::make_shared<const std::vector<int64_t>>(
      ops::allGatherTileRows(what.shards, rank, request.gpus, fleet.numNodes(), timing.tile.blockM));
  return {"ag_gemm", timing.blocks, timing.tiles, [this, rank, what, timing, rows](uint64_t tile) {
            const ops::TilePlace place =
                ops::groupedTile(static_cast<int64_t>(tile), timing.tileRows, timing.tileColumns, timing.tile.groupM);
            const int64_t row = (*rows)[place.row];
            const ops::Range chunks = ops::chunksOfTileRow(row, what.shards, what.chunks, timing.tile.blockM);
            Tile work = {{}, timing.tileUs, {}};
            for (int64_t chunk = chunks.first; chunk <= chunks.last; ++chunk)
              work.waits.push_back(signal(rank, what.kind, chunk));
            return work;
          }};
}

TileKernel Program::scatterKernel(uint32_t rank, const Scatter &what, const Product &product) {
  const ProductTiming timing = timeOwnProduct(machine.gpu, product, request.tile);
  describe(timing);
  auto left = std::make_shared<std::vector<int64_t>>(request.gpus, 0); // tiles until the gate of a segment opens
  for (uint32_t segment = 0; segment < request.gpus; ++segment)
    if (what.shards.rowsOf(segment) > 0) {
      const ops::Range rows = ops::tileRowsOfSegment(segment, what.shards, timing.tile.blockM);
      (*left)[segment] = (rows.last - rows.first + 1) * timing.tileColumns;
    }
  auto rows = std::make_shared<const std::vector<int64_t>>(
      ops::reduceScatterTileRows(what.shards, rank, request.gpus, fleet.numNodes(), timing.tile.blockM));
  return {"gemm_rs", timing.blocks, timing.tiles, [this, rank, what, timing, left, rows](uint64_t tile) {
            const ops::TilePlace place =
                ops::groupedTile(static_cast<int64_t>(tile), timing.tileRows, timing.tileColumns, timing.tile.groupM);
            const int64_t row = (*rows)[place.row];
            const ops::Range segments = ops::segmentsOfTileRow(row, what.shards, timing.tile.blockM);
            return Tile{{}, timing.tileUs, [this, rank, left, segments] {
                          for (int64_t segment = segments.first; segment <= segments.last; ++segment)
                            if (--(*left)[segment] == 0)
                              fleet.simulation.raise(signal(rank, "gate", segment));
                        }};
          }};
}

void Program::buildOverlappedGather(uint32_t rank, const Gather &what, TileKernel kernel) {
  const SignalId begun = signal(rank, "begun", 0), sent = signal(rank, "sent", 0);
  enter(rank, what.rowBytes * static_cast<double>(what.shards.rowsOf(rank)));
  // The own chunks are there from the beginning.
  for (uint32_t chunk = 0; chunk < what.chunks; ++chunk)
    main(rank).raise(signal(rank, what.kind, uint64_t(rank) * what.chunks + chunk));
  main(rank).raise(begun);
  gather(rank, what, begun, sent);
  if (request.form == Form::Unfused)
    main(rank).wait(sent);
  main(rank).launch(std::move(kernel));
  if (request.form != Form::Unfused)
    main(rank).wait(sent);
}

void Program::buildOverlappedScatter(uint32_t rank, const Scatter &what, TileKernel kernel, bool gathersResult) {
  const SignalId begun = signal(rank, "begun", 0), sent = signal(rank, "sent", 0);
  enter(rank, 0);
  if (request.form == Form::Unfused)
    main(rank).launch(kernel);
  main(rank).raise(begun);
  scatter(rank, what, begun, sent);
  if (request.form != Form::Unfused)
    main(rank).launch(std::move(kernel));
  reduceArrived(rank, what);
  main(rank).wait(sent);
  if (!gathersResult)
    return;
  const Gather result = {"result", what.shards, what.rowBytes, 1};
  const SignalId reduced = signal(rank, "reduced", 0), gathered = signal(rank, "gathered", 0);
  main(rank).raise(reduced);
  gather(rank, result, reduced, gathered);
  main(rank).wait(gathered);
  for (uint32_t source = 0; source < request.gpus; ++source)
    if (source != rank && what.shards.rowsOf(source) > 0)
      main(rank).wait(signal(rank, result.kind, source));
}

void Program::buildProduct(uint32_t rank) {
  const Product product = denseProduct();
  const ops::RowShards shards(request.m, request.gpus);
  const double inRow = static_cast<double>(request.k) * elementBytes,
               outRow = static_cast<double>(request.n) * elementBytes;
  const double shardRows = static_cast<double>(shards.rowsPerRank);
  const bool isGather = request.op == Operator::AgGemm || request.op == Operator::A2aGemm;
  if (request.op == Operator::Gemm && request.form == Form::Overlapped) {
    const ProductTiming timing = timeOwnProduct(machine.gpu, product, request.tile);
    describe(timing);
    return main(rank).launch(
        {"gemm", timing.blocks, timing.tiles, [us = timing.tileUs](uint64_t) { return Tile{{}, us, {}}; }});
  }
  if (request.op == Operator::Gemm || (request.form == Form::Vendor && !isGather) || request.form == Form::TwoShot) {
    vendorProduct(rank, product, "product");
    if (request.op == Operator::GemmRs)
      vendorCall(rank, Operator::ReduceScatter, outRow * shardRows);
    else if (request.op == Operator::GemmAr && request.form == Form::Vendor)
      vendorCall(rank, Operator::AllReduce, outRow * static_cast<double>(request.m));
    else if (request.op == Operator::GemmAr) {
      meetThroughMemory(rank);
      exchange(rank, outRow * shardRows, Mover::Sm, "reduce_scatter");
      exchange(rank, outRow * shardRows, Mover::Sm, "all_gather");
    }
    return;
  }
  if (request.form == Form::Vendor) {
    vendorCall(rank, request.op == Operator::AgGemm ? Operator::AllGather : Operator::AllToAll, inRow * shardRows);
    return vendorProduct(rank, product, "product");
  }
  if (isGather) {
    const Gather what = {"shard", shards, inRow, request.chunksPerRank};
    return buildOverlappedGather(rank, what, gatherKernel(rank, what, product));
  }
  const Scatter what = {shards, outRow};
  buildOverlappedScatter(rank, what, scatterKernel(rank, what, product), request.op == Operator::GemmAr);
}

//===- Collectives ----------------------------------------------------------------------------------------------------===//

void Program::buildCollective(uint32_t rank) {
  const double bytes = static_cast<double>(request.bytes), ranks = request.gpus;
  if (request.form == Form::Vendor)
    return vendorCall(rank, request.op, bytes);
  if (request.form == Form::CopyEngine) {
    // Ranks start together; copies carry no signals (bench/copy_engine_probe.cu). Everybody's copies being done ends it.
    for (uint32_t step = 1; step < request.gpus; ++step) {
      const uint32_t to = (rank + request.gpus - step) % request.gpus;
      main(rank).copy(to, bytes, fmt::format("shard to {}", to));
    }
    return main(rank).push([this, rank](Action done) { fleet.meet(rank, std::move(done)); });
  }
  meetThroughMemory(rank);
  if (request.op == Operator::AllReduce && request.form == Form::TwoShot) {
    exchange(rank, bytes / ranks, Mover::Sm, "reduce_scatter");
    return exchange(rank, bytes / ranks, Mover::Sm, "all_gather");
  }
  exchange(rank, bytes, Mover::Sm, std::string(toString(request.op)));
}

//===- Mixtures of experts --------------------------------------------------------------------------------------------===//

/// Rows of an expert lie in the order in which their sources arrive; tiles of all experts that need few sources come first.
TileKernel Program::expertGatherKernel(uint32_t rank, const Gather &what, const Product &product) {
  const ProductTiming timing = timeOwnProduct(machine.gpu, product, request.tile);
  describe(timing);
  const uint64_t perLevel = static_cast<uint64_t>(timing.tileColumns * product.groups);
  return {"ag_moe", timing.blocks, timing.tiles, [this, rank, what, timing, perLevel](uint64_t tile) {
            const uint64_t level = tile / perLevel, levels = timing.tileRows;
            const uint64_t sources =
                std::min<uint64_t>(request.gpus, ((level + 1) * request.gpus + levels - 1) / levels);
            Tile work = {{}, timing.tileUs, {}};
            for (uint64_t step = level * request.gpus / levels; step < sources; ++step) {
              // In the order of arrival: own node first, inside a node upwards from the own number.
              const uint32_t local = fleet.ranksPerNode(), nodes = fleet.numNodes();
              const uint32_t node = (fleet.nodeOf(rank) + static_cast<uint32_t>(step) / local) % nodes;
              const uint32_t place = (rank + static_cast<uint32_t>(step)) % local;
              work.waits.push_back(signal(rank, what.kind, uint64_t(node) * local + place));
            }
            return work;
          }};
}

/// The same backwards: a segment is complete with the last tile that has rows of it.
TileKernel Program::expertScatterKernel(uint32_t rank, const Scatter &what, const Product &product) {
  const ProductTiming timing = timeOwnProduct(machine.gpu, product, request.tile);
  describe(timing);
  const uint64_t perLevel = static_cast<uint64_t>(timing.tileColumns * product.groups), levels = timing.tileRows;
  auto left = std::make_shared<std::vector<uint64_t>>(levels, perLevel);
  auto opened = std::make_shared<uint32_t>(0);
  return {"moe_rs", timing.blocks, timing.tiles, [this, rank, timing, perLevel, levels, left, opened](uint64_t tile) {
            return Tile{{}, timing.tileUs, [this, rank, tile, perLevel, levels, left, opened] {
                          --(*left)[tile / perLevel];
                          uint64_t complete = 0;
                          while (complete < levels && (*left)[complete] == 0)
                            ++complete;
                          for (; *opened < complete * request.gpus / levels; ++*opened) {
                            const uint32_t local = fleet.ranksPerNode(), nodes = fleet.numNodes();
                            const uint32_t node = (fleet.nodeOf(rank) + 1 + *opened / local) % nodes;
                            const uint32_t place = (rank + 1 + *opened) % local;
                            fleet.simulation.raise(signal(rank, "gate", uint64_t(node) * local + place));
                          }
                        }};
          }};
}

void Program::buildExperts(uint32_t rank) {
  const bool isFirst = request.op == Operator::AgMoe;
  const ops::RowShards shards(request.tokens, request.gpus);
  const double row = static_cast<double>(request.hidden) * elementBytes, tokens = static_cast<double>(request.tokens);
  const double routedRows = tokens * static_cast<double>(request.topk),
               shardRows = static_cast<double>(shards.rowsPerRank);
  Product product = expertProduct(isFirst);
  if (request.form == Form::Vendor) {
    // Gathered by a kernel of its own, so that the product's operands are dense.
    product.efficiency = 1;
    const double perExpert = machine.libraries.groupedProductPerExpertUs * static_cast<double>(request.experts);
    if (isFirst) {
      vendorCall(rank, Operator::AllGather, row * shardRows);
      main(rank).launchMemoryBound("gather rows", 2 * row * routedRows);
    }
    main(rank).pass("experts", perExpert);
    vendorProduct(rank, product, "grouped product");
    if (isFirst)
      return;
    main(rank).launchMemoryBound("sum over experts", machine.libraries.topkSumPasses * row * routedRows);
    if (request.op == Operator::MoeRs)
      vendorCall(rank, Operator::ReduceScatter, row * shardRows);
    else
      vendorCall(rank, Operator::AllReduce, row * tokens);
    return;
  }
  if (isFirst) {
    const Gather what = {"shard", shards, row, 1};
    return buildOverlappedGather(rank, what, expertGatherKernel(rank, what, product));
  }
  const Scatter what = {shards, row, row * static_cast<double>(request.topk + 1)};
  buildOverlappedScatter(rank, what, expertScatterKernel(rank, what, product), request.op == Operator::MoeAr);
}

/// `tokens` of each rank, experts spread evenly, routing at random: a token goes to a rank when one of its experts is there.
void Program::buildExpertParallel(uint32_t rank) {
  const double ranks = request.gpus, row = static_cast<double>(request.hidden) * elementBytes;
  double misses = 1; // that none of the token's different experts is on one given rank
  const double perRank = static_cast<double>(request.experts) / ranks;
  for (int64_t i = 0; i < request.topk; ++i)
    misses *= std::max(0.0, 1 - perRank / static_cast<double>(request.experts - i));
  const double tokensToEach = static_cast<double>(request.tokens) * (1 - misses);
  const bool isCombine = request.op == Operator::EpCombine;
  const double arrivedBytes = tokensToEach * ranks * row;
  if (isCombine)
    main(rank).launchMemoryBound("sum over experts",
                                 (request.form == Form::Vendor ? machine.libraries.topkSumPasses : 2) * arrivedBytes);
  else
    main(rank).launchMemoryBound("gather rows", 2 * arrivedBytes);
  if (request.form == Form::Vendor) {
    vendorCall(rank, Operator::AllToAll, tokensToEach * row);
  } else {
    meetThroughMemory(rank);
    exchange(rank, tokensToEach * row, Mover::Sm, std::string(toString(request.op)));
  }
  if (isCombine)
    main(rank).launchMemoryBound("sum over ranks", arrivedBytes);
}

//===- Attention ------------------------------------------------------------------------------------------------------===//

/// A block on each SM goes over the shards of the context in the order in which they arrive.
TileKernel Program::attentionKernel(uint32_t rank, const Gather &what) {
  const double queries = static_cast<double>(request.context) / request.gpus;
  const double flops = 4.0 * static_cast<double>(request.batch * request.heads * request.headDim) * queries *
                       static_cast<double>(request.context);
  const Time us = timeAttention(machine.gpu, flops, request.dtype) / request.gpus;
  const uint32_t sms = machine.gpu.smCount;
  return {"attention", sms, uint64_t(sms) * request.gpus, [this, rank, what, us, sms](uint64_t tile) {
            const uint32_t step = static_cast<uint32_t>(tile / sms), local = fleet.ranksPerNode(),
                           nodes = fleet.numNodes();
            const uint32_t source = (fleet.nodeOf(rank) + step / local) % nodes * local + (rank + step) % local;
            return Tile{{signal(rank, what.kind, source)}, us, {}};
          }};
}

void Program::buildAttention(uint32_t rank) {
  const ops::RowShards shards(request.context, request.gpus);
  const double row =
      2.0 * static_cast<double>(request.batch * request.kvHeads * request.headDim) * elementBytes; // a key and a value
  if (request.op == Operator::AgAttention) {
    const Gather what = {"shard", shards, row, 1};
    TileKernel kernel = attentionKernel(rank, what);
    if (request.form == Form::Overlapped)
      return buildOverlappedGather(rank, what, std::move(kernel));
    // Keys and values by a call each.
    for (int i = 0; i < 2; ++i)
      vendorCall(rank, Operator::AllGather, row / 2 * static_cast<double>(shards.rowsPerRank));
    const Time us = kernel.tile(0).us;
    return main(rank).launch({"attention", kernel.blocks, kernel.tiles, [us](uint64_t) { return Tile{{}, us, {}}; }});
  }
  // Each rank's part of the context is read once; partial results, with a maximum and a sum for each, meet at every rank.
  const double partial = static_cast<double>(request.batch * request.heads * (request.headDim + 2)) * 4;
  main(rank).launchMemoryBound("attention of the own context", row * static_cast<double>(shards.rowsPerRank));
  meetThroughMemory(rank);
  exchange(rank, partial, Mover::Sm, "partial results");
  main(rank).launchMemoryBound("combine", partial * request.gpus);
}

void Program::buildRank(uint32_t rank) {
  switch (request.op) {
  case Operator::Gemm:
  case Operator::AgGemm:
  case Operator::GemmRs:
  case Operator::GemmAr:
  case Operator::A2aGemm: return buildProduct(rank);
  case Operator::AllGather:
  case Operator::ReduceScatter:
  case Operator::AllReduce:
  case Operator::AllToAll: return buildCollective(rank);
  case Operator::AgMoe:
  case Operator::MoeRs:
  case Operator::MoeAr: return buildExperts(rank);
  case Operator::EpDispatch:
  case Operator::EpCombine: return buildExpertParallel(rank);
  case Operator::AgAttention:
  case Operator::FlashDecode: return buildAttention(rank);
  }
}

} // namespace ditron::predict
