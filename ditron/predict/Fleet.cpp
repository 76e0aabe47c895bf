//===- Fleet.cpp - The GPUs of a prediction -------------------------------------------------------------------------===//
#include "ditron/predict/Fleet.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::predict {

namespace {
double bytesPerUs(double gbPerS) { return gbPerS * 1e3; }
} // namespace

//===- Streams --------------------------------------------------------------------------------------------------------===//

void Stream::push(Operation operation) {
  operations.push_back(std::move(operation));
  if (!isBusy) {
    isBusy = true;
    fleet.simulation.after(0, [this] { begin(); });
  }
}

void Stream::begin() {
  if (operations.empty()) {
    isBusy = false;
    return;
  }
  Operation operation = std::move(operations.front());
  operations.pop_front();
  operation([this] { begin(); });
}

void Stream::launch(TileKernel kernel) {
  pass("launch", fleet.machine().gpu.kernelLaunchUs * fleet.slowness(rank));
  push([this, kernel = std::move(kernel)](Action done) {
    const Time start = fleet.simulation.now();
    fleet.run(rank, kernel, [this, start, what = kernel.name, done = std::move(done)] {
      fleet.recorder.span({rank, name, what, "kernel", start, fleet.simulation.now()});
      done();
    });
  });
}

void Stream::launchMemoryBound(const std::string &what, double bytes) {
  pass("launch", fleet.machine().gpu.kernelLaunchUs * fleet.slowness(rank));
  push([this, what, bytes](Action done) {
    const Time start = fleet.simulation.now();
    fleet.transferMemory(rank, bytes, [this, what, bytes, start, done = std::move(done)] {
      fleet.recorder.span({rank, name, what, "kernel", start, fleet.simulation.now(), bytes});
      done();
    });
  });
}

void Stream::pass(const std::string &what, Time us) {
  push([this, what, us](Action done) {
    if (us > 0)
      fleet.recorder.span({rank, name, what, "collective", fleet.simulation.now(), fleet.simulation.now() + us});
    fleet.simulation.after(us, std::move(done));
  });
}

void Stream::copy(uint32_t to, double bytes, const std::string &what) {
  push([this, to, bytes, what](Action done) {
    const Time start = fleet.simulation.now();
    auto finish = [this, start, bytes, what, done = std::move(done)] {
      fleet.recorder.span({rank, name, what, "copy", start, fleet.simulation.now(), bytes});
      done();
    };
    fleet.simulation.after(
        fleet.communication(fleet.machine().copyEngine.fixedUs),
        [this, to, bytes, finish = std::move(finish)] { fleet.transfer(rank, to, bytes, Mover::CopyEngine, finish); });
  });
}

void Stream::signalCopy(uint32_t to, SignalId signal) {
  push([this, to, signal](Action done) {
    const Time us = fleet.communication(fleet.machine().copyEngine.signalUs) + fleet.networkUs(rank, to);
    fleet.recorder.span(
        {rank, name, fleet.simulation.name(signal), "signal", fleet.simulation.now(), fleet.simulation.now() + us});
    fleet.simulation.after(us, [this, signal, done = std::move(done)] {
      fleet.simulation.raise(signal);
      done();
    });
  });
}

void Stream::wait(SignalId signal, uint64_t count) {
  push([this, signal, count](Action done) {
    const Time start = fleet.simulation.now();
    fleet.simulation.when(signal, count, [this, signal, start, done = std::move(done)] {
      const Time end = fleet.simulation.now();
      fleet.recorder.wait(rank, name, fleet.simulation.name(signal), start, end);
      if (end > start)
        fleet.recorder.span({rank, name, "wait " + fleet.simulation.name(signal), "wait", start, end});
      done();
    });
  });
}

void Stream::raise(SignalId signal) {
  push([this, signal](Action done) {
    fleet.simulation.raise(signal);
    done();
  });
}

//===- Fleet ----------------------------------------------------------------------------------------------------------===//

