//===- Warpgroup.cpp - Matrix multiply of a warpgroup (wgmma) -----------------------------------------------------===//
//
// The 128 threads of a warpgroup meet once per call; the last to arrive gathers the operands through their descriptors,
// multiplies into the accumulator and charges the tensor cores. Threads get a result when they wait for it. Until then
// their registers hold tokens: NaN patterns that name the accumulator and the register, so that a result in flight can be
// passed from one multiply to the next as a value, and computing with it by mistake shows.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/arithmetic/Mma.h"
#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/hopper/Costs.h"
#include "ditron/sim/hopper/MatrixDescriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ditron::sim {

namespace {

constexpr uint32_t groupThreads = 128;
constexpr uint32_t groupRows = 64;

//===- Tokens -----------------------------------------------------------------------------------------------------===//

constexpr uint32_t tokenPrefix = 0xffd00000;
constexpr uint32_t registerBits = 7; ///< An accumulator has at most 128 registers per thread.
constexpr uint32_t maxAccumulators = 1u << (20 - registerBits);
/// Completed accumulators whose results can still be asked for.
constexpr uint32_t keptAccumulators = 64;

uint32_t token(uint32_t accumulator, uint32_t index) { return tokenPrefix | accumulator << registerBits | index; }

/// The accumulator that `count` registers stand for, or maxAccumulators.
uint32_t tokenAccumulator(const uint32_t *values, uint32_t count) {
  if ((values[0] & 0xfff00000) != tokenPrefix)
    return maxAccumulators;
  const uint32_t accumulator = (values[0] & 0xfffff) >> registerBits;
  for (uint32_t i = 0; i < count; ++i)
    if (values[i] != token(accumulator, i))
      return maxAccumulators;
  return accumulator;
}

//===- Operands ---------------------------------------------------------------------------------------------------===//

struct Scratch {
  Panel words, a, b;
};
thread_local Scratch scratch;

/// Offsets of all chunks of an operand with so many rows: visit(step, row or unit, chunk or k, shared offset).
template <typename Visit>
void forEachChunk(const MatrixView &view, uint32_t rows, uint32_t advance, uint32_t steps, Visit visit) {
  for (uint32_t step = 0; step < steps; ++step) {
    const uint32_t begin = view.start + step * advance;
    if (view.mnMajor) {
      for (uint32_t k = 0; k < 16; ++k)
        for (uint32_t unit = 0; unit < rows / 8; ++unit)
          visit(step, unit, k, view.mnMajorChunk(begin, unit, k));
    } else {
      for (uint32_t chunk = 0; chunk < 2; ++chunk)
        for (uint32_t row = 0; row < rows; ++row)
          visit(step, row, chunk, view.kMajorChunk(begin, row, chunk));
    }
  }
}

/// A from shared memory: 64 rows of steps * 8 words, K contiguous.
void gatherSharedA(const MatrixView &view, const char *shared, uint32_t advance, uint32_t steps, uint32_t *words) {
  const uint32_t rowWords = steps * 8;
  forEachChunk(view, groupRows, advance, steps, [&](uint32_t step, uint32_t row, uint32_t chunk, uint32_t offset) {
    if (!view.mnMajor) {
      std::memcpy(words + row * rowWords + step * 8 + chunk * 4, shared + offset, 16);
      return;
    }
    uint16_t column[8];
    std::memcpy(column, shared + offset, 16);
    auto *elements = reinterpret_cast<uint16_t *>(words);
    for (uint32_t i = 0; i < 8; ++i)
      elements[(row * 8 + i) * rowWords * 2 + step * 16 + chunk] = column[i];
  });
}

/// A from registers, as the fragments of four warps.
void gatherRegisterA(const std::array<const void *, 2> *lanes, uint32_t steps, uint32_t *words) {
  const uint32_t rowWords = steps * 8;
  for (uint32_t thread = 0; thread < groupThreads; ++thread) {
    const auto *source = static_cast<const uint32_t *>(lanes[thread][0]);
    uint32_t *row = words + (thread / 32 * 16 + thread % 32 / 4) * rowWords + thread % 4;
    for (uint32_t step = 0; step < steps; ++step, source += 4) {
      row[step * 8] = source[0];
      row[step * 8 + 8 * rowWords] = source[1];
      row[step * 8 + 4] = source[2];
      row[step * 8 + 8 * rowWords + 4] = source[3];
    }
  }
}

/// B from shared memory, widened: rows of k.
void gatherB(uint32_t type, const MatrixView &view, const char *shared, uint32_t n, uint32_t columns, uint32_t advance,
             uint32_t steps, void *panel) {
  uint32_t *words = scratch.words.get<uint32_t>(static_cast<size_t>(steps) * 8 * columns);
  if (view.mnMajor) {
    auto *elements = reinterpret_cast<uint16_t *>(words);
    forEachChunk(view, n, advance, steps, [&](uint32_t step, uint32_t unit, uint32_t k, uint32_t offset) {
      std::memcpy(elements + static_cast<size_t>(step * 16 + k) * columns + unit * 8, shared + offset, 16);
    });
    widenElements(type, words, static_cast<uint64_t>(steps) * 8 * columns, panel);
    return;
  }
  forEachChunk(view, n, advance, steps, [&](uint32_t step, uint32_t row, uint32_t chunk, uint32_t offset) {
    uint32_t four[4];
    std::memcpy(four, shared + offset, 16);
    uint32_t *target = words + static_cast<size_t>(step * 8 + chunk * 4) * columns + row;
    target[0] = four[0];
    target[columns] = four[1];
    target[2 * columns] = four[2];
    target[3 * columns] = four[3];
  });
  widenWordRows(type, words, steps * 8, columns, panel);
}

/// The register's place in an accumulator's panel.
uint32_t panelIndex(uint32_t threadInGroup, uint32_t index, uint32_t columns) {
  const uint32_t row = threadInGroup / 32 * 16 + threadInGroup % 32 / 4 + (index >> 1 & 1) * 8;
  return row * columns + index / 4 * 8 + threadInGroup % 4 * 2 + (index & 1);
}

/// What is wrong with a call, whatever the memory holds.
std::string checkCall(const WarpgroupCall &call) {
  const uint32_t packed = elementsPerWord(call.type);
  if (packed == 0)
    return fmt::format("no warpgroup multiply for element type {}", call.type);
  if (call.n < 8 || call.n > 256 || call.n % 8 != 0 || (call.type == DITRON_SIM_I8 && call.n > 24 && call.n % 16 != 0))
    return fmt::format("n is {}; accepted is a multiple of 8 from 8 to 256{}", call.n,
                       call.type == DITRON_SIM_I8 ? ", for int8 of 16 from 32 on" : "");
  if (call.kSteps < 1)
    return "no step of k";
  if (packed != 2 && call.flags & (DITRON_SIM_WGMMA_A_MN_MAJOR | DITRON_SIM_WGMMA_B_MN_MAJOR))
    return "only operands of 16 bits may be M-major or N-major";
  if (call.aStep % 16 != 0 || call.bStep % 16 != 0)
    return fmt::format("steps of {} and {} bytes; accepted are multiples of 16", call.aStep, call.bStep);
  return {};
}

} // namespace

