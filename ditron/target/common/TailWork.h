//===- TailWork.h - Scalar work under the last multiply of a loop -----------------------------------------*- C++ -*-===//
//
// When a loop with a warpgroup dot in flight ends, its last multiply still runs, for half a microsecond, and the warps wait
// for it. What a persistent kernel computes before the loop and needs only after it (which tile this is: divisions, some
// hundred cycles) is better done there than before the first multiply, where the tensor cores have nothing to do:
//
//   %row = divisions                     %r = scf.for { dots }
//   %r = scf.for { dots }         ->     %row = divisions
//   warpgroup_wait 0, %r                 warpgroup_wait 0, %r
//   store at %row                        store at %row
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_TAILWORK_H
#define DITRON_TARGET_COMMON_TAILWORK_H

#include "mlir/IR/BuiltinOps.h"

namespace ditron::target {

/// Runs after guardAccumulatorLoops: a loop may stand in the branch that this has made.
void sinkTailWork(mlir::ModuleOp module);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_TAILWORK_H
