//===- ArrayPrint.cpp - Arrays as text for people -----------------------------------------------------------------===//
//
// Two walks over the elements that are shown: one for the width of the columns, one for the text.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/values/ArrayPrint.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace ditron::values {

namespace {

constexpr int64_t mostUnabbreviated = 256, longAxis = 16, edge = 3;
constexpr size_t lineWidth = 100;

class ArrayWriter {
public:
  ArrayWriter(const NpyArray &array, bool cuts) : array(array), cuts(cuts) {
    visit(0, 0, [this](int64_t index) { width = std::max(width, cell(index).size()); });
  }

  std::string text() {
    writeAxis(0, 0);
    return std::move(result);
  }

private:
  std::string cell(int64_t index) const {
    return elementText(array.type, array.data.data() + index * static_cast<int64_t>(sizeOf(array.type)));
  }
  /// Whether a position of an axis is left out.
  bool isCut(size_t axis, int64_t position) const {
    return cuts && array.shape[axis] > longAxis && position >= edge && position < array.shape[axis] - edge;
  }
  template <typename Callback> void visit(size_t axis, int64_t index, const Callback &callback) {
    if (axis == array.shape.size())
      return callback(index);
    for (int64_t i = 0; i < array.shape[axis]; ++i)
      if (!isCut(axis, i))
        visit(axis + 1, index * array.shape[axis] + i, callback);
  }

  void writeAxis(size_t axis, int64_t index) {
    if (axis == array.shape.size()) {
      result += fmt::format("{:>{}}", cell(index), array.shape.empty() ? 0 : width);
      return;
    }
    const bool innermost = axis + 1 == array.shape.size();
    const std::string indent(axis + 1, ' ');
    result += '[';
    size_t column = indent.size();
    bool cut = false;
    for (int64_t i = 0; i < array.shape[axis]; ++i) {
      if (isCut(axis, i) && std::exchange(cut, true))
        continue;
      const size_t needed = 1 + (isCut(axis, i) ? 3 : width);
      if (i > 0 && innermost && column + needed <= lineWidth) {
        result += ' ';
      } else if (i > 0) {
        result += std::string(innermost ? 1 : array.shape.size() - axis - 1, '\n') + indent;
        column = indent.size();
      }
      column += needed;
      if (isCut(axis, i))
        result += "...";
      else
        writeAxis(axis + 1, index * array.shape[axis] + i);
    }
    result += ']';
  }

  const NpyArray &array;
  const bool cuts;
  size_t width = 0;
  std::string result;
};

} // namespace

std::string elementText(DataType type, const std::byte *address) {
  switch (type) {
  case DataType::I64: {
    int64_t value = 0;
    std::memcpy(&value, address, sizeof value);
    return fmt::format("{}", value);
  }
  case DataType::U64: {
    uint64_t value = 0;
    std::memcpy(&value, address, sizeof value);
    return fmt::format("{}", value);
  }
  case DataType::I1: return *address == std::byte(0) ? "False" : "True";
  case DataType::F32: return fmt::format("{}", static_cast<float>(loadElement(type, address)));
  case DataType::F64: return fmt::format("{}", loadElement(type, address));
  default: break;
  }
  const double value = loadElement(type, address);
  return isInteger(type) ? fmt::format("{}", static_cast<int64_t>(value)) : fmt::format("{:.5g}", value);
}

std::string arrayText(const NpyArray &array, Abbreviate abbreviate) {
  const bool cuts = abbreviate == Abbreviate::Long && array.elementCount() > mostUnabbreviated;
  return ArrayWriter(array, cuts).text();
}

} // namespace ditron::values
