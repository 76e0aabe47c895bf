//===- AccessTime.h - What accesses of single threads cost a block --------------------------------------*- C++ -*-===//
//
// A block has one clock, and its fibers run one after the other; on the hardware its threads wait for memory side by side. So a line
// costs its latency as often as the thread that comes there most often does: the n-th visits of all threads are one wave, in whatever
// order the fibers make them. Stores behind a store are under way with it. Memory moves sectors: words of one vector, and of
// threads that follow each other, share them.
//
//     for (peer in peers)  st(slots[peer] + thread, x);       latency once, a sector for each 32 bytes
//     while (ld(word) != 7);                                  latency for each round of the thread that goes round most often
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_ENGINE_ACCESSTIME_H
#define DITRON_SIM_ENGINE_ACCESSTIME_H

#include "ditron/abi/Simulator.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ditron::sim {

class AccessTime {
public:
  void beginBlock(uint32_t threads);

  struct Cost {
    uint64_t bytes = 0;      ///< That memory moves.
    bool isFirst = false;    ///< No thread was here as often before.
    bool hasLatency = false; ///< Implies isFirst.
  };
  Cost access(uint32_t thread, const DitronSimSite *site, uintptr_t address, uint32_t bytes, bool isStore);
  /// A fence, or the start of a transfer: whether it costs its latency.
  bool visit(uint32_t thread, const DitronSimSite *site);

private:
  static constexpr uint64_t sectorBytes = 32;
  struct Line {
    uint64_t block = 0;  ///< What is here is of that block.
    uint32_t most = 0;   ///< Visits of the thread that has been here most often.
    uint64_t sector = 0; ///< That was moved last.
    std::vector<uint32_t> visits;
  };
  struct PerThread {
    const DitronSimSite *site = nullptr; ///< Of its last access,
    uintptr_t end = 0;                   ///< and the address behind it.
    bool storesLast = false;
  };
  Line &lineOf(const DitronSimSite *site);
  /// Counts it.
  static bool isFirstVisit(Line &line, uint32_t thread);

  uint64_t block = 0;
  std::vector<PerThread> threads;
  std::unordered_map<const DitronSimSite *, Line> lines;
};

} // namespace ditron::sim
#endif // DITRON_SIM_ENGINE_ACCESSTIME_H
