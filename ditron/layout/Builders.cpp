//===- Builders.cpp - The layouts a compiler asks for -------------------------------------------------------*- C++ -*-===//
//
// Coalesced tiles, the fragment tables of mma.sync (PTX ISA, "Matrix Fragments for mma.m16n8k16" and its neighbours), and the
// operand layouts of both kinds of dot.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/layout/Builders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace ditron::layout {

std::vector<int> rowMajorOrder(int rank) {
  std::vector<int> order;
  for (int d = rank - 1; d >= 0; --d)
    order.push_back(d);
  return order;
}

DistributedLayout tile(const Shape &shape, std::span<const int> order, int64_t vecElems, int lanes, int warps) {
  assert(order.size() == shape.size() && "the order names each dimension once");
  std::vector<int> bits; // of the packed index, fastest first
  for (int axis : order)
    for (int p = 0; p < log2Exact(shape[axis]); ++p)
      bits.push_back(lowestBitOfAxis(shape, axis) + p);
  size_t next = 0;
  auto take = [&](int count) {
    std::vector<int> taken;
    for (int i = 0; i < count; ++i)
      taken.push_back(next < bits.size() ? bits[next++] : zeroBasis);
    return taken;
  };
  std::vector<int> regs = take(log2Exact(vecElems));
  std::vector<int> laneBases = take(log2Exact(lanes));
  std::vector<int> warpBases = take(log2Exact(warps));
  regs.insert(regs.end(), bits.begin() + next, bits.end());
  return DistributedLayout(shape, std::move(regs), std::move(laneBases), std::move(warpBases));
}

//===------------------------------------------------------------------------------------------------------------------===//
// Tensor core instructions
//===------------------------------------------------------------------------------------------------------------------===//

MmaShape mmaShape(MmaKind kind) {
  switch (kind) {
  case MmaKind::M16N8K16B16:
    return {16, 8, 16};
  case MmaKind::M16N8K8TF32:
    return {16, 8, 8};
  case MmaKind::M16N8K32B8:
    return {16, 8, 32};
  case MmaKind::M8N8K4F64:
    return {8, 8, 4};
  }
  return {16, 8, 16};
}

std::optional<MmaKind> mmaKindFor(int operandBits) {
  switch (operandBits) {
  case 8:
    return MmaKind::M16N8K32B8;
  case 16:
    return MmaKind::M16N8K16B16;
  case 32:
    return MmaKind::M16N8K8TF32;
  case 64:
    return MmaKind::M8N8K4F64;
  default:
    return std::nullopt;
  }
}

const Fragment &mmaFragment(MmaKind kind, DotOperand operand) {
  // In all of them lane bits 0 and 1 run along K (or N of C) in steps of one 32-bit register, and lane bits 2 to 4 along the
  // other dimension. Columns of A and rows of B are K.
  static const Fragment table[4][3] = {
      {{"mma.m16n8k16.b16.A", 16, 16, {{0, 1}, {8, 0}, {0, 8}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}},
       {"mma.m16n8k16.b16.B", 16, 8, {{1, 0}, {8, 0}}, {{2, 0}, {4, 0}, {0, 1}, {0, 2}, {0, 4}}},
       {"mma.m16n8k16.b16.C", 16, 8, {{0, 1}, {8, 0}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}}},
      {{"mma.m16n8k8.tf32.A", 16, 8, {{8, 0}, {0, 4}}, {{0, 1}, {0, 2}, {1, 0}, {2, 0}, {4, 0}}},
       {"mma.m16n8k8.tf32.B", 8, 8, {{4, 0}}, {{1, 0}, {2, 0}, {0, 1}, {0, 2}, {0, 4}}},
       {"mma.m16n8k8.tf32.C", 16, 8, {{0, 1}, {8, 0}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}}},
      {{"mma.m16n8k32.b8.A", 16, 32, {{0, 1}, {0, 2}, {8, 0}, {0, 16}}, {{0, 4}, {0, 8}, {1, 0}, {2, 0}, {4, 0}}},
       {"mma.m16n8k32.b8.B", 32, 8, {{1, 0}, {2, 0}, {16, 0}}, {{4, 0}, {8, 0}, {0, 1}, {0, 2}, {0, 4}}},
       {"mma.m16n8k32.b8.C", 16, 8, {{0, 1}, {8, 0}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}}},
      {{"mma.m8n8k4.f64.A", 8, 4, {}, {{0, 1}, {0, 2}, {1, 0}, {2, 0}, {4, 0}}},
       {"mma.m8n8k4.f64.B", 4, 8, {}, {{1, 0}, {2, 0}, {0, 1}, {0, 2}, {0, 4}}},
       {"mma.m8n8k4.f64.C", 8, 8, {{0, 1}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}}},
  };
  return table[static_cast<int>(kind)][static_cast<int>(operand)];
}

