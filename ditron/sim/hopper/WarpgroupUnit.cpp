//===- WarpgroupUnit.cpp - Matrix multiply of warpgroups (wgmma) --------------------------------------------------===//
//
// The meeting, the issue by its last thread, and the waits.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/WarpgroupUnit.h"

#include "ditron/sim/arithmetic/Mma.h"
#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/hopper/Costs.h"
#include "ditron/sim/report/EngineTrace.h"

#include <fmt/format.h>

#include <algorithm>

namespace ditron::sim {

namespace {
constexpr uint32_t groupThreads = WarpgroupCall::threads;
} // namespace

void WarpgroupUnit::reset(uint32_t threads) {
  clear();
  groups.resize(threads / groupThreads);
  aRegisters.resize(threads);
  cRegisters.resize(threads);
  tensorFree = 0;
}

Thread &WarpgroupUnit::member(uint32_t groupIndex, uint32_t thread) {
  return *block.allThreads()[groupIndex * groupThreads + thread];
}

uint32_t *WarpgroupUnit::accumulatorRegisters(uint32_t groupIndex, uint32_t thread) const {
  return static_cast<uint32_t *>(cRegisters[groupIndex * groupThreads + thread]);
}

void WarpgroupUnit::fail(Thread &thread, const std::string &problem, const DitronSimSite *site) {
  block.failThread(thread, StatusCode::InvalidArgument, problem, site);
}

//===- The meeting ------------------------------------------------------------------------------------------------===//

void WarpgroupUnit::multiply(Thread &thread, const WarpgroupCall &call, const void *a, void *accumulator,
                             const DitronSimSite *site) {
  const uint32_t index = thread.threadId / groupThreads;
  if (block.engine.options.warpSize != 32 || index >= groups.size())
    fail(thread,
         fmt::format("a warpgroup multiply needs four full warps; warp {} of {} threads has no such group",
                     thread.warpId, thread.numThreads),
         site);
  if (std::string problem = checkCall(call); !problem.empty())
    fail(thread, "warpgroup multiply: " + problem, site);
  join(thread, index, call, site);
  Warpgroup &group = groups[index];
  const bool continues =
      group.accumulators.tokensIn(static_cast<const uint32_t *>(accumulator), call.n / 2).has_value();
  if (block.checked && !thread.asyncWork.multiplies.registersFenced && (a || !continues))
    fail(thread, "warpgroup multiply with new registers without wgmma_fence since the start or the last wait", site);
  aRegisters[thread.threadId] = a;
  cRegisters[thread.threadId] = accumulator;
  if (++group.arrived < groupThreads) {
    thread.site = site;
    thread.state = ThreadState::AtWarpgroup;
    block.park(thread);
    return;
  }
  run(thread, index);
  group.arrived = 0;
  for (uint32_t i = 0; i < groupThreads; ++i)
    if (Thread &other = member(index, i); &other != &thread)
      block.makeReady(other);
}

void WarpgroupUnit::join(Thread &thread, uint32_t groupIndex, const WarpgroupCall &call, const DitronSimSite *site) {
  Warpgroup &group = groups[groupIndex];
  if (group.arrived == 0) {
    for (uint32_t i = 0; i < groupThreads; ++i)
      if (member(groupIndex, i).state == ThreadState::Finished)
        fail(thread,
             fmt::format("warpgroup multiply: thread {} of the warpgroup has returned", groupIndex * groupThreads + i),
             site);
    group.call = call;
    group.site = site;
    return;
  }
  if (group.call == call && sameSite(group.site, site))
    return;
  auto text = [](const WarpgroupCall &one, const DitronSimSite *place) {
    return fmt::format("{} (n {}, {} steps, flags {}, descriptors 0x{:x} and 0x{:x})", siteText(place), one.n,
                       one.kSteps, one.flags, one.aDesc, one.bDesc);
  };
  fail(thread,
       fmt::format("threads of warpgroup {} meet at different multiplies: {} and {}", groupIndex,
                   text(group.call, group.site), text(call, site)),
       site);
}

void WarpgroupUnit::threadFinished(Thread &thread) {
  const uint32_t index = thread.threadId / groupThreads;
  if (index >= groups.size() || groups[index].arrived == 0)
    return;
  block.engine.fail(failureAt(StatusCode::InvalidArgument, groups[index].site,
                              fmt::format("{}: thread {} returned instead of joining the warpgroup matrix multiply",
                                          block.describe(), thread.threadId)));
}

std::string WarpgroupUnit::describeArrival(const Thread &thread) const {
  return fmt::format(" ({} of {} threads have arrived)", groups[thread.threadId / groupThreads].arrived, groupThreads);
}

//===- Issue ------------------------------------------------------------------------------------------------------===//

void WarpgroupUnit::decode(Thread &last, const Warpgroup &group, Operands &operands) {
  const WarpgroupCall &call = group.call;
  for (uint32_t which = call.aInRegisters ? 1 : 0; which < 2; ++which) {
    const bool isA = which == 0;
    SharedOperand &operand = operands[which];
    operand.rows = isA ? WarpgroupCall::rows : call.n;
    operand.advance = isA ? call.aStep : call.bStep;
    operand.steps = call.kSteps;
    const bool mnMajor = call.flags & (isA ? DITRON_SIM_WGMMA_A_MN_MAJOR : DITRON_SIM_WGMMA_B_MN_MAJOR);
    if (std::string problem = decodeDescriptor(isA ? call.aDesc : call.bDesc, mnMajor, operand.view); !problem.empty())
      fail(last, fmt::format("warpgroup multiply: descriptor of {}: {}", isA ? "A" : "B", problem), group.site);
    if (const uint32_t end = operand.highest() + 16; end > last.sharedBytes)
      block.failThread(last, StatusCode::OutOfBounds,
                       fmt::format("warpgroup multiply: operand {} reaches to shared offset {}, the block has {}",
                                   isA ? "A" : "B", end, last.sharedBytes),
                       group.site);
  }
}

void WarpgroupUnit::noteReads(Thread &last, uint32_t groupIndex, const Operands &operands, SharedUse *use) {
  Warpgroup &group = groups[groupIndex];
  race::Detector *races = block.engine.races.get();
  race::KnowledgeRef known; // the reader only points to it
  race::Actor reader;
  race::Access read{false, {}, 0};
  if (races) {
    races->ensureWarp(group.warp, race::ActorKind::Warpgroup, block.order.block, block.rank.id);
    known = races->release(last);
    reader = races->actorOf(group.warp, static_cast<uint32_t>(group.issued + 1), known);
    read.site = races->siteNumber(group.site);
  }
  for (uint32_t which = group.call.aInRegisters ? 1 : 0; use && which < 2; ++which) {
    const std::string what = fmt::format("operand {} of the warpgroup multiply", which == 0 ? "A" : "B");
    operands[which].forEachChunk([&](uint32_t, uint32_t, uint32_t, uint32_t offset) {
      proxy.addRead(*use, last, offset / 16, what);
      if (races)
        block.failIf(races->accessShared(reader, block, offset, 16, read), last, group.site);
    });
  }
}

uint32_t WarpgroupUnit::accumulatorFor(Thread &last, uint32_t groupIndex) {
  Warpgroup &group = groups[groupIndex];
  const uint32_t n = group.call.n;
  auto continued = [&](uint32_t thread) {
    return group.accumulators.tokensIn(accumulatorRegisters(groupIndex, thread), n / 2);
  };
  const std::optional<uint32_t> first = continued(0);
  for (uint32_t i = 1; i < groupThreads; ++i)
    if (continued(i) != first)
      fail(last,
           fmt::format("warpgroup multiply: threads {} and {} pass accumulators of different multiplies",
                       groupIndex * groupThreads, groupIndex * groupThreads + i),
           group.site);
  const bool addsToOld = group.call.flags & DITRON_SIM_WGMMA_SCALE_D;
  if (first) {
    Accumulator &accumulator = group.accumulators[*first];
    if (accumulator.n != n || !accumulator.isUsed())
      fail(last,
           fmt::format("warpgroup multiply: the accumulator is of a multiply with n = {}, here n is {}", accumulator.n,
                       n),
           group.site);
    if (!addsToOld)
      accumulator.zero();
    return *first;
  }
  const std::optional<uint32_t> id = group.accumulators.take(group.waited);
  if (!id)
    block.failThread(last, StatusCode::ResourceExhausted, "too many accumulators in flight", group.site);
  Accumulator &accumulator = group.accumulators[*id];
  accumulator.begin(n);
  for (uint32_t i = 0; addsToOld && i < groupThreads; ++i)
    accumulator.take(i, accumulatorRegisters(groupIndex, i));
  return *id;
}

void WarpgroupUnit::run(Thread &last, uint32_t groupIndex) {
  Warpgroup &group = groups[groupIndex];
  const WarpgroupCall &call = group.call;
  Operands operands;
  decode(last, group, operands);
  Operation operation{group.issued + 1, 0, group.site, proxy.beginMultiply(groupIndex, group.site)};
  noteReads(last, groupIndex, operands, operation.use);

  const uint32_t id = accumulatorFor(last, groupIndex);
  Accumulator &accumulator = group.accumulators[id];
  const uint32_t depth = call.kSteps * 8 * elementsPerWord(call.type);
  const uint32_t *a = call.aInRegisters ? gatherA(call.type, aRegisters.data() + groupIndex * groupThreads, call.kSteps)
                                        : gatherA(call.type, operands[0], last.sharedMemory);
  const uint32_t *b = gatherB(call.type, operands[1], last.sharedMemory, accumulator.columns());
  if (call.type == DITRON_SIM_E4M3 || call.type == DITRON_SIM_E5M2)
    multiplyPanelsShort(reinterpret_cast<const float *>(a), reinterpret_cast<const float *>(b),
                        reinterpret_cast<float *>(accumulator.words()), WarpgroupCall::rows, accumulator.columns(),
                        depth);
  else
    multiplyPanels(call.type, a, b, accumulator.words(), WarpgroupCall::rows, accumulator.columns(), depth);

  operation.end = charge(call, depth);
  accumulator.last = ++group.issued;
  group.operations.push_back(operation);
  events.schedule(operation.end, *this, /*kind=*/0, groupIndex);
  giveTokens(groupIndex, id);
}

SimTime WarpgroupUnit::charge(const WarpgroupCall &call, uint32_t depth) {
  Engine &engine = block.engine;
  const uint64_t flops = uint64_t(2) * WarpgroupCall::rows * call.n * depth;
  engine.counters.mmaFlops += flops;
  engine.counters.wgmmaFlops += flops;
  block.settle();
  const SimTime begin = std::max(block.clock, tensorFree);
  tensorFree = begin + engine.scheduler.cost(warpgroupMultiplyNs(engine.options, flops, elementsPerWord(call.type),
                                                                 block.rank.slowFactor));
  if (engine.trace.isEnabled())
    traceMultiply(block, begin, tensorFree, call.n, depth);
  return tensorFree;
}

void WarpgroupUnit::giveTokens(uint32_t groupIndex, uint32_t accumulator) {
  const Warpgroup &group = groups[groupIndex];
  for (uint32_t i = 0; i < groupThreads; ++i) {
    uint32_t *target = accumulatorRegisters(groupIndex, i);
    Accumulators::writeTokens(accumulator, target, group.call.n / 2);
    ThreadMultiplies &mine = member(groupIndex, i).asyncWork.multiplies;
    mine.issued = group.issued;
    auto known = std::find_if(mine.deliveries.begin(), mine.deliveries.end(),
                              [&](const ThreadMultiplies::Delivery &other) { return other.registers == target; });
    if (known == mine.deliveries.end())
      mine.deliveries.push_back({target, accumulator});
    else
      known->accumulator = accumulator;
  }
}

//===- Completion -------------------------------------------------------------------------------------------------===//

void WarpgroupUnit::Warpgroup::completeUntil(SimTime now) {
  for (const Operation &operation : operations)
    if (operation.end <= now)
      completed = std::max(completed, operation.number);
}

void WarpgroupUnit::handleEvent(uint32_t, uint32_t index, SimTime now) {
  Warpgroup &group = groups[index];
  group.completeUntil(now);
  for (uint32_t i = 0; i < groupThreads; ++i)
    if (Thread &thread = member(index, i);
        thread.state == ThreadState::AtWgmmaWait && thread.asyncWork.multiplies.awaited <= group.completed)
      block.wakeAt(thread, now);
}

void WarpgroupUnit::wait(Thread &thread, uint32_t pending, const DitronSimSite *site) {
  ThreadMultiplies &mine = thread.asyncWork.multiplies;
  mine.registersFenced = false;
  const uint32_t index = thread.threadId / groupThreads;
  if (mine.groups.size() <= pending || index >= groups.size())
    return;
  Warpgroup &group = groups[index];
  const uint64_t target = mine.groups[mine.groups.size() - 1 - pending];
  mine.groups.erase(mine.groups.begin(), mine.groups.end() - pending);
  if (group.completed < target) {
    block.settle();
    group.completeUntil(block.clock);
  }
  if (group.completed < target) {
    thread.site = site;
    thread.state = ThreadState::AtWgmmaWait;
    mine.awaited = target;
    block.park(thread);
  }
  if (block.engine.races)
    block.engine.races->waitedFor(thread, group.warp, static_cast<uint32_t>(target));
  if (group.waited < target) {
    group.waited = target;
    // From now on the operands may be overwritten.
    std::erase_if(group.operations, [&](const Operation &operation) {
      if (operation.number > target)
        return false;
      proxy.end(operation.use);
      return true;
    });
  }
  std::erase_if(mine.deliveries, [&](const ThreadMultiplies::Delivery &delivery) {
    Accumulator &accumulator = group.accumulators[delivery.accumulator];
    if (accumulator.last > target)
      return false;
    if (group.accumulators.tokensIn(delivery.registers, accumulator.n / 2) == delivery.accumulator)
      accumulator.give(thread.threadId % groupThreads, delivery.registers);
    return true;
  });
}

void WarpgroupUnit::deliver(Thread &thread, uint32_t *values, uint32_t count) {
  const uint32_t index = thread.threadId / groupThreads;
  if (index >= groups.size())
    return;
  Warpgroup &group = groups[index];
  for (uint32_t at = 0; at < count;) {
    const std::optional<uint32_t> id = group.accumulators.namedBy(values[at]);
    const uint32_t size = id ? group.accumulators[*id].n / 2 : 0;
    if (!id || size > count - at || group.accumulators.tokensIn(values + at, size) != id) {
      ++at;
      continue;
    }
    Accumulator &accumulator = group.accumulators[*id];
    if (accumulator.last <= group.waited)
      accumulator.give(thread.threadId % groupThreads, values + at);
    at += size;
  }
}

} // namespace ditron::sim

