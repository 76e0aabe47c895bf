//===- SimCodegen.cpp - From the LLVM dialect to code of the host ---------------------------------------------------------===//
//
// See SimCodegen.h. Multiplication and addition may be contracted to fused multiply-adds, as GPU compilers do by default.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/sim/SimCodegen.h"

#include "ditron/abi/Simulator.h"
#include "ditron/target/common/LargeCode.h"
#include "ditron/target/sim/CutBlocks.h"
#include "ditron/target/sim/Origins.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/CodeGen/MachinePassRegistry.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/RegAllocRegistry.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <fmt/format.h>
#include <mutex>
#include <shared_mutex>

namespace ditron::target {

/// A code generator for the machine that this process runs on.
static Expected<std::unique_ptr<llvm::TargetMachine>> hostMachine(int level) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string message;
  const llvm::Target *host = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!host)
    return internalError(fmt::format("LLVM has no code generator for this machine: {}", message));
  llvm::SubtargetFeatures features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features.AddFeature(feature.first(), feature.second);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  std::unique_ptr<llvm::TargetMachine> machine(host->createTargetMachine(
      triple, llvm::sys::getHostCPUName(), features.getString(), options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      level == 0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default, /*JIT=*/false));
  if (!machine)
    return internalError("LLVM cannot make a code generator for this machine");
  return Expected<std::unique_ptr<llvm::TargetMachine>>(std::move(machine));
}

/// Allows a * b + c to be rounded once.
static void allowContraction(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (llvm::isa<llvm::FPMathOperator>(instruction))
        instruction.setHasAllowContract(true);
}

/// Conversions to integers end at the limits of the type, and NaN gives zero, as on GPUs; LLVM's own instruction leaves both open.
static void saturateConversions(llvm::Module &module) {
  llvm::SmallVector<llvm::CastInst *> conversions;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (llvm::isa<llvm::FPToSIInst, llvm::FPToUIInst>(instruction))
        conversions.push_back(llvm::cast<llvm::CastInst>(&instruction));
  for (llvm::CastInst *conversion : conversions) {
    llvm::IRBuilder<> builder(conversion);
    auto id = llvm::isa<llvm::FPToSIInst>(conversion) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    conversion->replaceAllUsesWith(builder.CreateIntrinsic(id, {conversion->getDestTy(), conversion->getSrcTy()},
                                                           {conversion->getOperand(0)}));
    conversion->eraseFromParent();
  }
}

