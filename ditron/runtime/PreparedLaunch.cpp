//===- PreparedLaunch.cpp - A launch that is repeated with other addresses ----------------------------------------===//
#include "ditron/runtime/PreparedLaunch.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace ditron::runtime {

Status checkLaunch(const Kernel &kernel, const LaunchConfig &config, const DeviceAttributes &limits) {
  static constexpr char axes[] = "xyz";
  static constexpr uint32_t most[] = {0x7fffffff, 65535, 65535};
  static constexpr uint32_t mostPrograms = 1u << 30; // kernels that loop over them count, by blocks, in 32 bits
  for (unsigned axis = 0; axis < 3; ++axis)
    if (config.grid[axis] > most[axis])
      return invalidArgument(fmt::format("kernel '{}': grid.{} is {}; accepted are 0 to {}", kernel.name(), axes[axis],
                                         config.grid[axis], most[axis]));
  if (const uint64_t programs = uint64_t(1) * config.grid[0] * config.grid[1] * config.grid[2];
      kernel.artifact().loopsOverPrograms && programs > mostPrograms)
    return invalidArgument(
        fmt::format("kernel '{}': {} programs; its blocks run one after the other, and count at most {}", kernel.name(),
                    programs, mostPrograms));
  if (kernel.threadsPerBlock() > limits.maxThreadsPerBlock)
    return Status(StatusCode::ResourceExhausted,
                  fmt::format("kernel '{}' has {} threads per block; {} allows {}", kernel.name(),
                              kernel.threadsPerBlock(), limits.name, limits.maxThreadsPerBlock));
  if (kernel.artifact().sharedBytes > limits.sharedBytesPerBlock)
    return Status(
        StatusCode::ResourceExhausted,
        fmt::format("kernel '{}' needs {} bytes of shared memory per block; {} has {}. Smaller tiles or fewer "
                    "stages need less",
                    kernel.name(), kernel.artifact().sharedBytes, limits.name, limits.sharedBytesPerBlock));
  return Status::ok();
}

Expected<PreparedLaunch> PreparedLaunch::create(std::shared_ptr<Device> device, const Kernel &kernel,
                                                const LaunchConfig &config, std::span<const Argument> arguments,
                                                std::optional<StreamHandle> launchedOn) {
  if (!kernel.isValid())
    return invalidArgument("launch of an empty Kernel");
  DITRON_RETURN_IF_ERROR(checkLaunch(kernel, config, device->attributes()));
  PreparedLaunch launch;
  launch.state = std::make_shared<State>();
  State &state = *launch.state;
  state.kernel = kernel;
  state.config = config;
  state.isEmpty = std::ranges::find(config.grid, 0u) != config.grid.end();
  DITRON_ASSIGN_OR_RETURN(state.arguments, kernel.pack(arguments));
  DITRON_ASSIGN_OR_RETURN(state.loaded, device->loadForLaunch(kernel, launchedOn));
  state.device = std::move(device);
  if (!state.isEmpty) // no map describes a tensor without elements
    state.maps.resize(kernel.artifact().tensorMaps.size());
  for (size_t map = 0; map < state.maps.size(); ++map)
    DITRON_RETURN_IF_ERROR(launch.encode(map));
  for (uint32_t offset : state.arguments.offsets)
    state.values.push_back(state.arguments.bytes.data() + offset);
  for (TensorMap &map : state.maps)
    state.values.push_back(map.bytes.data());
  state.values.push_back(nullptr);
  return launch;
}

Status PreparedLaunch::encode(size_t map) {
  const Artifact &artifact = state->kernel.artifact();
  DITRON_ASSIGN_OR_RETURN(const TensorMapDescription description,
                          describeTensorMap(artifact, artifact.tensorMaps[map], state->arguments));
  DITRON_ASSIGN_OR_RETURN(state->maps[map], state->device->encodeTensorMap(description));
  return Status::ok();
}

