//===- LoopResources.h - Registers and shared memory that a loop takes --------------------------------------*- C++ -*-===//
//
// Estimates for passes that trade one for the other, after layouts. What a thread has at once in a turn of a loop of warpgroup dots are the sums of
// all dots, the operands that they read from registers, and tensors of numbers from before the loop that it uses. Addresses, and what is computed
// between dots, come to that: some forty registers in loops that copy their own tiles.
//
// A multiprocessor has as many blocks at once as both allow. Example: 128 threads that take 150 registers and 40 for addresses, and 60 KiB of 227: two
// blocks by registers, three by shared memory, so two.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_LOOPRESOURCES_H
#define DITRON_TRANSFORMS_LOOPRESOURCES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinTypes.h"

namespace ditron::transforms {

/// Of a thread, for a tensor with a layout.
int64_t registersOf(mlir::RankedTensorType type);

/// Of a thread, for what a turn of the loop has at once.
int64_t registersOfTurn(mlir::scf::ForOp loop);

/// The allocation of a buffer, which may be seen with its dimensions exchanged.
mlir::Value allocationOf(mlir::Value buffer);

/// Bytes of the buffers that are alive in the loop, those of `more` (allocations) among them.
int64_t bufferBytesIn(mlir::scf::ForOp loop, llvm::ArrayRef<mlir::Value> more = {});

/// The loops of a kernel, outside of partitions, whose turns have warpgroup dots.
struct DotLoops {
  llvm::SmallVector<mlir::scf::ForOp> loops;
  int64_t registers = 0, bytes = 0; ///< The most that one of them has: of a turn, and of buffers in it.

  explicit DotLoops(mlir::func::FuncOp kernel);
};

/// Blocks of a kernel that reside on a multiprocessor, at least one: its threads have `registers` for tensors, and it has `bytes` of shared memory, of
/// which there are `limitBytes`.
int64_t residentBlocks(mlir::Operation *kernel, int64_t registers, int64_t bytes, int64_t limitBytes);

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_LOOPRESOURCES_H
