//===- CopyBoxes.h - Tiles in shared memory as the copy engine sees them -------------------------------------*- C++ -*-===//
//
// The tensor copy engine (TMA) moves boxes: at most 256 elements in each dimension, rows one after the other in shared memory. With
// a swizzle a row of a box is exactly as wide as the swizzle, and bits 4.. of a byte's *address* are XORed with bits 7.. of it. The
// engine knows nothing of tiles: where a box does not begin at a multiple of the pattern (8 rows: 256, 512 or 1024 bytes), the
// address brings bits into the XOR that are none of the box's rows.
//
// Example: a 4x64 tile of 32-bit elements. Two panels of 128 bytes make two boxes of 4 rows; swizzled, the second one would begin
// at byte 512, in the middle of the pattern, and its chunk c of row r would lie at c ^ (r + 4). So a tile of fewer than 8 rows is
// not swizzled and is one box of 4x64. So few rows have next to no bank conflicts anyway.
//
// Both sides use this file: what chooses layouts and maps (copyForm), and what issues copies (copyBoxes), which refuses a layout
// that is not what the engine reads and writes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_LAYOUT_COPYBOXES_H
#define DITRON_LAYOUT_COPYBOXES_H

#include "ditron/layout/SharedLayout.h"

namespace ditron::layout {

/// How tensor copies hold a tile: the layout of the whole, and what the tensor map is told.
struct CopyForm {
  SharedLayout layout;
  Shape box;
  int swizzleBytes = 0; ///< 0, 32, 64 or 128.
};

/// The form of a tile of two dimensions whose rows have at least 16 bytes: rows contiguous, the widest swizzle of which the tile has
/// whole patterns.
CopyForm copyForm(const Shape &shape, int elementBits);

/// A box begins at a multiple of so many bytes in shared memory: of the swizzle's pattern, at least of what any copy needs.
int64_t copyAlignment(int swizzleBytes);

/// One box of a tile.
struct CopyBox {
  Shape start;         ///< Its first element.
  int64_t offsetBytes; ///< Its place, from the beginning of the tile.
};

/// The boxes of which a tile consists, in row-major order of their first elements. An error if some element of the layout does not
/// lie where the engine reads and writes it.
Expected<std::vector<CopyBox>> copyBoxes(const SharedLayout &layout, std::span<const int64_t> box, int swizzleBytes);

} // namespace ditron::layout
#endif // DITRON_LAYOUT_COPYBOXES_H
