//===- Partition.h - Which warps run this code? -----------------------------------------------------------*- C++ -*-===//
//
// A warp-specialised kernel is two programs side by side (dgpu.warp_specialize). Before anything else is lowered the op becomes
// a branch on the number of the warp, with an attribute that says how many warps take which side; the kernel stays one
// function, so that what both sides need is simply there. Code then asks here where it stands: thread ids, the number of
// threads and the block barrier are those of its side.
//
//   dgpu.warp_specialize consumer { C } producer { P }    ->    scf.if (warp < 8) { setmaxnreg; C }
//                                                              else { setmaxnreg; if (warp == 8) P }     {dgpu.partitions = 8}
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_PARTITION_H
#define DITRON_TARGET_COMMON_PARTITION_H

#include "ditron/target/common/Emitter.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace ditron::target {

class TargetInfo;

/// Warps that run the same code, apart from the block's others.
struct Partition {
  int firstWarp = 0;
  int numWarps = 1;
  bool isProducer() const { return firstWarp != 0; }
};

/// The partition of a place; nothing where all warps of the block come by.
std::optional<Partition> partitionAt(mlir::Block *block);
inline std::optional<Partition> partitionAt(Emitter &e) { return partitionAt(e.getInsertionBlock()); }

/// Warps of a launch: those of the language and the producer's. After the kernel has been split it is the module attribute
/// `dgpu.launch_warps` that says so.
inline constexpr llvm::StringLiteral launchWarpsAttrName = "dgpu.launch_warps";
int launchWarpsOf(mlir::ModuleOp module);

/// What the conversion patterns must find done: partitions split, tensor maps passed by value and prefetched, each tensor copy
/// marked with the box and the swizzle of its map, and the last of the kernel's mbarrier_allocs marked as such.
mlir::LogicalResult prepareHopper(mlir::ModuleOp module, TargetInfo &target);

/// Attribute of dgpu.tma_load and dgpu.tma_store: sizes of the map's box, outermost first.
inline constexpr llvm::StringLiteral boxAttrName = "dgpu.box";
/// Attribute of the same: bytes of the map's swizzle, or 0.
inline constexpr llvm::StringLiteral swizzleAttrName = "dgpu.swizzle";
/// Unit attribute of an mbarrier_arrive before which the lanes of each warp meet: they have read the tile by ordinary loads.
inline constexpr llvm::StringLiteral afterLoadsAttrName = "dgpu.after_loads";
/// Unit attribute of the mbarrier_alloc after which all warps of the block meet.
inline constexpr llvm::StringLiteral lastAllocAttrName = "dgpu.last";

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_PARTITION_H
