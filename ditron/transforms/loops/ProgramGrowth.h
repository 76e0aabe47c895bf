//===- ProgramGrowth.h - Which programs of a launch have the most to do -------------------------------------*- C++ -*-===//
//
// How the turns of a kernel's loops depend on where its program stands in the launch. In causal attention the program of the tile `p` goes
// through the keys of p + 1 tiles: programs with high ids have the most to do.
//
// Each integer gets, for one axis of the launch, its slope: what it grows by from one program to the next, where that is a known number, else
// only the sign. Bounds whose difference is p * 128 - 0 have slope 128; (p + 1) * 128 - p * 128 has slope 0, and so the same number of turns
// everywhere. What cannot be told (remainders, loaded values) makes the answer unknown. Only speed may rest on it: overflow is not thought of.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_PROGRAMGROWTH_H
#define DITRON_TRANSFORMS_PROGRAMGROWTH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ditron::transforms {

/// The axis of a launch along which the programs' work grows, or falls.
struct ProgramGrowth {
  std::optional<int> axis; ///< Nothing: all programs have as much to do.
  bool grows = true;       ///< Programs with high ids have the most to do; else those with low ids.
};

/// That of a kernel, from the turns of its outermost loops; nothing if it cannot be told, or depends on several axes.
std::optional<ProgramGrowth> growthOfPrograms(mlir::func::FuncOp kernel);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_PROGRAMGROWTH_H
