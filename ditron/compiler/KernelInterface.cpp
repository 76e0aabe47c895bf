//===- KernelInterface.cpp - The parameters of a kernel as its file declares them ---------------------------------===//
//
// Takes the frontend's description and adds what the decorator says about specialisation.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/compiler/KernelInterface.h"

#include "ditron/frontend/Import.h"
#include "ditron/frontend/syntax/Parser.h"
#include "ditron/support/Suggest.h"

#include <fmt/format.h>

namespace ditron::compiler {

using namespace frontend;

namespace {

/// Clears a flag of the parameters that a decorator's list names, by name or by index.
void clearListed(KernelInterface &kernel, const ast::Expr *list, bool KernelParameter::*flag) {
  llvm::ArrayRef<ast::Expr *> elements;
  if (const auto *asList = llvm::dyn_cast<ast::List>(list))
    elements = asList->elements;
  else if (const auto *asTuple = llvm::dyn_cast<ast::Tuple>(list))
    elements = asTuple->elements;
  for (const ast::Expr *element : elements) {
    const auto *constant = llvm::dyn_cast<ast::Constant>(element);
    if (!constant)
      continue;
    std::optional<size_t> index;
    if (constant->value->isStr())
      index = kernel.find(constant->value->getString());
    else if (std::optional<int64_t> number = constant->value->toInt64(); number && *number >= 0)
      index = static_cast<size_t>(*number);
    if (index && *index < kernel.parameters.size())
      kernel.parameters[*index].*flag = false;
  }
}

void applyDecorators(KernelInterface &kernel, const ast::Module &module) {
  for (const ast::Stmt *statement : module.body) {
    const auto *function = llvm::dyn_cast<ast::FunctionDef>(statement);
    if (!function || function->name.text != kernel.name)
      continue;
    for (const ast::Expr *decorator : function->decorators) {
      const auto *call = llvm::dyn_cast<ast::Call>(decorator);
      if (!call)
        continue;
      for (const ast::Keyword &keyword : call->keywords) {
        if (keyword.name.text == "do_not_specialize") {
          clearListed(kernel, keyword.value, &KernelParameter::specialiseValue);
          clearListed(kernel, keyword.value, &KernelParameter::specialiseAlignment);
        } else if (keyword.name.text == "do_not_specialize_on_alignment") {
          clearListed(kernel, keyword.value, &KernelParameter::specialiseAlignment);
        }
      }
    }
  }
}

} // namespace

std::optional<size_t> KernelInterface::find(std::string_view parameter) const {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == parameter)
      return i;
  return std::nullopt;
}

std::vector<std::string> KernelInterface::parameterNames() const {
  std::vector<std::string> names;
  for (const KernelParameter &parameter : parameters)
    names.push_back(parameter.name);
  return names;
}

Expected<KernelInterface> describeKernel(const KernelSource &source, std::string_view kernel) {
  SourceManager sources;
  DITRON_ASSIGN_OR_RETURN(FileId file, sources.add(source.path, source.text));
  DiagnosticEngine diagnostics(sources);
  DITRON_ASSIGN_OR_RETURN(KernelInfo info, frontend::describeKernel(sources.file(file), kernel, diagnostics));
  KernelInterface result;
  result.name = info.name;
  for (ParameterInfo &parameter : info.parameters) {
    KernelParameter &added = result.parameters.emplace_back();
    added.name = std::move(parameter.name);
    added.isConstexpr = parameter.isConstexpr;
    added.annotation = std::move(parameter.annotation);
    added.hasDefault = parameter.hasDefault();
    added.defaultValue = std::move(parameter.defaultValue);
  }
  // What this parse has to complain about the frontend has already said above.
  DiagnosticEngine ignored(sources);
  applyDecorators(result, *parseModule(sources.file(file), ignored));
  return result;
}

Expected<std::vector<const ArgumentSpec *>> matchSignature(const KernelInterface &kernel,
                                                           const KernelSignature &signature) {
  std::vector<const ArgumentSpec *> result(kernel.parameters.size());
  size_t next = 0;
  for (const ArgumentSpec &spec : signature.arguments) {
    size_t index = next;
    if (!spec.name.empty()) {
      std::optional<size_t> named = kernel.find(spec.name);
      if (!named)
        return invalidArgument(fmt::format("kernel '{}' has no parameter '{}'{}; it has {}", kernel.name, spec.name,
                                           didYouMean(spec.name, kernel.parameterNames()),
                                           fmt::join(kernel.parameterNames(), ", ")));
      index = *named;
    }
    if (index >= result.size())
      return invalidArgument(fmt::format("the signature has more than the {} parameters of kernel '{}' ({})",
                                         result.size(), kernel.name, fmt::join(kernel.parameterNames(), ", ")));
    if (result[index])
      return invalidArgument(fmt::format("the signature gives parameter '{}' of kernel '{}' twice",
                                         kernel.parameters[index].name, kernel.name));
    result[index] = &spec;
    next = index + 1;
  }
  for (size_t i = 0; i < result.size(); ++i)
    if (!result[i] && !kernel.parameters[i].hasDefault)
      return invalidArgument(fmt::format(
          "the signature lacks parameter '{}' of kernel '{}' ({}){}", kernel.parameters[i].name, kernel.name,
          fmt::join(kernel.parameterNames(), ", "),
          kernel.parameters[i].isConstexpr ? fmt::format("; write constexpr {}=VALUE", kernel.parameters[i].name)
                                           : ""));
  return result;
}

} // namespace ditron::compiler
