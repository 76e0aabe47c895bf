//===- DescriptorKernel.cpp - Kernels that move tiles through tensor descriptors --------------------------------------------===//
//
// See DescriptorKernel.h. The random kernels are in RandomDescriptorKernel.cpp.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "descriptors/DescriptorKernel.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::e2e {

//===--------------------------------------------------------------------------------------------------------------------===//
// Tensors
//===--------------------------------------------------------------------------------------------------------------------===//

/// Values are 1 and up to this, so that every type holds them exactly and the sum of two.
static int64_t largestValue(DataType type) { return type == DataType::F8E5 || type == DataType::F8E4NV ? 8 : 61; }

int64_t computedValue(DataType type, int64_t tile, int64_t index) { return (index * 7 + tile * 13) % largestValue(type) + 1; }

int64_t TiledTensor::tileLength() const {
  int64_t length = 1;
  for (int64_t size : block)
    length *= size;
  return length;
}

std::optional<int64_t> TiledTensor::place(int64_t tile, int64_t index) const {
  int64_t address = 0;
  for (size_t dim = block.size(); dim-- > 0; index /= block[dim]) {
    const int64_t at = first[dim] + index % block[dim] + (dim == walked ? tile * block[dim] : 0);
    if (at < 0 || at >= sizes[dim])
      return std::nullopt;
    address += at * strides[dim];
  }
  return address;
}

std::optional<int64_t> TiledTensor::placeInRow(int64_t row, int64_t column) const {
  if (row < 0 || row >= sizes[0] || column < 0 || column >= sizes[1])
    return std::nullopt;
  return row * strides[0] + column;
}

