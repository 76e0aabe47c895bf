//===- NamedBarriers.h - Barriers of some threads of a block --------------------------------------------*- C++ -*-===//
//
// A block has 15 barriers with numbers (barrier 0 is the block barrier). Each use says how many threads take part, and each
// of them either waits for the others or only arrives; when the last one has come the barrier is free for another use.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_NAMEDBARRIERS_H
#define DITRON_SIM_HOPPER_NAMEDBARRIERS_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/race/Strand.h"

#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

namespace ditron::sim {

class Block;
class ProxyCheck;
struct Thread;

class NamedBarriers {
public:
  NamedBarriers(Block &block, ProxyCheck &proxy) : block(block), proxy(proxy) {}

  void clear() { barriers.clear(); }
  /// The thread arrives, and waits or not.
  void arrive(Thread &thread, uint32_t id, uint32_t count, bool waits, const DitronSimSite *site);
  /// " (barrier 1: 64 of 128 threads have arrived)".
  std::string describeWait(uint32_t id) const;

private:
  struct Barrier {
    uint32_t expected = 0; ///< 0 while nobody has arrived.
    uint32_t count = 0;
    std::bitset<4096> arrived;
    std::vector<Thread *> waiters;
    const DitronSimSite *site = nullptr;
    race::MeetingOrder order;
  };
  void complete(Barrier &barrier, Thread *last);

  Block &block;
  ProxyCheck &proxy;
  std::vector<Barrier> barriers; ///< By number; empty while none is used.
};

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_NAMEDBARRIERS_H
