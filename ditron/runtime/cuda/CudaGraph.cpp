//===- CudaGraph.cpp - An NVIDIA GPU as a Device: captured graphs -------------------------------------------------===//
//
// A graph is captured from streams, made executable at once, and launched with one call of the driver. Kernels of an executable
// graph can get other values: the node of a kernel is what its stream's capture depends on right after the launch.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/ProgramLoop.h"
#include "ditron/runtime/cuda/CudaDevice.h"
#include "ditron/runtime/cuda/CudaKernel.h"

#include <chrono>
#include <fmt/format.h>
#include <thread>

namespace ditron::cuda {

namespace {

StreamRef streamRef(runtime::StreamHandle handle) { return reinterpret_cast<StreamRef>(handle); }

/// What a GraphHandle points to.
struct CudaGraph {
  std::shared_ptr<CudaDevice> device; ///< Whose modules the graph's kernels are in.
  std::shared_ptr<const CudaDriver> driver;
  GraphRef graph = nullptr;
  GraphExecRef executable = nullptr;
  KeepAlive kept;
  runtime::Kernel lastKernel; ///< On the stream that was captured.

  ~CudaGraph() {
    if (executable)
      driver->graphExecDestroy(executable);
    if (graph)
      driver->graphDestroy(graph);
  }
};

const CudaGraph &cudaGraph(const runtime::GraphHandle &graph) { return *static_cast<const CudaGraph *>(graph.get()); }

} // namespace

uint64_t CudaDevice::captureOf(StreamRef stream) const {
  CaptureStatus status = CaptureStatus::None;
  uint64_t id = 0;
  if (driver.streamGetCaptureInfo(stream, &status, &id) != success || status != CaptureStatus::Active)
    return 0;
  return id;
}

Status CudaDevice::beginCapture(runtime::StreamHandle stream) {
  DITRON_RETURN_IF_ERROR(system->status());
  if (system->queue.isHolding())
    DITRON_RETURN_IF_ERROR(drain(nullptr, nullptr, "work before a capture"));
  ContextScope scope(driver, context);
  // Relaxed: other threads, and the loading of a kernel that prepare() missed, do not spoil the capture.
  {
    std::lock_guard lock(mutex); // see addUnfinishedWork
    DITRON_RETURN_IF_ERROR(
        check(driver.streamBeginCapture(streamRef(stream), CaptureMode::Relaxed), "begin of a capture"));
  }
  system->beginCapture(captureOf(streamRef(stream)));
  return Status::ok();
}

Expected<runtime::GraphHandle> CudaDevice::endCapture(runtime::StreamHandle stream) {
  DITRON_RETURN_IF_ERROR(system->status());
  ContextScope scope(driver, context);
  const uint64_t capture = captureOf(streamRef(stream));
  auto graph = std::make_shared<CudaGraph>();
  graph->device = shared_from_this();
  graph->driver = system->driver;
  graph->lastKernel = lastKernel(streamRef(stream));
  graph->kept = system->endCapture(capture);
  DITRON_RETURN_IF_ERROR(check(driver.streamEndCapture(streamRef(stream), &graph->graph), "end of a capture"));
  DITRON_ASSIGN_OR_RETURN(
      graph->executable,
      whileIdle<GraphExecRef>(
          "make a graph executable", [self = shared_from_this(), graph]() -> Expected<GraphExecRef> {
            ContextScope inContext(self->driver, self->context);
            GraphExecRef executable = nullptr;
            DITRON_RETURN_IF_ERROR(
                self->check(self->driver.graphInstantiate(&executable, graph->graph, 0), "instantiation of a graph"));
            return executable;
          }));
  return runtime::GraphHandle(std::move(graph));
}

bool CudaDevice::isCapturing(runtime::StreamHandle stream) const {
  ContextScope scope(driver, context);
  return captureOf(streamRef(stream)) != 0;
}

Status CudaDevice::launchGraph(runtime::StreamHandle stream, runtime::GraphHandle graph) {
  DITRON_RETURN_IF_ERROR(system->status());
  // Nobody says how many entries a graph takes of the queues; of calls with many copies twenty did not fit.
  DITRON_RETURN_IF_ERROR(pace(streamRef(stream), paceOperations / 4));
  if (const Entry entry(*this); entry.mayGo())
    return launchGraphNow(streamRef(stream), graph);
  return hold({.order = {.stream = streamRef(stream), .graph = graph.get()},

               .submit = [=, this] { return launchGraphNow(streamRef(stream), graph); }});
}

Status CudaDevice::launchGraphNow(StreamRef stream, const runtime::GraphHandle &graph) {
  ContextScope scope(driver, context);
  const CudaGraph &captured = cudaGraph(graph);
  DITRON_RETURN_IF_ERROR(check(driver.graphLaunch(captured.executable, stream), "launch of a graph"));
  setMayWait(stream);
  if (captured.lastKernel.isValid())
    setLastKernel(stream, captured.lastKernel, true);
  return Status::ok();
}

bool CudaDevice::canPatchGraphs() const {
  return driver.streamGetCaptureInfo2 && driver.graphExecKernelNodeSetParams && driver.graphUpload;
}

Expected<runtime::GraphNode> CudaDevice::capturedKernel(runtime::StreamHandle stream) {
  ContextScope scope(driver, context);
  CaptureStatus status = CaptureStatus::None;
  uint64_t id = 0;
  GraphRef graph = nullptr;
  const GraphNodeRef *nodes = nullptr;
  size_t count = 0;
  DITRON_RETURN_IF_ERROR(check(driver.streamGetCaptureInfo2(streamRef(stream), &status, &id, &graph, &nodes, &count),
                               "state of a capture"));
  if (status != CaptureStatus::Active || count != 1)
    return internalError(fmt::format("a captured kernel is followed by {} nodes of its stream", count));
  return reinterpret_cast<runtime::GraphNode>(nodes[0]);
}

Status CudaDevice::patchGraph(const runtime::GraphHandle &graph, runtime::GraphNode node,
                              const runtime::LoadedKernel &loaded, const runtime::LaunchConfig &config,
                              void *const *values) {
  DITRON_RETURN_IF_ERROR(system->status());
  const auto &kernel = static_cast<const CudaKernel &>(loaded);
  if (const Entry entry(*this); entry.mayGo())
    return patchGraphNow(graph, node, kernel.kernel(), config, values);
  // Launches of the graph that are kept back have the values that it had.
  return hold(
      {.order = {.graph = graph.get()},
       .kernel = kernel.kernel(),
       .mayWait = false,
       .submit = [=, this, kept = KeptValues::of(kernel.kernel().artifact(), values), kernel = kernel.kernel()] {
         return patchGraphNow(graph, node, kernel, config, kept->pointers.data());
       }});
}

Status CudaDevice::patchGraphNow(const runtime::GraphHandle &graph, runtime::GraphNode node,
                                 const runtime::Kernel &kernel, const runtime::LaunchConfig &config,
                                 void *const *values) {
  ContextScope scope(driver, context);
  const runtime::HardwareLaunch launch(kernel.artifact(), config.grid, values, residentBlocks(kernel));
  const KernelNodeParameters parameters = {kernels->findReady(kernel),
                                           launch.grid()[0],
                                           launch.grid()[1],
                                           launch.grid()[2],
                                           kernel.threadsPerBlock(),
                                           1,
                                           1,
                                           static_cast<unsigned>(kernel.artifact().sharedBytes),
                                           launch.values(),
                                           nullptr};
  return check(driver.graphExecKernelNodeSetParams(cudaGraph(graph).executable, reinterpret_cast<GraphNodeRef>(node),
                                                   &parameters),
               fmt::format("other arguments for kernel '{}' in a graph", kernel.name()));
}

bool CudaDevice::mayMakeGraphs() {
  const auto deadline = std::chrono::steady_clock::now() + SubmissionQueue::patience;
  while (!system->unfinishedWork().text.empty()) {
    if (std::chrono::steady_clock::now() > deadline)
      return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

Status CudaDevice::loadGraph(const runtime::GraphHandle &graph) {
  DITRON_RETURN_IF_ERROR(system->status());
  auto upload = [self = shared_from_this(), graph]() -> Expected<GraphExecRef> {
    ContextScope scope(self->driver, self->context);
    DITRON_RETURN_IF_ERROR(
        self->check(self->driver.graphUpload(cudaGraph(graph).executable, self->housekeeping), "loading of a graph"));
    return cudaGraph(graph).executable;
  };
  DITRON_RETURN_IF_ERROR(whileIdle<GraphExecRef>("bring a graph to the GPU", upload).status());
  ContextScope scope(driver, context);
  return waitFor([&] { return driver.streamQuery(housekeeping); },
                 [&] { return driver.streamSynchronize(housekeeping); }, "loading of a graph");
}

} // namespace ditron::cuda
