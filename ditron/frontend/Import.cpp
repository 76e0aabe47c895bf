//===- Import.cpp - From a kernel file to tile IR -----------------------------------------------------------------------===//
//
// Parses the file, matches the signature with the kernel's parameters, runs the evaluator and verifies the result.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Import.h"

#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/frontend/Decorators.h"
#include "ditron/frontend/Evaluator.h"
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
#include <unistd.h>

namespace ditron::frontend {
namespace {

/// A file, what it imports, and the evaluator that executes them.
struct ParsedFile {
  ParsedFile(mlir::MLIRContext &context, const SourceFile &file, DiagnosticEngine &diagnostics, const ImportOptions &options)
      : file(file), modules(diagnostics, options.searchPaths, options.imported), scope(*modules.addRoot(file)),
        evaluator(context, modules, scope, options, diagnostics) {}

  const SourceFile &file;
  Modules modules;
  const ModuleScope &scope;
  Evaluator evaluator;
};

Expected<std::unique_ptr<ParsedFile>> parse(mlir::MLIRContext &context, const SourceFile &file,
                                            DiagnosticEngine &diagnostics, const ImportOptions &options) {
  size_t before = diagnostics.errorCount();
  auto parsed = std::make_unique<ParsedFile>(context, file, diagnostics, options);
  if (diagnostics.errorCount() != before)
    return diagnostics.status();
  return parsed;
}

/// The parameters alone.
KernelInfo describeParameters(const ParsedFile &parsed, const std::string &name, const ast::FunctionDef *function) {
  KernelInfo info;
  info.name = name;
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
Expected<KernelInfo> describe(ParsedFile &parsed, const std::string &name, const FunctionValue &kernel,
                              const SourceManager &sources, bool isStrict) {
  KernelInfo info = describeParameters(parsed, name, kernel.node);
  for (auto [param, parameter] : llvm::zip(kernel.node->params, info.parameters)) {
    if (!param.defaultValue)
      continue;
    // Some defaults mean something only in the kernel (functions, classes); they are evaluated again there.
    Emitter::Capture capture(parsed.evaluator.emit);
    LangValue value = parsed.evaluator.defaultOf(kernel, param);
    if (capture.hasFailed())
      capture.takeBack();
    else
      parameter.defaultValue = constexprArgument(value);
  }
  if (Status rules = applySpecialisationRules(info, kernel, parsed.evaluator, sources); !rules.isOk() && isStrict)
    return rules;
  info.tuning = readTuningSpace(kernel, parsed.evaluator, sources);
  return info;
}

Expected<FunctionValue> findKernel(ParsedFile &parsed, llvm::StringRef name) {
  std::vector<std::string> names;
  for (const auto &[each, function] : parsed.evaluator.kernelsOf(parsed.scope)) {
    if (each == name)
      return function;
    names.push_back(each);
  }
  std::string path = parsed.file.path().str();
  if (parsed.scope.raised.isUnknown())
    return parsed.evaluator.explainUnknown(parsed.scope.raised, name, SourceRange());
  if (auto binding = parsed.evaluator.findGlobal(parsed.scope, name)) {
    if (binding->value.isUnknown())
      return parsed.evaluator.explainUnknown(binding->value, name, binding->range);
    if (binding->value.is<FunctionValue>())
      return notFound(fmt::format("function '{}' of {} is not a kernel: it is not decorated with @triton.jit, "
                                  "@triton_dist.jit or @ditron.jit",
                                  name.str(), path));
  }
  if (names.empty())
    return notFound(
        fmt::format("{} has no kernels: no function is decorated with @triton.jit, @triton_dist.jit or @ditron.jit", path));
  return notFound(fmt::format("{} has no kernel '{}'; it has {}", path, name.str(), fmt::join(names, ", ")));
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

/// A file written for Triton-distributed: one that imports the peer's package and not ours.
bool isWrittenForPeer(const ast::Module &module) {
  bool namesPeer = false, namesUs = false;
  auto see = [&](llvm::StringRef dottedName) {
    namesPeer |= dottedName.split('.').first == "triton_dist";
    namesUs |= dottedName.split('.').first == "ditron";
  };
  for (const ast::Stmt *statement : module.body)
    ast::walk(statement, [&](const ast::Node *node) {
      if (const auto *from = llvm::dyn_cast<ast::ImportFrom>(node); from && from->level == 0)
        see(from->module.text);
      if (const auto *import = llvm::dyn_cast<ast::Import>(node))
        for (const ast::Alias &alias : import->names)
          see(alias.name.text);
      return true;
    });
  return namesPeer && !namesUs;
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
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<ParsedFile> parsed, parse(context, file, diagnostics, options));
  std::vector<KernelInfo> result;
  for (const auto &[name, kernel] : parsed->evaluator.kernelsOf(parsed->scope)) {
    DITRON_ASSIGN_OR_RETURN(KernelInfo info, describe(*parsed, name, kernel, diagnostics.sourceManager(), false));
    result.push_back(std::move(info));
  }
  return result;
}

Expected<KernelInfo> describeKernel(const SourceFile &file, llvm::StringRef name, DiagnosticEngine &diagnostics,
                                    const ImportOptions &options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<ParsedFile> parsed, parse(context, file, diagnostics, options));
  DITRON_ASSIGN_OR_RETURN(FunctionValue kernel, findKernel(*parsed, name));
  return describe(*parsed, name.str(), kernel, diagnostics.sourceManager(), true);
}

std::vector<SourceText> importedFiles(const SourceText &source, const std::vector<std::string> &searchPaths,
                                      std::vector<SourceText> given) {
  SourceManager sources;
  auto id = sources.add(source.path, source.text);
  if (!id.isOk())
    return {};
  // What is wrong with the files is said when a kernel needs them.
  DiagnosticEngine ignored(sources);
  Modules modules(ignored, searchPaths, std::move(given));
  modules.addRoot(sources.file(*id));
  modules.loadAll();
  return modules.importedTexts();
}

std::vector<std::pair<std::string, std::string>> environmentOf(const std::vector<SourceText> &texts) {
  std::vector<std::pair<std::string, std::string>> variables;
  auto mayRead = [](const SourceText &file) {
    llvm::StringRef text = file.text;
    return text.contains("environ") || text.contains("getenv");
  };
  if (llvm::none_of(texts, mayRead))
    return variables;
  for (char **entry = environ; entry && *entry; ++entry) {
    auto [name, value] = llvm::StringRef(*entry).split('=');
    auto isNamed = [&, name = name](const SourceText &file) {
      llvm::StringRef text = file.text;
      return text.contains("\"" + name.str() + "\"") || text.contains("'" + name.str() + "'");
    };
    if (!name.empty() && llvm::any_of(texts, isNamed))
      variables.emplace_back(name.str(), value.str());
  }
  std::sort(variables.begin(), variables.end());
  return variables;
}

Expected<mlir::OwningOpRef<mlir::ModuleOp>> importKernel(mlir::MLIRContext &context, const SourceFile &file,
                                                         llvm::StringRef kernel, const KernelSignature &signature,
                                                         const ImportOptions &options, DiagnosticEngine &diagnostics) {
  context.loadDialect<tile::TileDialect, dist::DistDialect, mlir::arith::ArithDialect, mlir::math::MathDialect,
                      mlir::scf::SCFDialect, mlir::func::FuncDialect>();
  DITRON_ASSIGN_OR_RETURN(std::unique_ptr<ParsedFile> parsed, parse(context, file, diagnostics, options));
  DITRON_ASSIGN_OR_RETURN(FunctionValue function, findKernel(*parsed, kernel));
  for (const ast::Param &param : function.node->params)
    if (param.kind == ast::ParamKind::VarPositional || param.kind == ast::ParamKind::VarKeyword)
      diagnostics.error(param.range, "a kernel cannot have '*' or '**' parameters");
  size_t before = diagnostics.errorCount();
  if (before != 0)
    return diagnostics.status();
  const KernelInfo info = describeParameters(*parsed, kernel.str(), function.node);
  DITRON_ASSIGN_OR_RETURN(std::vector<const ArgumentSpec *> arguments, matchArguments(info, signature));
  std::vector<ArgumentSpec> constArguments;
  applyConstAnnotations(info, arguments, constArguments);
  noteUnappliedDecorators(function, parsed->evaluator, diagnostics);

  auto fileLocation = mlir::FileLineColLoc::get(&context, file.path(), 1, 1);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(fileLocation);
  if (isWrittenForPeer(parsed->scope.module))
    (*module)->setAttr(dist::peerSourceAttrName, mlir::UnitAttr::get(&context));
  // Of "maker.kernel" the last part.
  llvm::StringRef symbol = kernel.rsplit('.').second.empty() ? kernel : kernel.rsplit('.').second;
  parsed->evaluator.importEntry(*module, function, symbol, arguments);
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
