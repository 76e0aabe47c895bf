//===- CopyBoxes.cpp - Tiles in shared memory as the copy engine sees them -------------------------------------*- C++ -*-===//
//
// See CopyBoxes.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/CopyBoxes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

namespace ditron::layout {

/// The engine's own limits: elements of a box in one dimension; bytes at whose multiples any box begins.
static constexpr int64_t largestBox = 256;
static constexpr int64_t smallestAlignment = 128;
/// Rows until a swizzle repeats itself.
static constexpr int64_t patternRows = 8;

int64_t copyAlignment(int swizzleBytes) { return std::max(smallestAlignment, patternRows * swizzleBytes); }

CopyForm copyForm(const Shape &shape, int elementBits) {
  assert(shape.size() == 2 && "only matrices are moved by tensor copies");
  const int64_t rows = shape[0], columns = shape[1];
  const int rowMajor[] = {1, 0};
  CopyForm form;
  form.swizzleBytes = rows < patternRows ? 0 : largestSwizzle(shape, rowMajor, elementBits);
  if (form.swizzleBytes != 0) {
    form.layout = swizzledShared(shape, rowMajor, elementBits, form.swizzleBytes);
    form.box = {std::min(rows, largestBox), form.swizzleBytes * 8 / elementBits};
    return form;
  }
  // Panels as wide as a box may be.
  const int64_t panel = std::min(columns, largestBox);
  const int panelMajor[] = {2, 0, 1};
  form.layout = plainShared({rows, columns / panel, panel}, panelMajor, elementBits).reshape(shape);
  form.box = {std::min(rows, largestBox), panel};
  return form;
}

/// The byte at which the engine has byte `place` of a box that begins at a multiple of the pattern.
static int64_t swizzled(int64_t place, int swizzleBytes) {
  return swizzleBytes == 0 ? place : place ^ ((place >> 7 & (swizzleBytes / 16 - 1)) << 4);
}

/// Ok if each element of a box lies where the engine has it, counted from the box's beginning. Both are linear: it is enough to look
/// at the bits of the positions.
static Status verifyInside(const SharedLayout &layout, std::span<const int64_t> box, int swizzleBytes) {
  int64_t pitch = layout.elementBytes();
  for (int dim = static_cast<int>(box.size()); dim-- > 0; pitch *= box[dim])
    for (int64_t step = 1; step < box[dim]; step *= 2) {
      const int64_t packed = step << lowestBitOfAxis(layout.shape(), dim);
      const int64_t place = layout.offsetOf(packed) * layout.elementBytes(), wanted = swizzled(step * pitch, swizzleBytes);
      if (place != wanted)
        return internalError(
            fmt::format("step {} of a box along dimension {} is at byte {} of the tile, but tensor copies have "
                        "it at byte {}",
                        step, dim, place, wanted));
    }
  return Status::ok();
}

/// Moves `start` to the next box; false behind the last one.
static bool nextBox(Shape &start, const Shape &shape, std::span<const int64_t> box) {
  for (size_t dim = shape.size(); dim-- > 0;) {
    start[dim] += box[dim];
    if (start[dim] < shape[dim])
      return true;
    start[dim] = 0;
  }
  return false;
}

Expected<std::vector<CopyBox>> copyBoxes(const SharedLayout &layout, std::span<const int64_t> box, int swizzleBytes) {
  const Shape &shape = layout.shape();
  auto fail = [&](std::string_view reason) {
    return internalError(fmt::format("tensor copies of boxes {} with a swizzle of {} bytes do not move the tile {}: {}",
                                     fmt::join(box, "x"), swizzleBytes, layout.toString(), reason));
  };
  bool fits = box.size() == shape.size() && !box.empty();
  for (size_t dim = 0; fits && dim < shape.size(); ++dim)
    fits = isPowerOfTwo(box[dim]) && box[dim] <= std::min(shape[dim], largestBox);
  if (!fits)
    return fail("it does not consist of them");
  if (swizzleBytes != 0 && box.back() * layout.elementBytes() != swizzleBytes)
    return fail("a row is not as wide as the swizzle");
  if (Status status = verifyInside(layout, box, swizzleBytes); !status.isOk())
    return fail(status.message());
  std::vector<CopyBox> boxes;
  Shape start(shape.size(), 0);
  do {
    int64_t packed = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      packed = packed * shape[dim] + start[dim];
    boxes.push_back({start, layout.offsetOf(packed) * layout.elementBytes()});
    if (boxes.back().offsetBytes % copyAlignment(swizzleBytes) != 0)
      return fail(fmt::format("a box begins at byte {}, not at a multiple of {}", boxes.back().offsetBytes,
                              copyAlignment(swizzleBytes)));
  } while (nextBox(start, shape, box));
  return boxes;
}

} // namespace ditron::layout