Fleet::Fleet(const MachineDescription &machine, FleetOptions options)
    : recorder(options.keepsSpans), description(machine), chosen(std::move(options)) {
  const NodeDescription &node = machine.node;
  local = std::min(node.gpus, chosen.gpus);
  nodes = (chosen.gpus + local - 1) / local;
  const double link = bytesPerUs(node.linkGbPerS);
  // A mesh has a pipe for each pair, so that all of a GPU's links together are no limit of their own.
  const double widest = std::max(machine.copyEngine.linkEfficiency, node.smLinkEfficiency);
  const double whole = node.fabric == Fabric::Mesh ? link * (node.gpus - 1) : link;
  const uint32_t sms =
      chosen.communicationSms == 0 ? node.smsForFullLink : std::min(chosen.communicationSms, node.smsForFullLink);
  const double partOfSms = static_cast<double>(sms) / node.smsForFullLink;
  gpus.resize(simulatedRanks());
  for (Gpu &gpu : gpus) {
    for (uint32_t slot = machine.gpu.smCount; slot-- > 0;)
      gpu.freeSlots.push_back(slot);
    gpu.out = simulation.addPipe(whole * widest);
    gpu.in = simulation.addPipe(whole * widest);
    gpu.copyPort = simulation.addPipe(whole * machine.copyEngine.linkEfficiency);
    gpu.smPort = simulation.addPipe(whole * node.smLinkEfficiency * partOfSms);
    gpu.memory = simulation.addPipe(machine.gpu.hbmBytesPerUs());
  }
  const uint32_t simulatedNodes = chosen.usesRepresentatives ? 1 : nodes;
  if (node.fabric == Fabric::Mesh)
    for (uint32_t pair = 0; pair < simulatedNodes * local * local; ++pair)
      pairPipes.push_back(simulation.addPipe(link * widest));
  for (uint32_t domain = 0; node.numaDomains > 1 && domain < simulatedNodes * node.numaDomains; ++domain) {
    numaOut.push_back(simulation.addPipe(bytesPerUs(node.numaGbPerS)));
    numaIn.push_back(simulation.addPipe(bytesPerUs(node.numaGbPerS)));
  }
  for (uint32_t nic = 0; nic < simulatedNodes * machine.network.nicsPerNode; ++nic) {
    const double rate = bytesPerUs(machine.network.nicGbPerS) * machine.network.nicEfficiency;
    nicsOut.push_back(simulation.addPipe(rate));
    nicsIn.push_back(simulation.addPipe(rate));
  }
}

Fleet::Seen Fleet::seenBy(uint32_t from, uint32_t to) const {
  if (!chosen.usesRepresentatives)
    return {to, from};
  const uint32_t distance = (nodeOf(from) + nodes - nodeOf(to)) % nodes;
  return {to % local, distance * local + from % local};
}

double Fleet::slowness(uint32_t rank) const {
  const auto found = chosen.slowRanks.find(rank);
  return found == chosen.slowRanks.end() ? 1 : found->second;
}

Time Fleet::networkUs(uint32_t from, uint32_t to) const {
  return nodeOf(from) == nodeOf(to) ? 0 : communication(description.network.latencyUs);
}

Stream &Fleet::addStream(uint32_t rank, std::string name) {
  streams.push_back(std::make_unique<Stream>(*this, rank, std::move(name)));
  return *streams.back();
}

PipeId Fleet::nicOf(const std::vector<PipeId> &nics, uint32_t rank) const {
  const uint32_t node = chosen.usesRepresentatives ? 0 : nodeOf(rank), perNode = description.network.nicsPerNode;
  return nics[node * perNode + rank % local * perNode / description.node.gpus];
}

std::vector<PipeId> Fleet::pathOf(uint32_t from, uint32_t to, Mover mover) const {
  const uint32_t owner = seenBy(from, to).owner;
  if (nodeOf(from) != nodeOf(to))
    return {nicOf(nicsOut, from), nicOf(nicsIn, owner)};
  const Gpu &sender = gpus[from], &receiver = gpus[owner];
  std::vector<PipeId> path = {mover == Mover::CopyEngine ? sender.copyPort : sender.smPort, sender.out, receiver.in};
  const NodeDescription &node = description.node;
  const uint32_t simulatedNode = from / local;
  if (node.fabric == Fabric::Mesh)
    path.push_back(pairPipes[simulatedNode * local * local + from % local * local + owner % local]);
  const uint32_t perDomain = std::max(1u, node.gpus / node.numaDomains);
  const uint32_t domainFrom = from % local / perDomain, domainTo = owner % local / perDomain;
  if (domainFrom != domainTo) {
    path.push_back(numaOut[simulatedNode * node.numaDomains + domainFrom]);
    path.push_back(numaIn[simulatedNode * node.numaDomains + domainTo]);
  }
  return path;
}

