//===- CudaLoad.cpp - An NVIDIA GPU as a Device: code, and what else waits for idle GPUs ---------------------------===//
//
// When kernels are loaded, and which operations are kept back until then. SubmissionQueue.h says why and in which order.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/CudaDevice.h"
#include "ditron/runtime/cuda/CudaKernel.h"

#include "ditron/support/ForkGate.h"
#include "ditron/support/PreparingKernel.h"

#include <chrono>
#include <fmt/format.h>
#include <future>
#include <thread>

namespace ditron::cuda {

namespace {
StreamRef streamRef(runtime::StreamHandle handle) { return reinterpret_cast<StreamRef>(handle); }
} // namespace

Expected<FunctionRef> CudaDevice::loadHere(const runtime::Kernel &kernel) {
  ContextScope scope(driver, context);
  bool isNew = false;
  DITRON_ASSIGN_OR_RETURN(FunctionRef function, kernels->function(kernel, &isNew));
  if (isNew)
    system->addKernel(kernel.artifact().entrySymbol, kernel.name(), kernel.artifact().sourceFile);
  return function;
}

void CudaDevice::addUnfinishedWork(UnfinishedWork &work) {
  if (entering != 0) {
    work.text = work.all = fmt::format("rank {}, to which a thread gives work,", options.rank);
    return;
  }
  std::lock_guard lock(mutex); // a query would spoil a capture: none begins meanwhile
  for (auto &[handle, state] : streams) {
    if (!state.mayWait)
      continue;
    ContextScope scope(driver, context);
    if (captureOf(streamRef(handle)) != 0)
      continue;
    if (driver.streamQuery(streamRef(handle)) != errorNotReady) {
      state.mayWait = false;
      continue;
    }
    if (work.text.empty())
      work.text = streamText(state);
    work.all += fmt::format("{} {};", handle, fmt::ptr(state.lastKernel.identity()));
    if (state.lastKernel.isValid())
      work.kernels.push_back(state.lastKernel);
  }
}

Status CudaDevice::loadOnAllGpus(const runtime::Kernel &kernel) {
  DITRON_RETURN_IF_ERROR(loadHere(kernel).status());
  for (const std::shared_ptr<CudaDevice> &peer : system->livingDevices())
    if (peer->kernels != kernels && peer->loadHere(kernel).isOk()) // a launch there meets the failure
      peer->kernels->setReady(kernel);
  kernels->setReady(kernel);
  return Status::ok();
}

void CudaDevice::tryLoad(const runtime::Kernel &kernel, const std::string &unfinished) {
  const uint64_t load = system->beginLoad(options.rank, kernel.name(), unfinished);
  Status status = loadHere(kernel).status();
  system->endLoad(load);
  if (status.isOk())
    kernels->setReady(kernel);
  else
    (void)system->end(std::move(status));
}

template <typename T> Expected<T> CudaDevice::whileIdle(std::string_view what, std::function<Expected<T>()> action) {
  std::string unfinished;
  {
    const SubmissionQueue::Load nothingBegins(system->queue);
    unfinished = system->unfinishedWork().text;
    if (unfinished.empty())
      return action();
  }
  if (system->timeLimitSeconds <= 0)
    return action();
  // The driver cannot be told to give up: if it does not come back, its thread stays behind.
  auto result = std::make_shared<std::promise<Expected<T>>>();
  std::future<Expected<T>> done = result->get_future();
  std::thread([result, action = std::move(action)] { result->set_value(action()); }).detach();
  const ForkGateOpen forksGoAhead;
  if (done.wait_for(std::chrono::duration<double>(system->timeLimitSeconds)) == std::future_status::ready)
    return done.get();
  return timeOut(
      fmt::format("rank {}: the driver did not {} within {:g} seconds, begun when {} had unfinished work: it may wait "
                  "for that (docs/gpu-loading.md)",
                  options.rank, what, system->timeLimitSeconds, unfinished));
}
template Expected<void *> CudaDevice::whileIdle(std::string_view, std::function<Expected<void *>()>);
template Expected<StreamRef> CudaDevice::whileIdle(std::string_view, std::function<Expected<StreamRef>()>);
template Expected<FunctionRef> CudaDevice::whileIdle(std::string_view, std::function<Expected<FunctionRef>()>);
template Expected<GraphExecRef> CudaDevice::whileIdle(std::string_view, std::function<Expected<GraphExecRef>()>);

bool CudaDevice::isForeign(StreamRef stream) {
  if (!stream)
    return false;
  {
    std::lock_guard lock(mutex);
    const auto found = streams.find(reinterpret_cast<runtime::StreamHandle>(stream));
    if (found == streams.end() || found->second.isShared)
      return true;
  }
  ContextScope scope(driver, context);
  return captureOf(stream) != 0;
}

Status CudaDevice::hold(HeldOperation operation) {
  const bool isCapturing = system->isCapturing() || (operation.order.stream && captureOf(operation.order.stream) != 0);
  if (isCapturing || isForeign(operation.order.stream)) {
    // What it takes part in a capture with, or waits for, has to be there. The rest does not concern it.
    if (isCapturing)
      DITRON_RETURN_IF_ERROR(drain(nullptr, nullptr, "work that a capture may take part in"));
    else if (operation.order.event && system->queue.holdsEvent(operation.order.event))
      DITRON_RETURN_IF_ERROR(drain(nullptr, operation.order.event, fmt::format("rank {}, an event", options.rank)));
    const Entry entry(*this);
    return operation.submit();
  }
  while (!system->queue.add(*this, operation))
    if (const Entry entry(*this); entry.mayGo())
      return operation.submit();
  return Status::ok();
}

Expected<FunctionRef> CudaDevice::loadNow(const runtime::Kernel &kernel, StreamRef stream) {
  const bool isCaptured = captureOf(stream) != 0;
  const auto deadline = std::chrono::steady_clock::now() + SubmissionQueue::patience;
  UnfinishedWork busy;
  do {
    const SubmissionQueue::Load nothingBegins(system->queue);
    busy = system->unfinishedWork();
    if (busy.text.empty()) {
      DITRON_RETURN_IF_ERROR(loadOnAllGpus(kernel));
      return kernels->findReady(kernel);
    }
  } while (isCaptured && std::chrono::steady_clock::now() < deadline);
  if (isCaptured)
    return invalidArgument(fmt::format("rank {}: kernel '{}' is not loaded, and cannot be for a capture while {} has "
                                       "unfinished work. Load it before the capture (a "
                                       "launch outside of it, specialise, Plan::prepare), or synchronise before",
                                       options.rank, kernel.name(), busy.text));
  const uint64_t load = system->beginLoad(options.rank, kernel.name(), busy.text);
  Expected<FunctionRef> loaded = whileIdle<FunctionRef>(
      fmt::format("load kernel '{}'", kernel.name()), [self = shared_from_this(), kernel]() -> Expected<FunctionRef> {
        DITRON_ASSIGN_OR_RETURN(FunctionRef function, self->loadHere(kernel));
        self->kernels->setReady(kernel);
        return function;
      });
  system->endLoad(load);
  return loaded;
}

Expected<FunctionRef> CudaDevice::functionFor(const runtime::Kernel &kernel,
                                              std::optional<runtime::StreamHandle> launchedOn) {
  if (FunctionRef function = kernels->findReady(kernel))
    return function;
  if (launchedOn && (system->isCapturing() || isForeign(streamRef(*launchedOn))))
    return loadNow(kernel, streamRef(*launchedOn));
  using Clock = std::chrono::steady_clock;
  const PreparingKernel launchFollows;
  const auto deadline = Clock::now() + (launchedOn ? std::chrono::milliseconds(1) : SubmissionQueue::patience);
  for (;;) {
    {
      const SubmissionQueue::Load nothingBegins(system->queue);
      if (system->unfinishedWork().text.empty()) {
        DITRON_RETURN_IF_ERROR(loadOnAllGpus(kernel));
        if (launchedOn && kernels->mayWait(kernel))
          system->queue.begin();
        return kernels->findReady(kernel);
      }
    }
    if (Clock::now() > deadline)
      return nullptr;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

Status CudaDevice::load(const runtime::Kernel &kernel) {
  DITRON_RETURN_IF_ERROR(system->status());
  ContextScope scope(driver, context);
  return functionFor(kernel, {}).status();
}

void CudaDevice::beginUnpreparedCall(runtime::StreamHandle stream) {
  if (!system->isCapturing() && !isForeign(streamRef(stream)))
    system->queue.begin();
}

Expected<std::unique_ptr<runtime::LoadedKernel>>
CudaDevice::loadForLaunch(const runtime::Kernel &kernel, std::optional<runtime::StreamHandle> launchedOn) {
  DITRON_RETURN_IF_ERROR(system->status());
  DITRON_RETURN_IF_ERROR(functionFor(kernel, launchedOn).status());
  return std::unique_ptr<runtime::LoadedKernel>(std::make_unique<CudaKernel>(shared_from_this(), kernel));
}

} // namespace ditron::cuda
