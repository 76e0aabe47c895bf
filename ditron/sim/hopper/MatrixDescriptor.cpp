//===- MatrixDescriptor.cpp - Matrices in shared memory as wgmma sees them ----------------------------------------===//
//
// Packing and unpacking of the 64 bits.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/MatrixDescriptor.h"

#include <fmt/format.h>

namespace ditron::sim {

namespace {
constexpr uint32_t swizzleOfMode[4] = {0, 128, 64, 32};
constexpr uint64_t usedBits = 0x3fffull | 0x3fffull << 16 | 0x3fffull << 32 | 3ull << 62;
uint32_t field(uint64_t descriptor, uint32_t bit) { return static_cast<uint32_t>(descriptor >> bit & 0x3fff) * 16; }
} // namespace

std::string decodeDescriptor(uint64_t descriptor, bool mnMajor, MatrixView &view) {
  view = {field(descriptor, 0), field(descriptor, 16), field(descriptor, 32), swizzleOfMode[descriptor >> 62], mnMajor};
  if (descriptor >> 49 & 7)
    return fmt::format("base offset {} is not supported: align the matrix to its swizzle pattern",
                       descriptor >> 49 & 7);
  if (descriptor & ~usedBits)
    return fmt::format("bits 0x{:x} are set that must be zero", descriptor & ~usedBits);
  const uint32_t patternBits = view.swizzleBytes ? (view.swizzleBytes / 16 - 1) << 7 : 0;
  if (view.start & patternBits)
    return fmt::format(
        "start address {} does not begin at a row 0 of its {}-byte swizzle pattern, which repeats every {} "
        "bytes",
        view.start, view.swizzleBytes, view.swizzleBytes * 8);
  return {};
}

uint64_t encodeDescriptor(uint32_t start, uint32_t leading, uint32_t stride, uint32_t swizzleBytes) {
  const uint64_t mode = swizzleBytes == 128 ? 1 : swizzleBytes == 64 ? 2 : swizzleBytes == 32 ? 3 : 0;
  return static_cast<uint64_t>(start / 16 & 0x3fff) | static_cast<uint64_t>(leading / 16 & 0x3fff) << 16 |
         static_cast<uint64_t>(stride / 16 & 0x3fff) << 32 | mode << 62;
}

} // namespace ditron::sim