WarpGrid chooseWarpGrid(MmaKind kind, const DotShape &shape, int warps) {
  MmaShape instruction = mmaShape(kind);
  WarpGrid grid{1, 1};
  while (grid.m * grid.n < warps) {
    int64_t rowsLeft = shape.m / grid.m, columnsLeft = shape.n / grid.n;
    bool canSplitM = rowsLeft >= 2 * instruction.m, canSplitN = columnsLeft >= 2 * instruction.n;
    if (canSplitN && (!canSplitM || columnsLeft > rowsLeft))
      grid.n *= 2;
    else
      grid.m *= 2;
  }
  return grid;
}

/// The packed bit of a fragment basis in a rows x cols tile.
static int packedBit(const FragmentBasis &basis, const Shape &shape) {
  return basis.col != 0 ? log2Exact(basis.col) : log2Exact(shape[1]) + log2Exact(basis.row);
}

Expected<DistributedLayout> mmaLayout(MmaKind kind, DotOperand operand, const DotShape &shape, WarpGrid warps) {
  MmaShape instruction = mmaShape(kind);
  if (shape.m < instruction.m || shape.n < instruction.n || shape.k < instruction.k)
    return unsupported(fmt::format("a dot of {}x{}x{} is smaller than the instruction m{}n{}k{}", shape.m, shape.n, shape.k,
                                   instruction.m, instruction.n, instruction.k));
  for (int64_t size : {shape.m, shape.n, shape.k, int64_t(warps.m), int64_t(warps.n)})
    if (!isPowerOfTwo(size))
      return invalidArgument(fmt::format("size {} of a dot is not a power of two", size));
  const Fragment &fragment = mmaFragment(kind, operand);
  Shape tileShape = operand == DotOperand::A   ? Shape{shape.m, shape.k}
                    : operand == DotOperand::B ? Shape{shape.k, shape.n}
                                               : Shape{shape.m, shape.n};
  std::vector<bool> owned(log2Exact(tileShape[0] * tileShape[1]));
  auto bitOf = [&](const FragmentBasis &basis) {
    int bit = packedBit(basis, tileShape);
    owned[bit] = true;
    return bit;
  };
  std::vector<int> regs, lanes, warpBases;
  for (const FragmentBasis &basis : fragment.regs)
    regs.push_back(bitOf(basis));
  for (const FragmentBasis &basis : fragment.lanes)
    lanes.push_back(bitOf(basis));
  for (int row = instruction.m; row < instruction.m * warps.m; row *= 2)
    warpBases.push_back(operand != DotOperand::B && row < shape.m ? bitOf({row, 0}) : zeroBasis);
  for (int col = instruction.n; col < instruction.n * warps.n; col *= 2)
    warpBases.push_back(operand != DotOperand::A && col < shape.n ? bitOf({0, col}) : zeroBasis);
  for (size_t bit = 0; bit < owned.size(); ++bit)
    if (!owned[bit])
      regs.push_back(static_cast<int>(bit));
  return DistributedLayout::get(std::move(tileShape), std::move(regs), std::move(lanes), std::move(warpBases));
}

Expected<DotLayouts> mmaLayouts(MmaKind kind, const DotShape &shape, WarpGrid warps) {
  DITRON_ASSIGN_OR_RETURN(DistributedLayout a, mmaLayout(kind, DotOperand::A, shape, warps));
  DITRON_ASSIGN_OR_RETURN(DistributedLayout b, mmaLayout(kind, DotOperand::B, shape, warps));
  DITRON_ASSIGN_OR_RETURN(DistributedLayout c, mmaLayout(kind, DotOperand::C, shape, warps));
  return DotLayouts{std::move(a), std::move(b), std::move(c)};
}

