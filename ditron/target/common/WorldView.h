//===- WorldView.h - The words that tell a kernel where it runs -------------------------------------------*- C++ -*-===//
//
// The world view is the kernel's hidden last argument; abi/WorldView.h says what its words are. Most operations that ask for it were
// rewritten by dist-lower-world; those of this file are lowered later.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_WORLDVIEW_H
#define DITRON_TARGET_COMMON_WORLDVIEW_H

#include "ditron/abi/WorldView.h"
#include "ditron/target/common/TargetInfo.h"

namespace ditron::target {

/// The error of an operation whose kernel has no world view.
inline constexpr const char *needsWorldView =
    "needs the world view as the kernel's last argument; run dist-lower-world first";
/// The world view, already lowered; null where the kernel has none.
mlir::Value worldView(mlir::Operation *op);
mlir::Value loadWorldWord(Emitter &e, TargetInfo &target, mlir::Value world, mlir::Value index);
inline mlir::Value loadWorldWord(Emitter &e, TargetInfo &target, mlir::Value world, int index) {
  return loadWorldWord(e, target, world, e.i64(index));
}
/// ptr - bases[own rank] + bases[rank].
mlir::Value peerAddress(Emitter &e, TargetInfo &target, mlir::Value world, mlir::Value ptr, mlir::Value rank);

/// The PEs of a team: size of them, from `first` in steps of `stride` (all i32). Nodes are runs of consecutive ranks.
/// Teams: 0 all, 1 and 2 the node, 3 one PE of each node, with this one's place in it. Others are empty.
struct Team {
  Team(Emitter &e, TargetInfo &target, mlir::Value world, mlir::Value number);
  mlir::Value rank, numRanks; ///< Of the world.
  mlir::Value first, stride, size, nodeSize;
  mlir::Value isValid;

  /// The PE that is number `index` of the team.
  mlir::Value member(Emitter &e, mlir::Value index) const;
  /// The number of a PE of the world in the team; -1 if it is not in it.
  mlir::Value indexOf(Emitter &e, mlir::Value pe) const;
};

/// The PEs of this one's node.
inline Team nodeTeam(Emitter &e, TargetInfo &target, mlir::Value world) { return {e, target, world, e.i32(2)}; }

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_WORLDVIEW_H
