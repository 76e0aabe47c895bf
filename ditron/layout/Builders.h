//===- Builders.h - The layouts a compiler asks for ---------------------------------------------------------*- C++ -*-===//
//
// Functions that return register layouts: coalesced tiles for memory operations, the operand layouts of tensor core
// instructions, and those of a dot computed with multiply-adds. What other compilers keep as a family of encodings is here a
// family of functions; a pass may ask "does this layout contain that instruction's fragment?" and never "which kind is it?".
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_LAYOUT_BUILDERS_H
#define DITRON_LAYOUT_BUILDERS_H

#include "ditron/layout/LinearLayout.h"

namespace ditron::layout {

/// A layout for contiguous memory access. Walking the dimensions in `order` (fastest first), the next tensor bits go to
/// log2(vecElems) registers, then to the lanes, then to the warps; what is left goes to registers. An exhausted dimension
/// wraps to the next one; machine bits left over hold copies. All counts are powers of two.
///   tile({64, 32}, {1, 0}, 4, 32, 4) = 64x32, reg = {j0 j1 i4 i5}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3]
DistributedLayout tile(const Shape &shape, std::span<const int> order, int64_t vecElems, int lanes, int warps);

/// The order (last dimension first) of a row-major tensor: rank-1, ..., 0.
std::vector<int> rowMajorOrder(int rank);

//===------------------------------------------------------------------------------------------------------------------===//
// Tensor core instructions
//===------------------------------------------------------------------------------------------------------------------===//

/// Operand of C += A * B. A is (m, k), B is (k, n), C is (m, n).
enum class DotOperand : uint8_t { A, B, C };

/// The element that one register or lane bit of a fragment reaches.
struct FragmentBasis {
  int row, col;
  bool operator==(const FragmentBasis &) const = default;
};

/// How one warp holds one operand of one instruction. Registers are in the order of the instruction's operand list: bit p of
/// the element number of a thread reaches regs[p].
struct Fragment {
  std::string_view name; ///< For example "mma.m16n8k16.b16.A".
  int rows, cols;
  std::vector<FragmentBasis> regs;
  std::vector<FragmentBasis> lanes;
  int numRegs() const { return 1 << regs.size(); }
};

/// The warp-level mma.sync instructions of NVIDIA sm_80 and later that Ditron uses.
enum class MmaKind : uint8_t {
  M16N8K16B16, ///< fp16 and bf16 operands, fp32 or fp16 accumulators.
  M16N8K8TF32, ///< tf32 (fp32 storage) operands, fp32 accumulators.
  M16N8K32B8,  ///< int8 and fp8 operands, 32-bit accumulators.
  M8N8K4F64,   ///< fp64 operands and accumulators.
};

struct MmaShape {
  int m, n, k;
};
MmaShape mmaShape(MmaKind kind);
/// The instruction for operands of a width: 16, 32 (tf32), 8 or 64 bits.
std::optional<MmaKind> mmaKindFor(int operandBits);
const Fragment &mmaFragment(MmaKind kind, DotOperand operand);

/// Sizes of a dot: A is m x k, B is k x n.
struct DotShape {
  int64_t m, n, k;
};

struct DotLayouts {
  DistributedLayout a, b, c;
};

/// How a block's warps are spread over C.
struct WarpGrid {
  int m, n;
};
/// Splits the warps over M and N: each side only as far as the tile has instructions for, the side with more rows or columns
/// left per warp first. Warps that fit on neither side are counted on M and hold copies.
WarpGrid chooseWarpGrid(MmaKind kind, const DotShape &shape, int warps);

/// One operand's layout: C = fragment, then warps.m on M (low warp bits) and warps.n on N, all other bits in registers. A has
/// C's owners of M, and K beyond the fragment in registers; warp bits that C spends on N hold copies. B likewise. Warp bits
/// for which the tile is too small hold copies. Refused when the tile is smaller than one instruction.
Expected<DistributedLayout> mmaLayout(MmaKind kind, DotOperand operand, const DotShape &shape, WarpGrid warps);
Expected<DotLayouts> mmaLayouts(MmaKind kind, const DotShape &shape, WarpGrid warps);

/// The layout of `batch` tensors of a rank-2 layout, one behind the other in a new first dimension. The low bits of the batch
/// go to `warpsOnBatch` further warps (at most `batch`), whose bits come first, the others to registers.
DistributedLayout withBatch(const DistributedLayout &layout, int64_t batch, int warpsOnBatch);
DotLayouts withBatch(const DotLayouts &layouts, int64_t batch, int warpsOnBatch);

/// True if the rank-2 layout holds whole fragments in each warp: lane bits equal to the fragment's, and each register bit of
/// the fragment owned by a register.
bool containsFragment(const DistributedLayout &layout, const Fragment &fragment);

/// The origin (row, column) of one fragment in a warp's part of the tile.
struct FragmentOrigin {
  int64_t row, col;
  bool operator==(const FragmentOrigin &) const = default;
};
/// The registers that hold the fragment at an origin, in the instruction's order. Thread-owned bits of the origin are
/// ignored. Needs containsFragment.
std::vector<int> fragmentRegisters(const DistributedLayout &layout, const Fragment &fragment, FragmentOrigin origin);
/// The origins, relative to the warp's own part, of all fragments that a thread holds: row by row.
std::vector<FragmentOrigin> fragmentOrigins(const DistributedLayout &layout, const Fragment &fragment);

/// A's K bits must be owned as B's are for the instruction to contract the right pairs, M as in C, N as in C. True if the
/// three layouts fit one another for `kind`.
bool layoutsFitMma(MmaKind kind, const DotLayouts &layouts);

//===------------------------------------------------------------------------------------------------------------------===//
// Dot without tensor cores
//===------------------------------------------------------------------------------------------------------------------===//

/// C is a tile of small register blocks (4 columns, then lanes and warps so that a thread's part is about square, rest in
/// registers); A has C's owners of M and all of
/// K in registers, lanes and warps that own N hold copies; B likewise. Every thread then holds all it needs for its own part
/// of C.
DotLayouts fmaLayouts(const DotShape &shape, int lanes, int warps);
/// The A or B layout of such a dot for any C layout of rank 2 or, with a leading batch dimension, rank 3.
DistributedLayout fmaOperandLayout(const DistributedLayout &c, DotOperand operand, int64_t k);

} // namespace ditron::layout

#endif // DITRON_LAYOUT_BUILDERS_H