//===- Issue ------------------------------------------------------------------------------------------------------===//

void AsyncUnit::multiply(Thread &thread, const WarpgroupCall &call, const void *aRegs, void *c,
                         const DitronSimSite *site) {
  const uint32_t index = thread.threadId / groupThreads;
  if (block.engine.options.warpSize != 32 || index >= groups.size())
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("a warpgroup multiply needs four full warps; warp {} of {} threads has no such group",
                                 thread.warpId, thread.numThreads),
                     site);
  if (std::string problem = checkCall(call); !problem.empty())
    block.failThread(thread, StatusCode::InvalidArgument, "warpgroup multiply: " + problem, site);
  Warpgroup &group = groups[index];
  if (group.arrived == 0) {
    for (uint32_t i = 0; i < groupThreads; ++i)
      if (block.allThreads()[index * groupThreads + i]->state == ThreadState::Finished)
        block.failThread(
            thread, StatusCode::InvalidArgument,
            fmt::format("warpgroup multiply: thread {} of the warpgroup has returned", index * groupThreads + i), site);
    group.call = call;
    group.site = site;
  } else if (!(group.call == call) || !sameSite(group.site, site)) {
    block.failThread(thread, StatusCode::InvalidArgument,
                     fmt::format("threads of warpgroup {} meet at different multiplies: {} (n {}, {} steps, flags {}, "
                                 "descriptors 0x{:x} and 0x{:x}) and {} (n {}, {} steps, flags {}, descriptors 0x{:x} "
                                 "and 0x{:x})",
                                 index, siteText(group.site), group.call.n, group.call.kSteps, group.call.flags,
                                 group.call.aDesc, group.call.bDesc, siteText(site), call.n, call.kSteps, call.flags,
                                 call.aDesc, call.bDesc),
                     site);
  }
  const bool continues = tokenAccumulator(static_cast<const uint32_t *>(c), call.n / 2) < group.accumulators.size();
  if (block.checked && !thread.asyncWork.registersFenced && (aRegs || !continues))
    block.failThread(thread, StatusCode::InvalidArgument,
                     "warpgroup multiply with new registers without wgmma_fence since the start or the last wait",
                     site);
  registers[thread.threadId] = {aRegs, c};
  if (++group.arrived < groupThreads) {
    thread.site = site;
    thread.state = ThreadState::AtWarpgroup;
    block.park(thread);
    return;
  }
  runMultiply(thread, index);
  group.arrived = 0;
  for (uint32_t i = 0; i < groupThreads; ++i) {
    Thread &member = *block.allThreads()[index * groupThreads + i];
    if (&member != &thread)
      block.makeReady(member);
  }
}

