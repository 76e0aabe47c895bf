//===- TensorMap.cpp - Descriptions of tensors for the copy engine -------------------------------------------------===//
//
// Reads the numbers of a tensor map from the packed arguments and turns the dimensions around: the language counts from the
// outermost one, the hardware from the contiguous one.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/TensorMap.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace ditron::runtime {

namespace {

/// The copy engine's own limits.
constexpr uint64_t alignmentBytes = 16;
constexpr uint64_t largestSize = uint64_t(1) << 32;
constexpr uint64_t largestStrideBytes = uint64_t(1) << 40;

/// The value of an integer parameter.
int64_t readInteger(DataType type, const std::byte *bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, sizeOf(type)); // little-endian
  const unsigned unused = 64 - 8 * sizeOf(type);
  return isSignedInteger(type) ? static_cast<int64_t>(bits << unused) >> unused : static_cast<int64_t>(bits);
}

/// The numbers of one map.
struct MapReader {
  const Artifact &artifact;
  const PackedArguments &arguments;

  std::string nameOf(const ArtifactMapNumber &number) const {
    return number.parameter < 0 ? "" : fmt::format(" (argument '{}')", artifact.parameters[number.parameter].name);
  }

  Expected<int64_t> read(const ArtifactMapNumber &number) const {
    if (number.parameter < 0)
      return number.value;
    const ArtifactParameter &parameter = artifact.parameters[number.parameter];
    const std::optional<DataType> type = parseDataType(parameter.type);
    if (!type || isFloat(*type))
      return internalError(fmt::format("kernel '{}': parameter '{}' of type {} stands in a tensor map", artifact.kernel,
                                       parameter.name, parameter.type));
    const int64_t value = readInteger(*type, arguments.bytes.data() + arguments.offsets[number.parameter]);
    return number.value > 0 ? std::max(value, number.value) : value;
  }
};

} // namespace

size_t TensorMapHash::operator()(const TensorMapDescription &map) const {
  uint64_t hash = reinterpret_cast<uintptr_t>(map.base);
  auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15ull; };
  for (uint32_t dim = 0; dim < map.rank; ++dim) {
    mix(map.sizes[dim]);
    mix(map.stridesBytes[dim]);
    mix(map.box[dim]);
  }
  mix(uint64_t(map.type) << 32 | map.swizzleBytes << 2 | map.roundsTf32 << 1 | map.fillNan);
  return hash ^ hash >> 29;
}

Expected<TensorMapDescription> describeTensorMap(const Artifact &artifact, const ArtifactTensorMap &map,
                                                 const PackedArguments &arguments) {
  const MapReader reader = {artifact, arguments};
  const std::string &name = artifact.parameters[map.base].name;
  auto fail = [&](std::string_view problem) {
    return invalidArgument(fmt::format("kernel '{}': the tensor at argument '{}' {}", artifact.kernel, name, problem));
  };
  TensorMapDescription result;
  const std::optional<DataType> type = map.elementType();
  if (!type || map.sizes.empty() || map.sizes.size() > TensorMapDescription::maxRank ||
      map.strides.size() != map.sizes.size() || map.box.size() != map.sizes.size())
    return internalError(fmt::format("kernel '{}': the tensor map of argument '{}' is malformed", artifact.kernel, name));
  result.type = *type;
  result.fillNan = map.fillNan;
  result.roundsTf32 = map.roundsTf32();
  result.swizzleBytes = map.swizzleBytes;
  result.rank = static_cast<uint32_t>(map.sizes.size());
  std::memcpy(&result.base, arguments.bytes.data() + arguments.offsets[map.base], sizeof(void *));
  if (const uintptr_t beyond = reinterpret_cast<uintptr_t>(result.base) % alignmentBytes; beyond != 0)
    return fail(fmt::format("must lie at a multiple of {} bytes; it lies {} behind one", alignmentBytes, beyond));
  for (uint32_t dim = 0; dim < result.rank; ++dim) {
    const size_t outer = result.rank - 1 - dim;
    DITRON_ASSIGN_OR_RETURN(const int64_t size, reader.read(map.sizes[outer]));
    DITRON_ASSIGN_OR_RETURN(const int64_t stride, reader.read(map.strides[outer]));
    if (size < 1 || static_cast<uint64_t>(size) > largestSize)
      return fail(fmt::format("has size {} in dimension {}{}; accepted are 1 to {}", size, outer,
                              reader.nameOf(map.sizes[outer]), largestSize));
    const uint64_t strideBytes = static_cast<uint64_t>(stride) * sizeOf(*type);
    if (dim > 0 && (stride < 0 || strideBytes % alignmentBytes != 0 || strideBytes >= largestStrideBytes))
      return fail(fmt::format("has a stride of {} elements in dimension {}{}; accepted are multiples of {} bytes below 2^40",
                              stride, outer, reader.nameOf(map.strides[outer]), alignmentBytes));
    if (dim == 0 && stride != 1)
      return fail(fmt::format("has a stride of {} elements in its last dimension; only 1 is accepted", stride));
    result.sizes[dim] = static_cast<uint64_t>(size);
    result.stridesBytes[dim] = strideBytes;
    result.box[dim] = map.box[outer];
  }
  return result;
}

} // namespace ditron::runtime
