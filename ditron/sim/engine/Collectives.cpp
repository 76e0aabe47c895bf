//===- Collectives.cpp - Meetings of threads ----------------------------------------------------------------------===//
//
// The block barrier and the rendezvous of lanes: shuffle, ballot, warp barrier, mma. The last lane to arrive does the
// work of all lanes and makes the others ready; so a meeting costs one switch per thread and nothing else.
//
// A lane order is weaker: on a GPU it is no instruction. Lanes wait there for those that are behind, and not for ever for
// those that do not come.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/arithmetic/Mma.h"
#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

namespace ditron::sim {

std::string_view collectiveName(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::WarpBarrier: return "warp barrier";
  case CollectiveKind::Shuffle: return "warp shuffle";
  case CollectiveKind::Ballot: return "ballot";
  case CollectiveKind::Mma: return "matrix multiply";
  case CollectiveKind::Matrices: return "matrix load or store";
  }
  return "collective";
}

//===- Block barrier ----------------------------------------------------------------------------------------------===//

void Block::barrier(Thread &thread, const DitronSimSite *site) {
  if (engine.schedule.stopsAtBarriers && atBarrier + 1 == live)
    yieldIfAhead(thread);
  if (atBarrier == 0) {
    barrierSite = site;
    barrierMixed = false;
  } else if (site != barrierSite && !sameSite(site, barrierSite)) {
    barrierMixed = true;
  }
  thread.site = site;
  ++atBarrier;
  if (atBarrier == live) {
    releaseBarrier(&thread);
    return;
  }
  thread.state = ThreadState::AtBarrier;
  park(thread);
}

void Block::releaseBarrier(Thread *last) {
  // Warps may meet at different barrier instructions, lanes of one warp may not.
  if (barrierMixed)
    for (const auto &thread : threads) {
      const Thread *first = threads[thread->threadId - thread->laneId].get();
      bool bothHere = (thread.get() == last || thread->state == ThreadState::AtBarrier) &&
                      (first == last || first->state == ThreadState::AtBarrier);
      if (!bothHere || sameSite(thread->site, first->site))
        continue;
      std::string what =
          fmt::format("threads of warp {} meet at different block barriers: thread {} at {}, thread {} at {}",
                      thread->warpId, first->threadId, siteText(first->site), thread->threadId, siteText(thread->site));
      if (last)
        failThread(*last, StatusCode::InvalidArgument, what, last->site);
      engine.fail(failureAt(StatusCode::InvalidArgument, thread->site, fmt::format("{}: {}", describe(), what)));
      return;
    }
  atBarrier = 0;
  asyncUnit.proxy.noteMeeting();
  if (engine.races)
    engine.races->blockBarrier(*this);
  clocks += engine.options.cost.barrierClocks;
  for (uint32_t place = 0; place < ready.size(); ++place)
    if (Thread *thread = inOrder(place); thread && thread->state == ThreadState::AtBarrier)
      makeReady(*thread);
}

//===- Meetings of lanes ------------------------------------------------------------------------------------------===//

void Block::meet(Thread &thread, CollectiveKind kind, uint32_t variant, uint64_t mask, const DitronSimSite *site,
                 const uint32_t *shape) {
  Warp &warp = *thread.warp;
  const uint64_t bit = uint64_t(1) << thread.laneId;
  mask &= ~uint64_t(0) >> (64 - engine.options.warpSize);
  if (!(mask & bit))
    failThread(
        thread, StatusCode::InvalidArgument,
        fmt::format("lane {} calls a {} whose mask 0x{:x} does not name it", thread.laneId, collectiveName(kind), mask),
        site);
  Rendezvous *meeting = nullptr, *vacant = nullptr;
  for (Rendezvous &candidate : warp.meetings) {
    if (candidate.arrived && candidate.mask == mask) {
      meeting = &candidate;
      break;
    }
    if (!candidate.arrived && !vacant)
      vacant = &candidate;
  }
  if (!meeting) {
    if (!vacant)
      failThread(thread, StatusCode::Unsupported, "more than eight groups of lanes of one warp meet at the same time",
                 site);
    meeting = vacant;
    meeting->kind = kind;
    meeting->variant = variant;
    meeting->mask = mask;
    meeting->site = site;
    if (shape) {
      meeting->mTiles = shape[0];
      meeting->nTiles = shape[1];
      meeting->kTiles = shape[2];
    }
  } else if (meeting->kind != kind || meeting->variant != variant ||
             (site != meeting->site && !sameSite(site, meeting->site))) {
    failThread(
        thread, StatusCode::InvalidArgument,
        fmt::format("threads of warp {} meet at different collectives: lane {} at the {} {}, lane {} at the {} {}",
                    thread.warpId, std::countr_zero(meeting->arrived), collectiveName(meeting->kind),
                    siteText(meeting->site), thread.laneId, collectiveName(kind), siteText(site)),
        site);
  }
  meeting->arrived |= bit;
  thread.site = site;
  if (!(mask & warp.live & ~meeting->arrived)) {
    complete(warp, *meeting, &thread);
    return;
  }
  thread.state = ThreadState::AtWarp;
  park(thread);
}

