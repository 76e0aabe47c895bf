//===- LinearLayout.cpp - How a tensor is spread over registers, lanes and warps ----------------------------*- C++ -*-===//
//
// The owner table and the transformations of DistributedLayout. The text form and the picture are in LayoutText.cpp.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/LinearLayout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>

namespace ditron::layout {

namespace {

/// Packed indices are kept in 32-bit masks by the F2 matrices of shared memory.
constexpr int maxTensorBits = 30;
constexpr int maxMachineBits = 20;

constexpr MachineDim allDims[] = {MachineDim::Reg, MachineDim::Lane, MachineDim::Warp, MachineDim::Block};

} // namespace

bool isPowerOfTwo(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

int log2Exact(int64_t value) {
  assert(isPowerOfTwo(value) && "log2Exact needs a power of two");
  return std::countr_zero(static_cast<uint64_t>(value));
}

int lowestBitOfAxis(const Shape &shape, int axis) {
  int bit = 0;
  for (size_t d = axis + 1; d < shape.size(); ++d)
    bit += log2Exact(shape[d]);
  return bit;
}

std::string_view toString(MachineDim dim) {
  switch (dim) {
  case MachineDim::Reg:
    return "reg";
  case MachineDim::Lane:
    return "lane";
  case MachineDim::Warp:
    return "warp";
  case MachineDim::Block:
    return "block";
  }
  return "?";
}

DistributedLayout::DistributedLayout() = default;

DistributedLayout::DistributedLayout(Shape shape, std::vector<int> regs, std::vector<int> lanes, std::vector<int> warps,
                                     std::vector<int> blocks)
    : tileShape(std::move(shape)),
      machineBases{std::move(regs), std::move(lanes), std::move(warps), std::move(blocks)} {
  std::vector<int> &registers = machineBases[0];
  std::erase(registers, zeroBasis);
  std::sort(registers.begin(), registers.end());
  computeOwners();
}

void DistributedLayout::computeOwners() {
  tensorBits = 0;
  for (int64_t size : tileShape)
    if (isPowerOfTwo(size))
      tensorBits += log2Exact(size);
  owners.assign(tensorBits, BitOwner());
  for (MachineDim dim : allDims)
    for (int position = 0; position < numBits(dim); ++position)
      if (int basis = bases(dim)[position]; basis >= 0 && basis < tensorBits)
        owners[basis] = BitOwner{dim, position};
}

Expected<DistributedLayout> DistributedLayout::get(Shape shape, std::vector<int> regs, std::vector<int> lanes,
                                                   std::vector<int> warps, std::vector<int> blocks) {
  DistributedLayout layout(std::move(shape), std::move(regs), std::move(lanes), std::move(warps), std::move(blocks));
  DITRON_RETURN_IF_ERROR(layout.verify());
  return layout;
}

Status DistributedLayout::verify() const {
  for (int64_t size : tileShape)
    if (!isPowerOfTwo(size))
      return invalidArgument(fmt::format("size {} of a layout's shape is not a power of two", size));
  if (tensorBits > maxTensorBits)
    return invalidArgument(fmt::format("a layout has at most 2^{} elements, this one has 2^{}", maxTensorBits, tensorBits));
  std::vector<bool> owned(tensorBits);
  for (MachineDim dim : allDims) {
    if (numBits(dim) > maxMachineBits)
      return invalidArgument(fmt::format("a layout has at most {} {} bits", maxMachineBits, layout::toString(dim)));
    for (int basis : bases(dim)) {
      if (basis == zeroBasis)
        continue;
      if (basis < 0 || basis >= tensorBits)
        return invalidArgument(fmt::format("a {} bit owns bit {} of the packed index, but shape {} has {} bits",
                                           layout::toString(dim), basis, shapeToString(tileShape), tensorBits));
      if (owned[basis])
        return invalidArgument(fmt::format("tensor bit {} has two owners", bitName(basis)));
      owned[basis] = true;
    }
  }
  for (int bit = 0; bit < tensorBits; ++bit)
    if (!owned[bit])
      return invalidArgument(fmt::format("tensor bit {} has no owner", bitName(bit)));
  return Status::ok();
}

uint32_t DistributedLayout::freeMask(MachineDim dim) const {
  uint32_t mask = 0;
  for (int position = 0; position < numBits(dim); ++position)
    if (bases(dim)[position] == zeroBasis)
      mask |= 1u << position;
  return mask;
}

int64_t DistributedLayout::ownedMask(MachineDim dim) const {
  int64_t mask = 0;
  for (int basis : bases(dim))
    if (basis != zeroBasis)
      mask |= int64_t(1) << basis;
  return mask;
}

int64_t DistributedLayout::applyDim(MachineDim dim, int id) const {
  int64_t packed = 0;
  const std::vector<int> &columns = bases(dim);
  for (size_t position = 0; position < columns.size(); ++position)
    if ((id >> position & 1) && columns[position] != zeroBasis)
      packed |= int64_t(1) << columns[position];
  return packed;
}

int64_t DistributedLayout::apply(int reg, int lane, int warp, int block) const {
  return applyDim(MachineDim::Reg, reg) | applyDim(MachineDim::Lane, lane) | applyDim(MachineDim::Warp, warp) |
         applyDim(MachineDim::Block, block);
}

int DistributedLayout::idFor(MachineDim dim, int64_t packed) const {
  int id = 0;
  const std::vector<int> &columns = bases(dim);
  for (size_t position = 0; position < columns.size(); ++position)
    if (columns[position] != zeroBasis && (packed >> columns[position] & 1))
      id |= 1 << position;
  return id;
}

int DistributedLayout::registerFor(int64_t packed) const { return idFor(MachineDim::Reg, packed); }

std::vector<int64_t> DistributedLayout::coordinates(int64_t packed) const {
  std::vector<int64_t> result(tileShape.size());
  for (size_t d = tileShape.size(); d-- > 0;) {
    result[d] = packed & (tileShape[d] - 1);
    packed >>= log2Exact(tileShape[d]);
  }
  return result;
}

int64_t DistributedLayout::pack(std::span<const int64_t> coordinates) const {
  assert(coordinates.size() == tileShape.size() && "one coordinate for each dimension");
  int64_t packed = 0;
  for (size_t d = 0; d < tileShape.size(); ++d)
    packed = packed * tileShape[d] + coordinates[d];
  return packed;
}

std::vector<int> DistributedLayout::axisBits(int axis) const {
  assert(axis >= 0 && axis < rank() && "axis out of range");
  std::vector<int> bits(log2Exact(tileShape[axis]));
  int lowest = lowestBitOfAxis(tileShape, axis);
  for (size_t p = 0; p < bits.size(); ++p)
    bits[p] = lowest + static_cast<int>(p);
  return bits;
}

int DistributedLayout::axisOf(int bit) const {
  for (int axis = rank() - 1; axis >= 0; --axis) {
    int bits = log2Exact(tileShape[axis]);
    if (bit < bits)
      return axis;
    bit -= bits;
  }
  return -1;
}

int DistributedLayout::bitInAxis(int bit) const { return bit - lowestBitOfAxis(tileShape, axisOf(bit)); }

std::string DistributedLayout::bitName(int bit) const { return layout::bitName(tileShape, bit); }

//===------------------------------------------------------------------------------------------------------------------===//
// Transformations
//===------------------------------------------------------------------------------------------------------------------===//

/// The layout in which source tensor bit b is called newBit[b]; zeroBasis makes its owner a copy.
static DistributedLayout renameBits(const DistributedLayout &source, Shape newShape, const std::vector<int> &newBit) {
  std::vector<int> renamed[numMachineDims];
  for (MachineDim dim : allDims)
    for (int basis : source.bases(dim))
      renamed[static_cast<int>(dim)].push_back(basis == zeroBasis ? zeroBasis : newBit[basis]);
  return DistributedLayout(std::move(newShape), std::move(renamed[0]), std::move(renamed[1]), std::move(renamed[2]),
                           std::move(renamed[3]));
}

DistributedLayout DistributedLayout::permute(std::span<const int> order) const {
  assert(static_cast<int>(order.size()) == rank() && "a permutation names each dimension once");
  Shape newShape(order.size());
  for (size_t d = 0; d < order.size(); ++d)
    newShape[d] = tileShape[order[d]];
  std::vector<int> newBit(tensorBits, zeroBasis);
  for (size_t d = 0; d < order.size(); ++d) {
    int to = lowestBitOfAxis(newShape, static_cast<int>(d));
    for (int bit : axisBits(order[d]))
      newBit[bit] = to++;
  }
  return renameBits(*this, std::move(newShape), newBit);
}

DistributedLayout DistributedLayout::reshape(Shape newShape) const {
  DistributedLayout result = *this;
  result.tileShape = std::move(newShape);
  result.computeOwners();
  assert(result.tensorBits == tensorBits && "reshape keeps the number of elements");
  return result;
}

DistributedLayout DistributedLayout::expandDims(int axis) const {
  assert(axis >= 0 && axis <= rank() && "axis out of range");
  Shape newShape = tileShape;
  newShape.insert(newShape.begin() + axis, 1);
  return reshape(std::move(newShape));
}

DistributedLayout DistributedLayout::dropAxis(int axis) const {
  assert(axis >= 0 && axis < rank() && "axis out of range");
  Shape newShape = tileShape;
  newShape.erase(newShape.begin() + axis);
  int lowest = lowestBitOfAxis(tileShape, axis), count = log2Exact(tileShape[axis]);
  std::vector<int> newBit(tensorBits);
  for (int bit = 0; bit < tensorBits; ++bit)
    newBit[bit] = bit < lowest ? bit : bit < lowest + count ? zeroBasis : bit - count;
  return renameBits(*this, std::move(newShape), newBit);
}

DistributedLayout DistributedLayout::broadcastTo(Shape newShape) const {
  assert(newShape.size() == tileShape.size() && "broadcast keeps the rank");
  std::vector<int> newBit(tensorBits, zeroBasis);
  std::vector<int> added; // ascending, so the claiming order does not depend on the dimension
  for (int axis = rank() - 1; axis >= 0; --axis) {
    int to = lowestBitOfAxis(newShape, axis);
    if (tileShape[axis] == newShape[axis]) {
      for (int bit : axisBits(axis))
        newBit[bit] = to++;
      continue;
    }
    assert(tileShape[axis] == 1 && "only dimensions of size 1 can be broadcast");
    for (int p = 0; p < log2Exact(newShape[axis]); ++p)
      added.push_back(to + p);
  }
  DistributedLayout result = renameBits(*this, std::move(newShape), newBit);
  size_t next = 0;
  for (MachineDim dim : {MachineDim::Lane, MachineDim::Warp})
    for (int &basis : result.machineBases[static_cast<int>(dim)])
      if (basis == zeroBasis && next < added.size())
        basis = added[next++];
  std::vector<int> &registers = result.machineBases[0];
  registers.insert(registers.end(), added.begin() + next, added.end());
  std::sort(registers.begin(), registers.end());
  result.computeOwners();
  return result;
}

DistributedLayout DistributedLayout::dropBroadcast(Shape srcShape) const {
  assert(srcShape.size() == tileShape.size() && "broadcast keeps the rank");
  std::vector<int> newBit(tensorBits, zeroBasis);
  for (int axis = 0; axis < rank(); ++axis) {
    if (srcShape[axis] != tileShape[axis]) {
      assert(srcShape[axis] == 1 && "only dimensions of size 1 can be broadcast");
      continue;
    }
    int to = lowestBitOfAxis(srcShape, axis);
    for (int bit : axisBits(axis))
      newBit[bit] = to++;
  }
  return renameBits(*this, std::move(srcShape), newBit);
}

DistributedLayout DistributedLayout::join() const {
  std::vector<int> newBit(tensorBits);
  for (int bit = 0; bit < tensorBits; ++bit)
    newBit[bit] = bit + 1;
  Shape newShape = tileShape;
  newShape.push_back(2);
  DistributedLayout result = renameBits(*this, std::move(newShape), newBit);
  result.machineBases[0].insert(result.machineBases[0].begin(), 0);
  result.computeOwners();
  return result;
}

std::optional<DistributedLayout> DistributedLayout::split() const {
  if (rank() == 0 || tileShape.back() != 2 || owner(0).dim != MachineDim::Reg)
    return std::nullopt;
  return dropAxis(rank() - 1);
}

size_t DistributedLayout::hash() const {
  uint64_t state = 0x9e3779b97f4a7c15u;
  auto mix = [&state](int64_t value) { state = (state ^ static_cast<uint64_t>(value + 2)) * 0x100000001b3u; };
  for (int64_t size : tileShape)
    mix(size);
  for (MachineDim dim : allDims) {
    mix(-2); // separates the lists
    for (int basis : bases(dim))
      mix(basis);
  }
  return static_cast<size_t>(state ^ state >> 29);
}

} // namespace ditron::layout
