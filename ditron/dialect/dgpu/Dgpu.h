//===- Dgpu.h - The dgpu dialect -------------------------------------------------------------------------*- C++ -*-===//
//
// Layout attributes, shared-memory buffers, layout conversions and asynchronous copies. Definitions: the .td files here.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_DGPU_DGPU_H
#define DITRON_DIALECT_DGPU_DGPU_H

#include "ditron/dialect/tile/Tile.h"
#include "ditron/layout/LinearLayout.h"
#include "ditron/layout/SharedLayout.h"

#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

namespace ditron::layout {
/// Found by argument-dependent look-up when MLIR uniques the attributes that hold these values.
inline llvm::hash_code hash_value(const DistributedLayout &layout) { return llvm::hash_code(layout.hash()); }
inline llvm::hash_code hash_value(const SharedLayout &layout) { return llvm::hash_code(layout.hash()); }
} // namespace ditron::layout

#include "ditron/dialect/dgpu/DgpuDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ditron/dialect/dgpu/DgpuAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ditron/dialect/dgpu/DgpuTypes.h.inc"

namespace ditron::dgpu {
/// Shared memory as a side-effect resource.
struct SharedMemory : public mlir::SideEffects::Resource::Base<SharedMemory> {
  llvm::StringRef getName() final { return "SharedMemory"; }
};

/// The layout of a tensor type; the type must have one (it is an internal error otherwise).
const layout::DistributedLayout &layoutOf(mlir::Type tensorType);
/// The layout attribute of a tensor type, or null.
LayoutAttr layoutAttrOf(mlir::Type tensorType);
/// `tensorType` with its layout replaced.
mlir::RankedTensorType withLayout(mlir::RankedTensorType tensorType, LayoutAttr layout);

/// Module attributes set by the pipeline before layout assignment.
inline constexpr llvm::StringLiteral numWarpsAttrName = "dgpu.num_warps";           // i32
inline constexpr llvm::StringLiteral threadsPerWarpAttrName = "dgpu.threads_per_warp"; // i32
inline constexpr llvm::StringLiteral numStagesAttrName = "dgpu.num_stages";         // i32
inline constexpr llvm::StringLiteral targetAttrName = "dgpu.target";                // string, e.g. "sim:sm_80"
/// Set by shared-memory allocation: bytes of shared memory that the kernel needs (i64).
inline constexpr llvm::StringLiteral sharedBytesAttrName = "dgpu.shared_bytes";
/// On ops with scratch memory after allocation: byte offset (i64).
inline constexpr llvm::StringLiteral offsetBytesAttrName = "offset_bytes";
/// Unit attributes of the module, set by the pipeline: the target has warpgroup dots, tensor copies with mbarriers.
inline constexpr llvm::StringLiteral wgmmaAttrName = "dgpu.wgmma";
inline constexpr llvm::StringLiteral tmaAttrName = "dgpu.tma";
/// Attribute (dictionary) of kernel arguments of type !dgpu.tensor_map: what the launcher builds the map from. `base` is the index of the
/// pointer's argument; `sizes` and `strides` (in elements, outermost first) hold {arg = index} or {value = number}; `box`, `swizzle`
/// (bytes), `element` (a type), `padding` ("zero" or "nan").
inline constexpr llvm::StringLiteral tensorMapAttrName = "dgpu.tensor_map";
/// The warps that run `op` and meet at its block barriers: those of the enclosing partition or function, else of the module.
int numWarpsOf(mlir::Operation *op);
int threadsPerWarpOf(mlir::Operation *op);
} // namespace ditron::dgpu

#define GET_OP_CLASSES
#include "ditron/dialect/dgpu/DgpuOps.h.inc"

#endif // DITRON_DIALECT_DGPU_DGPU_H