//===- The ABI ----------------------------------------------------------------------------------------------------===//

using namespace ditron::sim;

extern "C" {

void ditron_sim_wgmma(DitronSimThread *self, uint32_t type, uint32_t n, uint32_t kSteps, uint32_t flags,
                      const void *aRegs, uint64_t aDesc, uint32_t aStep, uint64_t bDesc, uint32_t bStep, void *c,
                      const DitronSimSite *site) {
  Thread &thread = asThread(self);
  WarpgroupCall call{type, n, kSteps, flags, aRegs ? 0 : aDesc, bDesc, aRegs ? 0 : aStep, bStep, aRegs != nullptr};
  thread.block->asyncUnit.warpgroups.multiply(thread, call, aRegs, c, site);
}

void ditron_sim_wgmma_fence(DitronSimThread *self, const DitronSimSite *) {
  asThread(self).asyncWork.multiplies.registersFenced = true;
}

void ditron_sim_wgmma_commit(DitronSimThread *self, const DitronSimSite *) {
  ThreadMultiplies &mine = asThread(self).asyncWork.multiplies;
  mine.groups.push_back(mine.issued);
}

void ditron_sim_wgmma_wait(DitronSimThread *self, uint32_t pending, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.warpgroups.wait(thread, pending, site);
}

void ditron_sim_wgmma_result(DitronSimThread *self, void *values, uint32_t count, const DitronSimSite *) {
  Thread &thread = asThread(self);
  thread.block->asyncUnit.warpgroups.deliver(thread, static_cast<uint32_t *>(values), count);
}

} // extern "C"
