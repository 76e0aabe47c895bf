//===- Import.cpp - From a kernel file to tile IR -----------------------------------------------------------------------===//
//
// Parses the file, matches the signature with the kernel's parameters, runs the importer and verifies the result.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Import.h"

#include "ditron/dialect/dist/Dist.h"
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

KernelInfo describe(const SourceFile &file, const ast::FunctionDef *function) {
  KernelInfo info;
  info.name = function->name.text.str();
  info.place = file.lineColumn(function->name.range.begin);
  for (const ast::Param &param : function->params) {
    ParameterInfo parameter;
    parameter.name = param.name.text.str();
    parameter.isConstexpr = isConstexprParam(param);
    if (param.annotation)
      parameter.annotation = unparse(param.annotation);
    if (param.defaultValue) {
      parameter.defaultText = unparse(param.defaultValue);
      const ast::Expr *literal = param.defaultValue;
      const auto *negation = llvm::dyn_cast<ast::UnaryOp>(literal);
      if (negation && negation->op == UnaryOp::USub)
        literal = negation->operand;
      if (const auto *constant = llvm::dyn_cast<ast::Constant>(literal)) {
        auto value = literal == param.defaultValue ? Expected<ConstValue>(*constant->value)
                                                   : unary(UnaryOp::USub, *constant->value);
        if (value.isOk())
          parameter.defaultValue = *value;
      }
    }
    info.parameters.push_back(std::move(parameter));
  }
  return info;
}

/// A parsed file and what it binds.
struct ParsedFile {
  std::unique_ptr<ast::Module> module;
  std::unique_ptr<ModuleScope> scope;
};

Expected<ParsedFile> parse(const SourceFile &file, DiagnosticEngine &diagnostics) {
  size_t before = diagnostics.errorCount();
  ParsedFile parsed;
  parsed.module = parseModule(file, diagnostics);
  if (diagnostics.errorCount() != before)
    return diagnostics.status();
  parsed.scope = std::make_unique<ModuleScope>(*parsed.module);
  return parsed;
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

/// The argument of every parameter, defaults filled in.
Expected<std::vector<ArgumentSpec>> matchArguments(const KernelInfo &kernel, const KernelSignature &signature) {
  size_t count = kernel.parameters.size();
  std::vector<std::optional<ArgumentSpec>> matched(count);
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
    matched[index] = spec;
    next = index + 1;
  }
  std::vector<ArgumentSpec> arguments;
  for (size_t i = 0; i < count; ++i) {
    const ParameterInfo &parameter = kernel.parameters[i];
    if (!matched[i] && parameter.defaultValue)
      matched[i] = ArgumentSpec::constexprOf(*parameter.defaultValue, parameter.name);
    if (!matched[i])
      return invalidArgument(fmt::format("the signature gives no {} for parameter '{}' of kernel '{}'",
                                         parameter.isConstexpr ? "compile-time value" : "type", parameter.name,
                                         kernel.name));
    arguments.push_back(*matched[i]);
  }
  return arguments;
}

} // namespace

Expected<std::vector<KernelInfo>> listKernels(const SourceFile &file, DiagnosticEngine &diagnostics) {
  DITRON_ASSIGN_OR_RETURN(ParsedFile parsed, parse(file, diagnostics));
  std::vector<KernelInfo> result;
  for (const ast::FunctionDef *function : parsed.scope->kernels())
    result.push_back(describe(file, function));
  return result;
}

Expected<KernelInfo> describeKernel(const SourceFile &file, llvm::StringRef kernel, DiagnosticEngine &diagnostics) {
  DITRON_ASSIGN_OR_RETURN(ParsedFile parsed, parse(file, diagnostics));
  DITRON_ASSIGN_OR_RETURN(const ast::FunctionDef *function, findKernel(file, *parsed.scope, kernel));
  return describe(file, function);
}

Expected<mlir::OwningOpRef<mlir::ModuleOp>> importKernel(mlir::MLIRContext &context, const SourceFile &file,
                                                         llvm::StringRef kernel, const KernelSignature &signature,
                                                         const ImportOptions &options, DiagnosticEngine &diagnostics) {
  context.loadDialect<tile::TileDialect, dist::DistDialect, mlir::arith::ArithDialect, mlir::math::MathDialect,
                      mlir::scf::SCFDialect, mlir::func::FuncDialect>();
  DITRON_ASSIGN_OR_RETURN(ParsedFile parsed, parse(file, diagnostics));
  DITRON_ASSIGN_OR_RETURN(const ast::FunctionDef *function, findKernel(file, *parsed.scope, kernel));
  for (const ast::Param &param : function->params)
    if (param.kind == ast::ParamKind::VarPositional || param.kind == ast::ParamKind::VarKeyword)
      diagnostics.error(param.range, "a kernel cannot have '*' or '**' parameters");
  size_t before = diagnostics.errorCount();
  if (before != 0)
    return diagnostics.status();
  DITRON_ASSIGN_OR_RETURN(std::vector<ArgumentSpec> arguments, matchArguments(describe(file, function), signature));

  auto fileLocation = mlir::FileLineColLoc::get(&context, file.path(), 1, 1);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(fileLocation);
  Importer importer(context, *parsed.scope, options, diagnostics);
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
