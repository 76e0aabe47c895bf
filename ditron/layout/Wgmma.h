//===- Wgmma.h - Operands of warpgroup multiplies (wgmma) ---------------------------------------------------*- C++ -*-===//
//
// A warpgroup (four warps, aligned) multiplies 64 rows of A by up to 256 columns of B at once. C is in registers, B in shared
// memory, A in either. This file has the register layouts, and reads from a shared layout what the instruction must be told:
// which dimension is contiguous, the swizzle, and the two distances of its matrix descriptor.
//
// Example, A = 128x64 bf16 with the 128-byte swizzle, rows contiguous: K-major; a k step (16 elements) is 32 bytes; 8 rows are
// 1024 bytes (stride); the second warpgroup's rows begin at 64 * 128 = 8192 bytes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_LAYOUT_WGMMA_H
#define DITRON_LAYOUT_WGMMA_H

#include "ditron/layout/Builders.h"
#include "ditron/layout/SharedLayout.h"

namespace ditron::layout {

inline constexpr int warpsPerGroup = 4;
inline constexpr int wgmmaRows = 64;
inline constexpr int wgmmaMaxColumns = 256;
/// Bytes of K that one instruction contracts, whatever the type: 16 elements of 16 bits.
inline constexpr int wgmmaStepBytes = 32;

/// The accumulator of m64n`columns`, as one warp of the group holds it (its 16 rows; the warps follow each other on M).
/// Registers in the order of the instruction's operands, so that fragmentRegisters and fragmentOrigins apply.
Fragment wgmmaFragment(int columns);

/// The layout of C (rows x columns) in registers: the fragment, warps 0-3 on M, further warpgroups on M as long as there are
/// 64 more rows, then on the highest bits of N; the rest in registers. Refused when the tile is too small or `warps` no
/// multiple of four.
Expected<DistributedLayout> wgmmaAccumulator(const Shape &shape, int warps);
/// True if a layout can be the C of warpgroup multiplies.
bool containsWgmma(const DistributedLayout &c);
/// The columns of one instruction for such a C: the largest run that a warpgroup holds, at most 256.
int wgmmaColumns(const DistributedLayout &c);

/// The layout of an A (rows of C x k) in registers. operandBits is 8, 16 or 32 (tf32).
Expected<DistributedLayout> wgmmaOperandA(const DistributedLayout &c, int64_t k, int operandBits);

/// How the instruction sees an operand in shared memory. `mn` is the row of A or the column of B.
struct WgmmaOperand {
  bool isMnMajor = false; ///< mn is the contiguous dimension; else k is.
  int swizzleBytes = 128; ///< 32, 64 or 128.
  /// The two distances of the matrix descriptor. K-major: `strideBytes` from 8 rows to the next 8, `leadingBytes` is not
  /// used. MN-major: `leadingBytes` from a panel (swizzleBytes of mn) to the next, `strideBytes` from 8 k to the next 8.
  int64_t leadingBytes = 0, strideBytes = 0;
  /// From one k step to the next, for `stepsPerPanel` steps; then a new panel begins.
  int64_t stepBytes = 0;
  int64_t stepsPerPanel = 1;
  int64_t panelBytes = 0; ///< Size of a panel: swizzleBytes of the contiguous dimension, all of the other.
  int panelElements = 0;  ///< Of the contiguous dimension.
  int stepElements = 16;  ///< k of one instruction.

  /// Where the descriptor of (mn, k) points, from the beginning of the tile. mn is a multiple of 8 (MN-major: of
  /// panelElements, or 0), k of stepElements.
  int64_t offsetBytes(int64_t mn, int64_t k) const;
};
/// The view of operand A (M x K) or B (K x N) laid out as `shared`; nothing if the instruction cannot read it.
std::optional<WgmmaOperand> wgmmaOperand(const SharedLayout &shared, DotOperand operand);

} // namespace ditron::layout

#endif // DITRON_LAYOUT_WGMMA_H