DistributedLayout withBatch(const DistributedLayout &layout, int64_t batch, int warpsOnBatch) {
  assert(layout.rank() == 2 && warpsOnBatch <= batch && "a batch of matrices");
  // The new dimension owns the highest bits of the packed index, so the others keep their numbers.
  const int lowest = layout.numTensorBits(), warpBits = log2Exact(warpsOnBatch);
  std::vector<int> warps, regs = layout.bases(MachineDim::Reg);
  for (int bit = 0; bit < log2Exact(batch); ++bit)
    (bit < warpBits ? warps : regs).push_back(lowest + bit);
  const std::vector<int> &inside = layout.bases(MachineDim::Warp);
  warps.insert(warps.end(), inside.begin(), inside.end());
  Shape shape = layout.shape();
  shape.insert(shape.begin(), batch);
  return DistributedLayout(std::move(shape), std::move(regs), layout.bases(MachineDim::Lane), std::move(warps),
                           layout.bases(MachineDim::Block));
}

DotLayouts withBatch(const DotLayouts &layouts, int64_t batch, int warpsOnBatch) {
  return {withBatch(layouts.a, batch, warpsOnBatch), withBatch(layouts.b, batch, warpsOnBatch),
          withBatch(layouts.c, batch, warpsOnBatch)};
}

bool containsFragment(const DistributedLayout &layout, const Fragment &fragment) {
  const Shape &shape = layout.shape();
  if (shape.size() != 2 || shape[0] < fragment.rows || shape[1] < fragment.cols)
    return false;
  std::vector<int> lanes;
  for (const FragmentBasis &basis : fragment.lanes)
    lanes.push_back(packedBit(basis, shape));
  return layout.bases(MachineDim::Lane) == lanes &&
         std::all_of(fragment.regs.begin(), fragment.regs.end(), [&](const FragmentBasis &basis) {
           return layout.owner(packedBit(basis, shape)).dim == MachineDim::Reg;
         });
}

std::vector<int> fragmentRegisters(const DistributedLayout &layout, const Fragment &fragment, FragmentOrigin origin) {
  std::vector<int> registers(fragment.numRegs());
  for (size_t element = 0; element < registers.size(); ++element) {
    int64_t packed = origin.row * layout.shape()[1] + origin.col;
    for (size_t p = 0; p < fragment.regs.size(); ++p)
      if (element >> p & 1)
        packed ^= int64_t(1) << packedBit(fragment.regs[p], layout.shape());
    registers[element] = layout.registerFor(packed);
  }
  return registers;
}

std::vector<FragmentOrigin> fragmentOrigins(const DistributedLayout &layout, const Fragment &fragment) {
  int64_t beyond = layout.ownedMask(MachineDim::Reg);
  for (const FragmentBasis &basis : fragment.regs)
    beyond &= ~(int64_t(1) << packedBit(basis, layout.shape()));
  std::vector<FragmentOrigin> origins;
  int64_t packed = 0;
  do { // all subsets of `beyond`, ascending
    origins.push_back({packed / layout.shape()[1], packed % layout.shape()[1]});
    packed = (packed - beyond) & beyond;
  } while (packed != 0);
  return origins;
}

/// True if the bits of an axis from `firstBit` on have the same lane, warp and block owners in both layouts (registers may be
/// renumbered).
static bool sameOwners(const DistributedLayout &a, int axisOfA, const DistributedLayout &b, int axisOfB, int firstBit) {
  std::vector<int> bitsOfA = a.axisBits(axisOfA), bitsOfB = b.axisBits(axisOfB);
  if (bitsOfA.size() != bitsOfB.size())
    return false;
  for (size_t p = firstBit; p < bitsOfA.size(); ++p) {
    BitOwner ownerInA = a.owner(bitsOfA[p]), ownerInB = b.owner(bitsOfB[p]);
    bool bothRegisters = ownerInA.dim == MachineDim::Reg && ownerInB.dim == MachineDim::Reg;
    if (!bothRegisters && ownerInA != ownerInB)
      return false;
  }
  return true;
}

