//===- NvptxCodegen.cpp - From the LLVM dialect to PTX --------------------------------------------------------------------------===//
//
// Translation to LLVM IR, libdevice where called, LLVM's optimiser with our settings, and its NVPTX backend. Multiplication
// and addition may be contracted to fused multiply-adds, as CUDA compilers do by default. Address spaces are inferred before
// everything else, so that all passes see which accesses cannot alias, and addresses in shared memory are 32 bits wide.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/dialect/dgpu/DiscardableAttrs.h"
#include "ditron/target/common/LargeCode.h"
#include "ditron/target/nvptx/Assembler.h"
#include "ditron/target/nvptx/DeviceCode.h"
#include "ditron/target/nvptx/Libdevice.h"
#include "ditron/target/nvptx/LineInfo.h"
#include "ditron/target/nvptx/NvptxTargetInfo.h"
#include "ditron/target/nvptx/PackedHalves.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/InferAddressSpaces.h"

#include <fmt/format.h>
#include <mutex>

extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace ditron::target {

/// LLVM offers 32-bit pointers into shared memory only as an option of its command line, which is global to the process.
static void initializeBackend() {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    auto &options = llvm::cl::getRegisteredOptions();
    if (auto it = options.find("nvptx-short-ptr"); it != options.end())
      static_cast<llvm::cl::opt<bool> *>(it->second)->setValue(true);
  });
}

static Expected<std::unique_ptr<llvm::TargetMachine>> machineFor(const NvptxArchitecture &architecture, int level) {
  initializeBackend();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return internalError(fmt::format("LLVM has no code generator for NVIDIA GPUs: {}", message));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  options.MCOptions.AsmVerbose = false;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, architecture.name, architecture.ptxFeature, options, llvm::Reloc::PIC_, std::nullopt,
      level == 0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Aggressive, /*JIT=*/false));
  if (!machine)
    return internalError(fmt::format("LLVM cannot make a code generator for {}", architecture.name));
  return Expected<std::unique_ptr<llvm::TargetMachine>>(std::move(machine));
}

/// Barriers, fences and stores of assembly stay behind the loads in front of them. As IR such code may touch all memory; the code generator, which moves
/// loads to where they are used, only believes the constraint (a value was read behind the barrier after which the next one had its place: wrong sums on
/// an H200). Not for multiplies of warpgroups, which write no memory.
static llvm::InlineAsm *withMemoryClobber(const llvm::InlineAsm &code) {
  std::string constraints = std::string(code.getConstraintString());
  if (!llvm::StringRef(constraints).contains("~{memory}"))
    constraints += constraints.empty() ? "~{memory}" : ",~{memory}";
  return llvm::InlineAsm::get(code.getFunctionType(), code.getAsmString(), constraints, /*hasSideEffects=*/true,
                              code.isAlignStack(), code.getDialect());
}

/// Allows a * b + c to be rounded once, and says of inline assembly what its translation cannot: all of it depends on which
/// threads execute it together, and that without side effects touches no memory, all other all of it.
static void annotateInstructions(llvm::Module &module) {
  for (llvm::Function &function : module) {
    for (llvm::Argument &argument : function.args())
      if (argument.hasByValAttr()) // tensor maps are used where they are, in constant memory
        argument.addAttr(llvm::Attribute::get(module.getContext(), "nvvm.grid_constant"));
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      if (llvm::isa<llvm::FPMathOperator>(instruction))
        instruction.setHasAllowContract(true);
      auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      auto *code = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
      if (!code)
        continue;
      call->setConvergent();
      call->setDoesNotThrow();
      if (!code->hasSideEffects())
        call->setDoesNotAccessMemory();
      else if (!llvm::StringRef(code->getAsmString()).contains("wgmma.mma_async"))
        call->setCalledOperand(withMemoryClobber(*code));
    }
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine, int level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  boundVectoriser(tuning, module); // which makes pairs of 16-bit floats
  tuning.LoopVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerPipelineStartEPCallback([](llvm::ModulePassManager &passes, llvm::OptimizationLevel) {
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::InferAddressSpacesPass()));
  });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  llvm::OptimizationLevel levels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
                                      llvm::OptimizationLevel::O3, llvm::OptimizationLevel::O3};
  llvm::OptimizationLevel chosen = levels[std::clamp(level, 0, 3)];
  llvm::ModulePassManager passes = chosen == llvm::OptimizationLevel::O0
                                       ? builder.buildO0DefaultPipeline(chosen)
                                       : builder.buildPerModuleDefaultPipeline(chosen);
  passes.run(module, modules);
}

Expected<TargetCode> NvptxTargetInfo::generateCode(mlir::ModuleOp module, const CodegenOptions &options) const {
  mlir::registerBuiltinDialectTranslation(*module.getContext());
  mlir::registerLLVMDialectTranslation(*module.getContext());
  StepClock clock;
  TargetCode result;
  result.kind = ArtifactCode::Ptx;
  llvm::LLVMContext context;
  mlir::OwningOpRef<mlir::ModuleOp> located = withLineInfo(module);
  if (!located)
    return internalError("the lowered kernel takes no debug locations");
  std::unique_ptr<llvm::Module> code = mlir::translateModuleToLLVMIR(*located, context, "ditron-kernel");
  if (!code)
    return internalError("the lowered kernel has no translation to LLVM IR");
  NvptxArchitecture chosen = architecture;
  if (module->hasAttr(dgpu::changesTensorMapsAttrName) && chosen.capability == 90)
    chosen.ptxFeature = "+ptx83";
  else if (module->hasAttr(dgpu::sumsHalvesAttrName) && chosen.capability == 90)
    chosen.ptxFeature = "+ptx82";
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<llvm::TargetMachine> machine, machineFor(chosen, options.optimizationLevel));
  code->setDataLayout(machine->createDataLayout());
  code->setTargetTriple(machine->getTargetTriple());
  DITRON_RETURN_IF_ERROR(linkLibdevice(*code, options.libdevice));
  DITRON_RETURN_IF_ERROR(linkDeviceCode(*code));
  annotateInstructions(*code);
  clock.done("translation", result.steps);
  carryPackedHalves(*code);
  optimize(*code, *machine, options.optimizationLevel);
  formPackedHalves(*code);
  clock.done("optimisation", result.steps);
  if (options.keepLLVMText) {
    llvm::raw_string_ostream stream(result.llvmText);
    code->print(stream, nullptr);
  }
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  LargeCodeGate gate(*code);
  context.setOptPassGate(gate);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return internalError("LLVM cannot write PTX");
  passes.run(*code);
  result.code.assign(text.begin(), text.end());
  clock.done("code", result.steps);
  if (options.keepAssembly)
    result.assemblyText = result.code;
  if (!options.ptxas.empty()) {
    DITRON_ASSIGN_OR_RETURN(AssembledPtx assembled, assemblePtx(options.ptxas, architecture.name, result.code));
    result.kind = ArtifactCode::Cubin;
    result.code = std::move(assembled.cubin);
    clock.done("ptxas", result.assemblerSteps);
  }
  return result;
}

} // namespace ditron::target
