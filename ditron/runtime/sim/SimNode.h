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
  Status runHosts(const std::vector<HostCode> &codes) override {
    std::vector<sim::HostCode> hosts;
    for (const HostCode &code : codes)
      hosts.push_back({code.rank, code.name, code.run});
    return simulated->runHosts(hosts);
  }
  Status hostMeet(std::string_view key, uint32_t participants, std::string_view what) override {
    return simulated->hostMeet(key, participants, what);
  }
  void hostStep(const SourceLocation &place) override { simulated->hostStep(place); }
  Status hostWaitForWork(std::optional<uint32_t> rank, std::string_view what) override {
    return simulated->hostWaitForWork(rank, what);
  }
  std::string pendingUse(const void *address) const override { return simulated->pendingUse(address); }
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