/// The accumulator that the threads' registers stand for, or a new one with their content.
Accumulator &AsyncUnit::accumulatorFor(Thread &last, uint32_t groupIndex, uint32_t &id) {
  Warpgroup &group = groups[groupIndex];
  const uint32_t n = group.call.n, first = groupIndex * groupThreads;
  auto values = [&](uint32_t i) { return static_cast<const uint32_t *>(registers[first + i][1]); };
  id = tokenAccumulator(values(0), n / 2);
  const bool continues = id < group.accumulators.size();
  for (uint32_t i = 1; i < groupThreads; ++i) {
    const uint32_t other = tokenAccumulator(values(i), n / 2);
    if ((continues || other < group.accumulators.size()) && other != id)
      block.failThread(last, StatusCode::InvalidArgument,
                       fmt::format("warpgroup multiply: threads {} and {} pass accumulators of different multiplies",
                                   first, first + i),
                       group.site);
  }
  if (continues) {
    Accumulator &accumulator = group.accumulators[id];
    if (accumulator.n != n || accumulator.last == 0)
      block.failThread(last, StatusCode::InvalidArgument,
                       fmt::format("warpgroup multiply: the accumulator is of a multiply with n = {}, here n is {}",
                                   accumulator.n, n),
                       group.site);
    if (!(group.call.flags & DITRON_SIM_WGMMA_SCALE_D))
      std::memset(accumulator.words(), 0, accumulator.panel.size() * sizeof(Accumulator::Line));
    return accumulator;
  }
  // A new one, or the oldest whose result has been waited for long ago.
  id = group.nextAccumulator;
  const auto count = static_cast<uint32_t>(group.accumulators.size());
  uint32_t tried = 0;
  for (; tried < count; ++tried, id = (id + 1) % count)
    if (group.accumulators[id].last <= group.waited)
      break;
  if (tried == count || count < keptAccumulators) {
    id = count;
    if (id == maxAccumulators)
      block.failThread(last, StatusCode::ResourceExhausted, "too many accumulators in flight", group.site);
    group.accumulators.emplace_back();
  }
  group.nextAccumulator = (id + 1) % static_cast<uint32_t>(group.accumulators.size());
  Accumulator &accumulator = group.accumulators[id];
  accumulator.n = n;
  accumulator.columns = (n + 15) / 16 * 16;
  accumulator.panel.assign(groupRows * accumulator.columns / 16, {});
  if (group.call.flags & DITRON_SIM_WGMMA_SCALE_D)
    for (uint32_t i = 0; i < groupThreads; ++i)
      for (uint32_t r = 0; r < n / 2; ++r)
        accumulator.words()[panelIndex(i, r, accumulator.columns)] = values(i)[r];
  return accumulator;
}

