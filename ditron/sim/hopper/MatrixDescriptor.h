//===- MatrixDescriptor.h - Matrices in shared memory as wgmma sees them --------------------------------*- C++ -*-===//
//
// A matrix descriptor (PTX ISA, "Matrix descriptor") names a start address, two byte offsets and a swizzle. One step of a
// multiply covers 32 bytes of K; its elements lie in core matrices of 8 rows of 16 bytes. With W the bytes of a swizzle
// row (16 without swizzle), element (row, k) of a step lies, before the swizzle, at start plus
//
//   K-major       (row % 8) * W + (row / 8) * stride + chunk * (16; leading without swizzle) + bytes in the chunk,
//                 chunk = the 16-byte chunk of k, 0 or 1
//   MN-major      (unit % (W / 16)) * 16 + (unit / (W / 16)) * leading + (k % 8) * W + (k / 8) * stride, unit = row / 8;
//                 without swizzle the two offsets swap roles: unit * stride + (k % 8) * 16 + (k / 8) * leading
//
// and the swizzle is an XOR on the final address bits, the one that tensor copies make.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_MATRIXDESCRIPTOR_H
#define DITRON_SIM_HOPPER_MATRIXDESCRIPTOR_H

#include "ditron/sim/hopper/TensorMap.h"

#include <cstdint>
#include <string>

namespace ditron::sim {

struct MatrixView {
  uint32_t start = 0; ///< Offset in the block's shared memory.
  uint32_t leading = 0, stride = 0;
  uint32_t swizzleBytes = 0;
  bool mnMajor = false;

  /// Shared offset of a 16-byte chunk of a K-major matrix: `chunk` 0 or 1 of the row.
  uint32_t kMajorChunk(uint32_t begin, uint32_t row, uint32_t chunk) const {
    const uint32_t pitch = swizzleBytes ? swizzleBytes : 16;
    return swizzleAddress(begin + row % 8 * pitch + row / 8 * stride + chunk * (swizzleBytes ? 16 : leading),
                          swizzleBytes);
  }
  /// Shared offset of the 16-byte chunk with rows 8 * unit .. 8 * unit + 7 of a column k of an MN-major matrix.
  uint32_t mnMajorChunk(uint32_t begin, uint32_t unit, uint32_t k) const {
    if (!swizzleBytes)
      return begin + unit * stride + k % 8 * 16 + k / 8 * leading;
    const uint32_t units = swizzleBytes / 16;
    return swizzleAddress(begin + unit % units * 16 + unit / units * leading + k % 8 * swizzleBytes + k / 8 * stride,
                          swizzleBytes);
  }
};

/// Reads a descriptor. The result says what is wrong with it; empty when nothing is.
std::string decodeDescriptor(uint64_t descriptor, bool mnMajor, MatrixView &view);

/// The descriptor with these fields; offsets in bytes, multiples of 16. For tests and host-side use.
uint64_t encodeDescriptor(uint32_t start, uint32_t leading, uint32_t stride, uint32_t swizzleBytes);

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_MATRIXDESCRIPTOR_H
