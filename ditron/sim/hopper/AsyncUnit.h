//===- AsyncUnit.h - What runs beside the threads of a block --------------------------------------------*- C++ -*-===//
//
// The asynchronous part of a resident block on machines with tensor copies (TMA) and warpgroup matrix multiply: mbarriers,
// named barriers, copies in flight, multiplies in flight, and the record of who wrote shared memory through which proxy.
// The unit is an agent of its own: a copy or a multiply is an event in virtual time, and when the event comes, the unit
// moves the bytes, counts them at the mbarrier, and makes the threads ready that waited for it. So copies and multiplies
// overlap each other and the threads' work.
//
// Matrix products are computed when they are issued, into an accumulator of the unit, and delivered to the threads when
// they wait: what is wrong in between (operands overwritten too early, results read too early) is found by the marks in
// the shadow of shared memory and by the tokens that stand for a result in flight.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_ASYNCUNIT_H
#define DITRON_SIM_HOPPER_ASYNCUNIT_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/hopper/EventQueue.h"
#include "ditron/sim/hopper/Mbarrier.h"
#include "ditron/sim/hopper/NamedBarriers.h"
#include "ditron/sim/hopper/ProxyCheck.h"
#include "ditron/sim/hopper/TensorBox.h"
#include "ditron/sim/race/Strand.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace ditron::sim {

class Block;
struct Thread;

/// What a thread remembers about its asynchronous work.
struct AsyncThread {
  /// Operations of one committed or open group of tensor stores.
  struct StoreGroup {
    uint32_t unread = 0;    ///< That have not read their source.
    uint32_t unwritten = 0; ///< That are not visible in global memory.
  };
  /// Shared memory that a store of a group reads until the thread has waited for it (checked mode).
  struct StoreMark {
    uint32_t group;
    SharedUse *use;
  };
  /// Where the result of a multiply goes when it is waited for.
  struct Delivery {
    uint32_t *registers;
    uint32_t accumulator;
  };

  ProxyFences fences;
  bool registersFenced = false;         ///< wgmma_fence since the start or the last wait.
  uint64_t issued = 0;                  ///< Number of the last multiply that it took part in; they count from 1.
  std::vector<uint64_t> multiplyGroups; ///< Number of the last multiply of each committed group.
  std::vector<Delivery> deliveries;
  std::vector<StoreGroup> storeGroups;
  std::vector<StoreMark> storeMarks;
  uint32_t closedStoreGroups = 0;
  uint32_t firstOpenStore = 0; ///< Groups before it are complete.
  // What it is parked for.
  uint32_t barrier = 0;    ///< Index of the mbarrier, or number of the named barrier.
  uint64_t waitTarget = 0; ///< Number of a multiply, or of store groups.
  bool waitRead = false;

  void clear() { *this = {}; }
};

/// A tensor copy in flight.
struct TensorCopy {
  bool store = false;
  bool remote = false;
  TensorBox box;
  uint32_t shared = 0;  ///< Offset.
  uint32_t barrier = 0; ///< Loads: index of the mbarrier.
  uint32_t group = 0;   ///< Stores: the thread's group.
  Thread *thread = nullptr;
  const DitronSimSite *site = nullptr;
  SharedUse *use = nullptr; ///< Loads.
  std::vector<char> staged; ///< Stores: the box, once read.
  bool active = false;
};

/// The operands and options of a multiply, equal for all threads of the warpgroup.
struct WarpgroupCall {
  uint32_t type, n, kSteps, flags;
  uint64_t aDesc, bDesc;
  uint32_t aStep, bStep;
  bool aInRegisters;
  bool operator==(const WarpgroupCall &) const = default;
};

/// An accumulator of 64 rows.
struct Accumulator {
  struct alignas(64) Line {
    uint32_t words[16];
  };
  uint32_t n = 0;
  uint32_t columns = 0; ///< n, rounded up to 16.
  uint64_t last = 0;    ///< The last multiply into it; 0 when it is unused.
  std::vector<Line> panel;
  uint32_t *words() { return panel.data()->words; }
};