bool layoutsFitMma(MmaKind kind, const DotLayouts &layouts) {
  if (!containsFragment(layouts.a, mmaFragment(kind, DotOperand::A)) ||
      !containsFragment(layouts.b, mmaFragment(kind, DotOperand::B)) ||
      !containsFragment(layouts.c, mmaFragment(kind, DotOperand::C)))
    return false;
  // Inside an instruction the fragments agree by its definition; beyond it the owners must, and a thread must hold all of K.
  MmaShape instruction = mmaShape(kind);
  if (!sameOwners(layouts.a, 0, layouts.c, 0, log2Exact(instruction.m)) ||
      !sameOwners(layouts.b, 1, layouts.c, 1, log2Exact(instruction.n)))
    return false;
  std::vector<int> kOfA = layouts.a.axisBits(1), kOfB = layouts.b.axisBits(0);
  if (kOfA.size() != kOfB.size())
    return false;
  for (size_t p = log2Exact(instruction.k); p < kOfA.size(); ++p)
    if (layouts.a.owner(kOfA[p]).dim != MachineDim::Reg || layouts.b.owner(kOfB[p]).dim != MachineDim::Reg)
      return false;
  return true;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Dot without tensor cores
//===------------------------------------------------------------------------------------------------------------------===//

DistributedLayout fmaOperandLayout(const DistributedLayout &c, DotOperand operand, int64_t k) {
  assert((c.rank() == 2 || c.rank() == 3) && operand != DotOperand::C && "A or B of a dot, possibly batched");
  bool isA = operand == DotOperand::A;
  // C without the foreign axis, then with K inserted: A is [batch] m k, B is [batch] k n.
  DistributedLayout kept = c.dropAxis(isA ? c.rank() - 1 : c.rank() - 2);
  Shape shape = kept.shape();
  int kAxis = isA ? kept.rank() : kept.rank() - 1;
  shape.insert(shape.begin() + kAxis, k);
  int kLowest = lowestBitOfAxis(shape, kAxis), kBits = log2Exact(k);
  auto moved = [&](MachineDim dim) {
    std::vector<int> bases = kept.bases(dim);
    for (int &basis : bases)
      if (basis >= kLowest) // zeroBasis is below
        basis += kBits;
    return bases;
  };
  std::vector<int> regs = moved(MachineDim::Reg);
  for (int p = 0; p < kBits; ++p)
    regs.push_back(kLowest + p);
  return DistributedLayout(std::move(shape), std::move(regs), moved(MachineDim::Lane), moved(MachineDim::Warp),
                           moved(MachineDim::Block));
}

DotLayouts fmaLayouts(const DotShape &shape, int lanes, int warps) {
  // Lanes and warps are spread so that a thread's part of C is about square: it needs the rows of A and the columns of B that
  // the part meets. Each new machine bit goes to the side with more left per thread, columns first.
  const int64_t vector = std::min<int64_t>(4, shape.n);
  std::vector<int> threadBases[2]; // of lanes, of warps
  int64_t rows = shape.m, columns = shape.n / vector;
  int nextColumn = log2Exact(vector), nextRow = log2Exact(shape.n);
  for (int level = 0; level < 2; ++level)
    for (int bit = 0; bit < log2Exact(level == 0 ? lanes : warps); ++bit) {
      const bool onColumns = columns > 1 && (columns * vector >= rows || rows == 1);
      if (onColumns) {
        threadBases[level].push_back(nextColumn++);
        columns /= 2;
      } else if (rows > 1) {
        threadBases[level].push_back(nextRow++);
        rows /= 2;
      } else {
        threadBases[level].push_back(zeroBasis);
      }
    }
  std::vector<int> regs;
  for (int bit = 0; bit < log2Exact(vector); ++bit)
    regs.push_back(bit);
  for (int bit = nextColumn; bit < log2Exact(shape.n); ++bit)
    regs.push_back(bit);
  for (int bit = nextRow; bit < log2Exact(shape.n) + log2Exact(shape.m); ++bit)
    regs.push_back(bit);
  DistributedLayout c({shape.m, shape.n}, std::move(regs), std::move(threadBases[0]), std::move(threadBases[1]));
  DistributedLayout a = fmaOperandLayout(c, DotOperand::A, shape.k);
  DistributedLayout b = fmaOperandLayout(c, DotOperand::B, shape.k);
  return {std::move(a), std::move(b), std::move(c)};
}

} // namespace ditron::layout
