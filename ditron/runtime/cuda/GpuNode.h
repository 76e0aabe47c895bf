//===- GpuNode.h - Real GPUs as a Node --------------------------------------------------------------------*- C++ -*-===//
//
// GPUs of this process, each rank's host code on a thread of its own; or, as ProcessNode, the one GPU of this process in a job of
// several.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_GPUNODE_H
#define DITRON_RUNTIME_CUDA_GPUNODE_H

#include "ditron/runtime/Node.h"
#include "ditron/runtime/ProcessGroup.h"
#include "ditron/runtime/RankThreads.h"
#include "ditron/runtime/cuda/CudaSystem.h"

namespace ditron::runtime {

class GpuNode : public Node {
public:
  explicit GpuNode(std::shared_ptr<cuda::CudaSystem> gpus) : gpus(std::move(gpus)) {}

  std::optional<uint32_t> currentRank() const override { return threads.currentRank(); }
  Status hostBarrier() override { return threads.barrier(); }
  Status runRanks(const std::vector<uint32_t> &ranks, const std::function<Status(uint32_t)> &host) override {
    DITRON_RETURN_IF_ERROR(gpus->status());
    const Status returned = threads.run(ranks, host);
    // What ended the run explains more than what a rank made of it.
    const Status ended = gpus->status();
    return ended.isOk() ? returned : ended;
  }
  Status runHosts(const std::vector<HostCode> &codes) override {
    DITRON_RETURN_IF_ERROR(gpus->status());
    const Status returned = threads.run(codes);
    const Status ended = gpus->status();
    return ended.isOk() ? returned : ended;
  }
  Status hostMeet(std::string_view key, uint32_t participants, std::string_view what) override {
    return threads.meet(key, participants, what);
  }
  Status synchronize(const std::vector<uint32_t> &ranks, const std::function<Status(uint32_t)> &each) override {
    for (uint32_t rank : ranks)
      DITRON_RETURN_IF_ERROR(each(rank));
    return gpus->status();
  }
  Status status() const override { return gpus->status(); }
  Expected<std::string> chromeTrace() override { return gpus->chromeTrace(); }

protected:
  const std::shared_ptr<cuda::CudaSystem> gpus;

private:
  RankThreads threads;
};

class ProcessNode final : public GpuNode {
public:
  ProcessNode(std::shared_ptr<cuda::CudaSystem> gpus, std::unique_ptr<bootstrap::Rendezvous> rendezvous)
      : GpuNode(std::move(gpus)), others(std::make_shared<ProcessGroup>(std::move(rendezvous))) {}

  ~ProcessNode() override {
    // Unmapping would wait for what hangs on the GPU.
    if (gpus->hasEnded())
      others->abandon();
  }

  const std::shared_ptr<ProcessGroup> &group() { return others; }
  Status hostBarrier() override { return others->rendezvous().barrier("hostBarrier"); }
  bool spansProcesses() const override { return true; }
  Expected<std::vector<std::string>> allGather(std::string_view step, const std::string &own) override {
    return others->rendezvous().allGather(step, own);
  }
  Status agree(std::string_view step, const std::string &request) override {
    return others->rendezvous().agree(step, request);
  }

private:
  std::shared_ptr<ProcessGroup> others;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_CUDA_GPUNODE_H
