//===- TensorBox.cpp - The box of a tensor that a copy moves ------------------------------------------------------===//
//
// Which part of the box lies in the tensor, and the moving of its rows.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/hopper/TensorBox.h"

#include "ditron/sim/hopper/TensorMap.h"

#include <algorithm>
#include <cstring>

namespace ditron::sim {

namespace {
constexpr uint32_t maxRowBytes = 256 * 8;
} // namespace

TensorBox::TensorBox(const DitronSimTensorMap &map, const int32_t *coordinates) : map(map), wholeBytes(boxBytes(map)) {
  std::copy_n(coordinates, map.rank, coords.begin());
  elements = 1;
  for (uint32_t d = 0; d < map.rank; ++d) {
    from[d] = std::max<int64_t>(0, coords[d]);
    to[d] = std::min<int64_t>(map.dims[d], static_cast<int64_t>(coords[d]) + map.box[d]);
    elements *= static_cast<uint64_t>(std::max<int64_t>(0, to[d] - from[d]));
  }
}

uint64_t TensorBox::rowOffset(const int64_t *position) const {
  uint64_t offset = 0;
  for (uint32_t d = 1; d < map.rank; ++d)
    offset += static_cast<uint64_t>(position[d]) * map.stridesBytes[d - 1];
  return offset;
}

std::pair<char *, uint64_t> TensorBox::touched() const {
  int64_t last[5];
  for (uint32_t d = 0; d < 5; ++d)
    last[d] = to[d] - 1;
  const uint64_t first = rowOffset(from) + static_cast<uint64_t>(from[0]) * map.elementBytes;
  const uint64_t end = rowOffset(last) + static_cast<uint64_t>(to[0]) * map.elementBytes;
  return {static_cast<char *>(map.base) + first, end - first};
}

/// Fills a row with the value of elements out of range.
void TensorBox::fillRow(char *row) const {
  std::memset(row, map.fillNan ? 0xff : 0, rowBytes());
  if (map.fillNan) // 0x7f in the byte of sign and exponent: a positive NaN of every type
    for (uint32_t i = map.elementBytes - 1; i < rowBytes(); i += map.elementBytes)
      row[i] = 0x7f;
}

/// Rounds a row of fp32 to tf32, to nearest with ties to even; infinities and NaN stay.
void TensorBox::roundRow(char *row) const {
  for (uint32_t i = 0; i < rowBytes(); i += sizeof(uint32_t)) {
    uint32_t bits;
    std::memcpy(&bits, row + i, sizeof(bits));
    if ((bits & 0x7f800000u) == 0x7f800000u)
      continue;
    bits = (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
    std::memcpy(row + i, &bits, sizeof(bits));
  }
}

void TensorBox::load(char *sharedMemory, uint32_t shared) const {
  char row[maxRowBytes];
  forEachRow([&](uint32_t number, const char *source, uint32_t before, uint32_t bytes) {
    if (!source || bytes != rowBytes())
      fillRow(row);
    if (source)
      std::memcpy(row + before, source, bytes);
    if (map.roundsTf32)
      roundRow(row);
    const uint32_t address = shared + number * rowBytes();
    if (!map.swizzleBytes)
      std::memcpy(sharedMemory + address, row, rowBytes());
    else
      for (uint32_t i = 0; i < rowBytes(); i += 16)
        std::memcpy(sharedMemory + swizzleAddress(address + i, map.swizzleBytes), row + i, 16);
  });
}

void TensorBox::readShared(const char *sharedMemory, uint32_t shared, char *rows) const {
  for (uint32_t i = 0; i < wholeBytes; i += 16)
    std::memcpy(rows + i, sharedMemory + swizzleAddress(shared + i, map.swizzleBytes), 16);
}

void TensorBox::store(const char *rows) const {
  forEachRow([&](uint32_t number, char *target, uint32_t before, uint32_t bytes) {
    if (target)
      std::memcpy(target, rows + number * rowBytes() + before, bytes);
  });
}

} // namespace ditron::sim
