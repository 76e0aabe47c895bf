//===- SubmissionQueue.h - Work kept back until its code is on the GPUs -------------------------------------------*- C++ -*-===//
//
// A driver may hold up the loading of code until the GPUs of the process have nothing to do, which they never have while a kernel
// waits for the very kernel that is to be loaded. So no kernel that may wait is given to the driver before the code is there that it
// may wait for:
//
//   for (uint32_t r = 0; r < 2; ++r) {     // one host thread, nothing prepared
//     rank(r).stream().launch(a, ...);     // r = 0: the GPUs are idle: `a` is loaded on both. Its launch is kept back,
//     rank(r).stream().launch(b, ...);     // and all that follows; the GPUs stay idle: `b` is loaded at once
//   }
//   world.synchronize();                   // everything is given to the driver, in the order of the calls
//
// 1. Holding begins when a launch meets a kernel that nobody has prepared and that may wait (KernelCache::mayWait), or that cannot be
//    loaded now since GPUs are busy, and before the first operation of an operator's call that nobody has prepared, which loads its
//    kernels itself. While it lasts every operation on the world's own streams is kept here, in order.
// 2. It ends when the host synchronises with anything, or has enqueued nothing for `idleHost` and compiles nothing (PreparingKernel):
//    then what is missing is loaded, and all is given to the driver.
// 3. When GPUs are busy at that time with earlier work, that work may wait for something kept here. So what ends by itself goes out at
//    once, as far as the order of streams, events and graphs allows; and while nothing moves, one launch after the other whose code
//    is there: first those of the kernels that run (ranks mostly meet in the same kernel), later any.
// 4. When nothing is left to give and GPUs have been busy for `patience`, the load is tried all the same, on a thread of its own: many
//    drivers load beside kernels that run. If it does not come back, synchronisations pass their time limit and name both kernels.
//
// So whatever one thread enqueues between two synchronisations completes if it would with all kernels prepared, unless a kernel that
// is loaded and runs already needs one that is not (4). Not covered: streams that other code sees (adopted ones, and those whose native handle was
// taken) and captures. Work there is never kept back, since others may add to it: code that is missing there is loaded at once.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_CUDA_SUBMISSIONQUEUE_H
#define DITRON_RUNTIME_CUDA_SUBMISSIONQUEUE_H

#include "ditron/runtime/Kernel.h"
#include "ditron/runtime/cuda/DriverTypes.h"
#include "ditron/support/Status.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace ditron::cuda {

class CudaDevice;
class CudaSystem;

/// What orders an operation among others: its stream, and the event or graph that it concerns.
struct SubmissionOrder {
  StreamRef stream = nullptr;
  EventRef event = nullptr;
  const void *graph = nullptr;
};

/// An operation that is kept back.
struct HeldOperation {
  SubmissionOrder order = {};
  runtime::Kernel kernel = {};         ///< Of a launch; invalid for others.
  bool mayWait = true;                 ///< Once it is given to the driver, it may run until others have done something.
  std::function<Status()> submit = {}; ///< Gives it to the driver.
  // Set by the queue.
  CudaDevice *owner = nullptr;
  std::weak_ptr<CudaDevice> device = {};
};

/// What GPUs are busy with.
struct UnfinishedWork {
  std::string text;                     ///< A stream of it, in words; empty when there is none.
  std::string all;                      ///< Changes with what is unfinished.
  std::vector<runtime::Kernel> kernels; ///< Those given last to each stream that is not done.
};

class SubmissionQueue {
public:
  explicit SubmissionQueue(CudaSystem &system) : system(system) {}

  /// Whether operations must be offered to add(); else nothing is kept.
  bool isHolding() const { return holding.load(); }
  /// Begins to hold, until the host synchronises.
  void begin();
  /// Keeps the operation and takes it; false when nothing is held any more, and it is to be given to the driver.
  bool add(CudaDevice &device, HeldOperation &operation);
  /// The same for a launch whose code is not there yet: begins to hold.
  void addUnloaded(CudaDevice &device, HeldOperation operation);
  /// Lets everything go that is held.
  void flush();
  /// Does so, and waits until the driver has all of the stream or event that is held now (all of everything, if both are null), for at
  /// most so many seconds; 0 for ever. False when the time is over.
  bool drain(StreamRef stream, EventRef event, double seconds);
  /// ": kernel 'b' of rank 1 is not loaded, ..." with what is in the way, or nothing.
  std::string unloadedText();
  bool holdsEvent(EventRef event);
  /// The device ends: what is kept of it goes to the driver if all its code is there, and is dropped otherwise, with a warning.
  void leave(CudaDevice &device);

  /// While one exists nothing is given to the driver, so that GPUs which are idle stay so.
  class Load {
  public:
    explicit Load(SubmissionQueue &queue);
    ~Load();
    Load(const Load &) = delete;
    Load &operator=(const Load &) = delete;

  private:
    SubmissionQueue &queue;
  };

  static constexpr std::chrono::milliseconds idleHost{100}, patience{300};

private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  void startThread(Lock &lock);
  void run();
  /// One step of letting go.
  void step(Lock &lock);
  /// GPUs are busy: gives what it may to the driver (3. above), or tries to load (4.).
  void release(Lock &lock, const UnfinishedWork &busy, const std::vector<HeldOperation> &unloaded);
  bool submitFirst(const std::function<bool(const HeldOperation &)> &wanted);
  void submitAll();
  void submit(std::deque<HeldOperation>::iterator at);
  void dropAll();
  void end(Status status);
  std::vector<HeldOperation> unloadedOperations() const;

  CudaSystem &system;
  std::atomic<bool> holding = false;
  std::mutex mutex; ///< For all below. Taken before those of devices and of the system.
  std::condition_variable changed;
  std::deque<HeldOperation> held;
  bool keeps = false; ///< Until the host synchronises.
  bool isFlushing = false;
  bool threadRuns = false;
  unsigned loads = 0; ///< Load objects.
  Clock::time_point lastAdded, lastMoved;
  std::string lastUnfinished;
  std::set<std::pair<const void *, CudaDevice *>> tried; ///< Kernels whose load is tried beside busy GPUs.
  std::vector<HeldOperation>
      done; ///< To be destroyed without the lock: a graph may be the last that a device lives for.
};

} // namespace ditron::cuda
#endif // DITRON_RUNTIME_CUDA_SUBMISSIONQUEUE_H
