//===- SliceText.h - Parts of arrays as text ------------------------------------------------------------*- C++ -*-===//
//
// The value of --print and the parts of buffers in run files, in NumPy's spelling:
//
//   x             the array on every rank
//   x@2           on rank 2
//   x[0:4]        a part: BEGIN:END or BEGIN:END:STEP per axis, an index to drop the axis; negative ones count from the end
//   x[-1,::8]@0
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_VALUES_SLICETEXT_H
#define DITRON_VALUES_SLICETEXT_H

#include "ditron/support/Npy.h"

#include <optional>

namespace ditron::values {

struct SliceText {
  struct Axis {
    std::optional<int64_t> begin, end;
    int64_t step = 1;
    bool isIndex = false; ///< `begin` alone; the axis is dropped.
  };
  std::string name;
  std::string brackets; ///< As written, with the brackets; empty for the whole array.
  std::vector<Axis> axes;
  std::optional<uint32_t> rank;
};

/// `option` begins errors; empty where they are about a part that stands by itself.
Expected<SliceText> parseSliceText(std::string_view text, std::string_view option = "--print");
/// Whether it fits the array's shapes on the ranks: that rank exists, and so do those axes and indices.
Status checkSlice(const SliceText &slice, const std::vector<std::vector<int64_t>> &shapes,
                  std::string_view option = "--print");
/// The shape of the part of an array that the slice fits.
std::vector<int64_t> shapeOf(const SliceText &slice, const std::vector<int64_t> &shape);

/// Elements that lie side by side.
struct ElementRun {
  int64_t first = 0, count = 0;
};
/// The part as runs, as long as they can be, in the order of its elements.
std::vector<ElementRun> runsOf(const SliceText &slice, const std::vector<int64_t> &shape);
/// The part of an array that the slice fits.
NpyArray takeSlice(const SliceText &slice, const NpyArray &array);

} // namespace ditron::values
#endif // DITRON_VALUES_SLICETEXT_H
