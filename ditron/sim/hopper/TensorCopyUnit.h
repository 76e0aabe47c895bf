//===- TensorCopyUnit.h - Tensor copies between global and shared memory (TMA) --------------------------*- C++ -*-===//
//
// The tensor copies of a block that are in flight. A copy is checked as a whole when it is issued and carried out by events: a load
// writes shared memory and counts at its mbarrier in one event; a store reads its source in one event and writes global memory
// in a later one.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_TENSORCOPYUNIT_H
#define DITRON_SIM_HOPPER_TENSORCOPYUNIT_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/hopper/EventQueue.h"
#include "ditron/sim/hopper/TensorBox.h"
#include "ditron/support/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace ditron::sim {

class Block;
class MbarrierTable;
class ProxyCheck;
struct SharedUse;
struct Thread;

/// What a thread asks for.
struct TensorCopyCall {
  const DitronSimTensorMap *map;
  uint32_t rank; ///< Coordinates that are given.
  const int32_t *coords;
  const void *shared;
  void *bar; ///< The load's mbarrier; null for a store.
  const DitronSimSite *site;
  bool isPlain = false; ///< Plain bytes: the shared memory need not be aligned to 128.

  bool isStore() const { return bar == nullptr; }
  /// What errors and traces call it.
  std::string_view name() const {
    return isPlain ? (isStore() ? "bulk store" : "bulk load") : isStore() ? "tensor store" : "tensor load";
  }
};

class TensorCopyUnit final : public EventReceiver {
public:
  TensorCopyUnit(Block &block, EventQueue &events, MbarrierTable &mbarriers, ProxyCheck &proxy)
      : block(block), events(events), mbarriers(mbarriers), proxy(proxy) {}

  void clear();

  //===- For threads ----------------------------------------------------------------------------------------------===//

  void start(Thread &thread, const TensorCopyCall &call);
  /// Waits until no more than `pending` closed groups of stores are left that have not read their source (`read`) or are not visible.
  void waitStores(Thread &thread, uint32_t pending, bool read, const DitronSimSite *site);

  //===- The end of the block -------------------------------------------------------------------------------------===//

  /// What is wrong with ending now: a copy that still needs the shared memory; empty when nothing is. `site` is that of the copy.
  std::string checkEnd(const DitronSimSite *&site) const;
  /// The block has ended. A store that has read its source becomes visible by itself, at the latest now.
  void handleLateEvent(const EventQueue::Event &event);

private:
  enum class EventKind : uint8_t { LoadDone, StoreRead, StoreDone };
  /// One in flight.
  struct Copy {
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

  void handleEvent(uint32_t kind, uint32_t index, SimTime now) override;
  /// Index of a copy that is not active.
  uint32_t freeCopy();
  [[noreturn]] void refuse(Thread &thread, const TensorCopyCall &call, StatusCode code, const std::string &problem);
  void checkCall(Thread &thread, const TensorCopyCall &call);
  /// Whether the box lies on another rank; ends the run when it lies in no memory.
  bool checkGlobal(Thread &thread, const TensorCopyCall &call, const TensorBox &box);
  /// Books the copy where others look: its group or mbarrier, and the marks of its shared memory.
  void book(Thread &thread, const TensorCopyCall &call, Copy &copy);
  void checkRaces(Thread &thread, const TensorCopyCall &call, const Copy &copy);
  /// Counts it, and schedules what it will do.
  void charge(const TensorCopyCall &call, uint32_t index);

  void finishLoad(Copy &copy, SimTime now);
  void readStore(Copy &copy, SimTime now);
  void finishStore(Copy &copy, SimTime now);
  void wakeStoreWaiter(Thread &thread, SimTime now);

  Block &block;
  EventQueue &events;
  MbarrierTable &mbarriers;
  ProxyCheck &proxy;
  std::vector<Copy> copies;
  SimTime unitFree = 0; ///< When the copy unit can begin the next copy.
};

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_TENSORCOPYUNIT_H
