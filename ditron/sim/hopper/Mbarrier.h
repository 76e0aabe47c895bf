//===- Mbarrier.h - Barriers in shared memory that also count bytes -------------------------------------*- C++ -*-===//
//
// Threads arrive at an mbarrier, tensor loads count their bytes there, and threads sleep until the phase that they wait
// for is over: when all arrivals of a phase and all bytes that were expected in it have come, the next one begins.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_MBARRIER_H
#define DITRON_SIM_HOPPER_MBARRIER_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/race/Strand.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ditron::sim {

class Block;
class ProxyCheck;
struct Thread;

/// The state of an mbarrier. Its word in shared memory holds only a tag, its index in the table and its phase.
struct Mbarrier {
  uint32_t offset = 0; ///< In shared memory.
  uint32_t count = 0;
  uint32_t pendingArrivals = 0;
  int64_t pendingBytes = 0; ///< Expected less received; negative when bytes come first.
  uint32_t phase = 0;
  uint32_t inFlight = 0; ///< Tensor loads that will count here.
  bool live = false;
  bool countsBytes = false; ///< Bytes have been expected: it says when a tile is full.
  const DitronSimSite *site = nullptr;
  std::vector<Thread *> waiters;
  race::MeetingOrder order;

  /// Whether the phase of that parity is over, as far as one bit can tell.
  bool isOver(uint32_t parity) const { return (phase & 1) != parity; }
  bool isUsed() const { return !waiters.empty() || inFlight != 0; }
  /// Begins the next phase, unless something of this one is missing: false then.
  bool advance();
};

/// The mbarriers of a block.
class MbarrierTable {
public:
  MbarrierTable(Block &block, ProxyCheck &proxy) : block(block), proxy(proxy) {}

  void clear() { barriers.clear(); }

  //===- For threads ----------------------------------------------------------------------------------------------===//

  void init(Thread &thread, void *bar, uint32_t count, const DitronSimSite *site);
  /// The mbarrier at the address, or the end of the run.
  Mbarrier &at(Thread &thread, const void *bar, const DitronSimSite *site);
  void invalidate(Thread &thread, void *bar, const DitronSimSite *site);
  void arrive(Thread &thread, Mbarrier &barrier, uint32_t count, const DitronSimSite *site);
  /// Expects so many bytes more in this phase.
  void expect(Thread &thread, Mbarrier &barrier, uint32_t bytes, const DitronSimSite *site);
  void wait(Thread &thread, Mbarrier &barrier, uint32_t parity, const DitronSimSite *site);
  /// Whether the phase is over, perhaps after a while. `frame` is that of the thread's kernel.
  bool test(Thread &thread, const void *bar, uint32_t parity, const char *frame, const DitronSimSite *site);

  //===- For tensor loads -----------------------------------------------------------------------------------------===//

  /// A load was issued that will count at the mbarrier; gives the index by which it does.
  uint32_t beginLoad(Mbarrier &barrier);
  /// The load's bytes have landed.
  void endLoad(uint32_t index, uint32_t bytes, SimTime now);
  Mbarrier &operator[](uint32_t index) { return barriers[index]; }

  //===- For reports ----------------------------------------------------------------------------------------------===//

  /// "full[2] of the ring of 3 at gemm.py:40:5".
  std::string name(const Mbarrier &barrier) const;
  /// The same, and what is still to come, of the live mbarrier at an address of shared memory; empty when there is none.
  std::string nameAt(const Thread &thread, const void *address) const;
  /// " for phase 3 ..." of an mbarrier at which a thread is parked.
  std::string describeWait(uint32_t index) const;

private:
  uint32_t indexOf(const Mbarrier &barrier) const { return static_cast<uint32_t>(&barrier - barriers.data()); }
  /// Lets the waiters go on if the phase is over. `when` is null for a call of a thread of the block.
  void advance(Mbarrier &barrier, const SimTime *when);
  bool hasNeighbour(const Mbarrier &barrier, int64_t distance) const;

  Block &block;
  ProxyCheck &proxy;
  std::vector<Mbarrier> barriers;
};

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_MBARRIER_H
