//===- RaceReport.cpp - A race in words ---------------------------------------------------------------------------===//
//
// Both accesses, the place in memory, and what is missing between them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/race/Detector.h"

#include <fmt/format.h>

namespace ditron::sim::race {

namespace {
std::string_view orderName(uint32_t order) {
  switch (order) {
  case DITRON_SIM_ACQUIRE: return "acquire";
  case DITRON_SIM_RELEASE: return "release";
  case DITRON_SIM_ACQ_REL: return "acquire and release";
  default: return "relaxed";
  }
}

std::string_view scopeName(uint32_t scope) {
  return scope == DITRON_SIM_SCOPE_BLOCK ? "block" : scope == DITRON_SIM_SCOPE_GPU ? "gpu" : "system";
}

std::string accessName(bool isWrite, Strength strength) {
  if (!strength.isStrong() || strength.isPut())
    return isWrite ? "store" : "load";
  return fmt::format("{} with an order or atomic, at {} scope,", isWrite ? "store" : "load",
                     scopeName(strength.scope()));
}
} // namespace

std::string Detector::describe(uint32_t number, uint8_t lane) const {
  const Strand &strand = strands[number];
  const WarpIdentity &warp = warps[strand.warp];
  const double microseconds = static_cast<double>(strand.since) * 1e-6;
  if (warp.kind == ActorKind::Host)
    return warp.index == nobody ? "host code" : fmt::format("host code of {}", engine.trace.name(warp.index));
  if (warp.kind == ActorKind::Network)
    return fmt::format("a transfer that rank {} began, at {:.3f} us", warp.rank, microseconds);
  const BlockIdentity &block = blocks[warp.block];
  const Operation &operation = operations[block.operation];
  const std::string &name = engine.trace.name(operation.name);
  const std::string enqueued = operation.place ? ", enqueued at " + engine.places.text(operation.place) : "";
  if (warp.kind == ActorKind::StreamOperation)
    return fmt::format("{} on stream {} of rank {}{}, at {:.3f} us", name, engine.streams[operation.stream]->name,
                       operation.rank, enqueued, microseconds);
  std::string_view what;
  switch (warp.kind) {
  case ActorKind::TensorLoad: what = "a tensor load of "; break;
  case ActorKind::TensorStoreRead:
  case ActorKind::TensorStoreWrite: what = "a tensor store of "; break;
  case ActorKind::Warpgroup: what = "a warpgroup multiply of "; break;
  default: break;
  }
  std::string thread;
  if (warp.kind == ActorKind::Threads)
    thread = fmt::format(", thread {}", warp.index * engine.options.warpSize + lane);
  return fmt::format("{}kernel {}, rank {}, block ({},{},{}){}{}, at {:.3f} us", what, name, operation.rank,
                     block.id[0], block.id[1], block.id[2], thread, enqueued, microseconds);
}

std::string Detector::explainMiss(const NearMiss &miss) const {
  auto place = [&](uint16_t site) { return site ? engine.places.text(site) : std::string("an unknown line"); };
  const std::string word = engine.memory.signalName(miss.address);
  if (!releases(miss.storeOrder))
    return fmt::format(
        "{} was raised at {} with {} order, which releases nothing: make it a release, or put a releasing fence "
        "between the first access and it, in the thread that raises it",
        word, place(miss.storeSite), orderName(miss.storeOrder));
  if (!acquires(miss.loadOrder))
    return fmt::format(
        "{} was read at {} with {} order, which acquires nothing: make it an acquire, or put an acquiring fence "
        "between it and the second access, in the thread that reads it",
        word, place(miss.loadSite), orderName(miss.loadOrder));
  return fmt::format(
      "{} was raised at {} at {} scope and read at {} at {} scope: one of the two does not reach the other thread",
      word, place(miss.storeSite), scopeName(miss.storeScope), place(miss.loadSite), scopeName(miss.loadScope));
}

const NearMiss *Detector::findNearMiss(const Block &block, Moment moment) const {
  // The newest first: what a thread would have told with the ones before is mostly less than it seems, for it has gone on.
  for (size_t i = block.order.nearMisses.size(); i-- > 0;)
    if (const NearMiss &miss = block.order.nearMisses[i]; knows(*miss.known, strands[moment.strand], moment.lane))
      return &miss;
  return nullptr;
}

uint32_t Detector::threadOf(Moment moment) const {
  return warps[strands[moment.strand].warp].index * engine.options.warpSize + moment.lane;
}

std::string Detector::explainRelease(const Block &block, const Actor &actor, const Found &found,
                                     const Access &access) const {
  const Strand &earlier = strands[found.strand];
  const WarpIdentity &first = warps[earlier.warp];
  if (first.kind != ActorKind::Threads || warps[actor.warp].kind != ActorKind::Threads)
    return {};
  auto at = [&](uint16_t site) { return site ? engine.places.text(site) : std::string("an unknown line"); };
  const char *firstName = found.isWrite ? "store" : "load", *secondName = access.isWrite ? "store" : "load";
  const Moment before{found.strand, found.lane}, now{actor.strand, actor.lane};
  for (size_t i = block.order.seenReleases.size(); i-- > 0;) {
    const SeenRelease &release = block.order.seenReleases[i];
    if (warps[strands[release.store.strand].warp].block != first.block)
      continue;
    const std::string word = engine.memory.signalName(release.address);
    if (knows(*release.known, earlier, found.lane)) {
      if (threadOf(release.load) == threadOf(now))
        continue;
      return fmt::format(
          "the release of {} at {} orders the {}, and thread {} has acquired it at {}; but nothing orders the "
          "{} of thread {} behind that: a block barrier (tl.debug_barrier()) is missing between the two",
          word, at(release.storeSite), firstName, threadOf(release.load), at(release.loadSite), secondName,
          threadOf(now));
    }
    if (threadOf(release.store) == threadOf(before))
      return fmt::format("the last release of that block that this one has acquired, of {} at {}, comes before the {} "
                         "in thread {}: release behind it",
                         word, at(release.storeSite), firstName, threadOf(before));
    return fmt::format(
        "the last release of that block that this one has acquired, of {} at {}, is by thread {}, and nothing "
        "orders the {} of thread {} before it: a block barrier (tl.debug_barrier()) is missing in front "
        "of the release, or it comes too early",
        word, at(release.storeSite), threadOf(release.store), firstName, threadOf(before));
  }
  return {};
}

std::string Detector::describe(const OldValue &old) const {
  const uint32_t unused = 64 - 8 * old.bytes;
  const auto value = [&](uint64_t bits) { return static_cast<int64_t>(bits << unused) >> unused; };
  const Allocation *allocation = engine.memory.find(old.address);
  return fmt::format(
      "{}: this load by {} was given an older value of {} of rank {}: {}, not the {} that {} had stored{}; {}",
      engine.places.text(old.loadSite), describe(old.reader.strand, old.reader.lane),
      engine.memory.signalName(old.address), allocation ? allocation->rank : 0, value(old.given), value(old.newest),
      describe(old.writer.strand, old.writer.lane), old.storeSite ? " at " + engine.places.text(old.storeSite) : "",
      old.miss ? explainMiss(*old.miss)
               : "nothing orders the load after that store: no release that an acquire sees, and no "
                 "sequentially consistent fences on both sides");
}

std::string Detector::explain(const Actor &actor, const Found &found, const Access &access) const {
  const Strand &earlier = strands[found.strand];
  const WarpIdentity &warp = warps[earlier.warp];
  if (actor.block != nobody)
    for (auto &rank : engine.ranks)
      for (auto &slot : rank->slots)
        if (slot->kernel && slot->order.block == actor.block) {
          if (const NearMiss *miss = findNearMiss(*slot, {found.strand, found.lane}))
            return explainMiss(*miss);
          if (std::string text = explainRelease(*slot, actor, found, access); !text.empty())
            return text;
        }
  if (warp.kind == ActorKind::Network && actor.warp != nobody && warps[actor.warp].kind == ActorKind::Network)
    return "transfers arrive in any order: a fence() between two of one rank to one PE orders them, or a quiet(); for "
           "those of different "
           "ranks or blocks the first must be known to be over, by a signal or a barrier, before the second is begun";
  if (found.strength.isStrong() && access.strength.isStrong())
    return found.strength.log2Bytes() != access.strength.log2Bytes()
               ? "atomic accesses of different sizes do not synchronise with each other"
               : "atomic accesses whose scopes do not include each other are no better than ordinary ones";
  switch (warp.kind) {
  case ActorKind::TensorLoad: return "nobody has waited for the tensor load";
  case ActorKind::TensorStoreRead:
  case ActorKind::TensorStoreWrite: return "nobody has waited for the tensor store's group";
  case ActorKind::Warpgroup: return "nobody has waited for the multiply";
  case ActorKind::Network: return "no quiet, and no signal of that put, comes between";
  default: break;
  }
  if (actor.warp != nobody && warps[actor.warp].kind == ActorKind::Network)
    return "a transfer is under way from its call until a quiet, or until the signal of that put has been waited for: "
           "that "
           "does not come before the other access, nor does a signal say before the call that the access is over";
  if (actor.block != nobody && warp.block == actor.block)
    return earlier.warp == actor.warp
               ? "no warp barrier comes between these lanes of a warp"
               : "no block barrier (tl.debug_barrier()), and no other synchronisation, comes between them";
  if (warp.block == nobody)
    return "nothing synchronises them";
  const Operation &operation = operations[blocks[warp.block].operation];
  if (actor.block != nobody && warp.kind == ActorKind::Threads) {
    const Operation &mine = operations[blocks[actor.block].operation];
    if (&mine == &operation)
      return "blocks of a launch run side by side: nothing orders them but a release that an acquire sees";
    if (mine.rank == operation.rank)
      return "the launches are on streams that no event orders, and no release is seen by an acquire";
  }
  if (actor.rank != operation.rank)
    return "ranks are ordered by nothing but signals: no release at system scope is seen by an acquire between them";
  return "no event, signal or synchronisation comes between them";
}

std::string Detector::placeOf(const void *address) const {
  std::string place = engine.memory.signalName(address);
  if (const Allocation *allocation = engine.memory.find(address))
    return place + fmt::format(" of rank {}", allocation->rank);
  for (auto &rank : engine.ranks)
    for (auto &slot : rank->slots)
      if (slot->kernel && slot->sharedMemory() &&
          static_cast<uint64_t>(static_cast<const char *>(address) - slot->sharedMemory()) <
              slot->kernel->description().sharedBytes)
        place = fmt::format("shared memory of the block, offset {}",
                            static_cast<const char *>(address) - slot->sharedMemory());
  return place;
}

Detector::Race Detector::reportUnfenced(const Actor &actor, const Found &store, const void *address,
                                        const Access &access) {
  auto at = [&](uint16_t site) { return site ? engine.places.text(site) : std::string("an unknown line"); };
  const std::string_view does = access.isWrite ? "overwrites" : "reads";
  lastRace = fmt::format("data race by proxy on {}: this {} ({}) {} through the asynchronous proxy what the {} by {} "
                         "has written through the generic "
                         "one; no fence.proxy.async stands between the store at {} and the {} at {}: call "
                         "fence_proxy_async() behind the store, before it is "
                         "made known to others, or in front of the copy, behind what orders it after the store "
                         "(fence_async_shared() is about shared "
                         "memory alone)",
                         placeOf(address), access.asyncName, describe(actor.strand, actor.lane), does,
                         accessName(true, store.strength), describe(store.strand, store.lane), at(store.site),
                         access.asyncName, at(access.site));
  return &lastRace;
}

Detector::Race Detector::changedUnderCopy(Thread &thread, const void *address, const DitronSimSite *copy) {
  const Moment now = momentOf(thread);
  std::string store = "a store";
  if (Cell *cell = cellOf(address)) {
    const Cell last = innermost(*cell, address);
    if (last.writeMask)
      store = fmt::format("the store{} by {}", last.writeSite ? " at " + engine.places.text(last.writeSite) : "",
                          describe(last.write, static_cast<uint8_t>(last.writeLane)));
  }
  lastRace = fmt::format(
      "data race on {}: {} came while an asynchronous copy of {} was still reading, which may get either value; "
      "loads that run ahead of a loop (num_stages) must not read what the loop stores, through whichever argument",
      placeOf(address), store, describe(now.strand, now.lane));
  return &lastRace;
}

Detector::Race Detector::report(const Actor &actor, const Found &found, const void *address, uint64_t bytes,
                                const Access &access) {
  // What streams and networks do is described with its own place.
  const ActorKind earlier = warps[strands[found.strand].warp].kind;
  std::string earlierPlace;
  if (found.site)
    earlierPlace = " at " + engine.places.text(found.site);
  else if (earlier != ActorKind::StreamOperation && earlier != ActorKind::Network && earlier != ActorKind::Host)
    earlierPlace = " at an unknown line";
  lastRace = fmt::format("data race on {}: this {} of {} by {} is not ordered after the {}{} by {}; {}",
                         placeOf(address), accessName(access.isWrite, access.strength), byteCount(bytes),
                         describe(actor.strand, actor.lane), accessName(found.isWrite, found.strength), earlierPlace,
                         describe(found.strand, found.lane), explain(actor, found, access));
  return &lastRace;
}

} // namespace ditron::sim::race
