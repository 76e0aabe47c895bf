//===- Import.cpp - From a kernel file to tile IR -----------------------------------------------------------------------===//
//
// Parses the file, matches the signature with the kernel's parameters, runs the importer and verifies the result.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Import.h"

#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/Decorators.h"
#include "ditron/frontend/Importer.h"
#include "ditron/frontend/syntax/AstPrinter.h"
#include "ditron/frontend/syntax/Parser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::frontend {
namespace {

/// A file and what it imports.
struct ParsedFile {
  ParsedFile(const SourceFile &file, DiagnosticEngine &diagnostics, const ImportOptions &options)
      : file(file), modules(diagnostics, options.searchPaths, options.imported) {}

  const SourceFile &file;
  Modules modules;
  const ModuleScope *scope = nullptr;
};

Expected<std::unique_ptr<ParsedFile>> parse(const SourceFile &file, DiagnosticEngine &diagnostics,
                                            const ImportOptions &options) {
  size_t before = diagnostics.errorCount();
  auto parsed = std::make_unique<ParsedFile>(file, diagnostics, options);
  parsed->scope = parsed->modules.addRoot(file);
  if (diagnostics.errorCount() != before)
    return diagnostics.status();
  return parsed;
}

/// The parameters alone.
KernelInfo describeParameters(const ParsedFile &parsed, const ast::FunctionDef *function) {
  KernelInfo info;
  info.name = function->name.text.str();
  info.place = parsed.file.lineColumn(function->name.range.begin);
  for (const ast::Param &param : function->params) {
    ParameterInfo parameter;
    parameter.name = param.name.text.str();
    parameter.isConstexpr = isConstexprParam(param);
    if (param.annotation)
      parameter.annotation = unparse(param.annotation);
    if (param.defaultValue)
      parameter.defaultText = unparse(param.defaultValue);
    info.parameters.push_back(std::move(parameter));
  }
  return info;
}

/// The parameters, and what the decorators and defaults say about them. `isStrict`: rules that contradict are an error.
Expected<KernelInfo> describe(ParsedFile &parsed, const ast::FunctionDef *function, const SourceManager &sources,
                              bool isStrict) {
  KernelInfo info = describeParameters(parsed, function);
  Interpreter interpreter(&parsed.modules);
  for (auto [param, parameter] : llvm::zip(function->params, info.parameters)) {
    if (!param.defaultValue)
      continue;
    HostValue value = interpreter.evaluate(param.defaultValue, *parsed.scope);
    // Some defaults mean something only in the kernel (functions, classes); the importer evaluates them again.
    if (!interpreter.takeFailure())
      parameter.defaultValue = constexprArgument(value);
  }
  if (Status rules = applySpecialisationRules(info, function, *parsed.scope, interpreter); !rules.isOk() && isStrict)
    return rules;
  info.tuning = readTuningSpace(function, *parsed.scope, interpreter, sources);
  return info;
}

Expected<const ast::FunctionDef *> findKernel(const SourceFile &file, const ModuleScope &scope, llvm::StringRef name) {
  std::vector<std::string> names;
  for (const ast::FunctionDef *function : scope.kernels()) {
    if (function->name.text == name)
      return function;
    names.push_back(function->name.text.str());
  }
  if (const GlobalBinding *binding = scope.find(name); binding && binding->kind == GlobalBinding::Kind::Function)
    return notFound(
        fmt::format("function '{}' of {} is not a kernel: it is not decorated with @triton.jit, @triton_dist.jit "
                    "or @ditron.jit",
                    name.str(), file.path().str()));
  if (names.empty())
    return notFound(
        fmt::format("{} has no kernels: no function is decorated with @triton.jit, @triton_dist.jit or @ditron.jit",
                    file.path().str()));
  return notFound(
      fmt::format("{} has no kernel '{}'; it has {}", file.path().str(), name.str(), fmt::join(names, ", ")));
}

/// The argument of every parameter; null where its default applies.
Expected<std::vector<const ArgumentSpec *>> matchArguments(const KernelInfo &kernel, const KernelSignature &signature) {
  size_t count = kernel.parameters.size();
  std::vector<const ArgumentSpec *> matched(count);
  std::vector<std::string> names;
  for (const ParameterInfo &parameter : kernel.parameters)
    names.push_back(parameter.name);
  size_t next = 0;
  for (const ArgumentSpec &spec : signature.arguments) {
    size_t index = next;
    if (!spec.name.empty()) {
      index = llvm::find(names, spec.name) - names.begin();
      if (index == count)
        return invalidArgument(fmt::format("kernel '{}' has no parameter '{}'; it has {}", kernel.name, spec.name,
                                           fmt::join(names, ", ")));
    }
    if (index >= count)
      return invalidArgument(fmt::format("the signature has more arguments than the {} parameters of kernel '{}' ({})",
                                         count, kernel.name, fmt::join(names, ", ")));
    if (matched[index])
      return invalidArgument(
          fmt::format("the signature gives parameter '{}' of kernel '{}' twice", names[index], kernel.name));
    if (!spec.isConstexpr() && kernel.parameters[index].isConstexpr && !spec.isTuple())
      return invalidArgument(
          fmt::format("parameter '{}' of kernel '{}' is a constexpr and needs a value, but the signature gives "
                      "the run-time type {}; write constexpr {}=VALUE",
                      names[index], kernel.name, spec.isDescriptor ? "tensordesc" : spec.type.signatureText(),
                      names[index]));
    matched[index] = &spec;
    next = index + 1;
  }
  for (size_t i = 0; i < count; ++i) {
    const ParameterInfo &parameter = kernel.parameters[i];
    if (!matched[i] && !parameter.hasDefault())
      return invalidArgument(fmt::format("the signature gives no {} for parameter '{}' of kernel '{}'",
                                         parameter.isConstexpr ? "compile-time value" : "type", parameter.name,
                                         kernel.name));
  }
  return matched;
}

/// A parameter annotated tl.const holds a read-only pointer, whatever the signature calls it.
void applyConstAnnotations(const KernelInfo &kernel, std::vector<const ArgumentSpec *> &arguments,
                           std::vector<ArgumentSpec> &changed) {
  changed.reserve(arguments.size()); // their places are taken
  for (auto [parameter, argument] : llvm::zip_equal(kernel.parameters, arguments)) {
    const bool isConst = parameter.annotation == "tl.const" || parameter.annotation == "tl.core.const";
    if (!isConst || !argument || argument->isConstexpr() || argument->isTuple() || argument->isDescriptor ||
        !argument->type.isPointer())
      continue;
    changed.push_back(*argument);
    changed.back().type = LangType::pointer(argument->type.pointee(), /*isConst=*/true);
    argument = &changed.back();
  }
}

} // namespace

