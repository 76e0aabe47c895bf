//===- WarpgroupDotRules.h - Which dots warpgroups can do ---------------------------------------------------*- C++ -*-===//
//
// Shared by the two passes that turn tile.dot into dgpu.warpgroup_dot: dgpu-specialize-warps (operands by tensor copies) and
// dgpu-warpgroup-dots (all others).
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_WARPGROUPDOTRULES_H
#define DITRON_TRANSFORMS_WARPGROUPDOTRULES_H

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/Wgmma.h"

#include <string>

namespace ditron::transforms {

/// Why warpgroups cannot do the dot, judged by types and sizes; empty if they can.
std::string whyNoWarpgroupDot(tile::DotOp dot, int warps);

/// The promote_elems of a warpgroup dot in place of the dot: what the author allows to be added up imprecisely, in whole steps of
/// the instruction. Null for dots without such a limit.
mlir::IntegerAttr promotionOf(tile::DotOp dot);

/// True if the reshape makes a matrix of a tile whose outer dimensions have one element.
bool dropsOuterDimensions(tile::ReshapeOp reshape);

/// A dot's operand, seen through transposes, and to a descriptor load also through the loss of outer dimensions.
struct OperandRoot {
  mlir::Value value;
  bool isTransposed = false;
};
OperandRoot rootOf(mlir::Value operand);

/// True if warpgroups can read the operand from tiles of `buffer`, transposed or not.
bool canReadOperand(dgpu::BufferType buffer, bool isTransposed, layout::DotOperand operand);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_WARPGROUPDOTRULES_H
