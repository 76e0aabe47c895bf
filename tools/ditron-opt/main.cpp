//===- main.cpp - ditron-opt ----------------------------------------------------------------------------*- C++ -*-===//
//
// mlir-opt for Ditron: our dialects, the upstream ones we use, a few upstream passes and every pass of ours. Only what
// we use is registered, so that --help stays readable.
//
// To add the passes of a room: include its header below and call its registration function.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "VerifyInput.h"

#include "ditron/analysis/Passes.h"
#include "ditron/compiler/FatalErrors.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/support/InputFile.h"
#include "ditron/support/OutputFile.h"
#include "ditron/support/ToolProcess.h"
#include "ditron/target/Passes.h"
#include "ditron/transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdio>

namespace {

/// Reads the input; gives null after a message. What has no end stops at a limit.
std::unique_ptr<llvm::MemoryBuffer> readInput(const std::string &path) {
  constexpr uint64_t mostBytes = uint64_t(256) << 20;
  ditron::Expected<std::string> text = [&]() -> ditron::Expected<std::string> {
    if (path != "-")
      return ditron::readWholeFile(path, "", mostBytes);
    ditron::InputFile input = ditron::InputFile::standardInput();
    return ditron::readToEnd(input, mostBytes);
  }();
  if (text.isOk())
    return llvm::MemoryBuffer::getMemBufferCopy(*text, path == "-" ? "<stdin>" : path);
  llvm::errs() << "ditron-opt: error: " << text.status().message() << "\n";
  return nullptr;
}

/// What mlir::MlirOptMain does for a command line, with files of ours: an output is written when it is whole.
int optimize(int argc, char **argv, mlir::DialectRegistry &registry) {
  const auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Ditron optimizer driver\n", registry);
  const mlir::MlirOptMainConfig asWritten = mlir::MlirOptMainConfig::createFromCLOptions();
  mlir::MlirOptMainConfig config = asWritten;
  config.setPassPipelineSetupFn([&](mlir::PassManager &passes) {
    passes.addPass(ditron::createVerifyInput());
    return asWritten.setupPassPipeline(passes);
  });
  if (config.shouldShowDialects() || config.shouldListPasses()) // which need no input, and end here
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
  std::unique_ptr<llvm::MemoryBuffer> buffer = readInput(input);
  if (!buffer)
    return 1;
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (mlir::failed(mlir::MlirOptMain(stream, std::move(buffer), registry, config)))
    return 1;
  if (output == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  if (ditron::Status written = ditron::writeWholeFile(output, text); !written.isOk()) {
    llvm::errs() << "ditron-opt: error: " << written.message() << "\n";
    return 1;
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  ditron::ToolProcess process("ditron-opt");
  ditron::compiler::reportFatalErrors();
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
  ditron::transforms::registerTransformsPasses();
  ditron::target::registerTargetPasses();
  return process.finish(optimize(argc, argv, registry));
}
