//===- SimNode.h - Simulated ranks as a Node --------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_RUNTIME_SIM_SIMNODE_H
#define DITRON_RUNTIME_SIM_SIMNODE_H

#include "ditron/runtime/Node.h"
#include "ditron/sim/Machine.h"

namespace ditron::runtime {

class SimNode final : public Node {
public:
  explicit SimNode(std::shared_ptr<sim::Machine> machine) : simulated(std::move(machine)) {}

  std::optional<uint32_t> currentRank() const override { return simulated->currentHostRank(); }
  Status hostBarrier() override { return simulated->hostBarrier(); }
  Status runRanks(const std::vector<uint32_t> &, const std::function<Status(uint32_t)> &host) override {
    return simulated->runRanks(host);
  }
  Status synchronize(const std::vector<uint32_t> &, const std::function<Status(uint32_t)> &) override {
    return simulated->synchronize();
  }
  Status status() const override { return simulated->status(); }
  /// The simulator's multimem accesses take ordinary addresses.
  void *multicastHeap(void *heap) const override { return heap; }
  sim::Machine *machine() const override { return simulated.get(); }

private:
  std::shared_ptr<sim::Machine> simulated;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_SIM_SIMNODE_H