/// Shifts by the width and more move all bits out, as on GPUs; LLVM's instructions leave it open, and the host's look at the lowest bits.
static void clampShifts(llvm::Module &module) {
  llvm::SmallVector<llvm::BinaryOperator *> shifts;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (instruction.isShift() && !llvm::isa<llvm::ConstantInt>(instruction.getOperand(1)))
        shifts.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
  for (llvm::BinaryOperator *shift : shifts) {
    llvm::IRBuilder<> builder(shift->getNextNode());
    llvm::Type *type = shift->getType();
    llvm::Value *most = llvm::ConstantInt::get(type, type->getScalarSizeInBits() - 1), *amount = shift->getOperand(1);
    if (shift->getOpcode() == llvm::Instruction::AShr) {
      builder.SetInsertPoint(shift);
      shift->setOperand(1, builder.CreateBinaryIntrinsic(llvm::Intrinsic::umin, amount, most));
      continue;
    }
    llvm::Value *isInside = builder.CreateICmpULE(amount, most);
    auto *result = llvm::cast<llvm::Instruction>(builder.CreateSelect(isInside, shift, llvm::Constant::getNullValue(type)));
    shift->replaceUsesWithIf(result, [&](const llvm::Use &use) { return use.getUser() != result; });
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine, int level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  boundVectoriser(tuning, module);
  tuning.LoopVectorization = false; // a thread's loops are over tiles; the simulator has the arithmetic loops
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  llvm::OptimizationLevel levels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
                                      llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::OptimizationLevel chosen = levels[level < 0 ? 0 : level > 3 ? 3 : level];
  llvm::ModulePassManager passes = chosen == llvm::OptimizationLevel::O0
                                       ? builder.buildO0DefaultPipeline(chosen)
                                       : builder.buildPerModuleDefaultPipeline(chosen);
  passes.run(module, modules);
}

/// The register allocator that LLVM takes when nothing is chosen. It is known to LLVM only once code was generated.
static llvm::RegisterRegAlloc::FunctionPassCtor defaultAllocator() {
  if (auto allocator = llvm::RegisterRegAlloc::getDefault())
    return allocator;
  using Option = llvm::cl::opt<llvm::RegisterRegAlloc::FunctionPassCtor, false, llvm::RegisterPassParser<llvm::RegisterRegAlloc>>;
  auto &options = llvm::cl::getRegisteredOptions();
  auto found = options.find("regalloc");
  return found == options.end() ? nullptr : static_cast<Option *>(found->second)->getValue();
}

/// Chooses how instructions are scheduled and registers allocated, for as long as it lives.
///
/// For basic blocks of tens of thousands of instructions (LargeCode.h) LLVM's default scheduler of selected instructions takes time
/// quadratic in their number: 120 s instead of 1 s for reductions and a scan of a 64x128 tile on one warp. Its `fast` scheduler is
/// linear. Of the others, `source` and `list-burr` are quadratic too, and `linearize` miscompiles: it puts arithmetic between a
/// comparison and the conditional moves that read its flags. The machine scheduler, which runs later, is quadratic where a block
/// has long stretches without calls; without it such code is a tenth shorter, with a smaller frame.
/// Parts of long blocks (CutBlocks.h) are scheduled in the same way. The greedy register allocator splits values that live long again
/// and again (1,000 loads and stores in one block: 7 of 8 s, the basic one 0.4 s); code of the basic one is up to a tenth longer. Blocks
/// remain that long only where too much is alive to cut them.
/// Ordinary kernels keep the defaults, which are the best tested. LLVM has the choices as options of the process only, so large
/// kernels are generated alone.
class LargeCodeChoice {
public:
  LargeCodeChoice(const llvm::Module &module, const llvm::TargetMachine &machine) {
    const size_t largest = largestBlock(module);
    if (largest <= longBlock && llvm::none_of(module, isPartOfFunction)) {
      shared = std::shared_lock(mutex());
      return;
    }
    alone = std::unique_lock(mutex());
    choose("pre-RA-sched", "fast");
    choose("enable-misched", "false");
    if (largest > hugeBlock && machine.getOptLevel() != llvm::CodeGenOptLevel::None && (allocator = defaultAllocator()))
      llvm::RegisterRegAlloc::setDefault(&llvm::createBasicRegisterAllocator);
  }
  ~LargeCodeChoice() {
    for (llvm::cl::Option *option : chosen)
      option->reset();
    if (allocator)
      llvm::RegisterRegAlloc::setDefault(allocator);
  }
  LargeCodeChoice(const LargeCodeChoice &) = delete;
  LargeCodeChoice &operator=(const LargeCodeChoice &) = delete;

private:
  static std::shared_mutex &mutex() {
    static std::shared_mutex instance;
    return instance;
  }
  void choose(llvm::StringRef name, llvm::StringRef value) {
    auto &options = llvm::cl::getRegisteredOptions();
    if (auto found = options.find(name); found != options.end()) {
      found->second->addOccurrence(1, name, value);
      chosen.push_back(found->second);
    }
  }
  std::shared_lock<std::shared_mutex> shared;
  std::unique_lock<std::shared_mutex> alone;
  llvm::SmallVector<llvm::cl::Option *, 2> chosen;
  llvm::RegisterRegAlloc::FunctionPassCtor allocator = nullptr; ///< What is to be put back.
};

/// Has LLVM report the stack frames of the module's functions, and remembers the largest: what does not fit registers lies on a
/// thread's stack, which the simulator cannot make any larger while a kernel runs.
class FrameSizes {
public:
  explicit FrameSizes(llvm::Module &module) {
    for (llvm::Function &function : module)
      if (!function.isDeclaration())
        function.addFnAttr("warn-stack-size", "0");
    module.getContext().setDiagnosticHandlerCallBack(
        [](const llvm::DiagnosticInfo *info, void *self) {
          if (const auto *frame = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(info)) {
            FrameSizes &sizes = *static_cast<FrameSizes *>(self);
            uint64_t &largest = isPartOfFunction(frame->getFunction()) ? sizes.largestPart : sizes.largest;
            largest = std::max<uint64_t>(largest, frame->getStackSize());
          }
        },
        this);
  }

  Status check() const {
    const uint64_t together = largest + largestPart;
    if (together <= DITRON_SIM_KERNEL_STACK_BYTES)
      return Status::ok();
    return {StatusCode::ResourceExhausted,
            fmt::format("a thread of this kernel needs {} bytes for values that do not fit its registers; at most {} are accepted: "
                        "use smaller blocks or more warps",
                        together, int(DITRON_SIM_KERNEL_STACK_BYTES))};
  }

private:
  uint64_t largest = 0;
  uint64_t largestPart = 0; ///< Of the parts of functions (CutBlocks.h), whose frames lie beside those of their callers.
};

static Status emitFile(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType kind,
                       llvm::SmallVectorImpl<char> &bytes) {
  LargeCodeChoice choice(module, machine);
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, kind))
    return internalError("LLVM cannot write this kind of file for this machine");
  passes.run(module);
  return Status::ok();
}

Expected<SimCode> emitSimObject(mlir::ModuleOp module, const SimCodegenOptions &options) {
  mlir::registerBuiltinDialectTranslation(*module.getContext());
  mlir::registerLLVMDialectTranslation(*module.getContext());
  StepClock clock;
  SimCode result;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = mlir::translateModuleToLLVMIR(module, context, "ditron-kernel");
  if (!code)
    return internalError("the lowered kernel has no translation to LLVM IR");
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<llvm::TargetMachine> machine, hostMachine(options.optimizationLevel));
  code->setDataLayout(machine->createDataLayout());
  code->setTargetTriple(machine->getTargetTriple());
  allowContraction(*code);
  saturateConversions(*code);
  clampShifts(*code);
  clock.done("translation", result.steps);
  optimize(*code, *machine, options.optimizationLevel);
  nameOrigins(*code);
  if (options.optimizationLevel > 0)
    cutLongBlocks(*code);
  clock.done("optimisation", result.steps);
  LargeCodeGate gate(*code);
  context.setOptPassGate(gate);
  if (options.keepLLVMText) {
    llvm::raw_string_ostream stream(result.llvmText);
    code->print(stream, nullptr);
  }
  if (options.keepAssembly) {
    llvm::SmallVector<char, 0> text;
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*code); // emission changes the module
    DITRON_RETURN_IF_ERROR(emitFile(*copy, *machine, llvm::CodeGenFileType::AssemblyFile, text));
    result.assemblyText.assign(text.begin(), text.end());
  }
  llvm::SmallVector<char, 0> object;
  FrameSizes frames(*code);
  DITRON_RETURN_IF_ERROR(emitFile(*code, *machine, llvm::CodeGenFileType::ObjectFile, object));
  DITRON_RETURN_IF_ERROR(frames.check());
  result.object.assign(object.begin(), object.end());
  clock.done("code", result.steps);
  return result;
}

} // namespace ditron::target
