//===- Kernels.cpp - From a launch to blocks on slots -------------------------------------------------------------===//
//
// Every rank has a fixed number of slots, and a launch whose blocks do not all fit keeps the rest until slots become
// free. Blocks start in order of their linear id and never leave a slot before they are done: kernels whose blocks wait
// for each other beyond that number deadlock here as they do on a GPU. Launches of higher priority get free slots
// first, then older ones; a launch that does not fill the machine lets younger ones in beside it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"

#include <algorithm>

namespace ditron::sim {

void Machine::State::submitKernel(Stream &stream, std::shared_ptr<const PreparedLaunch> launch, SimTime now) {
  if (launch->description.onStart) {
    if (Status refused = launch->description.onStart(); !refused.isOk())
      return fail(std::move(refused));
  }
  const std::array<uint32_t, 3> &grid = launch->description.grid;
  auto run = std::make_unique<KernelRun>();
  run->rank = &stream.rank;
  run->stream = &stream;
  run->number = ++launches;
  run->name = trace.intern(launch->description.name);
  run->totalBlocks = uint64_t(1) * grid[0] * grid[1] * grid[2];
  run->submitted = now;
  run->launch = std::move(launch);
  if (trace.isEnabled()) {
    run->record = trace.launches.size();
    trace.launches.push_back({run->description().name, stream.rank.id, {stream.id}, now, now, {}});
    trace.launches.back().blocks.resize(run->totalBlocks);
  }
  if (races)
    races->beginKernel(stream, *run);
  stream.running = run.get();
  std::vector<std::unique_ptr<KernelRun>> &runs = stream.rank.runs;
  auto place = std::find_if(runs.begin(), runs.end(),
                            [&](const auto &other) { return other->stream->priority < stream.priority; });
  runs.insert(place, std::move(run));
  dispatch(stream.rank, now);
}

void Machine::State::dispatch(Rank &rank, SimTime now) {
  for (auto &run : rank.runs) {
    if (run->description().cooperative && run->startedBlocks == 0 && rank.freeSlots.size() < run->totalBlocks)
      continue;
    while (run->startedBlocks < run->totalBlocks && !rank.freeSlots.empty() && !stopped()) {
      auto slot = rank.freeSlots.begin() + static_cast<ptrdiff_t>(scheduler.random.below(rank.freeSlots.size()));
      Block &block = *rank.slots[*slot];
      rank.freeSlots.erase(slot);
      if (run->startedBlocks == 0)
        run->started = now;
      block.begin(*run, run->startedBlocks++, now);
    }
    if (rank.freeSlots.empty())
      return;
  }
}

void Machine::State::blockFinished(Block &block) {
  Rank &rank = block.rank;
  KernelRun *run = block.kernel;
  SimTime now = block.clock;
  block.kernel = nullptr;
  rank.freeSlots.insert(std::lower_bound(rank.freeSlots.begin(), rank.freeSlots.end(), block.slot), block.slot);
  constexpr uint64_t toldEvery = 64;
  if (++finishedBlocks % toldEvery == 0 && progressObserver)
    progressObserver(static_cast<double>(finishedBlocks) /
                     static_cast<double>(std::max(enqueuedBlocks, finishedBlocks)));
  if (++run->finishedBlocks == run->totalBlocks) {
    if (run->record != SIZE_MAX)
      for (const BlockRecord &record : trace.launches[run->record].blocks)
        now = std::max(now, record.end);
    // What the kernel has put on this node is part of what it has done.
    if (rank.shmem->hasNear())
      rank.shmem->finishLater(*run, now);
    else
      kernelFinished(*run, now);
  }
  dispatch(rank, block.clock);
}

void Machine::State::kernelFinished(KernelRun &run, SimTime now) {
  ++counters.kernelsRun;
  Rank &rank = *run.rank;
  Stream &stream = *run.stream;
  if (run.record != SIZE_MAX) {
    trace.launches[run.record].start = run.started;
    trace.launches[run.record].end = now;
  }
  if (races)
    races->kernelFinished(run);
  if (weakMemory)
    weakMemory->kernelFinished(run);
  stream.running = nullptr;
  auto place = std::find_if(rank.runs.begin(), rank.runs.end(), [&](const auto &other) { return other.get() == &run; });
  std::unique_ptr<KernelRun> finished = std::move(*place);
  rank.runs.erase(place);
  stream.operationDone(now);
}

} // namespace ditron::sim
