//===- Passes.td - Passes for the sake of NVIDIA's assembler -----------------------------------------------*- tablegen -*-===//
#ifndef DITRON_TARGET_NVPTX_PASSES_TD
#define DITRON_TARGET_NVPTX_PASSES_TD

include "mlir/Pass/PassBase.td"

def GuardAccumulatorLoops : Pass<"nvptx-guard-accumulator-loops", "::mlir::ModuleOp"> {
  let summary = "loops through which a warpgroup dot stays in flight are run only if they have a turn";
  let description = [{
    ptxas serialises warpgroup multiplies (C7515) when another instruction may define an accumulator between a multiply and its wait. A
    loop that may run no turn has such a path, from its initial values to the wait behind it.
    1. Loops with a warpgroup dot that are followed by `warpgroup_wait 0` of their results, with only pure operations in between.
    2. Loop and wait become the body of `scf.if (lower bound < upper bound)`; the other region gives the initial values, through a wait
       of its own for which nothing is in flight.
    3. Initial values that the first turn does not read become ub.poison.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect"];
}
#endif
