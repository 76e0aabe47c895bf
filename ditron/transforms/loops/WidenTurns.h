//===- WidenTurns.h - Several turns of a loop over tiles become one with longer tiles --------------------------*- C++ -*-===//
//
// What decides whether dgpu-widen-turns is worth it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_WIDENTURNS_H
#define DITRON_TRANSFORMS_WIDENTURNS_H

#include "mlir/IR/BuiltinOps.h"

namespace ditron::transforms {

/// Readies the module for dgpu-widen-turns: true if that makes turns longer and a producer then fetches their tiles, which is tried on copies; remarks say why
/// not. A block of one warpgroup gets a second one if it has no registers for longer turns, and two have.
/// (Tiles that threads copy by themselves need as many copies if they are longer, and more shared memory: the backward of Triton's tutorial took 1 to 9 per
/// cent more time by that on an H200.)
bool prepareLongerTurns(mlir::ModuleOp module, int64_t limitBytes);

/// True if a loop has pipelined dots of fewer than 64 columns: in such turns a producer has nothing to gain. (The same kernel with tiles of 32 rows: 420
/// TFLOP/s with copies of threads, 387 with a producer's, 450 to 475 with those of 64 rows.)
bool hasShortTurns(mlir::ModuleOp module);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_WIDENTURNS_H
