//===- LayoutText.cpp - Printing, parsing and drawing register layouts --------------------------------------*- C++ -*-===//
//
// The text form of DistributedLayout, its parser, and the picture that `ditron layout` and kernel dumps show. Also the scanner
// that the shared layout's parser uses.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/LinearLayout.h"
#include "ditron/layout/TextScanner.h"

#include <fmt/format.h>

#include <algorithm>

namespace ditron::layout {

static constexpr std::string_view dimLetters = "ijklmnop";
static_assert(dimLetters.size() == maxRank);

std::string bitName(const Shape &shape, int bit) {
  for (int axis = static_cast<int>(shape.size()) - 1; axis >= 0; --axis) {
    int bits = isPowerOfTwo(shape[axis]) ? log2Exact(shape[axis]) : 0;
    if (bit < bits)
      return axis < maxRank ? fmt::format("{}{}", dimLetters[axis], bit) : fmt::format("d{}.{}", axis, bit);
    bit -= bits;
  }
  return fmt::format("?{}", bit);
}

std::string shapeToString(const Shape &shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

//===------------------------------------------------------------------------------------------------------------------===//
// TextScanner
//===------------------------------------------------------------------------------------------------------------------===//

void TextScanner::skipSpaces() {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n'))
    ++at;
}

bool TextScanner::eat(std::string_view token) {
  skipSpaces();
  if (!text.substr(at).starts_with(token))
    return false;
  at += token.size();
  return true;
}

bool TextScanner::atEnd() {
  skipSpaces();
  return at == text.size();
}

std::optional<int64_t> TextScanner::number() {
  skipSpaces();
  int64_t value = 0;
  size_t start = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9' && at - start < 18)
    value = value * 10 + (text[at++] - '0');
  if (at == start)
    return std::nullopt;
  return value;
}

std::string_view TextScanner::word() {
  skipSpaces();
  size_t start = at;
  while (at < text.size() && text[at] >= 'a' && text[at] <= 'z')
    ++at;
  return text.substr(start, at - start);
}

Expected<Shape> TextScanner::shape() {
  if (eat("scalar"))
    return Shape();
  Shape result;
  do {
    std::optional<int64_t> size = number();
    if (!size)
      return error("expected a shape such as 64x32, or scalar");
    if (!isPowerOfTwo(*size))
      return error(fmt::format("size {} is not a power of two", *size));
    result.push_back(*size);
  } while (at < text.size() && text[at] == 'x' && eat("x"));
  return result;
}

Expected<size_t> TextScanner::dimension() {
  skipSpaces();
  if (at < text.size() && dimLetters.find(text[at]) != std::string_view::npos)
    return dimLetters.find(text[at++]);
  if (eat("d"))
    if (std::optional<int64_t> axis = number(); axis && eat("."))
      return static_cast<size_t>(*axis);
  return error("expected a bit such as j3, or * for a copy");
}

Expected<int> TextScanner::bit(const Shape &shape) {
  DITRON_ASSIGN_OR_RETURN(const size_t axis, dimension());
  if (axis >= shape.size())
    return error(fmt::format("expected a bit of the shape, found a bit of dimension {}, but the shape {} has rank {}", axis, shapeToString(shape), shape.size()));
  std::optional<int64_t> position = number();
  if (!position)
    return error("expected the number of the bit after the letter of the dimension");
  int bits = log2Exact(shape[axis]);
  if (*position >= bits)
    return error(fmt::format("dimension {} of shape {} has {} bits, there is no bit {}", axis, shapeToString(shape), bits,
                             *position));
  return lowestBitOfAxis(shape, static_cast<int>(axis)) + static_cast<int>(*position);
}

Status TextScanner::error(std::string_view what) const {
  return invalidArgument(fmt::format("layout text, column {}: {}; in '{}'", at + 1, what, text));
}

//===------------------------------------------------------------------------------------------------------------------===//
// DistributedLayout
//===------------------------------------------------------------------------------------------------------------------===//

std::string DistributedLayout::toString() const {
  auto list = [this](MachineDim dim) {
    std::vector<std::string> names;
    for (int basis : bases(dim))
      names.push_back(basis == zeroBasis ? "*" : bitName(basis));
    return fmt::format("{}", fmt::join(names, " "));
  };
  std::string text = fmt::format("{}, reg = {{{}}}, lane = [{}], warp = [{}]", shapeToString(tileShape),
                                 list(MachineDim::Reg), list(MachineDim::Lane), list(MachineDim::Warp));
  if (numBits(MachineDim::Block) > 0)
    text += fmt::format(", block = [{}]", list(MachineDim::Block));
  return text;
}

/// Reads `= [j0 *]` (or braces for registers).
static Expected<std::vector<int>> parseBases(TextScanner &scanner, const Shape &shape, MachineDim dim) {
  bool braces = dim == MachineDim::Reg;
  if (!scanner.eat("=") || !scanner.eat(braces ? "{" : "["))
    return scanner.error(fmt::format("expected '= {}' after {}", braces ? '{' : '[', toString(dim)));
  std::vector<int> bases;
  while (!scanner.eat(braces ? "}" : "]")) {
    if (scanner.atEnd())
      return scanner.error(fmt::format("the list of {} is not closed", toString(dim)));
    if (scanner.eat("*")) {
      if (braces)
        return scanner.error("registers hold no copies: '*' is not allowed in reg");
      bases.push_back(zeroBasis);
      continue;
    }
    DITRON_ASSIGN_OR_RETURN(int bit, scanner.bit(shape));
    bases.push_back(bit);
  }
  return bases;
}

Expected<DistributedLayout> DistributedLayout::parse(std::string_view text) {
  TextScanner scanner(text);
  DITRON_ASSIGN_OR_RETURN(Shape shape, scanner.shape());
  std::vector<int> parsed[numMachineDims];
  for (MachineDim dim : {MachineDim::Reg, MachineDim::Lane, MachineDim::Warp, MachineDim::Block}) {
    if (dim == MachineDim::Block && scanner.atEnd())
      break;
    if (!scanner.eat(",") || !scanner.eat(layout::toString(dim)))
      return scanner.error(fmt::format("expected ', {} ='", layout::toString(dim)));
    DITRON_ASSIGN_OR_RETURN(parsed[static_cast<int>(dim)], parseBases(scanner, shape, dim));
  }
  if (!scanner.atEnd())
    return scanner.error("expected the end of the layout");
  Expected<DistributedLayout> result = get(std::move(shape), std::move(parsed[0]), std::move(parsed[1]),
                                           std::move(parsed[2]), std::move(parsed[3]));
  if (!result.isOk())
    return result.status().withContext(fmt::format("layout '{}'", text));
  return result;
}

std::string DistributedLayout::toTable(int64_t maxElements) const {
  if (numElements() > maxElements)
    return fmt::format("{} has {} elements, more than the {} that are drawn\n", shapeToString(tileShape), numElements(),
                       maxElements);
  auto cell = [this](int64_t packed) {
    std::string text = fmt::format("{}:{}", idFor(MachineDim::Lane, packed), registerFor(packed));
    if (numBits(MachineDim::Warp) > 0)
      text = fmt::format("{}.{}", idFor(MachineDim::Warp, packed), text);
    if (numBits(MachineDim::Block) > 0)
      text = fmt::format("{}/{}", idFor(MachineDim::Block, packed), text);
    return text;
  };
  size_t width = 0;
  for (int64_t packed = 0; packed < numElements(); ++packed)
    width = std::max(width, cell(packed).size());
  int64_t columns = tileShape.empty() ? 1 : tileShape.back();
  int64_t rows = rank() < 2 ? 1 : tileShape[rank() - 2];
  std::string table;
  for (int64_t packed = 0; packed < numElements(); ++packed) {
    if (rank() > 2 && packed % (rows * columns) == 0) {
      std::vector<int64_t> outer = coordinates(packed);
      outer.resize(rank() - 2);
      table += fmt::format("[{}, :, :]\n", fmt::join(outer, ", "));
    }
    bool lastOfRow = packed % columns == columns - 1;
    table += fmt::format("{:>{}}{}", cell(packed), width, lastOfRow ? "\n" : " ");
  }
  return table;
}

} // namespace ditron::layout
