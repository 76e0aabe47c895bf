//===- WeakMemory.cpp - Strong loads that do not see the newest value -------------------------------------------------===//

#include "ditron/sim/memory/WeakMemory.h"

#include "ditron/sim/engine/Engine.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace ditron::sim {

namespace {
/// The longest that a store is under way to an observer on its own rank, and on another one: long enough for others to pass a
/// message round meanwhile.
constexpr SimTime longestWay = 12'000'000, longestWayToPeer = 30'000'000;
constexpr size_t mostStores = 64, mostReaders = 64;
/// Of the pairs of places that are remembered, and that are told.
constexpr size_t mostOldValues = 64, toldOldValues = 3;

uint64_t wordAt(const void *address, uint32_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, address, bytes);
  return value;
}
} // namespace

WeakMemory::WeakMemory(Machine::State &engine) : engine(engine), places(~engine.schedule.seed) {}

WeakMemory::Word *WeakMemory::find(const void *address, uint32_t bytes, SimTime now) {
  auto found = words.find(address);
  if (found == words.end())
    return nullptr;
  Word &word = found->second;
  // An ordinary store, a copy or host code may have written the word; then nobody is given what was before.
  const bool isMemory = word.bytes == bytes && word.stores.back().value == wordAt(address, bytes);
  if (isMemory && now - word.lastStore <= longestWayToPeer)
    return &word;
  words.erase(found);
  return nullptr;
}

size_t WeakMemory::oldestFor(Thread &thread, const Word &word) const {
  const auto knows = [&](race::Moment moment) { return engine.races->knows(thread, moment); };
  size_t oldest = word.stores.size() - 1;
  for (; oldest > 0; --oldest) {
    const Store &store = word.stores[oldest];
    if (knows(store.writer) || std::any_of(store.readers.begin(), store.readers.end(), knows))
      break;
  }
  return oldest;
}

bool WeakMemory::mayComeBefore(const Store &store) {
  return !store.isUpdate && store.running &&
         places.below(1000) < static_cast<uint64_t>(engine.schedule.lateStores * 500);
}

bool WeakMemory::hasArrived(const Store &store, const Thread &thread, SimTime now) const {
  if (store.number == 0)
    return true;
  const uint64_t observer = uint64_t(thread.warp->order.warp) << 8 | thread.laneId;
  Random draw(engine.schedule.seed * 0x2545f4914f6cdd1dULL + store.number * 0x9e3779b97f4a7c15ULL + observer);
  if (draw.below(1000) >= static_cast<uint64_t>(engine.schedule.lateStores * 1000))
    return true;
  const SimTime longest = store.rank == thread.block->rank.id ? longestWay : longestWayToPeer;
  return now - store.time >= static_cast<SimTime>(draw.below(static_cast<uint64_t>(longest)));
}

void WeakMemory::addReader(Store &store, race::Moment reader) {
  if (store.readers.size() < mostReaders &&
      std::find(store.readers.begin(), store.readers.end(), reader) == store.readers.end())
    store.readers.push_back(reader);
}

bool WeakMemory::comesBehind(Thread &thread, const Store &store) const {
  const LateLoad &late = thread.lateLoad;
  if (engine.races->tells(store.sync.all.known, late.moment))
    return true;
  if (!late.fence)
    return false;
  const auto isWithinFence = [&](race::Moment moment) {
    return engine.races->reaches(moment, *late.fence, *thread.block);
  };
  if (isWithinFence(store.writer))
    return true;
  const auto stored = words.find(late.stored);
  if (stored == words.end())
    return true; // who knows
  const std::vector<Store> &stores = stored->second.stores;
  const auto own = std::find_if(stores.rbegin(), stores.rend(), [&](const Store &other) {
    return other.writer.lane == late.moment.lane && engine.races->areOfOneWarp(other.writer, late.moment);
  });
  if (own == stores.rend())
    return true;
  return std::any_of(own.base() - 1, stores.end(), [&](const Store &other) {
    return (&other != &*own && isWithinFence(other.writer)) ||
           std::any_of(other.readers.begin(), other.readers.end(), isWithinFence);
  });
}

//===- What may have made a result wrong --------------------------------------------------------------------------===//

void WeakMemory::noteOldValue(Thread &thread, const void *address, const Word &word, uint64_t given,
                              const DitronSimSite *site) {
  const Store &newest = word.stores.back();
  if (given == newest.value)
    return;
  const uint16_t place = engine.races->siteNumber(site);
  const auto known = std::find_if(old.begin(), old.end(), [&](const race::OldValue &other) {
    return other.loadSite == place && other.storeSite == newest.sync.site;
  });
  if (known != old.end()) {
    ++known->count;
    return;
  }
  if (old.size() >= mostOldValues)
    return;
  race::OldValue &value = old.emplace_back();
  value.address = address;
  value.bytes = word.bytes;
  value.given = given;
  value.newest = newest.value;
  value.reader = engine.races->momentOf(thread);
  value.writer = newest.writer;
  value.loadSite = place;
  value.storeSite = newest.sync.site;
  if (const race::NearMiss *miss = engine.races->findNearMiss(*thread.block, newest.writer))
    value.miss = *miss;
}

void WeakMemory::noteNewest(Thread &thread, const void *address) {
  for (race::OldValue &value : old)
    if (value.address == address && !value.isRepeated) {
      const race::Moment now = engine.races->momentOf(thread);
      value.isRepeated = value.reader.lane == now.lane && engine.races->areOfOneWarp(value.reader, now);
    }
}

