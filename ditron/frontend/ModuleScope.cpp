//===- ModuleScope.cpp - The module level of a kernel file ---------------------------------------------------------------===//
//
// Collects bindings from the statements of a file, also those inside of module-level `if` and `try`, where later bindings
// win as they do in Python.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/ModuleScope.h"

#include "ditron/frontend/Builtins.h"
#include "ditron/frontend/Modules.h"
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

ModuleScope::ModuleScope(const ast::Module &module, ScopeOrigin origin) : itsOrigin(std::move(origin)) {
  collect(module.body, true);
}

const GlobalBinding *ModuleScope::find(llvm::StringRef name) const {
  if (auto it = names.find(name); it != names.end())
    return &it->second;
  if (auto it = starNames.find(name); it != starNames.end())
    return &it->second;
  if (name.starts_with("_"))
    return nullptr;
  for (const ForeignValue &star : llvm::reverse(stars)) {
    GlobalBinding binding;
    if (auto module = findModule(star.module)) {
      if (auto member = memberOf(*module, name))
        binding.imported = *member;
      else
        continue;
    } else {
      const ModuleScope *file = itsOrigin.modules ? itsOrigin.modules->find(*this, star.module) : nullptr;
      if (!file || file == this || (file->names.find(name) == file->names.end() && file->stars.empty()))
        continue;
      if (file->names.find(name) == file->names.end()) {
        if (!beingLookedUp.insert(name).second)
          return nullptr;
        bool exists = file->find(name) != nullptr;
        beingLookedUp.erase(name);
        if (!exists)
          continue;
      }
      binding.imported = LangValue(ForeignValue{star.module, name.str(), this});
    }
    return &(starNames[name] = std::move(binding));
  }
  return nullptr;
}

llvm::ArrayRef<const ast::Stmt *> ModuleScope::changesOf(llvm::StringRef name) const {
  auto it = changes.find(name);
  return it == changes.end() ? llvm::ArrayRef<const ast::Stmt *>() : llvm::ArrayRef<const ast::Stmt *>(it->second);
}

void ModuleScope::collectTarget(const ast::Expr *target, const ast::Expr *initializer, bool isAnnotated,
                                llvm::ArrayRef<unsigned> path) {
  if (const auto *name = llvm::dyn_cast<ast::Name>(target)) {
    GlobalBinding binding;
    binding.kind = GlobalBinding::Kind::Assignment;
    binding.range = name->range;
    binding.initializer = initializer;
    binding.isAnnotated = isAnnotated;
    binding.unpacked.assign(path.begin(), path.end());
    bind(name->id, std::move(binding));
    return;
  }
  ast::ExprList targets, values;
  if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(target))
    targets = tuple->elements;
  else if (const auto *list = llvm::dyn_cast<ast::List>(target))
    targets = list->elements;
  if (const auto *tuple = llvm::dyn_cast_or_null<ast::Tuple>(initializer); tuple && path.empty())
    values = tuple->elements;
  bool hasStars = llvm::any_of(targets, [](const ast::Expr *each) { return llvm::isa<ast::Starred>(each); }) ||
                  llvm::any_of(values, [](const ast::Expr *each) { return llvm::isa<ast::Starred>(each); });
  for (size_t i = 0; i < targets.size(); ++i) {
    if (hasStars) { // no position is known from the syntax
      const auto *starred = llvm::dyn_cast<ast::Starred>(targets[i]);
      collectTarget(starred ? starred->value : targets[i], nullptr, isAnnotated, {});
    } else if (values.size() == targets.size()) {
      collectTarget(targets[i], values[i], isAnnotated, {});
    } else {
      llvm::SmallVector<unsigned, 2> inner(path);
      inner.push_back(i);
      collectTarget(targets[i], initializer, isAnnotated, inner);
    }
  }
}

