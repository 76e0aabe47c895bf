//===- AccumulatingDots.h - Warpgroup dots of a pipelined loop that run into its next turn --------------------*- C++ -*-===//
//
// A dot that only adds to a value which the loop carries need not be waited for in its turn: nobody looks at the sum before the next one. What that is
// worth, and where the waits go: PipelineLoops.cpp.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_PIPELINING_ACCUMULATINGDOTS_H
#define DITRON_TRANSFORMS_PIPELINING_ACCUMULATINGDOTS_H

#include "ditron/dialect/dgpu/Dgpu.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ditron::transforms {

/// The warpgroup dots of a loop, some of which read rings of tiles.
class AccumulatingDots {
public:
  explicit AccumulatingDots(mlir::scf::ForOp loop) : loop(loop) {}

  /// Whether all of them only accumulate.
  bool all();
  /// Whether one does, operands in registers or not.
  bool some();
  /// Whether a turn waits for a dot and computes with what it gives, beside others that only accumulate: then those are complete when the next turn's
  /// first wait is.
  bool turnComputesBetween();

  /// Behind the copies: no fence where nothing is stored any more; waits of dots that only accumulate move to the next turn, or, where these may
  /// stay in flight over its barrier, behind the dots of that.
  void runOn(bool computesBetween, bool stayInFlight);

private:
  bool onlyAccumulates(dgpu::WarpgroupWaitOp wait, bool fromRegisters = false);
  void waitFor(mlir::OpBuilder &builder, mlir::ValueRange values, uint32_t pending);

  mlir::scf::ForOp loop;
};

} // namespace ditron::transforms
#endif // DITRON_TRANSFORMS_PIPELINING_ACCUMULATINGDOTS_H
