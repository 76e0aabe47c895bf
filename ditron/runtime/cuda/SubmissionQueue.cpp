//===- SubmissionQueue.cpp - Work kept back until its code is on the GPUs -----------------------------------------===//
//
// One thread gives kept work to the driver. It runs only while there is such work.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/SubmissionQueue.h"

#include "ditron/runtime/cuda/CudaDevice.h"
#include "ditron/runtime/cuda/CudaSystem.h"
#include "ditron/support/PreparingKernel.h"

#include <algorithm>
#include <fmt/format.h>
#include <thread>
#include <utility>

namespace ditron::cuda {

namespace {

/// How long nothing must move before a launch goes out that the busy GPUs may wait for: of a kernel that runs, and of any.
constexpr std::chrono::microseconds sameKernelAfter{200};
constexpr std::chrono::milliseconds anyKernelAfter{20};

bool isAmong(const std::vector<runtime::Kernel> &kernels, const runtime::Kernel &kernel, bool byName) {
  return std::ranges::any_of(kernels, [&](const runtime::Kernel &other) {
    return byName ? other.name() == kernel.name() : other.identity() == kernel.identity();
  });
}

} // namespace

SubmissionQueue::Load::Load(SubmissionQueue &queue) : queue(queue) {
  std::lock_guard lock(queue.mutex);
  ++queue.loads;
  queue.holding = true;
}

SubmissionQueue::Load::~Load() {
  Lock lock(queue.mutex);
  if (--queue.loads == 0 && !queue.keeps) {
    queue.isFlushing |= !queue.held.empty();
    queue.startThread(lock);
  }
}

void SubmissionQueue::begin() {
  Lock lock(mutex);
  keeps = true;
  isFlushing &= !held.empty();
  lastAdded = Clock::now();
  startThread(lock);
}

bool SubmissionQueue::add(CudaDevice &device, HeldOperation &operation) {
  operation.owner = &device;
  operation.device = device.weak_from_this();
  std::lock_guard lock(mutex);
  if (!holding)
    return false;
  held.push_back(std::move(operation));
  lastAdded = Clock::now();
  return true;
}

void SubmissionQueue::addUnloaded(CudaDevice &device, HeldOperation operation) {
  operation.owner = &device;
  operation.device = device.weak_from_this();
  Lock lock(mutex);
  keeps |= !isFlushing;
  held.push_back(std::move(operation));
  lastAdded = Clock::now();
  startThread(lock);
}

void SubmissionQueue::flush() {
  if (!isHolding())
    return;
  Lock lock(mutex);
  keeps = false;
  isFlushing |= !held.empty();
  startThread(lock);
}

bool SubmissionQueue::drain(StreamRef stream, EventRef event, double seconds) {
  if (!isHolding())
    return true;
  flush();
  const auto concerns = [&](const HeldOperation &operation) {
    return (!stream && !event) || (stream && operation.order.stream == stream) ||
           (event && operation.order.event == event);
  };
  const auto isDone = [&] { return std::ranges::none_of(held, concerns); };
  Lock lock(mutex);
  if (seconds > 0)
    return changed.wait_for(lock, std::chrono::duration<double>(seconds), isDone);
  changed.wait(lock, isDone);
  return true;
}

std::string SubmissionQueue::unloadedText() {
  std::vector<HeldOperation> unloaded;
  {
    std::lock_guard lock(mutex);
    unloaded = unloadedOperations();
  }
  if (unloaded.empty())
    return {};
  const UnfinishedWork busy = system.unfinishedWork();
  const std::shared_ptr<CudaDevice> device = unloaded.front().device.lock();
  return fmt::format(": kernel '{}' of rank {} is not loaded, and a driver may load it only when the GPUs of the "
                     "process are idle; {}. "
                     "Load kernels before any of them can wait for another (docs/gpu-loading.md)",
                     unloaded.front().kernel.name(), device ? device->rank() : 0,
                     busy.text.empty() ? "they are" : busy.text + " has unfinished work");
}

bool SubmissionQueue::holdsEvent(EventRef event) {
  std::lock_guard lock(mutex);
  return std::ranges::any_of(held, [&](const HeldOperation &operation) { return operation.order.event == event; });
}

void SubmissionQueue::leave(CudaDevice &device) {
  std::lock_guard lock(mutex);
  const auto isOfDevice = [&](const HeldOperation &operation) { return operation.owner == &device; };
  if (std::ranges::none_of(held, isOfDevice))
    return;
  const std::vector<HeldOperation> unloaded = unloadedOperations();
  if (unloaded.empty() && !system.hasEnded())
    submitAll();
  else if (!system.hasEnded())
    fmt::print(stderr,
               "ditron: warning: the world ends before the work of rank {} has begun: kernel '{}' was never loaded. "
               "Synchronise first\n",
               device.rank(), unloaded.front().kernel.name());
  for (HeldOperation &operation : held)
    if (isOfDevice(operation))
      done.push_back(std::move(operation));
  std::erase_if(held, [&](const HeldOperation &operation) { return !operation.submit || isOfDevice(operation); });
  changed.notify_all();
}

/// Where there is nothing for it to do, holding ends.
void SubmissionQueue::startThread(Lock &lock) {
  holding = keeps || loads || !held.empty();
  changed.notify_all();
  if (!keeps && held.empty())
    return;
  if (threadRuns)
    return;
  threadRuns = true;
  lastMoved = Clock::now();
  std::thread([self = system.shared_from_this(), this] { run(); }).detach();
}

void SubmissionQueue::run() {
  Lock lock(mutex);
  for (;;) {
    if (system.hasEnded()) {
      dropAll();
      keeps = false;
    }
    if (!done.empty()) {
      std::vector<HeldOperation> over = std::exchange(done, {});
      lock.unlock();
      over.clear();
      lock.lock();
      continue;
    }
    if (!keeps && held.empty())
      break;
    if (PreparingKernel::any())
      lastAdded = Clock::now();
    if (isFlushing || Clock::now() - lastAdded > idleHost)
      step(lock);
    else
      changed.wait_for(lock, std::chrono::milliseconds(2));
  }
  isFlushing = false;
  threadRuns = false;
  tried.clear();
  holding = loads != 0;
  changed.notify_all();
}

void SubmissionQueue::step(Lock &lock) {
  keeps = false;
  isFlushing = true;
  if (loads) {
    changed.wait_for(lock, std::chrono::milliseconds(1));
    return;
  }
  const std::vector<HeldOperation> unloaded = unloadedOperations();
  if (unloaded.empty()) {
    submitAll();
    isFlushing = false;
    changed.notify_all();
    return;
  }
  ++loads; // as a Load
  lock.unlock();
  const UnfinishedWork busy = system.unfinishedWork();
  Status status;
  if (busy.text.empty())
    for (const HeldOperation &operation : unloaded)
      if (std::shared_ptr<CudaDevice> device = operation.device.lock(); device && status.isOk())
        status = device->loadOnAllGpus(operation.kernel);
  lock.lock();
  --loads;
  if (!status.isOk())
    end(std::move(status));
  else if (!busy.text.empty() && loads == 0)
    release(lock, busy, unloaded);
}

void SubmissionQueue::release(Lock &lock, const UnfinishedWork &busy, const std::vector<HeldOperation> &unloaded) {
  const auto now = Clock::now();
  if (busy.all != lastUnfinished) {
    lastUnfinished = busy.all;
    lastMoved = now;
  }
  const auto still = now - lastMoved;
  bool released = false;
  while (submitFirst([](const HeldOperation &operation) { return !operation.mayWait; }))
    released = true;
  for (bool byName : {false, true})
    if (!released && still > sameKernelAfter)
      released = submitFirst([&](const HeldOperation &operation) {
        // The first of a stream on whose way to a kernel that runs elsewhere there is nothing unloaded.
        for (const HeldOperation &later : held)
          if (later.order.stream == operation.order.stream && later.kernel.isValid()) {
            if (isAmong(busy.kernels, later.kernel, byName))
              return true;
            if (!later.owner->isLoaded(later.kernel))
              return false;
          }
        return false;
      });
  if (!released && still > anyKernelAfter)
    released = submitFirst([](const HeldOperation &) { return true; });
  if (released) {
    lastMoved = now;
    changed.notify_all();
    return;
  }
  if (still > patience)
    for (const HeldOperation &operation : unloaded)
      if (std::shared_ptr<CudaDevice> device = operation.device.lock();
          device && tried.insert({operation.kernel.identity(), operation.owner}).second)
        std::thread([device, kernel = operation.kernel, text = busy.text] { device->tryLoad(kernel, text); }).detach();
  changed.wait_for(lock, std::chrono::microseconds(still > anyKernelAfter ? 1000 : 100));
}

/// Of what may go out before all that was enqueued earlier and is still here.
bool SubmissionQueue::submitFirst(const std::function<bool(const HeldOperation &)> &wanted) {
  std::set<const void *> blocked;
  for (auto at = held.begin(); at != held.end(); ++at) {
    const SubmissionOrder &order = at->order;
    const void *const places[] = {order.stream, order.event, order.graph};
    const bool isFree =
        std::ranges::none_of(places, [&](const void *place) { return place && blocked.contains(place); });
    if (isFree && (!at->kernel.isValid() || at->owner->isLoaded(at->kernel)) && wanted(*at)) {
      submit(at);
      return true;
    }
    blocked.insert(std::begin(places), std::end(places));
  }
  return false;
}

void SubmissionQueue::submit(std::deque<HeldOperation>::iterator at) {
  done.push_back(std::move(*at));
  held.erase(at);
  // What the caller of the operation was not told then is told to all later ones.
  if (Status status = done.back().submit(); !status.isOk())
    end(std::move(status));
}

void SubmissionQueue::submitAll() {
  while (!held.empty())
    submit(held.begin());
}

void SubmissionQueue::dropAll() {
  std::ranges::move(held, std::back_inserter(done));
  held.clear();
}

void SubmissionQueue::end(Status status) {
  (void)system.end(std::move(status));
  dropAll();
  changed.notify_all();
}

std::vector<HeldOperation> SubmissionQueue::unloadedOperations() const {
  std::vector<HeldOperation> unloaded;
  for (const HeldOperation &operation : held)
    if (operation.kernel.isValid() && !operation.owner->isLoaded(operation.kernel))
      unloaded.push_back({.kernel = operation.kernel, .owner = operation.owner, .device = operation.device});
  return unloaded;
}

} // namespace ditron::cuda