void ModuleScope::collectImport(const ast::Import *import) {
  for (const ast::Alias &alias : import->names) {
    // `import a.b.c` binds a; `import a.b.c as d` binds the inner module.
    llvm::StringRef module = alias.asName.text.empty() ? alias.name.text.split('.').first : alias.name.text;
    GlobalBinding binding;
    binding.range = import->range;
    if (auto known = findModule(module))
      binding.imported = LangValue(ModuleValue{*known});
    else
      binding.imported = LangValue(ForeignValue{module.str(), "", this});
    if (module != alias.name.text && !findModule(alias.name.text))
      dotted.push_back({alias.name.text.str(), "", this});
    bind(alias.boundName(), std::move(binding));
  }
}

void ModuleScope::collectImport(const ast::ImportFrom *import) {
  auto module = import->level == 0 ? findModule(import->module.text) : std::nullopt;
  std::string name = std::string(import->level, '.') + import->module.text.str();
  for (const ast::Alias &alias : import->names) {
    if (alias.name.text == "*") {
      stars.push_back({name, "", this});
      continue;
    }
    GlobalBinding binding;
    binding.range = import->range;
    if (!module) {
      binding.imported = LangValue(ForeignValue{name, alias.name.text.str(), this});
    } else if (auto member = memberOf(*module, alias.name.text)) {
      binding.imported = *member;
    } else {
      binding.importedFrom = *module;
      binding.importedName = alias.name.text.str();
    }
    bind(alias.boundName(), std::move(binding));
  }
}

void ModuleScope::collect(ast::StmtList statements, bool isTopLevel) {
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
        collectTarget(target, assign->value, false, {});
    } else if (const auto *annotated = llvm::dyn_cast<ast::AnnAssign>(statement)) {
      collectTarget(annotated->target, annotated->value, true, {});
    } else if (const auto *import = llvm::dyn_cast<ast::Import>(statement)) {
      collectImport(import);
    } else if (const auto *import = llvm::dyn_cast<ast::ImportFrom>(statement)) {
      collectImport(import);
    } else if (const auto *conditional = llvm::dyn_cast<ast::If>(statement)) {
      collect(conditional->orelse, false);
      collect(conditional->body, false);
    } else if (const auto *attempt = llvm::dyn_cast<ast::Try>(statement)) {
      // The body of a module-level try is what holds when the modules it imports exist; ours always do.
      for (const ast::ExceptHandler &handler : attempt->handlers)
        collect(handler.body, false);
      collect(attempt->body, false);
      collect(attempt->orelse, false);
      collect(attempt->finalBody, false);
    }
    if (isTopLevel)
      collectChanges(statement);
  }
}

void ModuleScope::collectChanges(const ast::Stmt *statement) {
  bool isPlain = llvm::isa<ast::Assign, ast::AnnAssign>(statement);
  if (!isPlain && !llvm::isa<ast::AugAssign, ast::ExprStmt, ast::For, ast::While, ast::If, ast::With>(statement))
    return;
  llvm::SmallVector<llvm::StringRef> changed;
  auto change = [&](const ast::Expr *target, bool isObject) {
    while (true) {
      if (const auto *name = llvm::dyn_cast<ast::Name>(target)) {
        if (!llvm::is_contained(changed, name->id))
          changed.push_back(name->id);
        if (isObject || !isPlain)
          if (auto it = names.find(name->id); it == names.end() || it->second.kind == GlobalBinding::Kind::Assignment) {
            if (it == names.end()) { // a loop's own
              GlobalBinding binding;
              binding.kind = GlobalBinding::Kind::Assignment;
              binding.range = name->range;
              bind(name->id, binding);
            }
            names[name->id].isChanged = true;
          }
        return;
      }
      if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(target)) {
        for (const ast::Expr *element : tuple->elements)
          if (const auto *name = llvm::dyn_cast<ast::Name>(element); name && !llvm::is_contained(changed, name->id))
            changed.push_back(name->id);
        return;
      }
      isObject = true;
      if (const auto *subscript = llvm::dyn_cast<ast::Subscript>(target))
        target = subscript->value;
      else if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(target))
        target = attribute->value;
      else
        return;
    }
  };
  ast::walk(statement, [&](const ast::Node *node) {
    if (llvm::isa<ast::FunctionDef, ast::ClassDef, ast::Lambda, ast::Comprehension>(node))
      return false;
    if (const auto *assign = llvm::dyn_cast<ast::Assign>(node)) {
      for (const ast::Expr *target : assign->targets)
        change(target, false);
    } else if (const auto *annotated = llvm::dyn_cast<ast::AnnAssign>(node)) {
      change(annotated->target, false);
    } else if (const auto *augmented = llvm::dyn_cast<ast::AugAssign>(node)) {
      change(augmented->target, false);
    } else if (const auto *loop = llvm::dyn_cast<ast::For>(node)) {
      change(loop->target, false);
    } else if (const auto *call = llvm::dyn_cast<ast::Call>(node)) {
      // `names.append(...)`, as a statement; what modules do to others is nobody's business here.
      const auto *method = llvm::dyn_cast<ast::Attribute>(call->callee);
      const auto *name = method ? llvm::dyn_cast<ast::Name>(method->value) : nullptr;
      if (name && names.find(name->id) != names.end() &&
          names[name->id].kind == GlobalBinding::Kind::Assignment)
        if (const auto *expression = llvm::dyn_cast<ast::ExprStmt>(statement); !expression || expression->value == call)
          if (!isPlain)
            change(name, true);
    }
    return true;
  });
  for (llvm::StringRef name : changed)
    changes[name].push_back(statement);
}