void AsyncUnit::runMultiply(Thread &last, uint32_t groupIndex) {
  Warpgroup &group = groups[groupIndex];
  const WarpgroupCall &call = group.call;
  const uint32_t first = groupIndex * groupThreads;
  race::Detector *races = block.engine.races.get();
  if (races)
    races->ensureWarp(group.warp, race::ActorKind::Warpgroup, block.order.block, block.rank.id);
  const race::KnowledgeRef known = races ? races->release(last) : nullptr;
  const race::Actor reader =
      races ? races->actorOf(group.warp, static_cast<uint32_t>(group.issued + 1), known) : race::Actor();
  const race::Access read{false, {}, races ? races->siteNumber(group.site) : uint16_t(0)};
  MatrixView views[2];
  Warpgroup::Operation operation{group.issued + 1, 0, group.site, proxy.beginMultiply(groupIndex, group.site)};
  for (uint32_t which = call.aInRegisters ? 1 : 0; which < 2; ++which) {
    const std::string_view name = which == 0 ? "A" : "B";
    const bool mnMajor = call.flags & (which == 0 ? DITRON_SIM_WGMMA_A_MN_MAJOR : DITRON_SIM_WGMMA_B_MN_MAJOR);
    const uint32_t rows = which == 0 ? groupRows : call.n, advance = which == 0 ? call.aStep : call.bStep;
    if (std::string problem = decodeDescriptor(which == 0 ? call.aDesc : call.bDesc, mnMajor, views[which]);
        !problem.empty())
      block.failThread(last, StatusCode::InvalidArgument,
                       fmt::format("warpgroup multiply: descriptor of {}: {}", name, problem), group.site);
    uint32_t highest = 0;
    forEachChunk(views[which], rows, advance, call.kSteps,
                 [&](uint32_t, uint32_t, uint32_t, uint32_t offset) { highest = std::max(highest, offset); });
    if (highest + 16 > last.sharedBytes)
      block.failThread(last, StatusCode::OutOfBounds,
                       fmt::format("warpgroup multiply: operand {} reaches to shared offset {}, the block has {}", name,
                                   highest + 16, last.sharedBytes),
                       group.site);
    if (operation.use) {
      const std::string what = fmt::format("operand {} of the warpgroup multiply", name);
      forEachChunk(views[which], rows, advance, call.kSteps, [&](uint32_t, uint32_t, uint32_t, uint32_t offset) {
        proxy.addRead(*operation.use, last, offset / 16, what);
        if (races)
          block.failIf(races->accessShared(reader, block, offset, 16, read), last, group.site);
      });
    }
  }

  uint32_t id = 0;
  Accumulator &accumulator = accumulatorFor(last, groupIndex, id);
  const uint32_t depthWords = call.kSteps * 8, depth = depthWords * elementsPerWord(call.type);
  uint32_t *words = scratch.words.get<uint32_t>(static_cast<size_t>(groupRows) * depthWords);
  uint32_t *a = scratch.a.get<uint32_t>(static_cast<size_t>(groupRows) * depth);
  if (call.aInRegisters)
    gatherRegisterA(registers.data() + first, call.kSteps, words);
  else
    gatherSharedA(views[0], last.sharedMemory, call.aStep, call.kSteps, words);
  widenElements(call.type, words, static_cast<uint64_t>(groupRows) * depthWords, a);
  uint32_t *b = scratch.b.get<uint32_t>(static_cast<size_t>(depth) * accumulator.columns);
  gatherB(call.type, views[1], last.sharedMemory, call.n, accumulator.columns, call.bStep, call.kSteps, b);
  multiplyPanels(call.type, a, b, accumulator.words(), groupRows, accumulator.columns, depth);

  Engine &engine = block.engine;
  const uint64_t flops = uint64_t(2) * groupRows * call.n * depth;
  engine.counters.mmaFlops += flops;
  engine.counters.wgmmaFlops += flops;
  block.settle();
  const SimTime begin = std::max(block.clock, tensorFree);
  tensorFree = begin + engine.scheduler.cost(warpgroupMultiplyNs(engine.options, flops, elementsPerWord(call.type),
                                                                 block.rank.slowFactor));
  if (engine.trace.isEnabled()) {
    engine.trace.nameTrack(block.rank.id, tensorTracks + block.slot, fmt::format("SM {} tensor cores", block.slot));
    engine.trace.span(block.rank.id, tensorTracks + block.slot, engine.trace.intern("wgmma"), SpanKind::Block, begin,
                      tensorFree, fmt::format("\"n\":{},\"k\":{}", call.n, depth));
  }
  operation.end = tensorFree;
  accumulator.last = ++group.issued;
  group.operations.push_back(std::move(operation));
  schedule(tensorFree, EventKind::MultiplyDone, groupIndex);
  for (uint32_t i = 0; i < groupThreads; ++i) {
    auto *target = static_cast<uint32_t *>(const_cast<void *>(registers[first + i][1]));
    for (uint32_t r = 0; r < call.n / 2; ++r)
      target[r] = token(id, r);
    AsyncThread &work = block.allThreads()[first + i]->asyncWork;
    work.issued = group.issued;
    auto known = std::find_if(work.deliveries.begin(), work.deliveries.end(),
                              [&](const AsyncThread::Delivery &other) { return other.registers == target; });
    if (known == work.deliveries.end())
      work.deliveries.push_back({target, id});
    else
      known->accumulator = id;
  }
}

