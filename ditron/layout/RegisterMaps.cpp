//===- RegisterMaps.cpp - Which register becomes which, for operations that move no data --------------------*- C++ -*-===//
//
// Each map takes a register of the result, computes the packed index of its element, translates the index to the source's
// tensor, and looks the register up.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/RegisterMaps.h"

#include <cassert>

namespace ditron::layout {

std::vector<int> permuteRegisters(const DistributedLayout &source, std::span<const int> order) {
  DistributedLayout result = source.permute(order);
  std::vector<int> map(result.numRegs());
  std::vector<int64_t> sourceCoordinates(order.size());
  for (int reg = 0; reg < result.numRegs(); ++reg) {
    std::vector<int64_t> coordinates = result.coordinates(result.applyDim(MachineDim::Reg, reg));
    for (size_t d = 0; d < order.size(); ++d)
      sourceCoordinates[order[d]] = coordinates[d];
    map[reg] = source.registerFor(source.pack(sourceCoordinates));
  }
  return map;
}

bool isFreeBroadcast(const DistributedLayout &source, const DistributedLayout &result) {
  if (source.rank() != result.rank())
    return false;
  for (int axis = 0; axis < source.rank(); ++axis)
    if (source.shape()[axis] != result.shape()[axis] && source.shape()[axis] != 1)
      return false;
  return source == result.dropBroadcast(source.shape());
}

std::vector<int> broadcastRegisters(const DistributedLayout &source, const DistributedLayout &result) {
  assert(isFreeBroadcast(source, result) && "convert the source to result.dropBroadcast first");
  std::vector<int> map(result.numRegs());
  for (int reg = 0; reg < result.numRegs(); ++reg) {
    std::vector<int64_t> coordinates = result.coordinates(result.applyDim(MachineDim::Reg, reg));
    for (int axis = 0; axis < source.rank(); ++axis)
      coordinates[axis] &= source.shape()[axis] - 1;
    map[reg] = source.registerFor(source.pack(coordinates));
  }
  return map;
}

std::vector<JoinedRegister> joinRegisters(const DistributedLayout &source) {
  DistributedLayout result = source.join();
  std::vector<JoinedRegister> map;
  for (int reg = 0; reg < result.numRegs(); ++reg) {
    int64_t packed = result.applyDim(MachineDim::Reg, reg);
    map.push_back({static_cast<int>(packed & 1), source.registerFor(packed >> 1)});
  }
  return map;
}

std::vector<int> splitRegisters(const DistributedLayout &source, int which) {
  std::optional<DistributedLayout> result = source.split();
  assert(result && "split needs the last dimension in registers");
  std::vector<int> map(result->numRegs());
  for (int reg = 0; reg < result->numRegs(); ++reg)
    map[reg] = source.registerFor(result->applyDim(MachineDim::Reg, reg) << 1 | which);
  return map;
}

} // namespace ditron::layout
