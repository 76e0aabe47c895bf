//===- Names.cpp - Look-up and assignment of names -------------------------------------------------------------------===//
//
// Scoping of the language: locals, then the module level, then Python's own functions. Numbers decay to run-time scalars
// when they are assigned, unless the name is declared tl.constexpr (spec/triton_language.md 1.4 and 1.5).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Importer.h"

#include <fmt/format.h>

namespace ditron::frontend {

//===------------------------------------------------------------------------------------------------------------------===//
// Look-up
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Importer::lookup(const ast::Name *name) {
  auto local = frame().locals.find(name->id);
  if (local != frame().locals.end())
    return local->second.value;
  if (auto hidden = frame().hidden.find(name->id); hidden != frame().hidden.end()) {
    auto [place, why] = hidden->second;
    emit.error(name->range, fmt::format("name '{}' is not defined on every path to this place", name->id.str()))
        .note(place, why.str())
        .hint("assign it before that statement");
    return LangValue::poison();
  }
  if (const GlobalBinding *binding = scope().find(name->id))
    return readGlobal(name->id, *binding, scope(), name->range, frame().function == nullptr || frame().isPython);
  if (const Builtin *builtin = findBuiltin(ModulePython, name->id))
    return LangValue(BuiltinValue{builtin});
  reportUnknownName(name->id, name->range);
  return LangValue::poison();
}

void Importer::reportUnknownName(llvm::StringRef name, SourceRange range) {
  std::string nearest;
  unsigned bestDistance = std::max<unsigned>(1, name.size() / 3) + 1;
  auto consider = [&](llvm::StringRef candidate) {
    unsigned distance = name.edit_distance(candidate, true, bestDistance);
    if (distance < bestDistance) {
      bestDistance = distance;
      nearest = candidate.str();
    }
  };
  for (const auto &[local, variable] : frame().locals)
    if (variable.range.isValid()) // not the marks of break and continue
      consider(local);
  for (const auto &[global, binding] : scope().bindings())
    consider(global);
  if (nearest.empty())
    nearest = nearestName(ModulePython, name);
  emit.error(range, fmt::format("name '{}' is not defined{}", name.str(),
                                nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
}

LangValue Importer::readGlobal(llvm::StringRef name, const GlobalBinding &binding, const ModuleScope &file,
                               SourceRange range, bool isHostRead) {
  switch (binding.kind) {
  case GlobalBinding::Kind::Function:
    return LangValue(FunctionValue{binding.function, file.isJit(binding.function), &file});
  case GlobalBinding::Kind::Class:
    if (auto cls = classOf(binding.classDef, &file, range))
      return LangValue(ClassValue{cls});
    return LangValue::poison();
  case GlobalBinding::Kind::Import: {
    if (const auto *foreign = binding.imported.getIf<ForeignValue>())
      return readImported(*foreign, range, isHostRead);
    if (!binding.imported.isPoison())
      return resolveLibrary(binding.imported, range);
    std::string nearest = nearestName(binding.importedFrom, binding.importedName);
    return emit.fail(range, fmt::format("module '{}' has no '{}'{}", toString(binding.importedFrom).str(),
                                        binding.importedName,
                                        nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
  }
  case GlobalBinding::Kind::Assignment: break;
  }

  auto reject = [&](llvm::StringRef what) {
    emit.error(range, fmt::format("Cannot access global variable '{}' from a kernel: {}", name.str(), what.str()))
        .note(binding.range, "defined here")
        .hint(fmt::format("write {} = tl.constexpr(...) at module level, or pass it as an argument", name.str()));
    return LangValue::poison();
  };
  const ast::Expr *initializer = binding.initializer;
  if (!initializer && !binding.isChanged)
    return reject("its value is not known at compile time");
  const auto *call = llvm::dyn_cast_or_null<ast::Call>(initializer);
  if (call)
    if (auto cls = namedTupleOf(call, &file))
      return LangValue(ClassValue{cls});
  bool isName = llvm::isa_and_nonnull<ast::Name, ast::Attribute>(initializer);
  if (!isHostRead) {
    LangValue callee = call ? file.resolveDotted(call->callee) : LangValue::poison();
    const auto *builtin = callee.getIf<BuiltinValue>();
    bool isWrapped = builtin && (builtin->builtin->name == "constexpr" || builtin->builtin->name == "pointer_type");
    const auto *constant = llvm::dyn_cast_or_null<ast::Constant>(initializer);
    if (!isWrapped && !isName && !(constant && constant->value->isNone())) {
      if (binding.isAnnotated)
        return reject("an annotation alone does not make it compile-time");
      return reject("it is not wrapped in tl.constexpr");
    }
  }
  LangValue value = fromHost(interpreter.global(name, file, range), range);
  // An alias may name a function, a module or a dtype, but not a plain number.
  if (!isHostRead && isName && (value.isLiteral() || value.isString() || value.isTuple()))
    return reject("it is not wrapped in tl.constexpr");
  return value;
}

LangValue Importer::readImported(const ForeignValue &foreign, SourceRange range, bool isHostRead) {
  ImportedName target = modules.resolve(foreign);
  if (target.binding)
    return readGlobal(target.name, *target.binding, *target.scope, range, isHostRead);
  if (!target.value.isPoison())
    return target.value;
  return fileAttribute(FileValue{target.scope}, target.name, range, true);
}

LangValue Importer::fileAttribute(const FileValue &file, llvm::StringRef name, SourceRange range, bool reports) {
  bool isHostRead = frame().function == nullptr || frame().isPython;
  if (const GlobalBinding *binding = file.scope->find(name))
    return readGlobal(name, *binding, *file.scope, range, isHostRead);
  if (const ModuleScope *inner = modules.findSubmodule(*file.scope, name))
    return LangValue(FileValue{inner});
  if (!reports)
    return LangValue::poison();
  llvm::StringRef nearest;
  unsigned bestDistance = std::max<unsigned>(1, name.size() / 3) + 1;
  for (const auto &[candidate, binding] : file.scope->bindings())
    if (unsigned distance = name.edit_distance(candidate, true, bestDistance); distance < bestDistance) {
      bestDistance = distance;
      nearest = candidate;
    }
  return emit.fail(range, fmt::format("module '{}' has no '{}'{}", file.scope->origin().path, name.str(),
                                      nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest.str())));
}

LangValue Importer::reportForeign(const ForeignValue &foreign, SourceRange range, llvm::StringRef verb) {
  emit.error(range, fmt::format("{} cannot be {} in a kernel", LangValue(foreign).describe(), verb.str()))
      .hint("only the modules triton, triton_dist and ditron exist inside of kernels")
      .hint(fmt::format("and files of your own: no '{}' was found in {}", foreign.module, modules.searchedPlaces(foreign)));
  return LangValue::poison();
}

LangValue Importer::resolveLibrary(const LangValue &value, SourceRange range) {
  const auto *function = value.getIf<BuiltinValue>();
  if (!function || function->builtin->libraryFile.empty())
    return value;
  const ModuleScope *file = library.scope(function->builtin->libraryFile);
  const GlobalBinding *binding = file ? file->find(function->builtin->name) : nullptr;
  if (!binding)
    return emit.fail(range, fmt::format("compiler bug: library/{}.py has no '{}'", function->builtin->libraryFile.str(),
                                        function->builtin->name.str()));
  return readGlobal(function->builtin->name, *binding, *file, range, /*isHostRead=*/true);
}

LangValue Importer::evaluateAtModuleLevel(const ast::Expr *expression, const ModuleScope *scope) {
  return fromHost(interpreter.evaluate(expression, *scope), expression->range);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Assignment
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Importer::decay(const LangValue &value, SourceRange range) {
  if (value.isTuple()) {
    std::vector<LangValue> elements;
    for (const LangValue &element : value.elements())
      elements.push_back(decay(element, range));
    return value.withParts(std::move(elements));
  }
  return value.isLiteral() ? emit.toTensor(value, range) : value;
}

void Importer::assignName(llvm::StringRef name, LangValue value, SourceRange range) {
  Frame &current = frame();
  auto pending = llvm::find(current.pendingConstexpr, name);
  if (pending != current.pendingConstexpr.end()) {
    current.pendingConstexpr.erase(pending);
    declareConstexpr(name, std::move(value), range);
    return;
  }
  auto existing = current.locals.find(name);
  if (existing != current.locals.end() && existing->second.isConstexpr && existing->second.depth < current.depth) {
    emit.error(range, fmt::format("constexpr '{}' cannot be re-assigned inside of a run-time if or loop", name.str()))
        .note(existing->second.range, "declared here");
    return;
  }
  if (value.isString() && !current.isPython) {
    emit.error(range, fmt::format("a string has no run-time form; declare '{}' as constexpr", name.str()))
        .hint(fmt::format("write {}: tl.constexpr = ...", name.str()));
    value = LangValue::poison();
  }
  Emitter::At at(emit, range);
  Variable variable;
  variable.isDecayed = !current.isPython && (value.isLiteral() || (value.isTuple() && value.isCompileTime()));
  variable.value = current.isPython ? std::move(value) : decay(value, range);
  variable.range = range;
  variable.depth = current.depth;
  current.locals[name] = std::move(variable);
  current.hidden.erase(name);
}

void Importer::declareConstexpr(llvm::StringRef name, LangValue value, SourceRange range) {
  Frame &current = frame();
  auto existing = current.locals.find(name);
  // The same declaration may run again when a tl.static_range loop is unrolled.
  if (existing != current.locals.end() && existing->second.isConstexpr && !(existing->second.range == range)) {
    emit.error(range, fmt::format("'{}' is already defined. constexpr cannot be reassigned", name.str()))
        .note(existing->second.range, "declared here");
    return;
  }
  if (!value.isPoison() && !value.isCompileTime()) {
    emit.error(range,
               fmt::format("constexpr '{}' needs a compile-time value, but got {}", name.str(), value.describe()));
    value = LangValue::poison();
  }
  Variable variable;
  variable.value = std::move(value);
  variable.range = range;
  variable.isConstexpr = true;
  variable.depth = current.depth;
  current.locals[name] = std::move(variable);
  current.hidden.erase(name);
}

void Importer::assignTarget(const ast::Expr *target, const LangValue &value) {
  if (const auto *name = llvm::dyn_cast<ast::Name>(target)) {
    assignName(name->id, value, name->range);
    return;
  }
  if (const auto *subscript = llvm::dyn_cast<ast::Subscript>(target)) {
    assignElement(subscript, value);
    return;
  }
  if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(target)) {
    assignAttribute(attribute, value);
    return;
  }
  ast::ExprList targets;
  if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(target))
    targets = tuple->elements;
  else if (const auto *list = llvm::dyn_cast<ast::List>(target))
    targets = list->elements;
  else {
    if (llvm::isa<ast::Starred>(target))
      emit.error(target->range, "starred assignment targets are not supported");
    else
      emit.error(target->range, "cannot assign to this expression in a kernel; only to names and tuples of names");
    return;
  }
  if (value.isPoison()) {
    for (const ast::Expr *each : targets)
      assignTarget(each, value);
    return;
  }
  if (auto starred = llvm::find_if(targets, [](const ast::Expr *each) { return llvm::isa<ast::Starred>(each); });
      starred != targets.end()) {
    emit.error((*starred)->range, "starred assignment targets are not supported");
    for (const ast::Expr *each : targets)
      if (!llvm::isa<ast::Starred>(each))
        assignTarget(each, LangValue::poison());
    return;
  }
  if (!value.isTuple()) {
    emit.error(target->range, fmt::format("cannot unpack non-iterable value: {} into {} names", value.describe(), targets.size()));
    for (const ast::Expr *each : targets)
      assignTarget(each, LangValue::poison());
    return;
  }
  if (value.elements().size() != targets.size()) {
    size_t given = value.elements().size();
    emit.error(target->range, given > targets.size()
                                  ? fmt::format("too many values to unpack (expected {}, got {})", targets.size(), given)
                                  : fmt::format("not enough values to unpack (expected {}, got {})", targets.size(), given));
    for (const ast::Expr *each : targets)
      assignTarget(each, LangValue::poison());
    return;
  }
  for (auto [each, element] : llvm::zip(targets, value.elements()))
    assignTarget(each, element);
}

} // namespace ditron::frontend
