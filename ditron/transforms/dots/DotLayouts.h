//===- DotLayouts.h - Which instruction a dot uses, and the layouts that follow -----------------------------*- C++ -*-===//
//
// Chooses between tensor core fragments and multiply-adds for one tile.dot, and spreads the warps over its result.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_DOTLAYOUTS_H
#define DITRON_TRANSFORMS_DOTLAYOUTS_H

#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/Builders.h"

namespace ditron::transforms {

/// The layouts of a dot, and in words how it is computed ("mma.m16n8k16.b16, warps 2x2" or "multiply-add").
struct DotChoice {
  layout::DotLayouts layouts;
  std::string description;
  bool usesTensorCores = false;
};

/// 1. 16-bit operands use m16n8k16, int8 m16n8k32, fp32 with precision tf32 m16n8k8; all others, and tiles smaller than one
///    instruction, are computed with multiply-adds.
/// 2. Warps are split over M and N by layout::chooseWarpGrid; a dot whose result feeds the first operand of another dot keeps all
///    warps on M as far as they fit, since the fragment of C then is the fragment of A.
DotChoice chooseDotLayouts(tile::DotOp dot, int lanes, int warps);

/// fp8 operands have no instruction on the targets so far: extends both operands of a dot to fp16.
void promoteFp8Operands(tile::DotOp dot);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_DOTLAYOUTS_H
