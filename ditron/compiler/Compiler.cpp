//===- Compiler.cpp - Kernel source to artifact -------------------------------------------------------------------===//
//
// Import, the pipeline, code generation, and the artifact that describes the result.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/compiler/Compiler.h"

#include "llvm/ADT/StringExtras.h"

#include "ditron/compiler/LaunchInterface.h"
#include "ditron/compiler/Pipeline.h"
#include "ditron/frontend/Import.h"
#include "ditron/frontend/syntax/AstPrinter.h"
#include "ditron/frontend/syntax/Parser.h"
#include "ditron/support/DataType.h"
#include "ditron/support/Suggest.h"
#include "ditron/support/TargetName.h"
#include "ditron/target/Passes.h"
#include "ditron/target/common/TargetInfo.h"
#include "ditron/transforms/Remarks.h"

#include "mlir/IR/Remarks.h"

#include <fmt/format.h>

namespace ditron::compiler {

namespace {

constexpr std::string_view stageNames[] = {"ast", "tile", "layout", "llvm", "asm"};

/// The options with the target's canonical name.
Expected<CompileOptions> canonicalOptions(const CompileOptions &options) {
  DITRON_RETURN_IF_ERROR(options.check());
  CompileOptions canonical = options;
  DITRON_ASSIGN_OR_RETURN(TargetName name, parseTargetName(options.target));
  canonical.target = name.text;
  return canonical;
}

mlir::DialectRegistry makeRegistry() {
  mlir::DialectRegistry registry;
  registerPipelineDialects(registry);
  return registry;
}

/// Everything that lives as long as one compilation.
class Compilation {
public:
  Compilation(const CompileJob &job, CompileReport &report)
      : job(job), report(report), registry(makeRegistry()), context(registry, mlir::MLIRContext::Threading::DISABLED),
        diagnostics(sources), messages(context, sources), run(job, messages, report) {
    context.loadAllAvailableDialects();
    transforms::enableRemarks(context);
  }

  ~Compilation() {
    // Warnings of the frontend come before those of the passes. When it found errors, the Status has them all, in order.
    for (const frontend::Diagnostic &diagnostic : diagnostics.diagnostics())
      if (!diagnostics.hasErrors())
        report.messages += diagnostics.render(diagnostic);
    report.messages += messages.warningText();
    report.remarks += messages.remarkText();
  }

  /// Parses and imports; afterwards the module is tile IR.
  Status import() {
    DITRON_ASSIGN_OR_RETURN(frontend::FileId file, sources.add(job.source.path, job.source.text));
    target::registerTargets();
    DITRON_ASSIGN_OR_RETURN(targetInfo, target::createTargetInfo(job.options.target));
    DITRON_RETURN_IF_ERROR(run.step("import", Phase::Frontend, [&]() -> Status {
      frontend::ImportOptions options = importOptions(job.source, job.options.target);
      options.numWarps = job.options.numWarps;
      options.threadsPerWarp = static_cast<unsigned>(targetInfo->warpSize());
      options.debug = job.options.debug;
      options.printStatic = [this](llvm::StringRef text) { report.printed += text.str() + "\n"; };
      DITRON_ASSIGN_OR_RETURN(
          module, frontend::importKernel(context, sources.file(file), job.kernel, job.signature, options, diagnostics));
      return Status::ok();
    }));
    annotateModule(*module, job.options, *targetInfo);
    if (run.isDumping())
      run.dump("import", "mlir", printModule(*module));
    return Status::ok();
  }

  /// A kernel for which the target has too little shared memory gets a second try without rings for tiles of pointers, which nobody has asked for.
  Status assignHardware() {
    mlir::OwningOpRef<mlir::ModuleOp> imported(module->clone());
    const KernelMessages::Place begin = messages.place();
    bool describesTiles = true;
    Status status = compiler::assignHardware(run, *module, *targetInfo, describesTiles);
    if (status.code() == StatusCode::ResourceExhausted && describesTiles) {
      module = std::move(imported);
      messages.goBackTo(begin);
      describesTiles = false;
      mlir::remark::missed(module->getBody()->front().getLoc(),
                           mlir::remark::RemarkOpts::name("describe").category("dgpu-describe-tiles"))
          << "tiles come through pointers: with rings for them the kernel would need more than the target has";
      status = compiler::assignHardware(run, *module, *targetInfo, describesTiles);
    }
    DITRON_RETURN_IF_ERROR(status);
    DITRON_ASSIGN_OR_RETURN(launch, readLaunchInterface(*module));
    return Status::ok();
  }

  Expected<target::TargetCode> generate(bool keepLLVM, bool keepAssembly) {
    DITRON_RETURN_IF_ERROR(lowerToLLVM(run, *module, *targetInfo));
    target::CodegenOptions options;
    options.optimizationLevel = static_cast<int>(job.options.knobs.optLevel);
    options.keepLLVMText = keepLLVM || run.isDumping();
    options.keepAssembly = keepAssembly || run.isDumping();
    options.libdevice = job.options.knobs.libdevice;
    options.ptxas = job.options.knobs.ptxas;
    Expected<target::TargetCode> code = targetInfo->generateCode(*module, options);
    if (!code.isOk() && code.status().code() != StatusCode::Internal)
      return code.status(); // something is missing on this machine
    if (!code.isOk())
      return run.compilerBug("code", printModule(*module), code.status().message() + "\n" + messages.errorText());
    run.addTimes(Phase::Llvm, code->steps);
    run.addTimes(Phase::Assembler, code->assemblerSteps);
    run.dump("code", "ll", code->llvmText);
    run.dump("code", "s", code->assemblyText);
    return std::move(*code);
  }

