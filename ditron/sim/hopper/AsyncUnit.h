//===- AsyncUnit.h - What runs beside the threads of a block --------------------------------------------*- C++ -*-===//
//
// The asynchronous part of a resident block on machines with tensor copies (TMA) and warpgroup matrix multiply, put together from
// its units: copies in flight, multiplies in flight, mbarriers and named barriers, and the record of who wrote shared memory
// through which proxy. Copies and multiplies are events in virtual time (EventQueue): when the event of one comes, its unit moves
// the bytes, counts them at the mbarrier, and makes the threads ready that waited for it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_ASYNCUNIT_H
#define DITRON_SIM_HOPPER_ASYNCUNIT_H

#include "ditron/sim/hopper/EventQueue.h"
#include "ditron/sim/hopper/Mbarrier.h"
#include "ditron/sim/hopper/NamedBarriers.h"
#include "ditron/sim/hopper/ProxyCheck.h"
#include "ditron/sim/hopper/StoreGroups.h"
#include "ditron/sim/hopper/TensorCopyUnit.h"
#include "ditron/sim/hopper/WarpgroupUnit.h"

#include <string>
#include <utility>

namespace ditron::sim {

class Block;
struct Thread;

/// What a thread remembers about its asynchronous work.
struct AsyncThread {
  ProxyFences fences;
  StoreGroups stores;
  ThreadMultiplies multiplies;
  uint32_t barrier = 0; ///< What it is parked at: index of an mbarrier, or number of a named barrier.

  void clear() { *this = {}; }
};

class AsyncUnit {
public:
  explicit AsyncUnit(Block &block)
      : proxy(block), mbarriers(block, proxy), namedBarriers(block, proxy), copies(block, events, mbarriers, proxy),
        warpgroups(block, events, proxy), events(block), block(block) {}

  /// Prepares for a block with that much shared memory.
  void reset(uint64_t sharedBytes, uint32_t threads);
  /// Drops everything.
  void clear();
  /// Whether an event is still to come.
  bool inFlight() const { return !events.isEmpty(); }
  /// All threads have returned: false, with the run failed, when a copy still needs the shared memory. Completes stores.
  bool finish();
  void threadFinished(Thread &thread) { warpgroups.threadFinished(thread); }
  /// "mbarrier", and what is to know beyond the line, of a thread parked at something of these units.
  std::pair<std::string, std::string> describeWait(const Thread &thread) const;

  ProxyCheck proxy;
  MbarrierTable mbarriers;
  NamedBarriers namedBarriers;
  TensorCopyUnit copies;
  WarpgroupUnit warpgroups;

private:
  EventQueue events;
  Block &block;
};

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_ASYNCUNIT_H
