//===- FrontendFuzz.cpp - What is tried on every text of the fuzzer -------------------------------------------------===//
#include "tests/fuzz/FrontendFuzz.h"

#include "ditron/frontend/Import.h"

#include "mlir/IR/MLIRContext.h"
#include <cstdio>
#include <cstdlib>

namespace ditron::fuzz {
namespace {

using namespace frontend;

[[noreturn]] void misbehaves(const std::string &what) {
  std::fprintf(stderr, "frontend misbehaves: %s\n", what.c_str());
  std::abort();
}

/// A type or value that a parameter of this name probably means.
ArgumentSpec guess(const ParameterInfo &parameter) {
  llvm::StringRef name = parameter.name;
  ArgumentSpec spec;
  if (parameter.isConstexpr)
    spec = ArgumentSpec::constexprOf(parameter.defaultValue.value_or(ConstValue::integer(32)));
  else if (name.contains("desc"))
    spec = ArgumentSpec::descriptorOf(LangType(ScalarKind::FP16).withShape({32, 32}), false);
  else if (name.contains("ptr"))
    spec = ArgumentSpec::runTime(LangType::pointer(name.contains("signal") ? ScalarKind::Int64 : ScalarKind::FP32), 16);
  else
    spec = ArgumentSpec::runTime(ScalarKind::Int32);
  spec.name = parameter.name;
  return spec;
}

void tryKernel(const SourceFile &file, const KernelInfo &kernel, SourceManager &sources) {
  KernelSignature signature;
  for (const ParameterInfo &parameter : kernel.parameters)
    signature.arguments.push_back(guess(parameter));
  DiagnosticEngine diagnostics(sources);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = importKernel(context, file, kernel.name, signature, {}, diagnostics);
  if (module.isOk())
    return;
  if (module.status().code() == StatusCode::Internal)
    misbehaves("internal error: " + module.status().message());
  if (module.status().message().empty())
    misbehaves("kernel '" + kernel.name + "' is refused without a message");
}

} // namespace

void tryText(std::string text) {
  if (text.size() > maxTextBytes)
    return;
  SourceManager sources;
  auto id = sources.add("fuzz.py", std::move(text));
  if (!id.isOk())
    return;
  DiagnosticEngine diagnostics(sources);
  auto kernels = listKernels(sources.file(*id), diagnostics);
  if (!kernels.isOk()) {
    if (kernels.status().message().empty())
      misbehaves("a file is refused without a message");
    return;
  }
  // A few kernels: mutations multiply them.
  for (size_t i = 0; i < kernels->size() && i < 4; ++i)
    tryKernel(sources.file(*id), (*kernels)[i], sources);
}

} // namespace ditron::fuzz