namespace {
/// The lane whose value a lane receives; a source outside of the warp or absent leaves it its own.
uint32_t shuffleSource(uint32_t kind, uint32_t lane, uint32_t operand, uint32_t warpSize, uint64_t present) {
  int64_t source = lane;
  switch (kind) {
  case DITRON_SIM_SHUFFLE_INDEX: source = operand % warpSize; break;
  case DITRON_SIM_SHUFFLE_UP: source = static_cast<int64_t>(lane) - operand; break;
  case DITRON_SIM_SHUFFLE_DOWN: source = static_cast<int64_t>(lane) + operand; break;
  case DITRON_SIM_SHUFFLE_BUTTERFLY: source = lane ^ operand; break;
  default: break;
  }
  return source < 0 || source >= warpSize || !(present >> source & 1) ? lane : static_cast<uint32_t>(source);
}
} // namespace

void Block::complete(Warp &warp, Rendezvous &meeting, Thread *last) {
  const uint32_t warpSize = engine.options.warpSize;
  const std::unique_ptr<Thread> *lanes = threads.data() + static_cast<size_t>(&warp - warps.data()) * warpSize;
  const uint64_t arrived = meeting.arrived;
  switch (meeting.kind) {
  case CollectiveKind::WarpBarrier:
    asyncUnit.proxy.noteMeeting();
    if (engine.races)
      engine.races->warpBarrier(*this, warp);
    break;
  case CollectiveKind::Shuffle:
    for (uint64_t rest = arrived; rest; rest &= rest - 1) {
      Thread &lane = *lanes[std::countr_zero(rest)];
      lane.result = lanes[shuffleSource(meeting.variant, lane.laneId, lane.operand, warpSize, arrived)]->value;
    }
    break;
  case CollectiveKind::Ballot: {
    uint64_t ballot = 0;
    for (uint64_t rest = arrived; rest; rest &= rest - 1)
      if (lanes[std::countr_zero(rest)]->value)
        ballot |= rest & -rest;
    for (uint64_t rest = arrived; rest; rest &= rest - 1)
      lanes[std::countr_zero(rest)]->result = ballot;
    break;
  }
  case CollectiveKind::Matrices:
  case CollectiveKind::Mma: {
    if (arrived != 0xffffffffu) {
      engine.fail(failureAt(StatusCode::InvalidArgument, meeting.site,
                            fmt::format("{}: a lane of a warp returned instead of joining the {}", describe(),
                                        collectiveName(meeting.kind))));
      return;
    }
    if (meeting.kind == CollectiveKind::Matrices) {
      moveMatrices(lanes, meeting.mTiles, meeting.variant);
      if (engine.races)
        engine.races->warpBarrier(*this, warp);
      break;
    }
    MmaCall call{meeting.variant, meeting.mTiles, meeting.nTiles, meeting.kTiles};
    MmaLane operands[32];
    for (uint32_t i = 0; i < 32; ++i)
      operands[i] = {lanes[i]->mmaA, lanes[i]->mmaB, lanes[i]->mmaC};
    multiplyFragments(call, operands);
    uint64_t flops = mmaFlops(call);
    engine.counters.mmaFlops += flops;
    const CostModel &cost = engine.options.cost;
    double perClock = meeting.variant == DITRON_SIM_I8     ? cost.mmaFlopsPerClock8
                      : meeting.variant == DITRON_SIM_TF32 ? cost.mmaFlopsPerClockTf32
                      : meeting.variant == DITRON_SIM_F64  ? cost.mmaFlopsPerClockTf32 / 8
                                                           : cost.mmaFlopsPerClock16;
    clocks += static_cast<double>(flops) / perClock;
    break;
  }
  }
  if (meeting.kind != CollectiveKind::Mma)
    clocks += engine.options.cost.shuffleClocks;
  meeting.arrived = 0;
  makeReady(warp, last ? arrived & ~(uint64_t(1) << last->laneId) : arrived);
}

void Block::makeReady(Warp &warp, uint64_t lanes) {
  const uint32_t warpSize = engine.options.warpSize, flips = orderFlips & (warpSize - 1);
  const std::unique_ptr<Thread> *first = threads.data() + static_cast<size_t>(&warp - warps.data()) * warpSize;
  for (uint32_t place = 0; place < warpSize; ++place) {
    // In front of the queue the last one that is put there is the first.
    const uint32_t lane = (runsWarpsApart ? warpSize - 1 - place : place) ^ flips;
    if (!(lanes >> lane & 1))
      continue;
    if (!runsWarpsApart) {
      makeReady(*first[lane]);
      continue;
    }
    first[lane]->state = ThreadState::Ready;
    ready[--readyHead & readyMask] = static_cast<uint16_t>(first[lane]->threadId);
  }
}