void Fleet::transfer(uint32_t from, uint32_t to, double bytes, Mover mover, Action done) {
  if (from == to)
    return transferMemory(from, 2 * bytes, std::move(done));
  const uint32_t owner = seenBy(from, to).owner;
  ++gpus[from].copiesInFlight;
  ++gpus[owner].copiesInFlight;
  simulation.transfer(bytes * chosen.communicationScale, pathOf(from, to, mover),
                      [this, from, owner, done = std::move(done)] {
                        --gpus[from].copiesInFlight;
                        --gpus[owner].copiesInFlight;
                        done();
                      });
}

void Fleet::transferMemory(uint32_t rank, double bytes, Action done) {
  const PipeId path[] = {gpus[rank].memory};
  simulation.transfer(bytes * slowness(rank), path, std::move(done));
}

void Fleet::meet(uint32_t rank, Action done) {
  gpus[rank].atBarrier.push_back(std::move(done));
  if (++atBarrier < gpus.size())
    return;
  atBarrier = 0;
  const Time us = description.node.signalUs + (nodes > 1 ? description.network.latencyUs : 0);
  for (Gpu &gpu : gpus) {
    simulation.after(chosen.gpus > 1 ? communication(us) : 0, std::move(gpu.atBarrier.front()));
    gpu.atBarrier.erase(gpu.atBarrier.begin());
  }
}

//===- Kernels --------------------------------------------------------------------------------------------------------===//

struct Fleet::RunningKernel {
  TileKernel kernel;
  uint32_t rank;
  uint32_t blocksLeft;
  Action done;
};

void Fleet::run(uint32_t rank, TileKernel kernel, Action done) {
  const uint32_t blocks = static_cast<uint32_t>(std::min<uint64_t>(kernel.blocks, kernel.tiles));
  if (blocks == 0)
    return simulation.after(0, std::move(done));
  kernel.blocks = blocks;
  auto running = std::make_shared<RunningKernel>(RunningKernel{std::move(kernel), rank, blocks, std::move(done)});
  Gpu &gpu = gpus[rank];
  for (uint32_t block = 0; block < blocks; ++block) {
    auto start = [this, running, block](uint32_t slot) { startTile(running, slot, block); };
    if (gpu.freeSlots.empty()) {
      gpu.waitingBlocks.push_back(start);
      continue;
    }
    const uint32_t slot = gpu.freeSlots.back();
    gpu.freeSlots.pop_back();
    start(slot);
  }
}

void Fleet::startTile(const std::shared_ptr<RunningKernel> &running, uint32_t slot, uint64_t tile) {
  if (tile >= running->kernel.tiles) {
    releaseSm(running->rank, slot);
    if (--running->blocksLeft == 0)
      running->done();
    return;
  }
  finishWaits(running, slot, tile, std::make_shared<Tile>(running->kernel.tile(tile)), 0);
}

void Fleet::finishWaits(const std::shared_ptr<RunningKernel> &running, uint32_t slot, uint64_t tile,
                        std::shared_ptr<Tile> work, size_t next) {
  const Time start = simulation.now();
  while (next < work->waits.size() && simulation.value(work->waits[next]) > 0)
    ++next;
  if (next < work->waits.size()) {
    const SignalId signal = work->waits[next];
    return simulation.when(signal, 1, [this, running, slot, tile, work, next, signal, start] {
      recorder.wait(running->rank, running->kernel.name, simulation.name(signal), start, simulation.now());
      if (recorder.isKeeping())
        recorder.span({running->rank, fmt::format("SM {:03}", slot), "wait " + simulation.name(signal), "wait", start,
                       simulation.now()});
      finishWaits(running, slot, tile, work, next + 1);
    });
  }
  const double slowed = gpus[running->rank].copiesInFlight > 0 ? 1 + description.gpu.slowdownUnderCopies : 1;
  const Time us = work->us * slowed * slowness(running->rank) * chosen.computeScale;
  if (recorder.isKeeping())
    recorder.span({running->rank, fmt::format("SM {:03}", slot), fmt::format("{} tile {}", running->kernel.name, tile),
                   "tile", start, start + us});
  simulation.after(us, [this, running, slot, tile, work] {
    if (work->done)
      work->done();
    startTile(running, slot, tile + running->kernel.blocks);
  });
}

void Fleet::releaseSm(uint32_t rank, uint32_t slot) {
  Gpu &gpu = gpus[rank];
  if (gpu.waitingBlocks.empty()) {
    gpu.freeSlots.push_back(slot);
    return;
  }
  auto start = std::move(gpu.waitingBlocks.front());
  gpu.waitingBlocks.pop_front();
  simulation.after(0, [start = std::move(start), slot] { start(slot); });
}

} // namespace ditron::predict
