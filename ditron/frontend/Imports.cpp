//===- Imports.cpp - import statements ---------------------------------------------------------------------------------------===//
//
// A name is bound to the module of ours or the file that it leads to, or to a promise (ForeignValue) that is kept when
// somebody reads the name: importing executes nothing. Only a `try` asks at once whether the name exists, since its handlers
// depend on that; whether a package that is not here is installed, nobody knows.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"

#include <fmt/format.h>

namespace ditron::frontend {

/// Modules of ours that are made of kernels in the language: a user's own file of that name is preferred.
static bool isReplaceable(BuiltinModule module, llvm::StringRef name) {
  return module == ModulePeer && name.contains(".kernels");
}

std::optional<bool> Evaluator::hasForeignModule(llvm::StringRef name, SourceRange range) {
  if (auto defined = definedValue(fmt::format("import {}", name.str())))
    return truthOf(*defined, range).value_or(false);
  return moduleExists(name);
}

std::optional<bool> Evaluator::hasModule(llvm::StringRef name, SourceRange range) {
  return findModule(name) || modules.find(scope(), name) ? std::optional(true) : hasForeignModule(name, range);
}

LangValue Evaluator::findModuleValue(llvm::StringRef name, SourceRange range) {
  auto known = name.starts_with(".") ? std::nullopt : findModule(name);
  ForeignValue foreign{name.str(), "", &scope()};
  const ModuleScope *file =
      !known || isReplaceable(*known, name) ? modules.find(scope(), name) : nullptr;
  if (known && !file)
    return LangValue(ModuleValue{*known});
  if (file)
    return LangValue(foreign);
  std::optional<bool> exists = hasForeignModule(name, range);
  if (name.starts_with("."))
    exists = exists.value_or(frame().doubts == nullptr);
  if (exists && !*exists)
    return fail(range, fmt::format("No module named '{}'", name.str()), "ModuleNotFoundError");
  if (!exists && frame().doubts)
    frame().doubts->push_back(unknown(range, fmt::format("import {}", name.str())));
  return LangValue(foreign);
}

LangValue Evaluator::importModule(llvm::StringRef name, SourceRange range) {
  LangValue module = findModuleValue(intern(name), range);
  const auto *foreign = module.getIf<ForeignValue>();
  return foreign ? resolveForeign(*foreign) : module;
}

Flow Evaluator::executeImport(const ast::Import *statement) {
  for (const ast::Alias &alias : statement->names) {
    // `import a.b.c` binds a; `import a.b.c as d` binds the inner module.
    llvm::StringRef bound = alias.asName.text.empty() ? alias.name.text.split('.').first : alias.name.text;
    LangValue module = findModuleValue(alias.name.text, statement->range);
    if (module.isPoison())
      return Flow::Failed;
    if (bound != alias.name.text)
      module = findModuleValue(bound, statement->range);
    if (module.isPoison())
      return Flow::Failed;
    bindName(alias.boundName(), std::move(module), statement->range);
  }
  return Flow::Next;
}

LangValue Evaluator::importedMember(const LangValue &module, llvm::StringRef moduleName, llvm::StringRef name,
                                   SourceRange range) {
  if (const auto *known = module.getIf<ModuleValue>()) {
    if (auto member = memberOf(known->module, name))
      return *member;
    // A part of triton that is host code: triton.runtime, triton.testing.
    std::string dotted = fmt::format("{}.{}", moduleName.str(), name.str());
    if (const NativeFunction *native = findNative(dotted))
      return LangValue(NativeValue{native});
    if (auto constant = nativeConstant(*this, dotted))
      return *constant;
    if (moduleExists(dotted).value_or(false))
      return LangValue(ForeignValue{dotted, "", &scope()});
    std::string nearest = nearestName(known->module, name);
    return fail(range,
                fmt::format("module '{}' has no '{}'{}", toString(known->module).str(), name.str(),
                            nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)),
                "ImportError");
  }
  ForeignValue foreign{moduleName.str(), name.str(), &scope()};
  const ModuleScope *file = modules.find(scope(), moduleName);
  if (!file) {
    std::string dotted = fmt::format("{}.{}", moduleName.str(), name.str());
    if (const NativeFunction *native = findNative(dotted))
      return LangValue(NativeValue{native});
    if (auto constant = nativeConstant(*this, dotted))
      return *constant;
  } else if (frame().doubts && file->state != ModuleScope::State::Executing && !findGlobal(*file, name) &&
             !modules.findSubmodule(*file, name)) {
    return fail(range, fmt::format("module '{}' has no '{}'", file->origin.path, name.str()), "ImportError");
  }
  return LangValue(foreign);
}

