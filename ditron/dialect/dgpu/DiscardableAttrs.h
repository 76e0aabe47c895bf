//===- DiscardableAttrs.h - Attributes of dgpu that the module and operations of others carry -------------*- C++ -*-===//
//
// What passes and the lowering leave for later stages. Those that the pipeline sets before the first pass are in Dgpu.h. All are listed
// in DgpuDialect::verifyOperationAttribute.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_DIALECT_DGPU_DISCARDABLEATTRS_H
#define DITRON_DIALECT_DGPU_DISCARDABLEATTRS_H

#include "llvm/ADT/StringRef.h"

namespace ditron::dgpu {

/// i32, of tile.load, tile.store and dgpu.async_copy of tensors: the dimension along which one instruction accesses neighbours ...
inline constexpr llvm::StringLiteral vectorAxisAttrName = "dgpu.vector_axis";
/// ... and i32: how many of them.
inline constexpr llvm::StringLiteral vectorElemsAttrName = "dgpu.vector_elems";
/// Unit, of accesses through pointers that may point into shared memory as well as into global memory.
inline constexpr llvm::StringLiteral genericAttrName = "dgpu.generic";

/// i32, of an argument of a kernel whose blocks run one program after the other: the axis, from 0, along which the argument says how many
/// programs were asked for.
inline constexpr llvm::StringLiteral numProgramsAttrName = "dgpu.num_programs";

/// i32 of the module, once lowered: warps of a launch, the producer's among them.
inline constexpr llvm::StringLiteral launchWarpsAttrName = "dgpu.launch_warps";
/// i32 of the branch between the partitions of a warp-specialised kernel, while it is lowered: the number of consumer warps.
inline constexpr llvm::StringLiteral partitionsAttrName = "dgpu.partitions";
/// ... and that of the warps that run the producer's code.
inline constexpr llvm::StringLiteral activeWarpsAttrName = "dgpu.active_warps";
/// Unit, of the module: waits that last say what they wait for, where targets cannot see a deadlock.
inline constexpr llvm::StringLiteral publishWaitsAttrName = "dgpu.publish_waits";
/// Unit, of the module: blocks, waits and signals are noted with their times, where targets do not know them by themselves.
inline constexpr llvm::StringLiteral noteEventsAttrName = "dgpu.note_events";
/// Unit, of the module: they also give up after a time limit and report (test mode of targets that cannot see a deadlock).
inline constexpr llvm::StringLiteral boundWaitsAttrName = "dgpu.bound_waits";
/// i32 of the module: for so many blocks a multiprocessor shall have registers at once; 1 where it is not there.
inline constexpr llvm::StringLiteral residentBlocksAttrName = "dgpu.resident_blocks";
/// Unit, of a lowered module that changes tensor maps, which needs a later PTX version than the rest.
inline constexpr llvm::StringLiteral changesTensorMapsAttrName = "dgpu.changes_tensor_maps";
/// Unit, of a lowered module that sums halves over ranks in f32, which needs PTX 8.2.
inline constexpr llvm::StringLiteral sumsHalvesAttrName = "dgpu.sums_halves";

} // namespace ditron::dgpu

#endif // DITRON_DIALECT_DGPU_DISCARDABLEATTRS_H
