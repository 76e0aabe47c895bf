//===- MatrixLoad.h - Tiles in shared memory read by matrix loads -----------------------------------------*- C++ -*-===//
//
// A matrix load (NVIDIA's ldmatrix) lets the lanes of a warp say where rows of 16 bytes begin and then hands every lane 4
// bytes of each matrix of 8 rows: lane l gets word l % 4 of row l / 4, or, transposed, the 16-bit elements at position l / 4
// of rows 2 * (l % 4) and the next. Operand fragments of tensor cores are spread like that, and plain loads of them would be
// 4 or even 2 bytes wide.
//
// Whether a tile can be read so is a question to its addresses. With w = elements per 4 bytes, the element offsets that the
// register and lane bits contribute must be
//   plain:       registers 1, .., w/2; lane bits 0 and 1: w, 2w; all other register, lane and warp bits multiples of 4w
//   transposed:  lane bits 2, 3, 4: 1, 2, 4; all other bits multiples of 8 (w = 2); a register bit pairs two rows
// Example: the A fragment of m16n8k16 in 64-byte rows has registers {1, 8 rows, 8}, lanes [2, 4, row, 2 rows, 4 rows].
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_MATRIXLOAD_H
#define DITRON_TARGET_COMMON_MATRIXLOAD_H

#include "ditron/layout/SharedLayout.h"

#include <optional>

namespace ditron::target {

struct MatrixLoadPlan {
  bool transpose = false;
  int count = 1;        ///< Matrices per instruction: 1, 2 or 4.
  int elemsPerWord = 2;
  /// Addresses of rows: lane 8 * i + r supplies row r of matrix i. The registers of an access are, matrix after matrix, those
  /// that the result's word holds, low bits first.
  layout::OffsetPlan rows;
};

/// The plan for a tile that `registers` reads as `plan` says, or nothing if it cannot be. Where the registers hold a tensor
/// core's fragment, an instruction loads whole fragments in the order of their registers: the hardware writes consecutive
/// registers and the tensor core reads consecutive ones.
std::optional<MatrixLoadPlan> makeMatrixLoadPlan(const layout::DistributedLayout &registers,
                                                 const layout::OffsetPlan &plan, int elementBytes);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_MATRIXLOAD_H