Flow Evaluator::executeImport(const ast::ImportFrom *statement) {
  std::string written = std::string(statement->level, '.') + statement->module.text.str();
  llvm::StringRef name = intern(written);
  LangValue module = findModuleValue(name, statement->range);
  if (module.isPoison())
    return Flow::Failed;
  Flow flow = Flow::Next;
  for (const ast::Alias &alias : statement->names) {
    if (alias.name.text == "*") {
      importAll(module);
      continue;
    }
    // One name that is missing says nothing of the others.
    LangValue value;
    if (frame().isTolerant) {
      Emitter::Capture capture(emit);
      value = importedMember(module, name, alias.name.text, statement->range);
      if (value.isPoison()) {
        UnknownValue reason{statement->range, "", capture.takeBack(), /*isMissing=*/true};
        value = LangValue(std::make_shared<const UnknownValue>(std::move(reason)));
      }
    } else {
      value = importedMember(module, name, alias.name.text, statement->range);
    }
    if (value.isPoison())
      flow = Flow::Failed;
    else
      bindName(alias.boundName(), std::move(value), statement->range);
  }
  return flow;
}

void Evaluator::importAll(const LangValue &module) {
  const auto *foreign = module.getIf<ForeignValue>();
  const ModuleScope *file = foreign ? modules.find(scope(), foreign->module) : nullptr;
  if (!file || file->state == ModuleScope::State::Executing) {
    scope().stars.push_back(module);
    return;
  }
  executeFile(*file);
  std::optional<std::vector<LangValue>> listed;
  if (const Binding *all = file->environment->find("__all__"); all && all->value.sequence())
    listed = *all->value.sequence();
  auto isExported = [&](llvm::StringRef name) {
    if (!listed)
      return !name.starts_with("_");
    return llvm::any_of(*listed, [&](const LangValue &each) { return each.isString() && each.constant().getString() == name; });
  };
  for (const auto &[name, binding] : file->environment->names) {
    if (!isExported(name))
      continue;
    // A promise is kept by the file that made it.
    Binding copy = binding;
    frame().environment->names[name] = std::move(copy);
  }
  llvm::append_range(scope().stars, file->stars);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Looking names up
//===------------------------------------------------------------------------------------------------------------------===//

std::optional<Binding> Evaluator::findGlobal(const ModuleScope &file, llvm::StringRef name) {
  executeFile(file);
  if (const Binding *binding = file.environment->find(name))
    return *binding;
  if (name.starts_with("_") || file.isSearched)
    return std::nullopt;
  file.isSearched = true;
  std::optional<Binding> found;
  for (const LangValue &star : llvm::reverse(file.stars)) {
    if (const auto *module = star.getIf<ModuleValue>()) {
      if (auto member = memberOf(module->module, name))
        found = Binding{*member, {}, false};
    } else if (const auto *foreign = star.getIf<ForeignValue>()) {
      const ModuleScope *other = modules.find(*foreign->scope, foreign->module);
      if (other && other != &file)
        found = findGlobal(*other, name);
    }
    if (found)
      break;
  }
  file.isSearched = false;
  return found;
}

LangValue Evaluator::resolveForeign(const ForeignValue &foreign, unsigned depth) {
  constexpr unsigned maxImportDepth = 64; // files that lead to each other by re-exported names
  const ModuleScope *file = foreign.scope && depth < maxImportDepth
                                ? modules.find(*foreign.scope, foreign.module)
                                : nullptr;
  if (!file)
    return LangValue(foreign);
  if (foreign.name.empty())
    return LangValue(FileValue{file});
  if (auto binding = findGlobal(*file, foreign.name)) {
    const auto *next = binding->value.getIf<ForeignValue>();
    if (!next)
      return binding->value;
    // `from . import x` in a package's own file names the module x, not this binding again.
    bool isItself = next->scope == foreign.scope && next->module == foreign.module && next->name == foreign.name;
    bool leadsBack = next->name == foreign.name && next->scope && modules.find(*next->scope, next->module) == file;
    if (!isItself && !leadsBack)
      return resolveForeign(*next, depth + 1);
  }
  if (const ModuleScope *module = modules.findSubmodule(*file, foreign.name))
    return LangValue(FileValue{module});
  return LangValue::poison();
}

} // namespace ditron::frontend
