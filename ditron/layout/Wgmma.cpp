//===- Wgmma.cpp - Operands of warpgroup multiplies (wgmma) -------------------------------------------------*- C++ -*-===//
//
// PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" and "Matrix Descriptor" of wgmma. In shared memory only the
// hardware's swizzles count: a layout is recognised by being equal to the one that swizzledShared builds.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/Wgmma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace ditron::layout {

Fragment wgmmaFragment(int columns) {
  Fragment fragment = mmaFragment(MmaKind::M16N8K16B16, DotOperand::C);
  fragment.name = "wgmma.C";
  fragment.rows = wgmmaRows;
  fragment.cols = columns;
  for (int column = 8; column < columns; column *= 2)
    fragment.regs.push_back({0, column});
  return fragment;
}

Expected<DistributedLayout> wgmmaAccumulator(const Shape &shape, int warps) {
  if (shape.size() != 2 || !isPowerOfTwo(shape[0]) || !isPowerOfTwo(shape[1]))
    return invalidArgument(fmt::format("a warpgroup multiply gives a matrix with sizes that are powers of two, not {}",
                                       shapeToString(shape)));
  if (warps < warpsPerGroup || !isPowerOfTwo(warps))
    return unsupported(fmt::format("{} warps are not whole warpgroups", warps));
  int groups = warps / warpsPerGroup;
  int groupsOnM = static_cast<int>(std::min<int64_t>(groups, shape[0] / wgmmaRows));
  if (groupsOnM == 0 || shape[1] / (groups / groupsOnM) < 8)
    return unsupported(fmt::format("{} is smaller than m64n8 for each of {} warpgroups", shapeToString(shape), groups));
  int rowBit = log2Exact(shape[1]);
  std::vector<int> lanes = {1, 2, rowBit, rowBit + 1, rowBit + 2};
  std::vector<int> warpBases = {rowBit + 4, rowBit + 5};
  for (int group = 1; group < groupsOnM; group *= 2)
    warpBases.push_back(rowBit + 6 + log2Exact(group));
  int columnBits = rowBit - log2Exact(groups / groupsOnM);
  for (int bit = columnBits; bit < rowBit; ++bit)
    warpBases.push_back(bit);
  std::vector<bool> owned(log2Exact(shape[0] * shape[1]));
  for (const std::vector<int> *bases : {&lanes, &warpBases})
    for (int basis : *bases)
      owned[basis] = true;
  std::vector<int> regs;
  for (size_t bit = 0; bit < owned.size(); ++bit)
    if (!owned[bit])
      regs.push_back(static_cast<int>(bit));
  return DistributedLayout::get(shape, std::move(regs), std::move(lanes), std::move(warpBases));
}

bool containsWgmma(const DistributedLayout &c) {
  if (c.rank() != 2 || c.numBits(MachineDim::Warp) < 2 || !containsFragment(c, wgmmaFragment(8)))
    return false;
  int rowBit = log2Exact(c.shape()[1]);
  const std::vector<int> &warps = c.bases(MachineDim::Warp);
  return warps[0] == rowBit + 4 && warps[1] == rowBit + 5;
}

int wgmmaColumns(const DistributedLayout &c) {
  assert(containsWgmma(c) && "only an accumulator has columns of instructions");
  int columns = 8;
  while (columns < wgmmaMaxColumns && columns < c.shape()[1] && c.owner(log2Exact(columns)).dim == MachineDim::Reg)
    columns *= 2;
  return columns;
}

Expected<DistributedLayout> wgmmaOperandA(const DistributedLayout &c, int64_t k, int operandBits) {
  std::optional<MmaKind> kind = mmaKindFor(operandBits);
  if (!kind || !containsWgmma(c) || !isPowerOfTwo(k) || k < mmaShape(*kind).k)
    return unsupported(fmt::format("no A of {} bits and k = {} for an accumulator {}", operandBits, k, c.toString()));
  const Shape shape = {c.shape()[0], k};
  int rowBitOfC = log2Exact(c.shape()[1]), rowBit = log2Exact(k);
  auto toBit = [&](const FragmentBasis &basis) {
    return basis.col != 0 ? log2Exact(basis.col) : rowBit + log2Exact(basis.row);
  };
  std::vector<bool> owned(log2Exact(shape[0] * k));
  std::vector<int> regs, lanes, warps;
  for (const FragmentBasis &basis : mmaFragment(*kind, DotOperand::A).lanes)
    lanes.push_back(toBit(basis));
  // Warps have C's rows; a warpgroup that stands on other columns holds a copy.
  for (int basis : c.bases(MachineDim::Warp))
    warps.push_back(basis >= rowBitOfC ? basis - rowBitOfC + rowBit : zeroBasis);
  for (const std::vector<int> *bases : {&lanes, &warps})
    for (int basis : *bases)
      if (basis != zeroBasis)
        owned[basis] = true;
  for (size_t bit = 0; bit < owned.size(); ++bit)
    if (!owned[bit])
      regs.push_back(static_cast<int>(bit));
  return DistributedLayout::get(shape, std::move(regs), std::move(lanes), std::move(warps));
}

std::optional<WgmmaOperand> wgmmaOperand(const SharedLayout &shared, DotOperand operand) {
  assert(operand != DotOperand::C && "the accumulator is in registers");
  if (shared.shape().size() != 2 || shared.elementBits() > 32)
    return std::nullopt;
  const int kAxis = operand == DotOperand::A ? 1 : 0;
  for (bool isMnMajor : {false, true}) {
    if (isMnMajor && shared.elementBits() != 16)
      continue;
    const int contiguous = isMnMajor ? 1 - kAxis : kAxis;
    const int order[] = {contiguous, 1 - contiguous};
    const int swizzle = largestSwizzle(shared.shape(), order, shared.elementBits());
    // Eight rows make the pattern, and a step of K must be there.
    const int64_t stepElements = wgmmaStepBytes / shared.elementBytes();
    if (swizzle == 0 || shared.shape()[1 - contiguous] < 8 || shared.shape()[kAxis] < stepElements)
      continue;
    for (int bytes = swizzle; bytes >= 32; bytes /= 2) {
      if (!(shared == swizzledShared(shared.shape(), order, shared.elementBits(), bytes)))
        continue;
      WgmmaOperand view;
      view.isMnMajor = isMnMajor;
      view.swizzleBytes = bytes;
      view.panelElements = bytes / shared.elementBytes();
      view.panelBytes = bytes * shared.shape()[1 - contiguous];
      view.stepElements = static_cast<int>(stepElements);
      view.strideBytes = 8 * bytes;
      if (isMnMajor) {
        view.leadingBytes = view.panelBytes;
        view.stepBytes = stepElements * bytes;
        view.stepsPerPanel = shared.shape()[kAxis] / stepElements;
      } else {
        view.leadingBytes = 16; // ignored by the hardware for swizzled K-major operands; 1 in the descriptor's units
        view.stepBytes = wgmmaStepBytes;
        view.stepsPerPanel = bytes / wgmmaStepBytes;
      }
      return view;
    }
  }
  return std::nullopt;
}

int64_t WgmmaOperand::offsetBytes(int64_t mn, int64_t k) const {
  if (isMnMajor)
    return mn / panelElements * panelBytes + k * swizzleBytes;
  const int64_t panel = k / panelElements, step = k % panelElements / stepElements;
  return panel * panelBytes + step * stepBytes + mn * swizzleBytes;
}

} // namespace ditron::layout