/// Four warps that multiply together.
struct Warpgroup {
  struct Operation {
    uint64_t number;
    SimTime end;
    const DitronSimSite *site;
    SharedUse *use;
  };
  uint32_t arrived = 0;
  WarpgroupCall call{};
  const DitronSimSite *site = nullptr;
  uint64_t issued = 0, completed = 0, waited = 0; ///< Numbers of multiplies.
  std::vector<Operation> operations;              ///< Not yet waited for.
  uint32_t warp = race::nobody;                   ///< Of the race detector.
  std::vector<Accumulator> accumulators;
  uint32_t nextAccumulator = 0;
};

class AsyncUnit final : public EventReceiver {
public:
  explicit AsyncUnit(Block &block)
      : proxy(block), mbarriers(block, proxy), namedBarriers(block, proxy), block(block), events(block) {}

  /// Prepares for a block with that much shared memory.
  void reset(uint64_t sharedBytes, uint32_t threads);
  /// Drops everything.
  void clear();
  /// Whether an event is still to come.
  bool inFlight() const { return !events.isEmpty(); }
  /// All threads have returned: false, with the run failed, when a copy still needs the shared memory. Completes stores.
  bool finish();
  void threadFinished(Thread &thread);
  /// "mbarrier", and what is to know beyond the line, of a thread parked at something of this unit.
  std::pair<std::string, std::string> describeWait(const Thread &thread) const;
  //===- Tensor copies (TensorCopy.cpp) ---------------------------------------------------------------------------===//

  /// `bar` is null for a store. The shared memory of plain bytes need not be aligned to 128.
  void startCopy(Thread &thread, const DitronSimTensorMap *map, uint32_t rank, const int32_t *coords,
                 const void *shared, void *bar, const DitronSimSite *site, bool isPlain = false);
  void checkCopyRaces(Thread &thread, const TensorCopy &copy);
  void waitStores(Thread &thread, uint32_t pending, bool read, const DitronSimSite *site);

  //===- Warpgroups (Warpgroup.cpp) -------------------------------------------------------------------------------===//

  void multiply(Thread &thread, const WarpgroupCall &call, const void *aRegs, void *c, const DitronSimSite *site);
  void waitMultiplies(Thread &thread, uint32_t pending, const DitronSimSite *site);
  void deliver(Thread &thread, uint32_t *values, uint32_t count);

  ProxyCheck proxy;
  MbarrierTable mbarriers;
  NamedBarriers namedBarriers;

private:
  enum class EventKind : uint8_t { LoadDone, StoreRead, StoreDone, MultiplyDone };
  /// `index` is that of the copy or the warpgroup.
  void schedule(SimTime time, EventKind kind, uint32_t index) {
    events.schedule(time, *this, static_cast<uint32_t>(kind), index);
  }
  void handleEvent(uint32_t kind, uint32_t index, SimTime now) override;
  void finishLoad(TensorCopy &copy, SimTime now);
  void readStore(TensorCopy &copy, SimTime now);
  void finishStore(TensorCopy &copy, SimTime now);
  void wakeStoreWaiter(Thread &thread, SimTime now);
  bool storesDone(Thread &thread, uint64_t target, bool read) const;
  void multiplyDone(Warpgroup &group, SimTime now);
  void runMultiply(Thread &last, uint32_t groupIndex);
  Accumulator &accumulatorFor(Thread &last, uint32_t groupIndex, uint32_t &id);
  void deliverAccumulator(Thread &thread, Accumulator &accumulator, uint32_t *registers);

  Block &block;
  EventQueue events;
  std::vector<TensorCopy> copies;
  std::vector<Warpgroup> groups;
  std::vector<std::array<const void *, 2>> registers; ///< Per thread: A's and the accumulator's, while it meets.
  SimTime copyFree = 0;   ///< When the copy unit can begin the next copy.
  SimTime tensorFree = 0; ///< When the tensor cores can begin the next multiply.
};

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_ASYNCUNIT_H