  std::string moduleText() { return printModule(*module); }

  /// The description of the compiled kernel. Parameters are those of the signature that are not compile-time.
  Expected<Artifact> describe(target::TargetCode code) const {
    DITRON_ASSIGN_OR_RETURN(KernelInterface interface, describeKernel(job.source, job.kernel, job.options.target));
    DITRON_ASSIGN_OR_RETURN(std::vector<const frontend::ArgumentSpec *> specs,
                            matchSignature(interface, job.signature));
    Artifact artifact;
    artifact.kernel = job.kernel;
    artifact.entrySymbol = targetInfo->entrySymbol(llvm::StringRef(job.kernel).substr(job.kernel.rfind('.') + 1));
    artifact.target = job.options.target;
    artifact.sourceFile = job.source.path;
    for (size_t i = 0; i < specs.size(); ++i) {
      if (!specs[i] || specs[i]->isConstexpr())
        continue;
      for (const frontend::RunTimeParameter &each : runTimeParameters(*specs[i], interface.parameters[i].name)) {
        ArtifactParameter &parameter = artifact.parameters.emplace_back();
        parameter.name = each.name;
        parameter.type = each.type.signatureText();
        parameter.bytes = each.type.isPointer() ? 8 : std::max(each.type.bitWidth() / 8, 1u);
        parameter.divisibility = each.divisibility;
      }
    }
    artifact.numWarps = job.options.numWarps; // by which packages find it
    artifact.threadsPerWarp = static_cast<uint32_t>(targetInfo->warpSize());
    artifact.launchWarps = launch.launchWarps;
    if (artifact.launchWarps == 0 && launch.numWarps > artifact.numWarps)
      artifact.launchWarps = launch.numWarps; // dgpu-widen-blocks
    artifact.tensorMaps = launch.tensorMaps;
    artifact.sharedBytes = launch.sharedBytes;
    artifact.loopsOverPrograms = launch.loopsOverPrograms;
    artifact.codeKind = code.kind;
    artifact.code = std::move(code.code);
    return artifact;
  }

private:
  const CompileJob &job;
  CompileReport &report;
  mlir::DialectRegistry registry;
  mlir::MLIRContext context;
  frontend::SourceManager sources;
  frontend::DiagnosticEngine diagnostics;
  KernelMessages messages;
  StageRunner run;
  std::unique_ptr<target::TargetInfo> targetInfo;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  LaunchInterface launch;
};

Expected<std::string> emitAst(const KernelSource &source) {
  frontend::SourceManager sources;
  DITRON_ASSIGN_OR_RETURN(frontend::FileId file, sources.add(source.path, source.text));
  frontend::DiagnosticEngine diagnostics(sources);
  std::unique_ptr<frontend::ast::Module> module = frontend::parseModule(sources.file(file), diagnostics);
  DITRON_RETURN_IF_ERROR(diagnostics.status());
  return frontend::dump(*module);
}

} // namespace

std::string_view toString(EmitStage stage) { return stageNames[static_cast<size_t>(stage)]; }

Expected<EmitStage> parseEmitStage(std::string_view name) {
  for (size_t i = 0; i < std::size(stageNames); ++i)
    if (stageNames[i] == name)
      return static_cast<EmitStage>(i);
  const std::vector<std::string> names(std::begin(stageNames), std::end(stageNames));
  return invalidArgument(
      fmt::format("unknown stage '{}'{}; accepted are {}", name, didYouMean(name, names), fmt::join(names, ", ")));
}

Expected<Artifact> compileKernel(const KernelSource &source, std::string_view kernel,
                                 const frontend::KernelSignature &signature, const CompileOptions &options,
                                 CompileReport *report) {
  DITRON_ASSIGN_OR_RETURN(const CompileOptions canonical, canonicalOptions(options));
  CompileReport ownReport;
  const CompileJob job = {source, std::string(kernel), signature, canonical};
  Compilation compilation(job, report ? *report : ownReport);
  DITRON_RETURN_IF_ERROR(compilation.import());
  DITRON_RETURN_IF_ERROR(compilation.assignHardware());
  DITRON_ASSIGN_OR_RETURN(target::TargetCode code, compilation.generate(false, false));
  return compilation.describe(std::move(code));
}

Expected<std::string> emitStage(const KernelSource &source, std::string_view kernel,
                                const frontend::KernelSignature &signature, const CompileOptions &options,
                                EmitStage stage, CompileReport *report) {
  if (stage == EmitStage::Ast)
    return emitAst(source);
  DITRON_ASSIGN_OR_RETURN(const CompileOptions canonical, canonicalOptions(options));
  CompileReport ownReport;
  const CompileJob job = {source, std::string(kernel), signature, canonical};
  Compilation compilation(job, report ? *report : ownReport);
  DITRON_RETURN_IF_ERROR(compilation.import());
  if (stage == EmitStage::Tile)
    return compilation.moduleText();
  DITRON_RETURN_IF_ERROR(compilation.assignHardware());
  if (stage == EmitStage::Layout)
    return compilation.moduleText();
  DITRON_ASSIGN_OR_RETURN(target::TargetCode code,
                          compilation.generate(stage == EmitStage::Llvm, stage == EmitStage::Asm));
  return stage == EmitStage::Llvm ? std::move(code.llvmText) : std::move(code.assemblyText);
}

} // namespace ditron::compiler
