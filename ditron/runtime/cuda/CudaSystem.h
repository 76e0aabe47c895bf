//===- CudaSystem.h - What the GPUs of one world share --------------------------------------------------------*- C++ -*-===//
//
// The driver, the names of all allocations, the reports that bounded waits leave behind (a kernel compiled with
// DITRON_BOUND_WAITS gives up a wait after a time and says which), the graphs being captured, and the error that ended the
// run, which every later call returns.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_CUDASYSTEM_H
#define DITRON_RUNTIME_CUDA_CUDASYSTEM_H

#include "ditron/abi/WaitReport.h"
#include "ditron/explain/board/BoardReader.h"
#include "ditron/runtime/cuda/CudaDriver.h"
#include "ditron/runtime/cuda/SubmissionQueue.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace ditron::cuda {

class CudaDevice;
class EventRing;
class KernelCache;

using WaitReport = DitronWaitReport;

/// FNV-1a, 32 bits: stands for a kernel's entry symbol in wait reports.
uint32_t hashOfName(std::string_view name);

/// Things that a captured graph needs for as long as it lives.
using KeepAlive = std::vector<std::shared_ptr<const void>>;

class CudaSystem : public std::enable_shared_from_this<CudaSystem> {
public:
  CudaSystem(std::shared_ptr<const CudaDriver> driver, double timeLimitSeconds)
      : driver(std::move(driver)), timeLimitSeconds(timeLimitSeconds) {}

  const std::shared_ptr<const CudaDriver> driver;
  /// How long a synchronisation may take; 0 for ever.
  const double timeLimitSeconds;
  /// The ranks of other processes that have died; empty where there are none. Set before anything waits.
  std::function<std::vector<uint32_t>()> lostRanks;
  /// What is kept back until its code is there.
  SubmissionQueue queue{*this};

  /// Ok, or the error that ended the run.
  Status status() const;
  bool hasEnded() const { return ended.load(std::memory_order_relaxed); }
  /// Remembers the first error that leaves the GPUs unusable; returns the one remembered.
  Status end(Status status);

  /// Allocations by name, for reports.
  void addAllocation(const void *address, uint64_t bytes, std::string_view name, uint32_t elementBytes, uint32_t rank);
  void removeAllocation(const void *address);

  /// A rank's report, until it is withdrawn with null.
  void addReport(uint32_t rank, volatile WaitReport *report);
  /// A rank's board of waits, until it is withdrawn with null.
  void addBoard(uint32_t rank, explain::WaitBoard *board);
  /// A rank's ring of events, until it is withdrawn with null.
  void addEventRing(uint32_t rank, std::shared_ptr<const EventRing> ring);
  /// What kernels have noted so far, and wait for still, as Chrome trace JSON.
  Expected<std::string> chromeTrace() const;
  /// The kernels that reports may name.
  void addKernel(std::string_view entry, std::string_view name, std::string_view sourceFile);
  /// What kernels have published that they wait for, after the waits given, in the simulator's words; empty when there are none.
  std::string publishedWaits(std::vector<explain::PublishedWait> waits = {}) const;
  /// Ok, or an error that lists all waits that ran out of time, in the simulator's words.
  Status checkReports();

  /// The devices of this process, for as long as they live.
  void addDevice(uint32_t rank, std::weak_ptr<CudaDevice> device);
  std::vector<std::shared_ptr<CudaDevice>> livingDevices() const;
  /// Of all GPUs of this process: work that may run until others have done something.
  UnfinishedWork unfinishedWork() const;
  /// Notes that a rank loads a kernel while others have unfinished work, which reports then say; the result goes to endLoad.
  uint64_t beginLoad(uint32_t rank, std::string_view kernel, std::string unfinished);
  void endLoad(uint64_t load);
  /// What is said of the loads that have not come back, or came back only after long.
  std::string loadsText() const;

  /// The loaded kernels of a GPU, for all ranks on it.
  std::shared_ptr<KernelCache> kernelCache(DeviceOrdinal ordinal, Context context, std::string_view gpuName);

  /// Graphs being captured, by the driver's number of the capture.
  void beginCapture(uint64_t id);
  void keepForCapture(uint64_t id, std::shared_ptr<const void> object);
  KeepAlive endCapture(uint64_t id);
  /// Whether a capture that beginCapture began is not over.
  bool isCapturing() const;

private:
  struct Allocation {
    uint64_t bytes;
    std::string name;
    uint32_t elementBytes, rank;
  };
  struct Load {
    uint32_t rank;
    std::string kernel, unfinished;
    std::chrono::steady_clock::time_point begin;
    std::optional<std::chrono::steady_clock::time_point> end;

    double seconds() const {
      return std::chrono::duration<double>(end.value_or(std::chrono::steady_clock::now()) - begin).count();
    }
  };
  struct KernelName {
    std::string name, sourceFile;
  };
  explain::PublishedWait waitOf(const WaitReport &report) const;
  void nameWord(explain::PublishedWait &wait) const;
  KernelName kernelName(uint32_t hash) const;

  mutable std::mutex mutex;
  std::atomic<bool> ended = false;
  Status endStatus;
  std::map<uint64_t, Allocation> allocations;
  std::map<uint32_t, volatile WaitReport *> reports;
  std::map<uint32_t, KernelName> kernels;
  std::map<uint32_t, explain::WaitBoard *> boards;
  std::map<uint32_t, std::shared_ptr<const EventRing>> rings;
  std::map<uint64_t, KeepAlive> captures;
  std::set<uint64_t> ownCaptures;                        ///< Begun by beginCapture.
  std::map<uint32_t, std::weak_ptr<CudaDevice>> devices; ///< By rank.
  std::map<uint64_t, Load> loads;
  uint64_t nextLoad = 0;
  std::map<DeviceOrdinal, std::weak_ptr<KernelCache>> caches;
};

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_CUDASYSTEM_H