Expected<uint32_t> PreparedLaunch::parameterOf(std::string_view name, std::string_view type) const {
  const std::vector<ArtifactParameter> &parameters = kernel().artifact().parameters;
  for (uint32_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == name && parameters[i].type.starts_with(type))
      return i;
  return notFound(fmt::format("kernel '{}' has no {} parameter '{}' that is left at run time", kernel().name(),
                              type == "*" ? "pointer" : type, name));
}

Expected<uint32_t> PreparedLaunch::pointerParameter(std::string_view name) const { return parameterOf(name, "*"); }

Expected<uint32_t> PreparedLaunch::integerParameter(std::string_view name) const { return parameterOf(name, "i64"); }

Status PreparedLaunch::setInteger(uint32_t parameter, int64_t value) {
  const Artifact &artifact = state->kernel.artifact();
  const ArtifactParameter &expected = artifact.parameters[parameter];
  if (value % static_cast<int64_t>(expected.divisibility) != 0)
    return invalidArgument(
        fmt::format("kernel '{}', parameter '{}': {} is no multiple of {}, which the code was compiled for",
                    artifact.kernel, expected.name, value, expected.divisibility));
  std::byte *place = state->arguments.bytes.data() + state->arguments.offsets[parameter];
  if (std::memcmp(place, &value, sizeof(value)) != 0) {
    std::memcpy(place, &value, sizeof(value));
    ++state->version;
  }
  // Sizes of tensors may be among them.
  for (size_t map = 0; map < state->maps.size(); ++map)
    DITRON_RETURN_IF_ERROR(encode(map));
  return Status::ok();
}

Status PreparedLaunch::setPointer(uint32_t parameter, void *address) {
  std::byte *place = state->arguments.bytes.data() + state->arguments.offsets[parameter];
  if (std::memcmp(place, &address, sizeof(address)) == 0)
    return Status::ok();
  const Artifact &artifact = state->kernel.artifact();
  const ArtifactParameter &expected = artifact.parameters[parameter];
  if (reinterpret_cast<uintptr_t>(address) % expected.divisibility != 0)
    return invalidArgument(fmt::format("kernel '{}', parameter '{}': the address is {} bytes behind a multiple of {}; "
                                       "the code was compiled for multiples",
                                       artifact.kernel, expected.name,
                                       reinterpret_cast<uintptr_t>(address) % expected.divisibility,
                                       expected.divisibility));
  void *before = nullptr;
  std::memcpy(&before, place, sizeof(before));
  std::memcpy(place, &address, sizeof(address));
  ++state->version;
  Status encoded = encodeMapsOf(parameter);
  if (!encoded.isOk()) {
    std::memcpy(place, &before, sizeof(before)); // the launch stays as it was
    (void)encodeMapsOf(parameter);
  }
  return encoded;
}

Status PreparedLaunch::encodeMapsOf(uint32_t parameter) {
  for (size_t map = 0; map < state->maps.size(); ++map)
    if (kernel().artifact().tensorMaps[map].base == parameter)
      DITRON_RETURN_IF_ERROR(encode(map));
  return Status::ok();
}

Status PreparedLaunch::checkStream(const Stream &stream) const {
  if (stream.isOf(*state->device))
    return Status::ok();
  return invalidArgument(
      fmt::format("kernel '{}' was prepared for rank {}, and stream '{}' is of rank {}: take a stream of "
                  "the rank",
                  kernel().name(), state->device->rank(), stream.name(), stream.rank()));
}

Status PreparedLaunch::enqueue(Stream &stream) const {
  DITRON_RETURN_IF_ERROR(checkStream(stream));
  if (state->isEmpty)
    return Status::ok();
  return stream.launch(*state->loaded, state->config, state->values.data(), state->values.size(), state->worldView);
}

Status PreparedLaunch::patch(Stream &stream, const Graph &graph, GraphNode node) const {
  DITRON_RETURN_IF_ERROR(checkStream(stream));
  return stream.patch(graph, node, *state->loaded, state->config, state->values.data(), state->values.size(),
                      state->worldView);
}

} // namespace ditron::runtime
