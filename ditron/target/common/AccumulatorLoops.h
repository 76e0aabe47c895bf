//===- AccumulatorLoops.h - Loops through which a warpgroup dot stays in flight ---------------------------*- C++ -*-===//
//
// The accumulators of a dot in flight belong to the hardware from its issue to the wait, and NVIDIA's assembler gives up
// (C7515: every multiply is followed by a wait) when any other instruction defines one of them in between, on whatever path.
// A loop that may run no turn has such a path: it leads from the initial values straight to the wait behind the loop. So the
// loop and its wait become the body of a branch that is taken when there is a turn:
//
//   %r = scf.for .. iter_args(%acc = %zero)          %w = scf.if (lb < ub) { %r = scf.for ..; yield wait 0, %r }
//   %w = dgpu.warpgroup_wait 0, %r             ->                   else { yield %zero }
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_COMMON_ACCUMULATORLOOPS_H
#define DITRON_TARGET_COMMON_ACCUMULATORLOOPS_H

#include "mlir/IR/BuiltinOps.h"

// Where the dot does not read the initial value in the first turn, nothing sets registers to it: the loop in the branch starts from
// undefined ones. The values of the other region go through a wait as well, so that LLVM keeps a place for them off the common path.

namespace ditron::target {

void guardAccumulatorLoops(mlir::ModuleOp module);

} // namespace ditron::target

#endif // DITRON_TARGET_COMMON_ACCUMULATORLOOPS_H
