//===- WarpgroupUnit.h - Matrix multiply of warpgroups (wgmma) ------------------------------------------*- C++ -*-===//
//
// The 128 threads of a warpgroup meet once per call; the last to arrive gathers the operands, multiplies into the accumulator and
// charges the tensor cores. What is wrong between issue and wait (operands overwritten too early, results read too early) is
// found by the marks in the shadow of shared memory (ProxyCheck) and by the tokens that stand for a result in flight
// (Accumulators).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_WARPGROUPUNIT_H
#define DITRON_SIM_HOPPER_WARPGROUPUNIT_H

#include "ditron/abi/Simulator.h"
#include "ditron/sim/hopper/Accumulators.h"
#include "ditron/sim/hopper/EventQueue.h"
#include "ditron/sim/hopper/WarpgroupOperands.h"
#include "ditron/sim/race/Strand.h"

#include <string>
#include <vector>

namespace ditron::sim {

class Block;
class ProxyCheck;
struct SharedUse;
struct Thread;

/// What a thread remembers about the multiplies that it takes part in.
struct ThreadMultiplies {
  /// Where the result of a multiply goes when it is waited for.
  struct Delivery {
    uint32_t *registers;
    uint32_t accumulator;
  };
  bool registersFenced = false; ///< wgmma_fence since the start or the last wait.
  uint64_t issued = 0;          ///< Number of the last multiply that it took part in; they count from 1.
  std::vector<uint64_t> groups; ///< Number of the last multiply of each committed group.
  std::vector<Delivery> deliveries;
  uint64_t awaited = 0; ///< What it is parked for: the number of a multiply.
};

class WarpgroupUnit final : public EventReceiver {
public:
  WarpgroupUnit(Block &block, EventQueue &events, ProxyCheck &proxy) : block(block), events(events), proxy(proxy) {}

  /// Prepares for a block of so many threads.
  void reset(uint32_t threads);
  void clear() { groups.clear(); }

  //===- For threads ----------------------------------------------------------------------------------------------===//

  void multiply(Thread &thread, const WarpgroupCall &call, const void *a, void *accumulator, const DitronSimSite *site);
  /// Waits until no more than `pending` committed groups are left, and delivers the results of the others.
  void wait(Thread &thread, uint32_t pending, const DitronSimSite *site);
  /// Replaces tokens among the values by results that have been waited for.
  void deliver(Thread &thread, uint32_t *values, uint32_t count);
  /// The thread has returned; that is an error while others of its warpgroup wait for it.
  void threadFinished(Thread &thread);

  //===- For reports ----------------------------------------------------------------------------------------------===//

  /// " (64 of 128 threads have arrived)" of a thread that is parked there.
  std::string describeArrival(const Thread &thread) const;

private:
  /// A multiply that has been issued and not yet waited for.
  struct Operation {
    uint64_t number;
    SimTime end;
    const DitronSimSite *site;
    SharedUse *use;
  };
  /// Four warps that multiply together.
  struct Warpgroup {
    uint32_t arrived = 0;
    WarpgroupCall call{};
    const DitronSimSite *site = nullptr;
    uint64_t issued = 0, completed = 0, waited = 0; ///< Numbers of multiplies.
    std::vector<Operation> operations;              ///< Not yet waited for.
    uint32_t warp = race::nobody;                   ///< Of the race detector.
    Accumulators accumulators;

    void completeUntil(SimTime now);
  };
  using Operands = SharedOperand[2]; ///< A, unless registers hold it, and B.

  void handleEvent(uint32_t kind, uint32_t index, SimTime now) override;
  Thread &member(uint32_t groupIndex, uint32_t thread);
  uint32_t *accumulatorRegisters(uint32_t groupIndex, uint32_t thread) const;
  [[noreturn]] void fail(Thread &thread, const std::string &problem, const DitronSimSite *site);
  /// The thread is the first of its warpgroup at a multiply, or makes the same call as the others.
  void join(Thread &thread, uint32_t groupIndex, const WarpgroupCall &call, const DitronSimSite *site);
  void run(Thread &last, uint32_t groupIndex);
  void decode(Thread &last, const Warpgroup &group, Operands &operands);
  /// Marks what the multiply will read, and compares it with what else touches it.
  void noteReads(Thread &last, uint32_t groupIndex, const Operands &operands, SharedUse *use);
  /// The accumulator that the threads' registers stand for, or a new one with their content.
  uint32_t accumulatorFor(Thread &last, uint32_t groupIndex);
  /// Occupies the tensor cores; gives the time at which the multiply is complete.
  SimTime charge(const WarpgroupCall &call, uint32_t depth);
  void giveTokens(uint32_t groupIndex, uint32_t accumulator);

  Block &block;
  EventQueue &events;
  ProxyCheck &proxy;
  std::vector<Warpgroup> groups;
  // Per thread, while it meets the others: where A's and the accumulator's registers are.
  std::vector<const void *> aRegisters;
  std::vector<void *> cRegisters;
  SimTime tensorFree = 0; ///< When the tensor cores can begin the next multiply.
};

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_WARPGROUPUNIT_H