void TiledTensor::layOut(int64_t gap, std::mt19937_64 &random) {
  constexpr int64_t behind = 32;
  strides.assign(sizes.size(), 1);
  for (size_t dim = sizes.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * sizes[dim] + (dim + 1 == sizes.size() ? gap : 0);
  values.resize(strides[0] * sizes[0] + behind);
  for (float &value : values)
    value = static_cast<float>(random() % largestValue(type) + 1);
}

int64_t Piece::length() const {
  return access == Access::Gather || access == Access::Scatter ? int64_t(rows.size()) * accessed().block[1]
                                                               : accessed().tileLength();
}

void PrintTo(const Piece &piece, std::ostream *stream) {
  static const std::string_view names[] = {"copy", "store", "update", "gather", "scatter"};
  auto describe = [&](std::string_view what, const TiledTensor &tensor, bool ofHost) {
    if (!tensor.block.empty())
      *stream << fmt::format(" {} {} [{}] strides [{}] blocks [{}] from [{}]{}", what, toString(tensor.type),
                             fmt::join(tensor.sizes, ","), fmt::join(tensor.strides, ","), fmt::join(tensor.block, ","),
                             fmt::join(tensor.first, ","), ofHost ? " (host)" : "");
  };
  *stream << names[static_cast<int>(piece.access)] << (piece.update.empty() ? "" : " " + piece.update);
  describe("from", piece.source, piece.sourceOfHost);
  describe("to", piece.target, piece.targetOfHost);
  *stream << (piece.readsBack ? ", read back" : "") << (piece.isTransposed ? ", transposed" : "");
}

//===--------------------------------------------------------------------------------------------------------------------===//
// What must be in memory
//===--------------------------------------------------------------------------------------------------------------------===//

static float updated(const std::string &update, float old, float value) {
  const int64_t a = static_cast<int64_t>(old), b = static_cast<int64_t>(value);
  return static_cast<float>(update == "add"   ? a + b
                            : update == "min" ? std::min(a, b)
                            : update == "max" ? std::max(a, b)
                            : update == "and" ? a & b
                            : update == "or"  ? a | b
                                              : a ^ b);
}

/// The number that a kernel gives to an element which it computes with its dimensions the other way round.
static int64_t transposedIndex(const std::vector<int64_t> &block, int64_t index) {
  std::vector<int64_t> position(block.size());
  for (size_t dim = block.size(); dim-- > 0; index /= block[dim])
    position[dim] = index % block[dim];
  int64_t transposed = 0;
  for (size_t dim = block.size(); dim-- > 0;)
    transposed = transposed * block[dim] + position[dim];
  return transposed;
}

/// Applies one tile to `result`.
static void applyTile(const Piece &piece, int64_t tile, PieceResult &result) {
  const bool isListed = piece.access == Access::Gather || piece.access == Access::Scatter;
  const bool isLoad = piece.access == Access::Copy || piece.access == Access::Gather;
  auto placeOf = [&](const TiledTensor &tensor, int64_t index) {
    const int64_t columns = tensor.block.back();
    return isListed ? tensor.placeInRow(piece.rows[index / columns], tensor.first[1] + tile * columns + index % columns)
                    : tensor.place(tile, index);
  };
  for (int64_t index = 0; index < piece.length(); ++index) {
    float value = static_cast<float>(computedValue(
        piece.accessed().type, tile, piece.isTransposed ? transposedIndex(piece.accessed().block, index) : index));
    if (isLoad) {
      const std::optional<int64_t> from = placeOf(piece.source, index);
      value = from ? piece.source.values[*from] : piece.fillsNan ? NAN : 0.0f;
    }
    if (piece.access != Access::Gather) {
      const std::optional<int64_t> to = placeOf(piece.target, index);
      if (to)
        result.target[*to] = piece.access == Access::Update ? updated(piece.update, result.target[*to], value) : value;
      else if (piece.readsBack)
        value = 0;
    }
    if (isLoad)
      result.shown[tile * piece.length() + index] = value;
  }
}

PieceResult resultOf(const Piece &piece, int64_t numTiles) {
  PieceResult result;
  result.target = piece.target.values;
  if (piece.access == Access::Copy || piece.access == Access::Gather)
    result.shown.resize(numTiles * piece.length());
  for (int64_t tile = 0; tile < numTiles; ++tile)
    applyTile(piece, tile, result);
  return result;
}

//===--------------------------------------------------------------------------------------------------------------------===//
// Text
//===--------------------------------------------------------------------------------------------------------------------===//

namespace {

class TextWriter {
public:
  TextWriter(const DescriptorKernel &kernel, std::vector<std::pair<std::string, Argument>> &keywords)
      : kernel(kernel), keywords(keywords), random(kernel.seed) {}

  std::string run() {
    for (size_t p = 0; p < kernel.pieces.size(); ++p)
      addPiece(kernel.pieces[p], p);
    const std::string loop = loopText();
    for (const auto &[name, value] : keywords)
      parameters.push_back(name);
    return fmt::format("\n@triton.jit\ndef kernel({}):\n{}{}{}", fmt::join(parameters, ", "), setup, loop, body);
  }

private:
  /// A number in the text or a parameter.
  std::string number(int64_t value, bool isLiteral = false) {
    if (isLiteral || random() % 2)
      return value < 0 ? fmt::format("({})", value) : fmt::format("{}", value);
    std::string name = fmt::format("n{}", keywords.size());
    keywords.emplace_back(name, value);
    return name;
  }

  std::string list(const std::vector<int64_t> &values, bool isLiteral) {
    std::vector<std::string> items;
    for (int64_t value : values)
      items.push_back(number(value, isLiteral));
    return fmt::format("{}", fmt::join(items, ", "));
  }

  /// Defines the descriptor `name` of the memory at the parameter `memory`.
  void makeDescriptor(const TiledTensor &tensor, const std::string &memory, const std::string &name, bool isOfHost,
                      bool fillsNan) {
    parameters.push_back(memory);
    if (isOfHost) {
      setup += fmt::format("    {} = {}\n", name, memory);
      return;
    }
    std::vector<int64_t> outer(tensor.strides.begin(), tensor.strides.end() - 1);
    setup += fmt::format("    {} = tl.make_tensor_descriptor({}, [{}], [{}{}1], [{}], padding_option=\"{}\")\n", name, memory,
                         list(tensor.sizes, tensor.isLiteral), list(outer, tensor.isLiteral), outer.empty() ? "" : ", ",
                         fmt::join(tensor.block, ", "), fillsNan ? "nan" : "zero");
  }

  std::string offset(const TiledTensor &tensor, size_t dim) {
    const std::string begin = number(tensor.first[dim], tensor.isLiteral);
    if (dim != tensor.walked)
      return begin;
    const std::string step = fmt::format("tile * {}", tensor.block[dim]);
    return tensor.first[dim] == 0 ? step : fmt::format("{} + {}", begin, step);
  }
  std::string offsets(const TiledTensor &tensor) {
    std::vector<std::string> items;
    for (size_t dim = 0; dim < tensor.block.size(); ++dim)
      items.push_back(offset(tensor, dim));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }

  void line(const std::string &text) { body += fmt::format("{}{}\n", kernel.walk == Walk::Once ? "    " : "        ", text); }

  /// Defines v<p>, a tile of values that are computed.
  void addComputed(const Piece &piece, size_t p, std::vector<int64_t> shape) {
    const TiledTensor &tensor = piece.target;
    line(fmt::format("v{} = (tl.arange(0, {}) * 7 + tile * 13) % {} + 1", p, piece.length(), largestValue(tensor.type)));
    if (piece.isTransposed)
      std::reverse(shape.begin(), shape.end());
    line(fmt::format("v{0} = tl.reshape(v{0}, [{1}]).to(b{0}.dtype)", p, fmt::join(shape, ", ")));
    if (piece.isTransposed) {
      std::vector<int64_t> order;
      for (size_t dim = shape.size(); dim-- > 0;)
        order.push_back(dim);
      line(fmt::format("v{0} = tl.permute(v{0}, [{1}])", p, fmt::join(order, ", ")));
    }
  }

  void addPiece(const Piece &piece, size_t p) {
    const bool isListed = piece.access == Access::Gather || piece.access == Access::Scatter;
    const bool isLoad = piece.access == Access::Copy || piece.access == Access::Gather;
    if (isLoad)
      makeDescriptor(piece.source, fmt::format("x{}", p), fmt::format("a{}", p), piece.sourceOfHost, piece.fillsNan);
    if (piece.access != Access::Gather)
      makeDescriptor(piece.target, fmt::format("y{}", p), fmt::format("b{}", p), piece.targetOfHost, false);
    if (isListed) {
      parameters.push_back(fmt::format("r{}", p));
      setup += fmt::format("    i{0} = tl.load(r{0} + tl.arange(0, {1}))\n", p, piece.rows.size());
    }
    switch (piece.access) {
    case Access::Copy:
      line(fmt::format("v{0} = a{0}.load({1})", p, offsets(piece.source)));
      line(fmt::format("b{0}.store({1}, v{0})", p, offsets(piece.target)));
      if (piece.readsBack)
        line(fmt::format("v{0} = b{0}.load({1})", p, offsets(piece.target)));
      break;
    case Access::Store:
      addComputed(piece, p, piece.target.block);
      line(fmt::format("b{0}.store({1}, v{0})", p, offsets(piece.target)));
      break;
    case Access::Update:
      addComputed(piece, p, piece.target.block);
      line(fmt::format("b{0}.atomic_{1}({2}, v{0})", p, piece.update, offsets(piece.target)));
      break;
    case Access::Gather: line(fmt::format("v{0} = a{0}.gather(i{0}, {1})", p, offset(piece.source, 1))); break;
    case Access::Scatter:
      addComputed(piece, p, {int64_t(piece.rows.size()), piece.target.block[1]});
      line(fmt::format("b{0}.scatter(v{0}, i{0}, {1})", p, offset(piece.target, 1)));
      break;
    }
    if (isLoad) {
      parameters.push_back(fmt::format("z{}", p));
      line(fmt::format("tl.store(z{0} + tile * {1} + tl.arange(0, {1}), tl.reshape(v{0}, [{1}]))", p, piece.length()));
    }
  }

  std::string loopText() {
    const int64_t count = kernel.tilesPerProgram;
    auto loop = [&](const std::string &range) {
      return fmt::format("    for step in {}:\n        tile = tl.program_id(0) * {} + step\n", range, count);
    };
    switch (kernel.walk) {
    case Walk::Once: return "    tile = tl.program_id(0)\n";
    case Walk::Range: return loop(fmt::format("range({})", number(count)));
    case Walk::Stages: return loop(fmt::format("tl.range(0, {}, num_stages={})", number(count), kernel.shape.numStages));
    case Walk::Specialized: return loop(fmt::format("tl.range(0, {}, warp_specialize=True)", number(count)));
    case Walk::Static: return loop(fmt::format("tl.static_range({})", count));
    case Walk::Persistent:
      return fmt::format("    for tile in range(tl.program_id(0), {}, tl.num_programs(0)):\n", number(kernel.numTiles()));
    }
    return "";
  }

  const DescriptorKernel &kernel;
  std::vector<std::pair<std::string, Argument>> &keywords;
  std::mt19937_64 random;
  std::vector<std::string> parameters;
  std::string setup, body;
};

} // namespace

std::string DescriptorKernel::text(std::vector<std::pair<std::string, Argument>> &keywords) const {
  return TextWriter(*this, keywords).run();
}

} // namespace ditron::e2e
