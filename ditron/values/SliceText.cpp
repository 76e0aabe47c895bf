//===- SliceText.cpp - Parts of arrays as text --------------------------------------------------------------------===//
#include "ditron/values/SliceText.h"

#include "ditron/values/TextPieces.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace ditron::values {

namespace {

constexpr std::string_view form = "write NAME, NAME[0:4], NAME[-1,::8] or one of these with @RANK behind it";

Status fail(std::string_view text, std::string_view problem) {
  return invalidArgument(fmt::format("'{}': {}; {}", text, problem, form));
}

Expected<SliceText::Axis> parseAxis(std::string_view text, std::string_view item) {
  const std::vector<std::string_view> pieces = splitAndTrim(item, ':');
  SliceText::Axis axis;
  axis.isIndex = pieces.size() == 1;
  if (pieces.size() > 3)
    return fail(text, fmt::format("'{}' has more than BEGIN:END:STEP", item));
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].empty() && !axis.isIndex)
      continue;
    const std::optional<int64_t> value = wholeNumber<int64_t>(pieces[i]);
    if (!value)
      return fail(text, fmt::format("'{}' is no integer", pieces[i]));
    if (i == 2 && *value < 1)
      return fail(text, fmt::format("the step {} is not accepted; steps are integers from 1", *value));
    (i == 0 ? axis.begin : axis.end) = i < 2 ? value : axis.end;
    axis.step = i == 2 ? *value : axis.step;
  }
  return axis;
}

/// The positions that a slice of an axis of `size` takes: the first, and how many.
std::pair<int64_t, int64_t> positions(const SliceText::Axis &axis, int64_t size) {
  auto clamp = [&](int64_t value) { return std::clamp<int64_t>(value < 0 ? value + size : value, 0, size); };
  if (axis.isIndex)
    return {*axis.begin < 0 ? *axis.begin + size : *axis.begin, 1};
  const int64_t begin = clamp(axis.begin.value_or(0)), end = clamp(axis.end.value_or(size));
  return {begin, end > begin ? (end - begin - 1) / axis.step + 1 : 0};
}

} // namespace

static Expected<SliceText> parse(std::string_view text) {
  SliceText slice;
  std::string_view rest = text;
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    const std::optional<int64_t> rank = wholeNumber<int64_t>(rest.substr(at + 1));
    if (!rank || *rank < 0 || *rank > UINT32_MAX)
      return fail(text, fmt::format("'{}' is no rank", rest.substr(at + 1)));
    slice.rank = static_cast<uint32_t>(*rank);
    rest = rest.substr(0, at);
  }
  if (const size_t open = rest.find('['); open != std::string_view::npos) {
    if (!rest.ends_with(']'))
      return fail(text, rest.rfind(']') == std::string_view::npos
                            ? "the slice has no closing ']'"
                            : fmt::format("'{}' stands behind the ']'", rest.substr(rest.rfind(']') + 1)));
    slice.brackets = rest.substr(open);
    for (std::string_view item : splitAndTrim(rest.substr(open + 1, rest.size() - open - 2), ',')) {
      DITRON_ASSIGN_OR_RETURN(SliceText::Axis axis, parseAxis(text, item));
      slice.axes.push_back(axis);
    }
    rest = rest.substr(0, open);
  }
  if (rest.empty())
    return fail(text, "the array's name is missing");
  slice.name = rest;
  return slice;
}

Expected<SliceText> parseSliceText(std::string_view text, std::string_view option) {
  Expected<SliceText> slice = parse(text);
  if (slice.isOk() || option.empty())
    return slice;
  return Status(slice.status().code(), fmt::format("{} {}", option, slice.status().message()));
}

Status checkSlice(const SliceText &slice, const std::vector<std::vector<int64_t>> &shapes, std::string_view command) {
  const std::string option = fmt::format("{}{}{}{}", command, command.empty() ? "" : " ", slice.name, slice.brackets);
  if (slice.rank && *slice.rank >= shapes.size())
    return invalidArgument(fmt::format("{}@{}: there {}, 0 to {}", option, *slice.rank,
                                       shapes.size() == 1 ? "is 1 rank" : fmt::format("are {} ranks", shapes.size()),
                                       shapes.size() - 1));
  for (size_t rank = 0; rank < shapes.size(); ++rank) {
    if (slice.rank && *slice.rank != rank)
      continue;
    const std::vector<int64_t> &shape = shapes[rank];
    if (slice.axes.size() > shape.size())
      return invalidArgument(fmt::format("{}: {} given, but the array has {} ({})", option,
                                         slice.axes.size() == 1 ? "1 axis is" : fmt::format("{} axes are", slice.axes.size()),
                                         shape.size(), shapeToString(shape)));
    for (size_t axis = 0; axis < slice.axes.size(); ++axis) {
      const SliceText::Axis &each = slice.axes[axis];
      if (each.isIndex && (*each.begin < -shape[axis] || *each.begin >= shape[axis]))
        return invalidArgument(
            fmt::format("{}: index {} of axis {} is outside of the array's shape {}; accepted are {} to {}", option,
                        *each.begin, axis, shapeToString(shape), -shape[axis], shape[axis] - 1));
    }
  }
  return Status::ok();
}

std::vector<int64_t> shapeOf(const SliceText &slice, const std::vector<int64_t> &shape) {
  std::vector<int64_t> result;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (const SliceText::Axis each = axis < slice.axes.size() ? slice.axes[axis] : SliceText::Axis(); !each.isIndex)
      result.push_back(positions(each, shape[axis]).second);
  return result;
}

std::vector<ElementRun> runsOf(const SliceText &slice, const std::vector<int64_t> &shape) {
  std::vector<ElementRun> runs = {{0, 1}};
  int64_t stride = 1;
  // From the innermost axis outwards: a piece of an axis repeats what lies inside of it.
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) {
    const SliceText::Axis each = axis < slice.axes.size() ? slice.axes[axis] : SliceText::Axis();
    const auto [first, count] = positions(each, shape[axis]);
    std::vector<ElementRun> wider;
    for (int64_t i = 0; i < count; ++i)
      for (const ElementRun &run : runs) {
        const int64_t begin = (first + i * each.step) * stride + run.first;
        if (!wider.empty() && wider.back().first + wider.back().count == begin)
          wider.back().count += run.count;
        else
          wider.push_back({begin, run.count});
      }
    runs = std::move(wider);
  }
  return runs;
}

NpyArray takeSlice(const SliceText &slice, const NpyArray &array) {
  const size_t rank = array.shape.size();
  std::vector<int64_t> first(rank), count(rank), step(rank, 1), stride(rank, 1);
  for (size_t axis = rank; axis-- > 1;)
    stride[axis - 1] = stride[axis] * array.shape[axis];
  NpyArray part{array.type, {}, {}};
  int64_t total = 1;
  for (size_t axis = 0; axis < rank; ++axis) {
    const SliceText::Axis each = axis < slice.axes.size() ? slice.axes[axis] : SliceText::Axis();
    std::tie(first[axis], count[axis]) = positions(each, array.shape[axis]);
    step[axis] = each.step;
    total *= count[axis];
    if (!each.isIndex)
      part.shape.push_back(count[axis]);
  }
  const size_t bytes = sizeOf(array.type);
  part.data.resize(static_cast<size_t>(total) * bytes);
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i, source = 0;
    for (size_t axis = rank; axis-- > 0; rest /= count[axis])
      source += (first[axis] + rest % count[axis] * step[axis]) * stride[axis];
    std::memcpy(part.data.data() + i * bytes, array.data.data() + source * bytes, bytes);
  }
  return part;
}

} // namespace ditron::values