LangValue ModuleScope::resolveDotted(const ast::Expr *expression) const {
  auto follow = [this](const LangValue &value) {
    const auto *foreign = value.getIf<ForeignValue>();
    return foreign && itsOrigin.modules ? itsOrigin.modules->resolve(*foreign).value : value;
  };
  if (const auto *name = llvm::dyn_cast<ast::Name>(expression)) {
    const GlobalBinding *binding = find(name->id);
    return binding && binding->kind == GlobalBinding::Kind::Import ? follow(binding->imported) : LangValue::poison();
  }
  const auto *attribute = llvm::dyn_cast<ast::Attribute>(expression);
  if (!attribute)
    return LangValue::poison();
  LangValue object = resolveDotted(attribute->value);
  if (const auto *file = object.getIf<FileValue>()) {
    const GlobalBinding *binding = file->scope->find(attribute->attr.text);
    return binding && binding->kind == GlobalBinding::Kind::Import ? follow(binding->imported) : LangValue::poison();
  }
  const auto *module = object.getIf<ModuleValue>();
  if (!module)
    return LangValue::poison();
  return memberOf(module->module, attribute->attr.text).value_or(LangValue::poison());
}

llvm::StringRef ModuleScope::decoratorName(const ast::Expr *decorator) const {
  if (const auto *call = llvm::dyn_cast<ast::Call>(decorator))
    decorator = call->callee;
  if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(decorator)) {
    LangValue object = resolveDotted(attribute->value);
    const auto *module = object.getIf<ModuleValue>();
    constexpr unsigned ours = ModuleTriton | ModulePeer | ModuleTile | ModuleDist;
    return module && (module->module & ours) ? attribute->attr.text : llvm::StringRef();
  }
  const auto *name = llvm::dyn_cast<ast::Name>(decorator);
  const GlobalBinding *binding = name ? find(name->id) : nullptr;
  if (!binding || binding->kind != GlobalBinding::Kind::Import)
    return {};
  if (binding->imported.isPoison())
    return binding->importedName;
  LangValue value = resolveDotted(name);
  const auto *builtin = value.getIf<BuiltinValue>();
  return builtin ? builtin->builtin->name : llvm::StringRef();
}

bool ModuleScope::isJit(const ast::FunctionDef *function) const {
  return llvm::any_of(function->decorators,
                      [&](const ast::Expr *decorator) { return decoratorName(decorator) == "jit"; });
}

bool ModuleScope::isConstexprFunction(const ast::FunctionDef *function) const {
  return llvm::any_of(function->decorators, [&](const ast::Expr *decorator) {
    return decoratorName(decorator) == "constexpr_function";
  });
}

std::vector<const ast::FunctionDef *> ModuleScope::kernels() const {
  std::vector<const ast::FunctionDef *> result;
  for (const auto &[name, binding] : names)
    if (binding.kind == GlobalBinding::Kind::Function && isJit(binding.function))
      result.push_back(binding.function);
  return result;
}

} // namespace ditron::frontend
