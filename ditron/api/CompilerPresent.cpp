//===- CompilerPresent.cpp - The compiler behind libditron --------------------------------------------------------===//
#include "ditron/api/KernelTemplate.h"

#include "ditron/compiler/Compiler.h"
#include "ditron/jit/Jit.h"

#include <ditron/ditron.h>

#include <fmt/format.h>

namespace ditron::api {

namespace {

class JitTemplate final : public KernelTemplate {
public:
  JitTemplate(std::shared_ptr<jit::Jit> jit, std::string target, compiler::KernelSource source,
              jit::KernelFunction function)
      : jit(std::move(jit)), target(std::move(target)), source(std::move(source)), function(std::move(function)),
        names(this->function.parameterNames()) {}

  const std::vector<std::string> &parameterNames() const override { return names; }
  bool isConstexpr(std::string_view parameter) const override { return function.isConstexpr(parameter); }

  Expected<runtime::Specialisation> specialise(const CallArguments &arguments, const LaunchOptions &options) override {
    return jit->specialise(function, arguments, options);
  }
  Expected<std::string> signatureOf(const CallArguments &arguments) const override {
    return jit->signatureFor(function, arguments);
  }
  Expected<runtime::Kernel> compile(std::string_view signature, const LaunchOptions &options) override {
    return jit->compile(function, signature, options);
  }

  Expected<std::string> text(const runtime::Kernel &variant, std::string_view signature, const LaunchOptions &options,
                             std::string_view stage) const override {
    if (stage == "source")
      return source.text;
    if (stage == "asm" && !variant.image().code.empty())
      return variant.image().code;
    DITRON_ASSIGN_OR_RETURN(const compiler::EmitStage which, compiler::parseEmitStage(stage));
    DITRON_ASSIGN_OR_RETURN(const frontend::KernelSignature parsed,
                            frontend::parseSignature(llvm::StringRef(signature.data(), signature.size())));
    compiler::CompileOptions compile;
    compile.target = target;
    compile.numWarps = options.warps();
    compile.numStages = options.stages();
    compile.residentBlocks = options.residentBlocks;
    compile.debug = options.debug;
    compile.knobs = jit->knobs();
    return compiler::emitStage(source, function.name(), parsed, compile, which);
  }

private:
  std::shared_ptr<jit::Jit> jit;
  std::string target;
  compiler::KernelSource source;
  jit::KernelFunction function;
  std::vector<std::string> names;
};

class JitCompiler final : public Compiler {
public:
  JitCompiler(std::shared_ptr<jit::Jit> jit, std::string target) : jit(std::move(jit)), target(std::move(target)) {}

  runtime::KernelProvider &provider() override { return *jit; }
  Expected<std::shared_ptr<KernelTemplate>> load(const compiler::KernelSource &source,
                                                 std::string_view kernel) override {
    DITRON_ASSIGN_OR_RETURN(jit::KernelFunction function, jit->load(source, kernel));
    return std::shared_ptr<KernelTemplate>(std::make_shared<JitTemplate>(jit, target, source, std::move(function)));
  }

private:
  std::shared_ptr<jit::Jit> jit;
  std::string target;
};

} // namespace

bool hasCompiler() { return true; }

Expected<std::shared_ptr<Compiler>> makeCompiler(const std::string &target, MessageSink messages, bool warnEach) {
  DITRON_ASSIGN_OR_RETURN(Knobs knobs, Knobs::fromEnvironment());
  DITRON_ASSIGN_OR_RETURN(std::shared_ptr<jit::Jit> jit, jit::Jit::create(target, std::move(knobs)));
  jit->setObserver([messages = std::move(messages), warnEach](const std::string &kernel,
                                                              const compiler::CompileReport *report) {
    if (!report)
      return;
    if (warnEach && !report->isFromCache)
      messages(fmt::format("kernel '{}' is in no package: compiled in {:.0f} ms", kernel, report->totalMilliseconds()));
    messages(report->messages);
  });
  return std::shared_ptr<Compiler>(std::make_shared<JitCompiler>(std::move(jit), target));
}

} // namespace ditron::api

extern "C" int ditron_has_compiler(void) { return 1; }
