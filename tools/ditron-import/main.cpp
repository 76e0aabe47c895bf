//===- main.cpp - ditron-import: the frontend alone ---------------------------------------------------------------------===//
//
// Imports one kernel and prints its tile IR; or describes the kernels of a file; or prints the table of the language's
// functions, or writes it as stubs for editors. Diagnostics go to standard error and make the exit code 1.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Import.h"
#include "ditron/support/ToolProcess.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

using namespace ditron;

namespace {

int fail(const Status &status) {
  fmt::print(stderr, "{}{}", status.code() == StatusCode::CompileError ? "" : "error: ", status.message());
  if (status.message().empty() || status.message().back() != '\n')
    fmt::print(stderr, "\n");
  return 1;
}

int describeFile(const frontend::SourceFile &file, frontend::DiagnosticEngine &diagnostics,
                 const frontend::ImportOptions &options) {
  auto kernels = frontend::listKernels(file, diagnostics, options);
  if (!kernels.isOk())
    return fail(kernels.status());
  for (const frontend::KernelInfo &kernel : *kernels) {
    fmt::print("{} at {}:{}\n", kernel.name, kernel.place.line, kernel.place.column);
    for (const frontend::ParameterInfo &parameter : kernel.parameters)
      fmt::print("  {}{}{}{}{}{}\n", parameter.name, parameter.annotation.empty() ? "" : ": ", parameter.annotation,
                 parameter.hasDefault() ? " = " : "", parameter.defaultText,
                 parameter.isConstexpr ? " (constexpr)" : "");
  }
  return 0;
}

} // namespace

static int runImport(int argc, char **argv) {
  CLI::App app{"Imports a kernel of the Triton language into tile IR"};
  std::string input, signatureText, stubFolder;
  bool lists = false, listsCompatibility = false, describes = false, showsLocations = false;
  frontend::ImportOptions options;
  app.add_option("input", input, "FILE.py:KERNEL, or FILE.py with --describe");
  app.add_option("--signature", signatureText, "for example \"*bf16:16, i32, constexpr BLOCK=64\"");
  app.add_option("--path", options.searchPaths, "folder in which the file's own imports are searched, after its own")
      ->allow_extra_args(false)
      ->take_all();
  std::vector<std::string> defines;
  app.add_option("--define", defines, "NAME=VALUE of a name or expression that only the user's machine knows")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--capability", options.capability, "the compute capability of the target, for example 90");
  app.add_option("--num-warps", options.numWarps, "what num_warps() gives");
  app.add_flag("--describe", describes, "list the kernels of the file and their parameters");
  app.add_flag("--locations", showsLocations, "print the locations of all operations");
  app.add_flag("--list-language", lists, "print the functions of the language as Markdown");
  app.add_flag("--list-compatibility", listsCompatibility, "print which names of Triton and Triton-distributed are there");
  app.add_option("--write-stubs", stubFolder,
                 "write the language as stub files for editors and type checkers into this folder");
  CLI11_PARSE(app, argc, argv);
  auto parsedDefines = frontend::parseDefines(defines);
  if (!parsedDefines.isOk())
    return fail(parsedDefines.status());
  options.defines = *parsedDefines;
  if (!stubFolder.empty()) {
    Status status = frontend::writeEditorStubs(stubFolder);
    return status.isOk() ? 0 : fail(status);
  }
  if (lists || listsCompatibility) {
    fmt::print("{}", lists ? frontend::listLanguage() : frontend::listCompatibility());
    return 0;
  }
  std::string path = input, kernel;
  if (size_t colon = input.rfind(':'); colon != std::string::npos && !describes) {
    path = input.substr(0, colon);
    kernel = input.substr(colon + 1);
  }
  frontend::SourceManager sources;
  auto id = sources.load(path);
  if (!id.isOk())
    return fail(id.status());
  frontend::DiagnosticEngine diagnostics(sources);
  if (describes)
    return describeFile(sources.file(*id), diagnostics, options);

  auto signature = frontend::parseSignature(signatureText);
  if (!signature.isOk())
    return fail(signature.status());
  options.printStatic = [](llvm::StringRef text) { fmt::print("// static_print: {}\n", text.str()); };
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = frontend::importKernel(context, sources.file(*id), kernel, *signature, options, diagnostics);
  if (!module.isOk())
    return fail(module.status());
  for (const frontend::Diagnostic &diagnostic : diagnostics.diagnostics())
    fmt::print(stderr, "{}", diagnostics.render(diagnostic));
  mlir::OpPrintingFlags flags;
  if (showsLocations)
    flags.enableDebugInfo(true, false);
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream, flags);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

int main(int argc, char **argv) {
  ToolProcess process("ditron-import");
  return process.finish(runImport(argc, argv));
}