//===- Completion -------------------------------------------------------------------------------------------------===//

void AsyncUnit::multiplyDone(Warpgroup &group, SimTime now) {
  for (const Warpgroup::Operation &operation : group.operations)
    if (operation.end <= now)
      group.completed = std::max(group.completed, operation.number);
  const auto first = static_cast<uint32_t>(&group - groups.data()) * groupThreads;
  for (uint32_t i = 0; i < groupThreads; ++i) {
    Thread &thread = *block.allThreads()[first + i];
    if (thread.state == ThreadState::AtWgmmaWait && thread.asyncWork.waitTarget <= group.completed)
      block.wakeAt(thread, now);
  }
}

void AsyncUnit::waitMultiplies(Thread &thread, uint32_t pending, const DitronSimSite *site) {
  AsyncThread &mine = thread.asyncWork;
  mine.registersFenced = false;
  const uint32_t index = thread.threadId / groupThreads;
  if (mine.multiplyGroups.size() <= pending || index >= groups.size())
    return;
  const uint64_t target = mine.multiplyGroups[mine.multiplyGroups.size() - 1 - pending];
  mine.multiplyGroups.erase(mine.multiplyGroups.begin(), mine.multiplyGroups.end() - pending);
  if (groups[index].completed < target) {
    block.settle();
    for (const Warpgroup::Operation &operation : groups[index].operations)
      if (operation.end <= block.clock)
        groups[index].completed = std::max(groups[index].completed, operation.number);
  }
  if (groups[index].completed < target) {
    thread.site = site;
    thread.state = ThreadState::AtWgmmaWait;
    mine.waitTarget = target;
    block.park(thread);
  }
  Warpgroup &group = groups[index];
  if (block.engine.races)
    block.engine.races->waitedFor(thread, group.warp, static_cast<uint32_t>(target));
  if (group.waited < target) {
    group.waited = target;
    // From now on the operands may be overwritten.
    std::erase_if(group.operations, [&](const Warpgroup::Operation &operation) {
      if (operation.number > target)
        return false;
      proxy.end(operation.use);
      return true;
    });
  }
  std::erase_if(mine.deliveries, [&](const AsyncThread::Delivery &delivery) {
    Accumulator &accumulator = group.accumulators[delivery.accumulator];
    if (accumulator.last > target)
      return false;
    if (tokenAccumulator(delivery.registers, accumulator.n / 2) == delivery.accumulator)
      deliverAccumulator(thread, accumulator, delivery.registers);
    return true;
  });
}