Expected<std::vector<KernelInfo>> listKernels(const SourceFile &file, DiagnosticEngine &diagnostics,
                                              const ImportOptions &options) {
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<ParsedFile> parsed, parse(file, diagnostics, options));
  std::vector<KernelInfo> result;
  for (const ast::FunctionDef *function : parsed->scope->kernels()) {
    DITRON_ASSIGN_OR_RETURN(KernelInfo info, describe(*parsed, function, diagnostics.sourceManager(), false));
    result.push_back(std::move(info));
  }
  return result;
}

Expected<KernelInfo> describeKernel(const SourceFile &file, llvm::StringRef kernel, DiagnosticEngine &diagnostics,
                                    const ImportOptions &options) {
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<ParsedFile> parsed, parse(file, diagnostics, options));
  DITRON_ASSIGN_OR_RETURN(const ast::FunctionDef *function, findKernel(file, *parsed->scope, kernel));
  return describe(*parsed, function, diagnostics.sourceManager(), true);
}

std::vector<SourceText> importedFiles(const SourceText &source, const std::vector<std::string> &searchPaths) {
  SourceManager sources;
  auto id = sources.add(source.path, source.text);
  if (!id.isOk())
    return {};
  // What is wrong with the files is said when a kernel needs them.
  DiagnosticEngine ignored(sources);
  Modules modules(ignored, searchPaths);
  modules.addRoot(sources.file(*id));
  modules.loadAll();
  return modules.importedTexts();
}

Expected<mlir::OwningOpRef<mlir::ModuleOp>> importKernel(mlir::MLIRContext &context, const SourceFile &file,
                                                         llvm::StringRef kernel, const KernelSignature &signature,
                                                         const ImportOptions &options, DiagnosticEngine &diagnostics) {
  context.loadDialect<tile::TileDialect, dist::DistDialect, mlir::arith::ArithDialect, mlir::math::MathDialect,
                      mlir::scf::SCFDialect, mlir::func::FuncDialect>();
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<ParsedFile> parsed, parse(file, diagnostics, options));
  DITRON_ASSIGN_OR_RETURN(const ast::FunctionDef *function, findKernel(file, *parsed->scope, kernel));
  for (const ast::Param &param : function->params)
    if (param.kind == ast::ParamKind::VarPositional || param.kind == ast::ParamKind::VarKeyword)
      diagnostics.error(param.range, "a kernel cannot have '*' or '**' parameters");
  size_t before = diagnostics.errorCount();
  if (before != 0)
    return diagnostics.status();
  const KernelInfo info = describeParameters(*parsed, function);
  DITRON_ASSIGN_OR_RETURN(std::vector<const ArgumentSpec *> arguments, matchArguments(info, signature));
  std::vector<ArgumentSpec> constArguments;
  applyConstAnnotations(info, arguments, constArguments);
  noteUnknownDecorators(function, *parsed->scope, diagnostics);

  auto fileLocation = mlir::FileLineColLoc::get(&context, file.path(), 1, 1);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(fileLocation);
  Importer importer(context, parsed->modules, *parsed->scope, options, diagnostics);
  importer.importEntry(*module, function, arguments);
  if (diagnostics.errorCount() != before)
    return diagnostics.status();

  std::string problems;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    problems += diagnostic.str() + "\n";
    return mlir::success();
  });
  if (mlir::failed(mlir::verify(*module)))
    return internalError(fmt::format("compiler bug: the import of kernel '{}' of {} gave invalid IR: {}", kernel.str(),
                                     file.path().str(), problems));
  return module;
}

} // namespace ditron::frontend
