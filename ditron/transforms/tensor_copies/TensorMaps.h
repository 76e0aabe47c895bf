//===- TensorMaps.h - Descriptors as arguments of the hardware's tensor copies ------------------------------*- C++ -*-===//
//
// The tensor copy engine (TMA) reads what it must know of a tensor from 128 bytes that the launcher prepares: a tensor map. A
// descriptor of the kernel can become one when the launcher can compute it, that is, when its base, sizes and strides are kernel
// arguments or constants. The map is then one more argument of the kernel, and an attribute tells the launcher what to put in.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_TENSORMAPS_H
#define DITRON_TRANSFORMS_TENSORMAPS_H

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/tile/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace ditron::transforms {

/// What the copy engine demands of addresses.
inline constexpr int64_t copyAlignmentBytes = 16;

/// Where every buffer in shared memory begins: a multiple of the widest swizzle's pattern, which goes by address.
inline constexpr int64_t bufferAlignment = 1024;

/// The descriptor's definition, through tokens; null if it is not known.
tile::MakeDescriptorOp descriptorOf(mlir::Value descriptor);
/// The kernel argument that a pointer is computed from by offsets, casts and tokens; null if there is none.
mlir::BlockArgument argumentBehind(mlir::Value pointer);

/// A power of two that divides the value of an integer expression, by what the specialisation promises of arguments; 2^20 is the most.
int64_t divisorOf(mlir::Value value);

/// A tile in shared memory as tensor copies move it: see layout/CopyBoxes.h. Outer dimensions of one element (a head, a batch) are left
/// out: a buffer is a matrix.
dgpu::BufferType copyBufferType(tile::DescriptorType descriptor, int64_t slots);
dgpu::BufferType copyBufferType(mlir::RankedTensorType tile, int64_t slots);

/// Why tensor copies cannot move tiles of this descriptor; empty if they can.
std::string whyNoTensorMap(mlir::Value descriptor);
/// The same for the tile at these offsets: the hardware wants it to begin at a multiple of 16 bytes of its row, and a store to begin
/// inside of the tensor and rows that end at one (seen on an H200: an illegal instruction, or bytes written behind the row).
std::string whyNoTensorCopy(mlir::Value descriptor, mlir::ValueRange offsets, bool isStore);
/// What a tensor map is for.
enum class MapUse {
  Plain,       ///< Copies that leave elements as they are.
  DotOperands, ///< Loads of operands: the hardware rounds fp32 to tf32, of which its multiplies would cut the other bits off.
  SharedDotOperands, ///< The same, of tiles of which each block of a cluster fetches half: an even number of boxes.
};
/// Whether the tile has two halves of whole boxes.
bool canBeFetchedByHalves(tile::DescriptorType descriptor);
/// The kernel argument with the descriptor's tensor map, added if there is none like it yet. Needs whyNoTensorMap to be empty.
mlir::Value tensorMapFor(mlir::Value descriptor, mlir::func::FuncOp kernel, MapUse use = MapUse::Plain);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_TENSORMAPS_H
