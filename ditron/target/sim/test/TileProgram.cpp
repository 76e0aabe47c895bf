//===- TileProgram.cpp - IR text of small kernels with any layouts, for tests ---------------------------------------------===//
//
// See TileProgram.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "TileProgram.h"

#include <algorithm>
#include <fmt/format.h>

using ditron::layout::DistributedLayout;

namespace ditron::target::test {

std::string TileProgram::attribute(const DistributedLayout &layout) {
  return "#dgpu.layout<" + layout.toString() + ">";
}

std::string TileProgram::tensor(const DistributedLayout &layout, const std::string &element) {
  std::string shape;
  for (int64_t size : layout.shape())
    shape += std::to_string(size) + "x";
  return "tensor<" + shape + element + ", " + attribute(layout) + ">";
}

std::string TileProgram::array(const std::string &element) {
  std::string name = fresh();
  parameters += fmt::format("{}: !tile.ptr<{}> {{tile.divisibility = 16 : i64}}, ", name, element);
  return name;
}

std::string TileProgram::indices(const DistributedLayout &layout) {
  DistributedLayout flat = layout.reshape({layout.numElements()});
  std::string range = fresh(), shaped = fresh();
  line(fmt::format("{} = tile.arange 0, {} : {}", range, layout.numElements(), tensor(flat, "i32")));
  line(fmt::format("{} = tile.reshape {} : {} -> {}", shaped, range, tensor(flat, "i32"), tensor(layout, "i32")));
  return shaped;
}

/// Emits the pointers of a whole tile.
static std::string pointers(TileProgram &program, const std::string &array, const DistributedLayout &layout,
                            const std::string &element) {
  std::string type = TileProgram::tensor(layout, "!tile.ptr<" + element + ">");
  std::string offsets = program.indices(layout), bases = program.fresh(), result = program.fresh();
  program.line(fmt::format("{} = tile.splat {} : !tile.ptr<{}> -> {}", bases, array, element, type));
  program.line(fmt::format("{} = tile.addptr {}, {} : {}, {}", result, bases, offsets, type,
                           TileProgram::tensor(layout, "i32")));
  return result;
}

std::string TileProgram::load(const std::string &array, const DistributedLayout &layout, const std::string &element) {
  std::string ptr = pointers(*this, array, layout, element), value = fresh();
  line(fmt::format("{} = tile.load {} : {} -> {}", value, ptr, tensor(layout, "!tile.ptr<" + element + ">"),
                   tensor(layout, element)));
  return value;
}

void TileProgram::store(const std::string &array, const std::string &value, const DistributedLayout &layout,
                        const std::string &element) {
  std::string ptr = pointers(*this, array, layout, element);
  line(fmt::format("tile.store {}, {} : {}, {}", ptr, value, tensor(layout, "!tile.ptr<" + element + ">"),
                   tensor(layout, element)));
}

std::string TileProgram::text() const {
  return fmt::format(
      "module attributes {{dgpu.num_warps = {} : i32, dgpu.threads_per_warp = 32 : i32}} {{\n"
      "  func.func @kernel({}%world: !tile.ptr<i64>) attributes {{tile.kernel}} {{\n{}    return\n  }}\n}}\n",
      numWarps, parameters, body);
}

DistributedLayout randomLayout(std::mt19937 &random, const layout::Shape &shape, int warpBits) {
  int tensorBits = 0;
  for (int64_t size : shape)
    tensorBits += layout::log2Exact(size);
  std::vector<int> bits(tensorBits);
  for (int i = 0; i < tensorBits; ++i)
    bits[i] = i;
  std::shuffle(bits.begin(), bits.end(), random);
  // Each machine bit below takes the next tensor bit, or none with probability 1/4; what is left goes to registers.
  auto take = [&](int count) {
    std::vector<int> bases(count, layout::zeroBasis);
    for (int &basis : bases)
      if (!bits.empty() && random() % 4 != 0) {
        basis = bits.back();
        bits.pop_back();
      }
    return bases;
  };
  std::vector<int> lanes = take(5), warps = take(warpBits);
  return DistributedLayout(shape, bits, lanes, warps);
}

} // namespace ditron::target::test
