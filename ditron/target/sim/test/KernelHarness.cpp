//===- KernelHarness.cpp - Runs IR text on the simulator, for tests -------------------------------------------------------===//
//
// See KernelHarness.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelHarness.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"
#include "ditron/sim/AbiSymbols.h"
#include "ditron/sim/Machine.h"
#include "ditron/sim/hopper/TensorMap.h"
#include "ditron/target/Passes.h"
#include "ditron/target/common/Passes.h"
#include "ditron/target/sim/SimCodegen.h"
#include "ditron/target/sim/SimTarget.h"
#include "ditron/transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

namespace ditron::target::test {

static Status fromLLVM(llvm::Error error) {
  return error ? internalError(llvm::toString(std::move(error))) : Status::ok();
}

/// Lowered and compiled.
static Expected<SimCode> compile(const std::string &source, const std::string &earlierPasses,
                                 const std::string &target) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context
      .loadDialect<tile::TileDialect, dist::DistDialect, dgpu::DgpuDialect, mlir::arith::ArithDialect,
                   mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::func::FuncDialect, mlir::LLVM::LLVMDialect>();
  std::string messages;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  if (!module)
    return invalidArgument("the test's IR does not parse: " + messages + source);
  registerTargetPasses();
  mlir::registerTransformsPasses();
  transforms::registerTransformsPasses();
  mlir::PassManager passes(&context);
  if (mlir::failed(mlir::parsePassPipeline(earlierPasses, passes)))
    return invalidArgument("no such pipeline: " + earlierPasses);
  if (mlir::failed(mlir::parsePassPipeline(passesBeforeLowering, passes)))
    return internalError(std::string("no such pipeline: ") + passesBeforeLowering);
  passes.addPass(createDitronToLLVM({target}));
  if (mlir::failed(passes.run(*module)))
    return internalError("lowering failed: " + messages);
  return emitSimObject(*module);
}

/// The functions of abi/Simulator.h, by address.
static llvm::orc::SymbolMap engineSymbols(llvm::orc::LLJIT &jit) {
  llvm::orc::SymbolMap symbols;
  for (const sim::AbiSymbol &symbol : sim::abiSymbols())
    symbols[jit.mangleAndIntern(symbol.name)] = {llvm::orc::ExecutorAddr::fromPtr(symbol.address),
                                                 llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  return symbols;
}

Status runKernel(const KernelRun &run, std::vector<ArrayArgument> &arrays) {
  DITRON_ASSIGN_OR_RETURN(SimCode code, compile(run.source, run.passes, run.target));
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return fromLLVM(jit.takeError());
  DITRON_RETURN_IF_ERROR(fromLLVM((*jit)->getMainJITDylib().define(llvm::orc::absoluteSymbols(engineSymbols(**jit)))));
  auto object = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(code.object.data(), code.object.size()));
  DITRON_RETURN_IF_ERROR(fromLLVM((*jit)->addObjectFile(std::move(object))));
  auto entry = (*jit)->lookup(simEntryName("kernel"));
  if (!entry)
    return fromLLVM(entry.takeError());

  sim::MachineOptions options = run.target == "sim:sm_80" ? sim::MachineOptions() : sim::MachineOptions::sm90();
  options.memoryPerRank = uint64_t(1) << 30;
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<sim::Machine> machine, sim::Machine::create(options));
  sim::LaunchDescription launch;
  launch.name = "kernel";
  launch.entry = entry->toPtr<sim::KernelEntry>();
  std::vector<void *> places;
  for (size_t i = 0; i < arrays.size(); ++i) {
    DITRON_ASSIGN_OR_RETURN(void *place, machine->allocate(0, arrays[i].bytes.size(), "array" + std::to_string(i)));
    std::memcpy(place, arrays[i].bytes.data(), arrays[i].bytes.size());
    launch.arguments.add(place);
    places.push_back(place);
  }
  for (int32_t integer : run.integers)
    launch.arguments.add(integer);
  for (const MapArgument &map : run.maps) {
    const uint32_t dims[] = {map.columns, map.rows}, box[] = {map.boxColumns, map.boxRows};
    const uint64_t strides[] = {uint64_t(map.columns) * map.elementBytes};
    DITRON_ASSIGN_OR_RETURN(DitronSimTensorMap value, sim::makeTensorMap(places[map.array], map.elementBytes, dims,
                                                                         strides, box, map.swizzleBytes));
    launch.arguments.add(value);
  }
  // The world view of a world of one rank.
  DITRON_ASSIGN_OR_RETURN(void *world, machine->allocate(0, 3 * sizeof(int64_t), "world"));
  int64_t words[] = {0, 1, reinterpret_cast<int64_t>(machine->symmetricBase(0))};
  std::memcpy(world, words, sizeof(words));
  launch.arguments.add(world);
  launch.grid = {run.gridX, run.gridY, 1};
  launch.threadsPerBlock = 32 * run.numWarps;
  launch.sharedBytes = run.sharedBytes;
  DITRON_ASSIGN_OR_RETURN(sim::StreamId stream, machine->createStream(0, "test"));
  DITRON_RETURN_IF_ERROR(machine->launch(stream, launch));
  DITRON_RETURN_IF_ERROR(machine->synchronize(stream));
  for (size_t i = 0; i < arrays.size(); ++i)
    std::memcpy(arrays[i].bytes.data(), places[i], arrays[i].bytes.size());
  return Status::ok();
}

} // namespace ditron::target::test
