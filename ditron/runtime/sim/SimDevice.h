//===- SimDevice.h - The simulated backend --------------------------------------------------------------*- C++ -*-===//
//
// One rank of a sim::Machine as a Device. All ranks of a world share one machine.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_SIM_SIMDEVICE_H
#define DITRON_RUNTIME_SIM_SIMDEVICE_H

#include "ditron/runtime/Device.h"
#include "ditron/sim/Machine.h"

namespace ditron::runtime {

class SimDevice final : public Device {
public:
  SimDevice(std::shared_ptr<sim::Machine> machine, uint32_t rank, std::string name);

  uint32_t rank() const override { return rankId; }
  const DeviceAttributes &attributes() const override { return attributeValues; }

  Expected<void *> allocate(uint64_t bytes, std::string_view name, uint32_t elementBytes, MemoryKind kind) override;
  Status free(void *address) override;
  Status adoptMemory(void *address, uint64_t bytes, std::string_view name, uint32_t elementBytes) override;
  Status releaseMemory(void *address) override;
  void *symmetricBase() const override;
  Status upload(void *destination, const void *source, uint64_t bytes) override;
  Status download(void *destination, const void *source, uint64_t bytes) override;

  Expected<StreamHandle> createStream(std::string_view name, int priority) override;
  Status destroyStream(StreamHandle stream) override;
  Status synchronizeStream(StreamHandle stream) override;
  Status synchronize() override;

  Expected<EventHandle> createEvent(std::string_view name) override;
  Status recordEvent(StreamHandle stream, EventHandle event) override;
  Status waitEvent(StreamHandle stream, EventHandle event) override;
  Status synchronizeEvent(EventHandle event) override;
  Expected<int64_t> eventTime(EventHandle event) override;

  Status copy(StreamHandle stream, const Copy &copy) override;
  Status checkDestination(StreamHandle stream, const Copy &copy) override;
  Status fill(StreamHandle stream, void *address, int byteValue, uint64_t bytes) override;
  Status signalWrite(StreamHandle stream, void *address, uint64_t value, uint32_t bytes) override;
  Status signalAdd(StreamHandle stream, void *address, uint64_t value, uint32_t bytes) override;
  Status signalWait(StreamHandle stream, const void *address, Compare compare, uint64_t value, uint32_t bytes) override;
  Status hostCallback(StreamHandle stream, std::function<void()> callback, std::string_view name) override;
  Expected<TensorMap> encodeTensorMap(const TensorMapDescription &map) override;
  Expected<std::unique_ptr<LoadedKernel>> loadForLaunch(const Kernel &kernel,
                                                        std::optional<StreamHandle> launchedOn) override;

  Status beginCapture(StreamHandle stream) override;
  Expected<GraphHandle> endCapture(StreamHandle stream) override;
  bool isCapturing(StreamHandle stream) const override;
  Status launchGraph(StreamHandle stream, GraphHandle graph) override;

private:
  Status checkHostAccess(const void *address, uint64_t bytes) const;

  std::shared_ptr<sim::Machine> machine;
  uint32_t rankId;
  DeviceAttributes attributeValues;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_SIM_SIMDEVICE_H