//===- Lane order -------------------------------------------------------------------------------------------------===//

void Block::orderLanes(Thread &thread, const DitronSimSite *site) {
  Warp &warp = *thread.warp;
  warp.atLaneOrder |= uint64_t(1) << thread.laneId;
  ++waitingLanes;
  thread.site = site;
  thread.state = ThreadState::AtLaneOrder;
  // The last lane too goes on in its turn: then warps that run in step with each other stay in step.
  if (warp.atLaneOrder == warp.live)
    releaseLanes(warp);
  park(thread);
}

void Block::releaseLanes(Warp &warp) {
  waitingLanes -= std::popcount(warp.atLaneOrder);
  if (engine.races && warp.atLaneOrder)
    engine.races->warpBarrier(*this, warp);
  makeReady(warp, std::exchange(warp.atLaneOrder, 0));
}

bool Block::releaseLanes() {
  if (waitingLanes == 0)
    return false;
  for (Warp &warp : warps)
    releaseLanes(warp);
  engine.scheduler.wake(*this, clock);
  return true;
}

} // namespace ditron::sim

//===- The ABI ----------------------------------------------------------------------------------------------------===//

using namespace ditron;
using namespace ditron::sim;

extern "C" {

void ditron_sim_barrier(DitronSimThread *self, const DitronSimSite *site) {
  Thread &thread = asMeeting(self);
  const FrameGuard guard(thread, kernelFrame());
  thread.block->barrier(thread, site);
}

void ditron_sim_warp_barrier(DitronSimThread *self, const DitronSimSite *site) {
  Thread &thread = asMeeting(self);
  const FrameGuard guard(thread, kernelFrame());
  thread.block->meet(thread, CollectiveKind::WarpBarrier, 0, ~uint64_t(0), site);
}

void ditron_sim_order_lanes(DitronSimThread *self, const void *const *later, uint32_t laterCount,
                            const void *const *earlier, uint32_t earlierCount, const DitronSimSite *site) {
  Thread &thread = asMeeting(self);
  const FrameGuard guard(thread, kernelFrame());
  Block &block = *thread.block;
  bool areApart = laterCount != 0;
  for (uint32_t i = 0; i < laterCount && areApart; ++i)
    for (uint32_t k = 0; k < earlierCount && areApart; ++k)
      areApart = block.engine.memory.areApart(block.rank.id, later[i], earlier[k]);
  if (!areApart)
    block.orderLanes(thread, site);
}

uint64_t ditron_sim_shuffle(DitronSimThread *self, uint32_t kind, uint64_t value, uint32_t operand, uint64_t mask,
                            const DitronSimSite *site) {
  Thread &thread = asMeeting(self);
  const FrameGuard guard(thread, kernelFrame());
  thread.value = value;
  thread.operand = operand;
  thread.result = value;
  thread.block->meet(thread, CollectiveKind::Shuffle, kind, mask, site);
  return thread.result;
}

uint64_t ditron_sim_ballot(DitronSimThread *self, uint64_t mask, uint32_t predicate, const DitronSimSite *site) {
  Thread &thread = asMeeting(self);
  const FrameGuard guard(thread, kernelFrame());
  thread.value = predicate;
  thread.block->meet(thread, CollectiveKind::Ballot, 0, mask, site);
  return thread.result;
}

void ditron_sim_mma(DitronSimThread *self, uint32_t type, uint32_t mTiles, uint32_t nTiles, uint32_t kTiles,
                    const void *a, const void *b, void *c, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  // The meeting needs 32 lanes' registers: a warp that is not full has no tensor-core operation.
  if (thread.warp->live != 0xffffffffu)
    thread.block->failThread(thread, StatusCode::InvalidArgument,
                             "a matrix multiply needs a full warp of 32 threads that have not returned", site);
  if (mmaFlops({type, 1, 1, 1}) == 0)
    thread.block->failThread(thread, StatusCode::Unsupported,
                             fmt::format("no matrix multiply for element type {}", type), site);
  thread.mmaA = a;
  thread.mmaB = b;
  thread.mmaC = c;
  const uint32_t shape[3] = {mTiles, nTiles, kTiles};
  thread.block->meet(thread, CollectiveKind::Mma, type, ~uint64_t(0), site, shape);
}

void ditron_sim_fma_dot(DitronSimThread *self, uint32_t type, uint32_t m, uint32_t n, uint32_t k, const void *a,
                        const void *b, void *c, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  if (!multiplyPrivate(type, m, n, k, a, b, c))
    thread.block->failThread(thread, StatusCode::Unsupported, fmt::format("no dot product for element type {}", type),
                             site);
  thread.block->clocks += 2.0 * m * n * k / thread.block->engine.options.cost.fmaFlopsPerClock;
}

} // extern "C"
