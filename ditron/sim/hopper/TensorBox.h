//===- TensorBox.h - The box of a tensor that a copy moves ----------------------------------------------*- C++ -*-===//
//
// A tensor copy moves the box at some coordinates of the tensor that its map describes. In shared memory the box is dense,
// row after row, perhaps swizzled; in global memory only the part counts that lies in the tensor: what a load finds
// outside is zero or NaN, what a store has for it is dropped. This is the geometry, and the moving of bytes; not when.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_TENSORBOX_H
#define DITRON_SIM_HOPPER_TENSORBOX_H

#include "ditron/abi/Simulator.h"

#include <array>
#include <cstdint>
#include <utility>

namespace ditron::sim {

class TensorBox {
public:
  TensorBox() = default;
  /// Of a map without faults (checkTensorMap).
  TensorBox(const DitronSimTensorMap &map, const int32_t *coords);

  /// Bytes of the whole box: what it takes in shared memory.
  uint32_t bytes() const { return wholeBytes; }
  /// Bytes of the part in the tensor: what a copy moves.
  uint64_t movedBytes() const { return elements * map.elementBytes; }
  /// Whether no part of it lies in the tensor.
  bool isOutside() const { return elements == 0; }
  /// First byte in global memory that the copy touches, and how many from there to the last one. Not for a box outside.
  std::pair<char *, uint64_t> touched() const;

  /// Calls visit(number, address, before, bytes) for each row of the box: the address of its part in the tensor, or null
  /// when it has none; the bytes of the row before that part; the bytes of the part.
  template <typename Visit> void forEachRow(Visit visit) const;

  /// Global memory to the shared memory of a block, at an offset.
  void load(char *sharedMemory, uint32_t shared) const;
  /// Shared memory to the dense, unswizzled rows that `store` takes.
  void readShared(const char *sharedMemory, uint32_t shared, char *rows) const;
  /// Those rows to global memory.
  void store(const char *rows) const;

private:
  uint32_t rowBytes() const { return map.box[0] * map.elementBytes; }
  uint64_t rowOffset(const int64_t *position) const;
  void fillRow(char *row) const;
  void roundRow(char *row) const;

  DitronSimTensorMap map{};
  std::array<int32_t, 5> coords{};
  uint32_t wholeBytes = 0;
  // The part in the tensor, in elements of it; `to` is past the end.
  int64_t from[5] = {0, 0, 0, 0, 0}, to[5] = {1, 1, 1, 1, 1};
  uint64_t elements = 0;
};

template <typename Visit> void TensorBox::forEachRow(Visit visit) const {
  const uint32_t rows = wholeBytes / rowBytes();
  uint32_t index[5] = {0, 0, 0, 0, 0};
  for (uint32_t row = 0; row < rows; ++row) {
    int64_t position[5] = {from[0], 0, 0, 0, 0};
    bool inside = !isOutside();
    for (uint32_t d = 1; d < map.rank; ++d) {
      position[d] = static_cast<int64_t>(coords[d]) + index[d];
      inside &= position[d] >= from[d] && position[d] < to[d];
    }
    if (inside)
      visit(row,
            static_cast<char *>(map.base) + rowOffset(position) + static_cast<uint64_t>(from[0]) * map.elementBytes,
            static_cast<uint32_t>(from[0] - coords[0]) * map.elementBytes,
            static_cast<uint32_t>(to[0] - from[0]) * map.elementBytes);
    else
      visit(row, static_cast<char *>(nullptr), 0u, 0u);
    for (uint32_t d = 1; d < map.rank && ++index[d] == map.box[d]; ++d)
      index[d] = 0;
  }
}

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_TENSORBOX_H
