//===- LayoutPicture.cpp - Layouts drawn --------------------------------------------------------------------------===//
#include "layout/LayoutPicture.h"

#include "base/Svg.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::tool {

using layout::DistributedLayout;
using layout::MachineDim;
using layout::SharedLayout;

namespace {

constexpr double cellHeight = 20, fontSize = 11, margin = 8, titleHeight = 26;
constexpr int64_t bankLine = 128; ///< Bytes: 32 banks of 4.

double cellWidth(size_t characters) { return 10 + 0.62 * fontSize * static_cast<double>(characters); }

std::string holderText(const DistributedLayout &layout, int64_t packed) {
  std::string text = fmt::format("{}:{}", layout.idFor(MachineDim::Lane, packed), layout.registerFor(packed));
  return layout.numBits(MachineDim::Warp) > 0 ? fmt::format("{}.{}", layout.idFor(MachineDim::Warp, packed), text)
                                              : text;
}

/// Row-major coordinates: "3,12".
std::string coordinatesText(const layout::Shape &shape, int64_t packed) {
  std::vector<int64_t> coordinates(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; packed /= shape[axis])
    coordinates[axis] = packed % shape[axis];
  return fmt::format("{}", fmt::join(coordinates, ","));
}

int64_t elementsPerLine(const SharedLayout &layout) {
  return std::min<int64_t>(std::max<int64_t>(1, bankLine / layout.elementBytes()), int64_t(1)
                                                                                       << layout.numTensorBits());
}

} // namespace

std::string layoutSvg(const DistributedLayout &layout) {
  size_t characters = 1;
  for (int64_t packed = 0; packed < layout.numElements(); ++packed)
    characters = std::max(characters, holderText(layout, packed).size());
  const double width = cellWidth(characters);
  const int64_t columns = layout.rank() == 0 ? 1 : layout.shape().back();
  const int64_t rows = layout.rank() < 2 ? 1 : layout.shape()[layout.rank() - 2];
  Svg picture;
  picture.text(margin, margin + fontSize, fontSize, layout.toString());
  for (int64_t packed = 0; packed < layout.numElements(); ++packed) {
    // Higher dimensions follow each other, with a gap between them.
    const int64_t row = packed / columns, plane = row / rows;
    const double x = margin + static_cast<double>(packed % columns) * width;
    const double y =
        margin + titleHeight + static_cast<double>(row) * cellHeight + static_cast<double>(plane) * cellHeight / 2;
    const int lane = layout.idFor(MachineDim::Lane, packed), warp = layout.idFor(MachineDim::Warp, packed);
    picture.rectangle(x, y, width - 1, cellHeight - 1,
                      colourOf(static_cast<unsigned>(lane), static_cast<double>(warp) / std::max(1, layout.numWarps())),
                      fmt::format("element ({}): warp {}, lane {}, register {}",
                                  coordinatesText(layout.shape(), packed), warp, lane, layout.registerFor(packed)));
    picture.text(x + width / 2, y + cellHeight - 6, fontSize, holderText(layout, packed), "middle");
  }
  return picture.element();
}

std::string layoutSvg(const SharedLayout &layout) {
  const int64_t elements = int64_t(1) << layout.numTensorBits(), line = elementsPerLine(layout);
  const int64_t columns = layout.shape().empty() ? 1 : layout.shape().back();
  size_t characters = 1;
  for (int64_t offset = 0; offset < elements; ++offset)
    characters = std::max(characters, coordinatesText(layout.shape(), layout.tensorAt(offset)).size());
  const double width = cellWidth(characters), left = margin + 52;
  Svg picture;
  picture.text(margin, margin + fontSize, fontSize, layout.toString());
  for (int64_t offset = 0; offset < elements; ++offset) {
    const int64_t packed = layout.tensorAt(offset), byte = offset * layout.elementBytes();
    const double x = left + static_cast<double>(offset % line) * width;
    const double y = margin + titleHeight + static_cast<double>(offset / line) * cellHeight;
    if (offset % line == 0)
      picture.text(left - 6, y + cellHeight - 6, fontSize, fmt::format("{}", byte), "end");
    picture.rectangle(
        x, y, width - 1, cellHeight - 1, colourOf(static_cast<unsigned>(packed / columns)),
        fmt::format("byte {}, bank {}: element ({})", byte, byte / 4 % 32, coordinatesText(layout.shape(), packed)));
    picture.text(x + width / 2, y + cellHeight - 6, fontSize, coordinatesText(layout.shape(), packed), "middle");
  }
  return picture.element();
}

std::string layoutTable(const SharedLayout &layout) {
  const int64_t elements = int64_t(1) << layout.numTensorBits(), line = elementsPerLine(layout);
  if (elements > mostDrawnElements)
    return fmt::format("{} has {} elements, more than the {} that are drawn\n", layout::shapeToString(layout.shape()),
                       elements, mostDrawnElements);
  size_t width = 0;
  for (int64_t packed = 0; packed < elements; ++packed)
    width = std::max(width, coordinatesText(layout.shape(), packed).size());
  std::string table;
  for (int64_t offset = 0; offset < elements; ++offset) {
    if (offset % line == 0)
      table += fmt::format("{:>6}: ", offset * layout.elementBytes());
    table += fmt::format("{:>{}}{}", coordinatesText(layout.shape(), layout.tensorAt(offset)), width,
                         offset % line == line - 1 ? "\n" : " ");
  }
  return table;
}

} // namespace ditron::tool
