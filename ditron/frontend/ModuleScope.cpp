//===- ModuleScope.cpp - The module level of a kernel file ---------------------------------------------------------------===//
//
// Collects bindings from the statements of a file, also those inside of module-level `if` and `try`, where later bindings
// win as they do in Python.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/ModuleScope.h"

#include "ditron/frontend/Builtins.h"
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

ModuleScope::ModuleScope(const ast::Module &module) { collect(module.body); }

const GlobalBinding *ModuleScope::find(llvm::StringRef name) const {
  auto it = names.find(name);
  return it == names.end() ? nullptr : &it->second;
}

void ModuleScope::collectTarget(const ast::Expr *target, const ast::Expr *initializer, bool isAnnotated) {
  if (const auto *name = llvm::dyn_cast<ast::Name>(target)) {
    GlobalBinding binding;
    binding.kind = GlobalBinding::Kind::Assignment;
    binding.range = name->range;
    binding.initializer = initializer;
    binding.isAnnotated = isAnnotated;
    bind(name->id, std::move(binding));
    return;
  }
  ast::ExprList targets, values;
  if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(target))
    targets = tuple->elements;
  else if (const auto *list = llvm::dyn_cast<ast::List>(target))
    targets = list->elements;
  if (const auto *tuple = llvm::dyn_cast_or_null<ast::Tuple>(initializer))
    values = tuple->elements;
  for (size_t i = 0; i < targets.size(); ++i)
    collectTarget(targets[i], values.size() == targets.size() ? values[i] : nullptr, isAnnotated);
}

void ModuleScope::collect(ast::StmtList statements) {
  for (const ast::Stmt *statement : statements) {
    GlobalBinding binding;
    binding.range = statement->range;
    if (const auto *function = llvm::dyn_cast<ast::FunctionDef>(statement)) {
      binding.kind = GlobalBinding::Kind::Function;
      binding.function = function;
      binding.range = function->name.range;
      bind(function->name.text, std::move(binding));
    } else if (const auto *classDef = llvm::dyn_cast<ast::ClassDef>(statement)) {
      binding.kind = GlobalBinding::Kind::Class;
      binding.classDef = classDef;
      binding.range = classDef->name.range;
      bind(classDef->name.text, std::move(binding));
    } else if (const auto *assign = llvm::dyn_cast<ast::Assign>(statement)) {
      for (const ast::Expr *target : assign->targets)
        collectTarget(target, assign->value, false);
    } else if (const auto *annotated = llvm::dyn_cast<ast::AnnAssign>(statement)) {
      collectTarget(annotated->target, annotated->value, true);
    } else if (const auto *import = llvm::dyn_cast<ast::Import>(statement)) {
      for (const ast::Alias &alias : import->names) {
        // `import a.b.c` binds a; `import a.b.c as d` binds the inner module.
        llvm::StringRef dotted = alias.asName.text.empty() ? alias.name.text.split('.').first : alias.name.text;
        GlobalBinding each = binding;
        if (auto module = findModule(dotted))
          each.imported = LangValue(ModuleValue{*module});
        else
          each.imported = LangValue(ForeignValue{dotted.str(), ""});
        bind(alias.boundName(), std::move(each));
      }
    } else if (const auto *import = llvm::dyn_cast<ast::ImportFrom>(statement)) {
      auto module = import->level == 0 ? findModule(import->module.text) : std::nullopt;
      for (const ast::Alias &alias : import->names) {
        GlobalBinding each = binding;
        if (!module) {
          each.imported = LangValue(
              ForeignValue{std::string(import->level, '.') + import->module.text.str(), alias.name.text.str()});
        } else if (auto member = memberOf(*module, alias.name.text)) {
          each.imported = *member;
        } else {
          each.importedFrom = *module;
          each.importedName = alias.name.text.str();
        }
        bind(alias.boundName(), std::move(each));
      }
    } else if (const auto *conditional = llvm::dyn_cast<ast::If>(statement)) {
      collect(conditional->orelse);
      collect(conditional->body);
    } else if (const auto *attempt = llvm::dyn_cast<ast::Try>(statement)) {
      // The body of a module-level try is what holds when the modules it imports exist; ours always do.
      for (const ast::ExceptHandler &handler : attempt->handlers)
        collect(handler.body);
      collect(attempt->body);
      collect(attempt->orelse);
      collect(attempt->finalBody);
    }
  }
}

LangValue ModuleScope::resolveDotted(const ast::Expr *expression) const {
  if (const auto *name = llvm::dyn_cast<ast::Name>(expression)) {
    const GlobalBinding *binding = find(name->id);
    return binding && binding->kind == GlobalBinding::Kind::Import ? binding->imported : LangValue::poison();
  }
  const auto *attribute = llvm::dyn_cast<ast::Attribute>(expression);
  if (!attribute)
    return LangValue::poison();
  LangValue object = resolveDotted(attribute->value);
  const auto *module = object.getIf<ModuleValue>();
  if (!module)
    return LangValue::poison();
  return memberOf(module->module, attribute->attr.text).value_or(LangValue::poison());
}

bool ModuleScope::isJit(const ast::FunctionDef *function) const {
  for (const ast::Expr *decorator : function->decorators) {
    const ast::Expr *callee = decorator;
    if (const auto *call = llvm::dyn_cast<ast::Call>(callee))
      callee = call->callee;
    if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(callee)) {
      LangValue object = resolveDotted(attribute->value);
      const auto *module = object.getIf<ModuleValue>();
      if (attribute->attr.text == "jit" && module && (module->module == ModuleTriton || module->module == ModulePeer))
        return true;
    } else if (const auto *name = llvm::dyn_cast<ast::Name>(callee)) {
      const GlobalBinding *binding = find(name->id);
      if (binding && binding->kind == GlobalBinding::Kind::Import && binding->imported.isPoison() &&
          binding->importedName == "jit")
        return true;
    }
  }
  return false;
}

std::vector<const ast::FunctionDef *> ModuleScope::kernels() const {
  std::vector<const ast::FunctionDef *> result;
  for (const auto &[name, binding] : names)
    if (binding.kind == GlobalBinding::Kind::Function && isJit(binding.function))
      result.push_back(binding.function);
  return result;
}

} // namespace ditron::frontend
