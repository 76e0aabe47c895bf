//===- TensorMap.cpp - Descriptors of tensor copies ---------------------------------------------------------------===//
//
// The rules of cuTensorMapEncodeTiled for tiled maps without interleave and with element strides of 1.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/TensorMap.h"

#include <fmt/format.h>

#include <algorithm>

namespace ditron::sim {

std::string checkTensorMap(const DitronSimTensorMap &map) {
  if (map.rank < 1 || map.rank > 5)
    return fmt::format("rank {}; accepted is 1 to 5", map.rank);
  if (map.elementBytes != 1 && map.elementBytes != 2 && map.elementBytes != 4 && map.elementBytes != 8)
    return fmt::format("elements of {} bytes; accepted is 1, 2, 4, 8", map.elementBytes);
  if (!map.base)
    return "the base is null";
  if (const uintptr_t beyond = reinterpret_cast<uintptr_t>(map.base) % 16; beyond != 0)
    return fmt::format("the base is {} bytes behind a multiple of 16; accepted are multiples of 16", beyond);
  for (uint32_t d = 0; d < map.rank; ++d) {
    if (map.dims[d] == 0)
      return fmt::format("dimension {} has extent 0", d);
    if (map.box[d] < 1 || map.box[d] > 256)
      return fmt::format("the box has extent {} in dimension {}; accepted is 1 to 256", map.box[d], d);
    if (d > 0 && map.stridesBytes[d - 1] % 16 != 0)
      return fmt::format("the stride of dimension {} is {} bytes; it must be a multiple of 16", d,
                         map.stridesBytes[d - 1]);
  }
  const uint32_t rowBytes = map.box[0] * map.elementBytes;
  if (rowBytes % 16 != 0)
    return fmt::format("a row of the box has {} bytes; it must be a multiple of 16", rowBytes);
  if (map.swizzleBytes != 0 && map.swizzleBytes != 32 && map.swizzleBytes != 64 && map.swizzleBytes != 128)
    return fmt::format("swizzle of {} bytes; accepted is 0, 32, 64, 128", map.swizzleBytes);
  if (map.swizzleBytes != 0 && rowBytes != map.swizzleBytes)
    return fmt::format("a row of the box has {} bytes; with a swizzle of {} it must have as many", rowBytes,
                       map.swizzleBytes);
  return {};
}

Expected<DitronSimTensorMap> makeTensorMap(void *base, uint32_t elementBytes, std::span<const uint32_t> dims,
                                           std::span<const uint64_t> stridesBytes, std::span<const uint32_t> box,
                                           uint32_t swizzleBytes, bool fillNan, bool roundsTf32) {
  if (dims.empty() || dims.size() > 5 || box.size() != dims.size() || stridesBytes.size() + 1 != dims.size())
    return invalidArgument(
        fmt::format("tensor map: {} dimensions, {} strides, a box of rank {}; accepted is rank 1 to 5 "
                    "with one stride less and a box of the same rank",
                    dims.size(), stridesBytes.size(), box.size()));
  DitronSimTensorMap map{};
  map.base = base;
  map.rank = static_cast<uint32_t>(dims.size());
  map.elementBytes = elementBytes;
  map.swizzleBytes = swizzleBytes;
  map.fillNan = fillNan;
  map.roundsTf32 = roundsTf32;
  std::copy(dims.begin(), dims.end(), map.dims);
  std::copy(box.begin(), box.end(), map.box);
  std::copy(stridesBytes.begin(), stridesBytes.end(), map.stridesBytes);
  if (std::string problem = checkTensorMap(map); !problem.empty())
    return invalidArgument("tensor map: " + problem);
  return map;
}

uint32_t boxBytes(const DitronSimTensorMap &map) {
  uint32_t bytes = map.elementBytes;
  for (uint32_t d = 0; d < map.rank; ++d)
    bytes *= map.box[d];
  return bytes;
}

} // namespace ditron::sim
