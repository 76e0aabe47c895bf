//===- Watch.cpp - Sleeping on words of memory --------------------------------------------------------------------===//
//
// The watch table.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/memory/Watch.h"

#include <algorithm>
#include <cstring>

namespace ditron::sim {

namespace {
uint64_t loadGranule(uintptr_t granule) {
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const void *>(granule << 3), 8);
  return word;
}
} // namespace

bool compareHolds(Compare compare, int64_t seen, int64_t wanted) {
  switch (compare) {
  case Compare::Equal: return seen == wanted;
  case Compare::NotEqual: return seen != wanted;
  case Compare::Greater: return seen > wanted;
  case Compare::LessEqual: return seen <= wanted;
  case Compare::Less: return seen < wanted;
  case Compare::GreaterEqual: return seen >= wanted;
  }
  return false;
}

std::string_view compareText(Compare compare) {
  switch (compare) {
  case Compare::Equal: return "==";
  case Compare::NotEqual: return "!=";
  case Compare::Greater: return ">";
  case Compare::LessEqual: return "<=";
  case Compare::Less: return "<";
  case Compare::GreaterEqual: return ">=";
  }
  return "?";
}

int64_t signExtended(uint64_t value, uint32_t bytes) {
  const uint32_t rest = 64 - 8 * bytes;
  return static_cast<int64_t>(value << rest) >> rest;
}

int64_t loadSigned(const void *address, uint32_t bytes) {
  switch (bytes) {
  case 1: return *static_cast<const volatile int8_t *>(address);
  case 2: return *static_cast<const volatile int16_t *>(address);
  case 4: return *static_cast<const volatile int32_t *>(address);
  default: return *static_cast<const volatile int64_t *>(address);
  }
}

void WatchTable::add(Waiter &waiter) {
  uintptr_t granule = reinterpret_cast<uintptr_t>(waiter.address) >> 3;
  auto [it, isNew] = index.try_emplace(granule, static_cast<uint32_t>(entries.size()));
  if (isNew) {
    entries.push_back({granule, loadGranule(granule), {}});
    ++filter[filterIndex(granule)];
  }
  entries[it->second].waiters.push_back(&waiter);
  waiter.active = true;
}

void WatchTable::remove(Waiter &waiter) {
  if (!waiter.active)
    return;
  waiter.active = false;
  auto it = index.find(reinterpret_cast<uintptr_t>(waiter.address) >> 3);
  uint32_t position = it->second;
  std::vector<Waiter *> &waiters = entries[position].waiters;
  waiters.erase(std::find(waiters.begin(), waiters.end(), &waiter));
  if (!waiters.empty())
    return;
  --filter[filterIndex(it->first)];
  index.erase(it);
  if (position + 1 != entries.size()) {
    entries[position] = std::move(entries.back());
    index[entries[position].granule] = position;
  }
  entries.pop_back();
}

void WatchTable::collect(Entry &entry) {
  entry.seen = loadGranule(entry.granule);
  for (Waiter *waiter : entry.waiters)
    if (waiter->satisfied())
      released.push_back(waiter);
}

void WatchTable::takeOutReleased() {
  for (Waiter *waiter : released)
    remove(*waiter);
}

const std::vector<Waiter *> &WatchTable::written(const void *address, uint64_t bytes) {
  released.clear();
  uintptr_t first = reinterpret_cast<uintptr_t>(address) >> 3;
  uintptr_t last = (reinterpret_cast<uintptr_t>(address) + bytes - 1) >> 3;
  if (bytes == 0 || entries.empty())
    return released;
  if (first == last) {
    if (filter[filterIndex(first)] != 0)
      if (auto it = index.find(first); it != index.end())
        collect(entries[it->second]);
  } else {
    for (Entry &entry : entries)
      if (entry.granule >= first && entry.granule <= last)
        collect(entry);
  }
  takeOutReleased();
  return released;
}

const std::vector<Waiter *> &WatchTable::rescan() {
  released.clear();
  for (Entry &entry : entries)
    if (loadGranule(entry.granule) != entry.seen)
      collect(entry);
  takeOutReleased();
  return released;
}

} // namespace ditron::sim