void AsyncUnit::deliverAccumulator(Thread &thread, Accumulator &accumulator, uint32_t *target) {
  for (uint32_t r = 0; r < accumulator.n / 2; ++r)
    target[r] = accumulator.words()[panelIndex(thread.threadId % groupThreads, r, accumulator.columns)];
}

void AsyncUnit::deliver(Thread &thread, uint32_t *values, uint32_t count) {
  const uint32_t index = thread.threadId / groupThreads;
  if (index >= groups.size())
    return;
  Warpgroup &group = groups[index];
  for (uint32_t at = 0; at < count;) {
    const uint32_t id = (values[at] & 0xfffff) >> registerBits;
    if ((values[at] & 0xfff00000) != tokenPrefix || id >= group.accumulators.size()) {
      ++at;
      continue;
    }
    Accumulator &accumulator = group.accumulators[id];
    const uint32_t size = accumulator.n / 2;
    if (size > count - at || tokenAccumulator(values + at, size) != id) {
      ++at;
      continue;
    }
    if (accumulator.last <= group.waited)
      deliverAccumulator(thread, accumulator, values + at);
    at += size;
  }
}

} // namespace ditron::sim

//===- The ABI ----------------------------------------------------------------------------------------------------===//

using namespace ditron;
using namespace ditron::sim;

extern "C" {

void ditron_sim_wgmma(DitronSimThread *self, uint32_t type, uint32_t n, uint32_t kSteps, uint32_t flags,
                      const void *aRegs, uint64_t aDesc, uint32_t aStep, uint64_t bDesc, uint32_t bStep, void *c,
                      const DitronSimSite *site) {
  Thread &thread = asThread(self);
  WarpgroupCall call{type, n, kSteps, flags, aRegs ? 0 : aDesc, bDesc, aRegs ? 0 : aStep, bStep, aRegs != nullptr};
  thread.block->asyncUnit.multiply(thread, call, aRegs, c, site);
}

void ditron_sim_wgmma_fence(DitronSimThread *self, const DitronSimSite *) {
  asThread(self).asyncWork.registersFenced = true;
}

void ditron_sim_wgmma_commit(DitronSimThread *self, const DitronSimSite *) {
  AsyncThread &mine = asThread(self).asyncWork;
  mine.multiplyGroups.push_back(mine.issued);
}

void ditron_sim_wgmma_wait(DitronSimThread *self, uint32_t pending, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.waitMultiplies(thread, pending, site);
}

void ditron_sim_wgmma_result(DitronSimThread *self, void *values, uint32_t count, const DitronSimSite *) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.deliver(thread, static_cast<uint32_t *>(values), count);
}

void ditron_sim_setmaxnreg(DitronSimThread *self, uint32_t n, uint32_t increase, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  if (n < 24 || n > 256 || n % 8 != 0)
    thread.block->failThread(
        thread, StatusCode::InvalidArgument,
        fmt::format("{} of the registers to {} per thread; accepted is a multiple of 8 from 24 to 256",
                    increase ? "increase" : "decrease", n),
        site);
}

} // extern "C"
