//===- AccessTime.cpp - What accesses of single threads cost a block ----------------------------------------------===//
#include "ditron/sim/engine/AccessTime.h"

namespace ditron::sim {

void AccessTime::beginBlock(uint32_t count) {
  ++block;
  threads.assign(count, {});
}

AccessTime::Line &AccessTime::lineOf(const DitronSimSite *site) {
  Line &line = lines[site];
  if (line.block != block) {
    line.block = block;
    line.most = 0;
    line.sector = 0;
    line.visits.assign(threads.size(), 0);
  }
  return line;
}

bool AccessTime::isFirstVisit(Line &line, uint32_t thread) {
  if (++line.visits[thread] <= line.most)
    return false;
  ++line.most;
  return true;
}

AccessTime::Cost AccessTime::access(uint32_t thread, const DitronSimSite *site, uintptr_t address, uint32_t bytes,
                                    bool isStore) {
  PerThread &own = threads[thread];
  Line &line = lineOf(site);
  const uint64_t sector = address / sectorBytes + 1; // 0 is none
  const bool isSameVector = own.site == site && own.end == address && line.sector == sector;
  Cost cost;
  if (!isSameVector) {
    cost.isFirst = isFirstVisit(line, thread);
    cost.hasLatency = cost.isFirst && !(isStore && own.storesLast);
    cost.bytes = cost.isFirst || line.sector != sector ? sectorBytes : 0;
  }
  line.sector = sector;
  own = {site, address + bytes, isStore};
  return cost;
}

bool AccessTime::visit(uint32_t thread, const DitronSimSite *site) {
  threads[thread] = {};
  return isFirstVisit(lineOf(site), thread);
}

} // namespace ditron::sim
