//===- Passes.td - From tile code with layouts to LLVM -----------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_TARGET_COMMON_PASSES_TD
#define DITRON_TARGET_COMMON_PASSES_TD

include "mlir/Pass/PassBase.td"

def DitronToLLVM : Pass<"ditron-to-llvm", "::mlir::ModuleOp"> {
  let summary = "tile code with layouts becomes one thread's program in the LLVM dialect";
  let description = [{
    Three conversions, each of which leaves nothing of what it converts:
    1. tile, dist and dgpu, and all of arith, math and scf that touches tensors, pointers or floats that the target does not compute in,
       become scalar code: a tensor is one value for each register. What differs between targets is emitted by TargetInfo.
    2. scf becomes branches.
    3. arith, math, cf and func become LLVM.
    Operations with scratch memory need their place in it (dgpu-allocate-shared), tensor copies their boxes (dgpu-bind-tensor-maps). What
    dgpu-annotate-accesses and dgpu-guard-effects say is believed: without them accesses are made element by element, by the block's
    first thread if they are of scalars.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"",
                        "full name of the target, for example sim:sm_80; empty: that of the module's dgpu.target">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::cf::ControlFlowDialect", "::mlir::func::FuncDialect",
                           "::mlir::ub::UBDialect"];
}
#endif