void WeakMemory::kernelFinished(const KernelRun &run) {
  for (auto &[address, word] : words)
    for (Store &store : word.stores)
      if (store.running == &run)
        store.running = nullptr;
}

void WeakMemory::clear() {
  for (const race::OldValue &value : old)
    if (oldLines.size() < mostOldValues)
      oldLines.push_back(lineOf(value));
  old.clear();
  words.clear();
}

WeakMemory::OldLine WeakMemory::lineOf(const race::OldValue &value) const {
  std::string text = engine.races->describe(value);
  if (value.count > 1)
    text += fmt::format(" ({} loads there)", value.count);
  return {text, value.isRepeated};
}

std::string WeakMemory::oldValues() const {
  std::vector<OldLine> all = oldLines;
  for (const race::OldValue &value : old)
    all.push_back(lineOf(value));
  std::string text;
  size_t told = 0;
  for (const bool isRepeated : {false, true})
    for (const OldLine &line : all)
      if (line.isRepeated == isRepeated && told < toldOldValues)
        text +=
            fmt::format("{}{}{}", told++ ? "\n" : "", line.text, isRepeated ? "; later it was given the newest" : "");
  if (all.size() > told)
    text += fmt::format("\n{} more places", all.size() - told);
  return text;
}

//===- Loads and stores -------------------------------------------------------------------------------------------===//

WeakMemory::Seen WeakMemory::load(Thread &thread, const void *address, uint32_t bytes, const DitronSimSite *site) {
  const SimTime now = thread.block->clock;
  const bool isLate = thread.lateLoad.phase == LateLoad::Phase::Late;
  Word *word = find(address, bytes, now);
  if (!word) {
    if (!isLate)
      noteNewest(thread, address);
    return {wordAt(address, bytes)};
  }
  const size_t oldest = oldestFor(thread, *word);
  size_t chosen = word->stores.size() - 1;
  while (chosen > oldest &&
         (!hasArrived(word->stores[chosen], thread, now) || (isLate && comesBehind(thread, word->stores[chosen]))))
    --chosen;
  Store &store = word->stores[chosen];
  // To others it is still where it stands: who knows of what came before the late store knows of it.
  addReader(store, isLate ? thread.lateLoad.moment : engine.races->momentOf(thread));
  if (chosen + 1 == word->stores.size()) {
    if (!isLate)
      noteNewest(thread, address);
    return {store.value};
  }
  noteOldValue(thread, address, *word, store.value, site);
  seen = store.sync;
  return {store.value, &seen};
}

void WeakMemory::loadedNewest(Thread &thread, const void *address, uint32_t bytes) {
  noteNewest(thread, address);
  if (Word *word = find(address, bytes, thread.block->clock))
    addReader(word->stores.back(), engine.races->momentOf(thread));
}

bool WeakMemory::beginStore(Thread &thread, const void *address, uint32_t bytes, bool isUpdate) {
  const SimTime now = thread.block->clock;
  Word *word = find(address, bytes, now);
  if (!word) {
    if (words.size() >= dropAt)
      dropArrived(now);
    word = &words[address];
    word->bytes = bytes;
    word->stores.push_back({wordAt(address, bytes), 0, {}, 0, 0, false, nullptr, engine.races->lastStore(address), {}});
  }
  std::vector<Store> &stores = word->stores;
  word->lastStore = now;
  word->place = stores.size();
  if (isUpdate)
    return true;
  // Before stores that have come earlier, if nothing tells that this one is later than they.
  const size_t oldest = oldestFor(thread, *word);
  while (word->place > oldest + 1 && mayComeBefore(stores[word->place - 1]))
    --word->place;
  return word->place == stores.size();
}

WeakMemory::Seen WeakMemory::beginEarlierUpdate(Thread &thread, const void *address, uint32_t bytes,
                                                std::optional<uint64_t> wanted, const DitronSimSite *site) {
  Word *word = find(address, bytes, thread.block->clock);
  if (!word)
    return {};
  const std::vector<Store> &stores = word->stores;
  const size_t oldest = oldestFor(thread, *word);
  size_t place = stores.size();
  while (place > oldest + 1 && mayComeBefore(stores[place - 1]))
    --place;
  if (place == stores.size() || (wanted && stores[place - 1].value != *wanted))
    return {};
  const Store &read = stores[place - 1];
  noteOldValue(thread, address, *word, read.value, site);
  word->lastStore = thread.block->clock;
  word->place = place;
  seen = read.sync;
  return {read.value, &seen};
}

void WeakMemory::endStore(Thread &thread, const void *address, uint64_t value, bool isUpdate,
                          const race::SyncWord &store) {
  Word &word = words[address];
  const uint64_t mask = word.bytes == 8 ? ~uint64_t(0) : (uint64_t(1) << 8 * word.bytes) - 1;
  word.stores.insert(word.stores.begin() + static_cast<ptrdiff_t>(word.place), {value & mask,
                                                                                ++stores,
                                                                                {store.strand, store.lane},
                                                                                thread.block->clock,
                                                                                thread.block->rank.id,
                                                                                isUpdate,
                                                                                thread.block->kernel,
                                                                                store,
                                                                                {}});
  if (word.stores.size() > mostStores)
    word.stores.erase(word.stores.begin(), word.stores.begin() + mostStores / 2);
}

void WeakMemory::dropArrived(SimTime now) {
  std::erase_if(words, [&](const auto &entry) { return now - entry.second.lastStore > longestWayToPeer; });
  dropAt = std::max<size_t>(1024, words.size() * 2);
}

} // namespace ditron::sim
