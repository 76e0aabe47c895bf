//===- Passes.td - Passes that check or print facts --------------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_ANALYSIS_PASSES_TD
#define DITRON_ANALYSIS_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyUniformity : Pass<"dist-verify-uniformity", "::mlir::func::FuncOp"> {
  let summary = "refuses block-level operations where only some threads of the block arrive";
  let description = [{
    Operations that the whole block performs together (dot, reduce, scan, layout conversions, atomics of the block, barriers,
    waits and notifications) deadlock or give garbage when only some threads reach them. The pass finds them under control
    flow whose condition differs between threads and reports an error with a note at the condition.
  }];
}

def VerifySignals : Pass<"dist-verify-signals", "::mlir::func::FuncOp"> {
  let summary = "refuses signals that cannot mean what they should";
  let description = [{
    1. Acquire, release and atomic operations through a pointer to another rank need system scope. In a file that is written for
       Triton-distributed this is a warning.
    2. A signal word that is set has one owner: not every block of a grid, nor two blocks that are told apart by their program id.
    3. Instructions that the target does not have.
    docs/verifiers.md says why.
  }];
}

def VerifyWaits : Pass<"dist-verify-waits", "::mlir::func::FuncOp"> {
  let summary = "refuses waits that nothing depends on, warns of loops that never see a change";
  let description = [{
    1. An error: a wait whose token has a name but reaches no dist.consume_token, when a load is the next that touches memory. A
       barrier, another wait or a fence in between orders all loads behind it, and so does a wait whose token nobody takes.
    2. A warning: a loop that does nothing but load what nobody in it writes, without volatile.
    docs/verifiers.md says why.
  }];
}

def VerifyRegisters : Pass<"dgpu-verify-registers", "::mlir::func::FuncOp"> {
  let summary = "refuses tiles that take too many registers of each thread";
  let description = [{
    Reports the operation whose result takes the most registers of 32 bits per thread, if it is over the limit; elements of fewer bits
    take a whole register each. Larger tiles would take minutes to compile and run out of registers on every GPU.
  }];
  let options = [Option<"limit", "limit", "int64_t", /*default=*/"2048", "Most registers that a tile may take of a thread">];
}

def TestAxisInfo : Pass<"test-axis-info", "::mlir::func::FuncOp"> {
  let summary = "prints contiguity, divisibility and constancy of every integer and pointer value as remarks";
}

def TestUniformity : Pass<"test-uniformity", "::mlir::func::FuncOp"> {
  let summary = "prints which results differ between threads as remarks";
}
#endif
