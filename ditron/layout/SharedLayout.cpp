//===- SharedLayout.cpp - Tiles in shared memory as F2 matrices ---------------------------------------------*- C++ -*-===//
//
// Gauss on words, the SharedLayout value with its text form, the hardware swizzles, and the plan of a thread's addresses.
// The solver that chooses a swizzle is in Swizzle.cpp.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/SharedLayout.h"
#include "ditron/layout/TextScanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>

namespace ditron::layout {

//===------------------------------------------------------------------------------------------------------------------===//
// Matrices over F2
//===------------------------------------------------------------------------------------------------------------------===//

namespace {

/// A span in echelon form. Each vector remembers which of the inserted vectors it is the XOR of.
class Echelon {
public:
  /// Adds a vector; false if it was in the span already.
  bool insert(uint32_t vector, uint32_t combination = 0) {
    reduce(vector, combination);
    if (vector == 0)
      return false;
    rows[std::bit_width(vector) - 1] = {vector, combination};
    return true;
  }

  /// Takes away the part of `vector` that lies in the span, noting what was used.
  void reduce(uint32_t &vector, uint32_t &combination) const {
    for (int bit = 31; bit >= 0; --bit)
      if ((vector >> bit & 1) && rows[bit].vector != 0) {
        vector ^= rows[bit].vector;
        combination ^= rows[bit].combination;
      }
  }

private:
  struct Row {
    uint32_t vector = 0, combination = 0;
  };
  Row rows[32];
};

Echelon spanOfColumns(const F2Matrix &matrix) {
  Echelon span;
  for (size_t i = 0; i < matrix.size(); ++i)
    span.insert(matrix[i], 1u << i);
  return span;
}

} // namespace

uint32_t f2::apply(const F2Matrix &matrix, uint32_t vector) {
  uint32_t image = 0;
  for (size_t i = 0; i < matrix.size(); ++i)
    if (vector >> i & 1)
      image ^= matrix[i];
  return image;
}

F2Matrix f2::compose(const F2Matrix &outer, const F2Matrix &inner) {
  F2Matrix result;
  for (uint32_t column : inner)
    result.push_back(apply(outer, column));
  return result;
}

int f2::rank(std::span<const uint32_t> vectors) {
  Echelon span;
  return static_cast<int>(std::count_if(vectors.begin(), vectors.end(), [&](uint32_t v) { return span.insert(v); }));
}

F2Matrix f2::identity(int bits) {
  F2Matrix result(bits);
  for (int i = 0; i < bits; ++i)
    result[i] = 1u << i;
  return result;
}

std::optional<F2Matrix> f2::invert(const F2Matrix &matrix) {
  int bits = static_cast<int>(matrix.size());
  for (uint32_t column : matrix)
    if (static_cast<int>(std::bit_width(column)) > bits)
      return std::nullopt;
  Echelon span = spanOfColumns(matrix);
  F2Matrix inverse(bits);
  for (int i = 0; i < bits; ++i) {
    uint32_t rest = 1u << i;
    span.reduce(rest, inverse[i]);
    if (rest != 0)
      return std::nullopt;
  }
  return inverse;
}

std::optional<uint32_t> f2::solve(const F2Matrix &matrix, uint32_t target) {
  uint32_t solution = 0;
  spanOfColumns(matrix).reduce(target, solution);
  if (target != 0)
    return std::nullopt;
  return solution;
}

F2Matrix f2::independentComplement(std::span<const uint32_t> vectors, int bits) {
  Echelon span;
  for (uint32_t vector : vectors)
    span.insert(vector);
  F2Matrix complement;
  for (int i = 0; i < bits; ++i)
    if (span.insert(1u << i))
      complement.push_back(1u << i);
  return complement;
}

F2Matrix f2::directSum(const F2Matrix &low, int lowOutputs, const F2Matrix &high) {
  F2Matrix result = low;
  for (uint32_t column : high)
    result.push_back(column << lowOutputs);
  return result;
}

//===------------------------------------------------------------------------------------------------------------------===//
// SharedLayout
//===------------------------------------------------------------------------------------------------------------------===//

SharedLayout::SharedLayout() = default;

SharedLayout::SharedLayout(Shape shape, int elementBits, F2Matrix bases)
    : tileShape(std::move(shape)), width(elementBits), offsetBases(std::move(bases)) {
  if (offsetBases.size() <= 31)
    if (std::optional<F2Matrix> inverse = f2::invert(offsetBases))
      offsetOfTensorBit = std::move(*inverse);
}

Expected<SharedLayout> SharedLayout::get(Shape shape, int elementBits, F2Matrix offsetBases) {
  SharedLayout layout(std::move(shape), elementBits, std::move(offsetBases));
  DITRON_RETURN_IF_ERROR(layout.verify());
  return layout;
}

Status SharedLayout::verify() const {
  int bits = 0;
  for (int64_t size : tileShape) {
    if (!isPowerOfTwo(size))
      return invalidArgument(fmt::format("size {} of a shared layout's shape is not a power of two", size));
    bits += log2Exact(size);
  }
  if (!isPowerOfTwo(width) || width < 8 || width > 128)
    return invalidArgument(fmt::format("elements of a shared layout have 8, 16, 32, 64 or 128 bits, not {}", width));
  if (static_cast<int>(offsetBases.size()) != bits || bits > 30)
    return invalidArgument(fmt::format("shape {} has {} bits, but the shared layout has {} offset bits (at most 30)",
                                       shapeToString(tileShape), bits, offsetBases.size()));
  if (offsetOfTensorBit.size() != offsetBases.size())
    return invalidArgument("two offsets of the shared layout hold the same element: its bases are not independent");
  return Status::ok();
}

/// The shared layout in which source tensor bit b is called newBit[b].
static F2Matrix renameTensorBits(const F2Matrix &bases, const std::vector<int> &newBit) {
  F2Matrix result;
  for (uint32_t basis : bases) {
    uint32_t renamed = 0;
    for (size_t bit = 0; bit < newBit.size(); ++bit)
      if (basis >> bit & 1)
        renamed |= 1u << newBit[bit];
    result.push_back(renamed);
  }
  return result;
}

SharedLayout SharedLayout::permute(std::span<const int> order) const {
  assert(order.size() == tileShape.size() && "a permutation names each dimension once");
  Shape newShape(order.size());
  for (size_t d = 0; d < order.size(); ++d)
    newShape[d] = tileShape[order[d]];
  std::vector<int> newBit(offsetBases.size());
  for (size_t d = 0; d < order.size(); ++d) {
    int from = lowestBitOfAxis(tileShape, order[d]), to = lowestBitOfAxis(newShape, static_cast<int>(d));
    for (int p = 0; p < log2Exact(newShape[d]); ++p)
      newBit[from + p] = to + p;
  }
  return SharedLayout(std::move(newShape), width, renameTensorBits(offsetBases, newBit));
}

SharedLayout SharedLayout::reshape(Shape newShape) const {
  return SharedLayout(std::move(newShape), width, offsetBases);
}

std::string SharedLayout::toString() const {
  std::vector<std::string> names;
  for (uint32_t basis : offsetBases) {
    std::vector<std::string> bits;
    for (int bit = 31; bit >= 0; --bit) // the slowest dimension's bit first: i0^j3
      if (basis >> bit & 1)
        bits.push_back(bitName(tileShape, bit));
    names.push_back(fmt::format("{}", fmt::join(bits, "^")));
  }
  return fmt::format("{}, bits = {}, offset = [{}]", shapeToString(tileShape), width, fmt::join(names, " "));
}

Expected<SharedLayout> SharedLayout::parse(std::string_view text) {
  TextScanner scanner(text);
  DITRON_ASSIGN_OR_RETURN(Shape shape, scanner.shape());
  if (!scanner.eat(",") || !scanner.eat("bits") || !scanner.eat("="))
    return scanner.error("expected ', bits ='");
  std::optional<int64_t> width = scanner.number();
  if (!width || *width > 128)
    return scanner.error("expected the number of bits of an element");
  if (!scanner.eat(",") || !scanner.eat("offset") || !scanner.eat("=") || !scanner.eat("["))
    return scanner.error("expected ', offset = ['");
  F2Matrix bases;
  while (!scanner.eat("]")) {
    if (scanner.atEnd())
      return scanner.error("the list of offset bits is not closed");
    uint32_t basis = 0;
    do {
      DITRON_ASSIGN_OR_RETURN(int bit, scanner.bit(shape));
      basis ^= 1u << (bit & 31);
    } while (scanner.eat("^"));
    bases.push_back(basis);
  }
  if (!scanner.atEnd())
    return scanner.error("expected the end of the layout");
  Expected<SharedLayout> result = get(std::move(shape), static_cast<int>(*width), std::move(bases));
  if (!result.isOk())
    return result.status().withContext(fmt::format("shared layout '{}'", text));
  return result;
}

size_t SharedLayout::hash() const {
  uint64_t state = 0x9e3779b97f4a7c15u + static_cast<uint64_t>(width);
  auto mix = [&state](uint64_t value) { state = (state ^ value) * 0x100000001b3u; };
  for (int64_t size : tileShape)
    mix(static_cast<uint64_t>(size));
  for (uint32_t basis : offsetBases)
    mix(uint64_t(basis) << 32 | 1);
  return static_cast<size_t>(state ^ state >> 29);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Builders
//===------------------------------------------------------------------------------------------------------------------===//

SharedLayout plainShared(const Shape &shape, std::span<const int> order, int elementBits) {
  return swizzledShared(shape, order, elementBits, 0);
}

int largestSwizzle(const Shape &shape, std::span<const int> order, int elementBits) {
  if (order.empty())
    return 0;
  int64_t rowBytes = shape[order[0]] * elementBits / 8;
  for (int bytes : {128, 64, 32})
    if (rowBytes >= bytes)
      return bytes;
  return 0;
}

SharedLayout swizzledShared(const Shape &shape, std::span<const int> order, int elementBits, int swizzleBytes) {
  assert(order.size() == shape.size() && "the order names each dimension once");
  F2Matrix bases;
  auto append = [&](int axis, int from, int to) {
    for (int p = from; p < to; ++p)
      bases.push_back(1u << (lowestBitOfAxis(shape, axis) + p));
  };
  if (order.empty())
    return SharedLayout(shape, elementBits, {});
  // A panel as wide as the swizzle, its rows, the other panels of the row, then the slower dimensions.
  int elementLog = log2Exact(elementBits / 8);
  int rowBits = log2Exact(shape[order[0]]);
  int panelBits = swizzleBytes > 0 ? std::min(rowBits, log2Exact(swizzleBytes) - elementLog) : rowBits;
  append(order[0], 0, panelBits);
  if (order.size() > 1)
    append(order[1], 0, log2Exact(shape[order[1]]));
  size_t patternEnd = bases.size();
  append(order[0], panelBits, rowBits);
  for (size_t d = 2; d < order.size(); ++d)
    append(order[d], 0, log2Exact(shape[order[d]]));
  if (swizzleBytes == 0)
    return SharedLayout(shape, elementBits, std::move(bases));
  // Address bits 4, 5, 6 (the 16-byte chunk) are XORed with bits 7, 8, 9 (rows): the chunk found at an offset is the place's
  // chunk bit plus the row's bit.
  int chunkBit = 4 - elementLog;
  for (int i = 0; i < log2Exact(swizzleBytes / 16); ++i)
    if (static_cast<size_t>(chunkBit + 3 + i) < patternEnd)
      bases[chunkBit + 3 + i] ^= bases[chunkBit + i];
  return SharedLayout(shape, elementBits, std::move(bases));
}

//===------------------------------------------------------------------------------------------------------------------===//
// OffsetPlan
//===------------------------------------------------------------------------------------------------------------------===//

int64_t OffsetPlan::threadOffset(int lane, int warp) const {
  int64_t offset = 0;
  for (size_t b = 0; b < laneBases.size(); ++b)
    if (lane >> b & 1)
      offset ^= laneBases[b];
  for (size_t b = 0; b < warpBases.size(); ++b)
    if (warp >> b & 1)
      offset ^= warpBases[b];
  return offset;
}

int64_t OffsetPlan::threadMask() const {
  int64_t mask = 0;
  for (int64_t basis : laneBases)
    mask |= basis;
  for (int64_t basis : warpBases)
    mask |= basis;
  return mask;
}

/// The number of low offset bits that are register bits and that no other tensor bit touches: within such a run the offset
/// counts registers and nothing else, and the run begins at a multiple of its length.
static int vectorBits(const DistributedLayout &registers, const SharedLayout &shared, int maxVecBits) {
  int limit = maxVecBits < shared.elementBits() ? 0 : std::bit_width(unsigned(maxVecBits / shared.elementBits())) - 1;
  int bits = 0;
  uint32_t vectorMask = 0;
  while (bits < limit && bits < shared.numTensorBits()) {
    uint32_t basis = shared.bases()[bits];
    if (!std::has_single_bit(basis) || registers.owner(std::countr_zero(basis)).dim != MachineDim::Reg)
      break;
    vectorMask |= basis;
    ++bits;
  }
  for (int tensorBit = 0; tensorBit < shared.numTensorBits(); ++tensorBit)
    if (!(vectorMask >> tensorBit & 1) && shared.inverse()[tensorBit] != 0)
      bits = std::min(bits, std::countr_zero(shared.inverse()[tensorBit]));
  return bits;
}

OffsetPlan makeOffsetPlan(const DistributedLayout &registers, const SharedLayout &shared, int maxVecBits) {
  assert(registers.numTensorBits() == shared.numTensorBits() && "both layouts describe the same tile");
  OffsetPlan plan;
  int bits = vectorBits(registers, shared, maxVecBits);
  plan.vecElems = 1 << bits;
  auto contributions = [&](MachineDim dim) {
    std::vector<int64_t> result;
    for (int basis : registers.bases(dim))
      result.push_back(basis == zeroBasis ? 0 : shared.offsetOf(int64_t(1) << basis));
    return result;
  };
  plan.laneBases = contributions(MachineDim::Lane);
  plan.warpBases = contributions(MachineDim::Warp);
  std::map<int64_t, std::vector<int>> byOffset;
  for (int reg = 0; reg < registers.numRegs(); ++reg) {
    int64_t offset = shared.offsetOf(registers.applyDim(MachineDim::Reg, reg));
    std::vector<int> &regs = byOffset[offset >> bits << bits];
    regs.resize(plan.vecElems);
    regs[offset & (plan.vecElems - 1)] = reg;
  }
  for (auto &[offset, regs] : byOffset)
    plan.accesses.push_back({offset, std::move(regs)});
  return plan;
}

} // namespace ditron::layout
