//===- PreparedLaunch.h - A launch that is repeated with other addresses ----------------------------------*- C++ -*-===//
//
// What a launch needs, checked, packed and loaded once: repeating it does nothing of this again. Pointers may be exchanged
// between launches, and the maps of the tensors they belong to follow; so may 64-bit integers.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_RUNTIME_PREPAREDLAUNCH_H
#define DITRON_RUNTIME_PREPAREDLAUNCH_H

#include "ditron/runtime/Stream.h"

namespace ditron::runtime {

/// Ok, or what of a launch the device cannot do: grid, threads or shared memory.
Status checkLaunch(const Kernel &kernel, const LaunchConfig &config, const DeviceAttributes &limits);

/// Copies share the launch. One thread at a time.
class PreparedLaunch {
public:
  PreparedLaunch() = default;
  /// `launchedOn`: the stream on which it is launched at once; nobody prepares the kernel before.
  static Expected<PreparedLaunch> create(std::shared_ptr<Device> device, const Kernel &kernel,
                                         const LaunchConfig &config, std::span<const Argument> arguments,
                                         std::optional<StreamHandle> launchedOn = {});

  bool isValid() const { return state != nullptr; }
  const Kernel &kernel() const { return state->kernel; }
  /// The number of a pointer parameter, for setPointer.
  Expected<uint32_t> pointerParameter(std::string_view name) const;
  /// The address from the next enqueue on. Refuses one that is no multiple of what the code relies on.
  Status setPointer(uint32_t parameter, void *address);
  /// The number of a parameter of type i64, for setInteger.
  Expected<uint32_t> integerParameter(std::string_view name) const;
  /// The value from the next enqueue on. Refuses one that is no multiple of what the code relies on.
  Status setInteger(uint32_t parameter, int64_t value);
  /// The kernel sees this world view (Rank::worldView) on whatever stream of the device it is launched, instead of the stream's.
  void setWorldView(void *worldView) { state->worldView = worldView; }
  /// Each launch begins this call.
  void setAgreedCall(AgreedCall call) { state->config.agreed = std::move(call); }
  /// On a stream of the device; an error on another's.
  Status enqueue(Stream &stream) const;

  /// An empty grid, as an empty shard asks for, runs nothing.
  bool isEmpty() const { return state->isEmpty; }
  /// Grows with every address and value that is exchanged.
  uint64_t version() const { return state->version; }
  /// Gives the launch's present addresses to the kernel that it has become in a captured graph.
  Status patch(Stream &stream, const Graph &graph, GraphNode node) const;

private:
  struct State {
    std::shared_ptr<Device> device;
    Kernel kernel;
    LaunchConfig config;
    void *worldView = nullptr;
    bool isEmpty = false;
    uint64_t version = 1;
    PackedArguments arguments;
    std::vector<TensorMap> maps;
    std::unique_ptr<LoadedKernel> loaded;
    std::vector<void *> values; ///< Into `arguments` and `maps`; the last is for the world view.
  };
  Status checkStream(const Stream &stream) const;
  Status encode(size_t map);
  Status encodeMapsOf(uint32_t parameter);
  Expected<uint32_t> parameterOf(std::string_view name, std::string_view type) const;

  std::shared_ptr<State> state;
};

} // namespace ditron::runtime
#endif // DITRON_RUNTIME_PREPAREDLAUNCH_H
