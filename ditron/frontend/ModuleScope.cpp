//===- ModuleScope.cpp - The module level of a kernel file ---------------------------------------------------------------===//
#include "ditron/frontend/ModuleScope.h"

#include "ditron/frontend/builtins/Builtins.h"
#include "ditron/frontend/syntax/AstPrinter.h"

namespace ditron::frontend {

bool isConstexprParam(const ast::Param &param) {
  return param.annotation && llvm::StringRef(unparse(param.annotation)).contains("constexpr");
}

std::optional<LangValue> memberOf(BuiltinModule module, llvm::StringRef name) {
  if (auto submodule = findSubmodule(module, name))
    return LangValue(ModuleValue{*submodule});
  if (auto constant = findBuiltinConstant(module, name))
    return constant;
  if (const Builtin *builtin = findBuiltin(module, name))
    return LangValue(BuiltinValue{builtin});
  return std::nullopt;
}

} // namespace ditron::frontend
