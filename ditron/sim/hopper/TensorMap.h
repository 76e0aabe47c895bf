//===- TensorMap.h - Descriptors of tensor copies -------------------------------------------------------*- C++ -*-===//
//
// Makes and checks the DitronSimTensorMap that host code passes to kernels by value, with the rules that the hardware's
// cuTensorMapEncodeTiled has, and the address arithmetic of the shared-memory swizzle.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_TENSORMAP_H
#define DITRON_SIM_HOPPER_TENSORMAP_H

#include "ditron/abi/Simulator.h"
#include "ditron/support/Status.h"

#include <cstdint>
#include <span>
#include <string>

namespace ditron::sim {

/// What is wrong with a tensor map; empty when nothing is.
std::string checkTensorMap(const DitronSimTensorMap &map);

/// A tensor map. Dimension 0 is the contiguous one; `stridesBytes` has one entry per further dimension. `roundsTf32`: loads round
/// its elements, which are fp32, to tf32.
Expected<DitronSimTensorMap> makeTensorMap(void *base, uint32_t elementBytes, std::span<const uint32_t> dims,
                                           std::span<const uint64_t> stridesBytes, std::span<const uint32_t> box,
                                           uint32_t swizzleBytes, bool fillNan = false, bool roundsTf32 = false);

/// Bytes of the box.
uint32_t boxBytes(const DitronSimTensorMap &map);

/// Where the byte at a shared-memory address of an unswizzled tile lies with the swizzle: bits 4.. are XORed with bits 7..,
/// one, two or three of them for 32, 64, 128 bytes.
inline uint32_t swizzleAddress(uint32_t address, uint32_t swizzleBytes) {
  const uint32_t mask = swizzleBytes ? swizzleBytes / 16 - 1 : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_TENSORMAP_H
