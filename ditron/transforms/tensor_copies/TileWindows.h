//===- TileWindows.h - Tiles of pointers as windows of a tensor map -------------------------------------------*- C++ -*-===//
//
// The two halves of dgpu-describe-tiles, which DescribeTiles.cpp describes and puts together: which loads through pointers can be loads of descriptors,
// and how they become that.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_TILEWINDOWS_H
#define DITRON_TRANSFORMS_TILEWINDOWS_H

#include "ditron/analysis/AffineTiles.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <vector>

namespace ditron::transforms {

/// Where a tile stands in a dimension that has an end: beyond that zeros are read.
struct WindowEnd {
  mlir::Value argument; ///< i32, of the kernel; null: `number`.
  int64_t number = 0;
  analysis::Polynomial start, perTurn; ///< Of the tile's first element.
  bool isWide = false;                 ///< The start may have more than 32 bits.

  bool operator==(const WindowEnd &) const = default;
};

/// A load that may become one of a descriptor.
struct WindowLoad {
  tile::LoadOp load;
  analysis::AffineTile tile; ///< Of the window; without the starts in dimensions that have an end.
  bool isTransposed = false; ///< The first dimension is the contiguous one.
  llvm::SmallVector<std::optional<WindowEnd>> ends; ///< Of each dimension of the load.

  mlir::RankedTensorType type() { return llvm::cast<mlir::RankedTensorType>(load.getType()); }
  bool isRow() { return type().getRank() == 1; }
  int64_t elementBytes() { return type().getElementTypeBitWidth() / 8; }
  /// Elements in 16 bytes.
  int64_t unit() { return copyAlignmentBytes / elementBytes(); }
  /// Of the dimension that is not contiguous, in elements.
  const analysis::Polynomial &stride() const { return tile.coefficients[isTransposed ? 1 : 0]; }
};

/// The loads of a kernel that can be described, in program order, the same for copies of a kernel. `refuse` is told of matrices of dots, and of rows
/// beside such, that cannot.
std::vector<WindowLoad> findWindows(mlir::func::FuncOp kernel,
                                    llvm::function_ref<void(tile::LoadOp, llvm::StringRef)> refuse);

/// Makes loads of descriptors of some of those, and erases these. The new loads, in the same order.
llvm::SmallVector<tile::DescriptorLoadOp> describeWindows(mlir::func::FuncOp kernel,
                                                          llvm::MutableArrayRef<WindowLoad> windows);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_TILEWINDOWS_H
