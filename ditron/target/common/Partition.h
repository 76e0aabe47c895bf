//===- Partition.h - Which warps run this code? -----------------------------------------------------------*- C++ -*-===//
//
// A warp-specialised kernel is two programs side by side (dgpu.warp_specialize). Before anything in it is lowered the op becomes
// a branch on the number of the warp, with an attribute that says how many warps take which side; the kernel stays one
// function, so that what both sides need is simply there. Code then asks here where it stands: thread ids, the number of
// threads and the block barrier are those of its side.
//
//   dgpu.warp_specialize consumer { C } producer { P }    ->    scf.if (warp < 8) { setmaxnreg; C }
//                                                              else { setmaxnreg; if (warp < 9) P }      {dgpu.partitions = 8}
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
  /// Number of the hardware barrier at which its warps meet; those of warpgroups alone come between.
  int barrier() const { return isProducer() ? 15 : 1; }
};

/// The partition of a place; nothing where all warps of the block come by.
std::optional<Partition> partitionAt(mlir::Block *block);
inline std::optional<Partition> partitionAt(Emitter &e) { return partitionAt(e.getInsertionBlock()); }

/// Warps of a launch: those of the language and the producer's. When the kernel has been lowered it is the module attribute
/// `dgpu.launch_warps` that says so.
int launchWarpsOf(mlir::ModuleOp module);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_PARTITION_H
