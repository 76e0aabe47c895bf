//===- CudaGraph.cpp - An NVIDIA GPU as a Device: captured graphs -------------------------------------------------===//
//
// A graph is captured from streams, made executable at once, and launched with one call of the driver. Kernels of an executable
// graph can get other values: the node of a kernel is what its stream's capture depends on right after the launch.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/cuda/CudaDevice.h"
#include "ditron/runtime/cuda/CudaKernel.h"

#include <fmt/format.h>

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
  ContextScope scope(driver, context);
  // Relaxed: other threads, and the loading of a kernel that prepare() missed, do not spoil the capture.
  {
    std::lock_guard lock(mutex); // see unfinishedWork
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
  DITRON_RETURN_IF_ERROR(check(driver.streamEndCapture(streamRef(stream), &graph->graph), "end of a capture"));
  graph->kept = system->endCapture(capture);
  DITRON_RETURN_IF_ERROR(
      check(driver.graphInstantiate(&graph->executable, graph->graph, 0), "instantiation of a graph"));
  return runtime::GraphHandle(std::move(graph));
}

bool CudaDevice::isCapturing(runtime::StreamHandle stream) const {
  ContextScope scope(driver, context);
  return captureOf(streamRef(stream)) != 0;
}

Status CudaDevice::launchGraph(runtime::StreamHandle stream, runtime::GraphHandle graph) {
  DITRON_RETURN_IF_ERROR(system->status());
  ContextScope scope(driver, context);
  const CudaGraph &captured = cudaGraph(graph);
  DITRON_RETURN_IF_ERROR(check(driver.graphLaunch(captured.executable, streamRef(stream)), "launch of a graph"));
  if (captured.lastKernel.isValid())
    setLastKernel(streamRef(stream), captured.lastKernel);
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
  ContextScope scope(driver, context);
  const auto &kernel = static_cast<const CudaKernel &>(loaded);
  const KernelNodeParameters parameters = {kernel.function(),
                                           config.grid[0],
                                           config.grid[1],
                                           config.grid[2],
                                           kernel.kernel().threadsPerBlock(),
                                           1,
                                           1,
                                           static_cast<unsigned>(kernel.kernel().artifact().sharedBytes),
                                           const_cast<void **>(values),
                                           nullptr};
  return check(driver.graphExecKernelNodeSetParams(cudaGraph(graph).executable, reinterpret_cast<GraphNodeRef>(node),
                                                   &parameters),
               fmt::format("other arguments for kernel '{}' in a graph", kernel.kernel().name()));
}

Status CudaDevice::loadGraph(const runtime::GraphHandle &graph) {
  DITRON_RETURN_IF_ERROR(system->status());
  ContextScope scope(driver, context);
  DITRON_RETURN_IF_ERROR(check(driver.graphUpload(cudaGraph(graph).executable, housekeeping), "loading of a graph"));
  return waitFor([&] { return driver.streamQuery(housekeeping); },
                 [&] { return driver.streamSynchronize(housekeeping); }, "loading of a graph");
}

} // namespace ditron::cuda
