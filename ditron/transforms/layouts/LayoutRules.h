//===- LayoutRules.h - How operations relate the layouts of operands and results ----------------------------*- C++ -*-===//
//
// Every operation relates the layouts of its tensor operands and results by a rule on bits: equal for elementwise operations,
// a permutation for trans, the same bits for reshape, an axis dropped or added for reduce, expand_dims and broadcast. Layout
// assignment, removal of conversions, pipelining and the phase verifier all ask here.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_LAYOUTRULES_H
#define DITRON_TRANSFORMS_LAYOUTRULES_H

#include "ditron/layout/LinearLayout.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace ditron::transforms {

/// True for operations that compute each element of their results from the same element of their operands.
bool isElementwise(mlir::Operation *op);
/// True for arange, splat and constants: their tensor result has any layout at no cost.
bool isLayoutFree(mlir::Operation *op);
/// True for expand_dims, broadcast, reshape and trans.
bool isShapeChange(mlir::Operation *op);
/// True for operations without side effects that layout passes may clone in another layout: layout-free, elementwise, shape
/// changes.
bool isRematerialisable(mlir::Operation *op);

/// Tensor-typed values only.
inline bool isTensor(mlir::Value value) { return llvm::isa<mlir::RankedTensorType>(value.getType()); }
/// The shape of a tensor value, as the layout room wants it.
layout::Shape tensorShape(mlir::Value value);

/// True for operations whose results have a layout that follows from that of the first operand, whatever their users want: reduce
/// and join. All operands have one layout.
bool followsFirstOperand(mlir::Operation *op);
/// The layout that `operand` must have whatever the results' layouts are, `first` being the first operand's: for operations whose
/// operands decide. Nothing for all others.
std::optional<layout::DistributedLayout> siblingLayout(mlir::OpOperand &operand,
                                                       const layout::DistributedLayout &first);

/// The layout that `operand` must have when the operation's (first) tensor result, or for stores the pointer, has layout
/// `result`. Nothing when the operation does not decide its operand's layout by its result's (reduce, dot, region ops).
std::optional<layout::DistributedLayout> operandLayout(mlir::OpOperand &operand,
                                                       const layout::DistributedLayout &result);

/// The layout of tensor results when `operand` has layout `source`. Nothing when the operand does not decide it (loads, dot,
/// region ops).
std::optional<layout::DistributedLayout> resultLayout(mlir::OpOperand &operand,
                                                      const layout::DistributedLayout &source);

/// A tile larger than shared memory (160 KiB, what all targets have) cannot be brought into another layout.
inline constexpr int64_t mostConvertedBytes = 160 * 1024;

/// The layout in which a sorting network (tile.bitonic) exchanges least: the low bits of the last dimension, by which most steps
/// compare, in registers, the next in lanes, and the highest, by which fewest do, in warps. For a tile that no conversion can
/// bring into another layout: that of memory, in which it is loaded.
layout::DistributedLayout networkLayout(const layout::Shape &shape, int64_t elementBytes, int lanes, int warps);

/// A row-major layout for a tensor of this shape that is always valid.
layout::DistributedLayout defaultLayout(const layout::Shape &shape, int lanes, int warps);

/// Sets the layout on the type of a tensor value; the value attribute of a constant follows.
void setLayout(mlir::Value value, const layout::DistributedLayout &layout);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_LAYOUTRULES_H
