//===- main.cpp - ditron-opt ----------------------------------------------------------------------------*- C++ -*-===//
//
// mlir-opt for Ditron: our dialects, the upstream ones we use, a few upstream passes and every pass of ours. Only what
// we use is registered, so that --help stays readable.
//
// To add the passes of a room: include its header below and call its registration function.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/Passes.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/target/Passes.h"
#include "ditron/transforms/DecomposeDots.h"
#include "ditron/transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<ditron::tile::TileDialect, ditron::dist::DistDialect, ditron::dgpu::DgpuDialect>();
  registry.insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                  mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::ub::UBDialect>();

  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerLoopInvariantCodeMotionPass();
  mlir::registerSCCPPass();
  mlir::registerSymbolDCEPass();
  mlir::registerStripDebugInfoPass();
  ditron::analysis::registerAnalysisPasses();
  ditron::analysis::registerVerifiers();
  ditron::transforms::registerTransformsPasses();
  ditron::transforms::registerDecomposeDots();
  ditron::target::registerTargetPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Ditron optimizer driver\n", registry));
}
