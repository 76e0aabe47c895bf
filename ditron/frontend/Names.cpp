//===- Names.cpp - Look-up and assignment of names -------------------------------------------------------------------===//
//
// Scoping of the language: locals, then the module level, then Python's own functions. Numbers decay to run-time scalars
// when they are assigned, unless the name is declared tl.constexpr.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"

#include "ditron/frontend/LocalNames.h"
#include "ditron/frontend/natives/PythonNames.h"

#include <fmt/format.h>

namespace ditron::frontend {

//===------------------------------------------------------------------------------------------------------------------===//
// Look-up
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Evaluator::lookup(const ast::Name *name) {
  if (frame().isPython()) {
    bool isInside = false; // of a comprehension, which does not see the names of a class around it
    for (const Environment *names = frame().environment.get(); names; names = names->parent.get()) {
      const Binding *binding = isInside && names->isClass ? nullptr : names->find(name->id);
      if (binding)
        return readGlobal(name->id, *binding, name->range);
      if (isUnboundLocal(*names, name->id))
        return fail(name->range,
                    fmt::format("cannot access local variable '{}' where it is not associated with a value", name->id.str()),
                    names == frame().environment.get() ? "UnboundLocalError" : "NameError");
      isInside |= names->isComprehension;
    }
    return lookupOutside(name);
  }
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
  for (const Environment *names = frame().closure.get(); names; names = names->parent.get())
    if (const Binding *binding = names->find(name->id))
      return readGlobal(name->id, *binding, name->range);
  return lookupOutside(name);
}

bool Evaluator::isUnboundLocal(const Environment &names, llvm::StringRef name) {
  if (!names.function)
    return false;
  auto [known, isNew] = locals.try_emplace(names.function);
  if (isNew)
    known->second = localNames(names.function);
  return known->second.contains(name);
}

LangValue Evaluator::lookupOutside(const ast::Name *name) {
  if (auto binding = findGlobal(scope(), name->id))
    return readGlobal(name->id, *binding, name->range);
  if (frame().isPython())
    if (const NativeFunction *native = findNative(name->id))
      return LangValue(NativeValue{native});
  if (const Builtin *builtin = findBuiltin(ModulePython, name->id))
    return LangValue(BuiltinValue{builtin});
  if (frame().isPython() && name->id == "NotImplemented")
    return LangValue::object("NotImplementedType", {{"__repr__", LangValue::string("NotImplemented")}});
  if (scope().raised.isUnknown())
    return reportUnknown(scope().raised, name->id, name->range);
  if (frame().isPython() && isFunctionOfPython(name->id))
    return fail(name->range, fmt::format("'{}' of Python is not known at compile time", name->id.str()), "");
  reportUnknownName(name->id, name->range);
  return LangValue::poison();
}

void Evaluator::reportUnknownName(llvm::StringRef name, SourceRange range) {
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
  for (const Environment *names = frame().environment.get(); names; names = names->parent.get())
    for (const auto &[outer, binding] : names->names)
      consider(outer);
  for (const auto &[global, binding] : scope().environment->names)
    consider(global);
  if (nearest.empty())
    nearest = nearestName(ModulePython, name);
  emit.error(range, fmt::format("name '{}' is not defined{}", name.str(),
                                nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)))
      .raises("NameError");
}

LangValue Evaluator::readGlobal(llvm::StringRef name, const Binding &binding, SourceRange range) {
  LangValue value = binding.value;
  if (const auto *foreign = value.getIf<ForeignValue>()) {
    LangValue resolved = resolveForeign(*foreign);
    if (resolved.isPoison())
      return fail(range, fmt::format("module '{}' has no '{}'", foreign->module, foreign->name), "ImportError");
    value = std::move(resolved);
  }
  value = resolveLibrary(value, range);
  // The library's constants are ours to read.
  if (frame().domain().readsPlainGlobals || !scope().origin.modules)
    return value;
  if (value.isUnknown())
    return reportUnknown(value, name, range);
  if (const auto *cls = value.getIf<ClassValue>(); cls && cls->info->isPlain) {
    emit.error(range, fmt::format("class '{}' cannot be used in a kernel: it is neither decorated with @triton.aggregate nor "
                                  "a NamedTuple",
                                  cls->info->name))
        .note(cls->info->range, "declared here");
    return LangValue::poison();
  }
  bool isValue = value.isLiteral() || value.isString() || value.sequence() || value.isDict() ||
                 value.object() || value.instance() || value.iterator() || value.is<ViewValue>() || value.is<LambdaValue>() || value.is<std::shared_ptr<const RangeValue>>();
  if (!isValue || value.isWrapped)
    return toKernel(value, range);
  emit.error(range, fmt::format("Cannot access global variable '{}' from a kernel: {}", name.str(),
                                binding.isAnnotated ? "an annotation alone does not make it compile-time"
                                                    : "it is not wrapped in tl.constexpr"))
      .note(binding.range, "defined here")
      .hint(fmt::format("write {} = tl.constexpr(...) at module level, or pass it as an argument", name.str()));
  return LangValue::poison();
}

LangValue Evaluator::reportUnknown(const LangValue &value, llvm::StringRef name, SourceRange range) {
  const UnknownValue &reason = value.unknown();
  if (!reason.errors.empty() && reason.isMissing) {
    const Diagnostic &missing = reason.errors.front();
    emit.error(range, missing.message).raises(missing.exception).note(missing.range, "imported here");
    return LangValue::poison();
  }
  if (!reason.errors.empty()) {
    for (Diagnostic error : reason.errors) {
      if (range.isValid() && range != error.range)
        error.note(range, "needed here");
      emit.report(error);
    }
    return LangValue::poison();
  }
  emit.error(range, name.empty() ? fmt::format("this depends on `{}`, which is not known at compile time", reason.text)
                                 : fmt::format("the value of '{}' depends on `{}`, which is not known at compile time",
                                               name.str(), reason.text))
      .raises("")
      .note(reason.range, "here")
      .hint(name.empty() ? fmt::format("say what it is: --define '{}=VALUE'", reason.text)
                         : fmt::format("say what it is: --define '{}=VALUE', or --define {}=VALUE", reason.text, name.str()));
  return LangValue::poison();
}

LangValue Evaluator::toKernel(const LangValue &value, SourceRange range, unsigned depth) {
  if (value.isUnknown())
    return reportUnknown(value, "", range);
  if (value.sequence()) {
    if (depth > LangValue::maxNesting)
      return fail(range, fmt::format("tuples and lists are nested more than {} deep", LangValue::maxNesting));
    std::vector<LangValue> elements;
    for (const LangValue &element : *value.sequence()) {
      elements.push_back(toKernel(element, range, depth + 1));
      if (elements.back().isPoison())
        return LangValue::poison();
    }
    return value.isTuple() ? value.withParts(std::move(elements)) : LangValue::tuple(std::move(elements));
  }
  if (!numberOf(value).instance() && value.instance())
    return numberOf(value);
  if (value.isDict() || value.object() || value.is<LambdaValue>() || value.iterator() || value.is<ViewValue>())
    return emit.fail(range, fmt::format("a value of type '{}' exists only at compile time and has no meaning in a kernel",
                                        value.typeName()));
  return value;
}

LangValue Evaluator::fileAttribute(const FileValue &file, llvm::StringRef name, SourceRange range, bool reports) {
  if (auto binding = findGlobal(*file.scope, name))
    return readGlobal(name, *binding, range);
  if (const ModuleScope *inner = modules.findSubmodule(*file.scope, name))
    return LangValue(FileValue{inner});
  if (!reports)
    return LangValue::poison();
  if (file.scope->raised.isUnknown())
    return reportUnknown(file.scope->raised, name, range);
  llvm::StringRef nearest;
  unsigned bestDistance = std::max<unsigned>(1, name.size() / 3) + 1;
  for (const auto &[candidate, binding] : file.scope->environment->names)
    if (unsigned distance = name.edit_distance(candidate, true, bestDistance); distance < bestDistance) {
      bestDistance = distance;
      nearest = candidate;
    }
  return fail(range,
              fmt::format("module '{}' has no '{}'{}", file.scope->origin.path, name.str(),
                          nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest.str())),
              "AttributeError");
}

LangValue Evaluator::foreignAttribute(const ForeignValue &foreign, llvm::StringRef name, SourceRange range, bool reports) {
  std::string dotted = foreign.name.empty() ? foreign.module : foreign.module + "." + foreign.name;
  dotted += "." + name.str();
  auto constant = nativeConstant(*this, dotted);
  if (frame().isPython() ? constant.has_value() : constant && constant->isConstant())
    return *constant;
  // A kernel reads through modules, as Triton does: torch.version.hip.
  if (!frame().isPython() && (constant || !isNativeModule(dotted)))
    return reports ? reportForeign(foreign, range, "used") : LangValue::poison();
  if (const NativeFunction *native = findNative(dotted))
    return LangValue(NativeValue{native});
  ForeignValue longer = foreign;
  longer.name = foreign.name.empty() ? name.str() : foreign.name + "." + name.str();
  return LangValue(longer);
}

LangValue Evaluator::reportForeign(const ForeignValue &foreign, SourceRange range, llvm::StringRef verb) {
  emit.error(range, fmt::format("{} cannot be {} in a kernel", LangValue(foreign).describe(), verb.str()))
      .hint("only the modules triton, triton_dist and ditron exist inside of kernels")
      .hint(fmt::format("and files of your own: no '{}' was found in {}", foreign.module, modules.searchedPlaces(foreign)));
  return LangValue::poison();
}

LangValue Evaluator::resolveLibrary(const LangValue &value, SourceRange range) {
  const auto *function = value.getIf<BuiltinValue>();
  if (!function || function->builtin->libraryFile.empty())
    return value;
  const ModuleScope *file = library.scope(function->builtin->libraryFile);
  auto binding = file ? findGlobal(*file, function->builtin->name) : std::nullopt;
  if (!binding || binding->value.isUnknown()) {
    if (binding)
      reportUnknown(binding->value, function->builtin->name, range);
    return emit.fail(range, fmt::format("compiler bug: library/{}.py has no '{}'", function->builtin->libraryFile.str(),
                                        function->builtin->name.str()));
  }
  return binding->value;
}

llvm::StringRef Evaluator::intern(llvm::StringRef text) { return interned.insert(text).first->getKey(); }

LangValue Evaluator::fail(SourceRange range, std::string message, llvm::StringRef exception) {
  emit.error(range, std::move(message)).raises(exception);
  return LangValue::poison();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Assignment
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Evaluator::decay(const LangValue &value, SourceRange range) {
  if (value.isTuple()) {
    std::vector<LangValue> elements;
    for (const LangValue &element : value.elements())
      elements.push_back(decay(element, range));
    return value.withParts(std::move(elements));
  }
  return value.isLiteral() ? emit.toTensor(value, range) : value;
}

void Evaluator::bindName(llvm::StringRef name, LangValue value, SourceRange range, bool isAnnotated) {
  // At a module level and in functions that make kernels, the user may say what a name is.
  bool isOfFile = (!frame().function && !frame().environment->isClass) || makers.contains(frame().function);
  if (isOfFile && !options.defines.empty())
    if (auto defined = definedValue(name))
      value = std::move(*defined);
  auto elsewhere = llvm::find_if(frame().redirected, [&](const auto &each) { return each.first == name; });
  Environment &names = elsewhere == frame().redirected.end() ? *frame().environment : *elsewhere->second;
  names.names[name] = Binding{std::move(value), range, isAnnotated};
}

void Evaluator::assignName(llvm::StringRef name, LangValue value, SourceRange range) {
  Frame &current = frame();
  if (current.isPython())
    return bindName(name, std::move(value), range);
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
  if (value.isString()) {
    emit.error(range, fmt::format("a string has no run-time form; declare '{}' as constexpr", name.str()))
        .hint(fmt::format("write {}: tl.constexpr = ...", name.str()));
    value = LangValue::poison();
  }
  Emitter::At at(emit, range);
  Variable variable;
  variable.isDecayed = value.isLiteral() || (value.isTuple() && value.isCompileTime());
  variable.value = decay(value, range);
  variable.range = range;
  variable.depth = current.depth;
  current.locals[name] = std::move(variable);
  current.hidden.erase(name);
}

void Evaluator::declareConstexpr(llvm::StringRef name, LangValue value, SourceRange range) {
  Frame &current = frame();
  auto existing = current.locals.find(name);
  // The same declaration may run again when a tl.static_range loop is unrolled.
  if (existing != current.locals.end() && existing->second.isConstexpr && !(existing->second.range == range)) {
    emit.error(range, fmt::format("'{}' is already defined. constexpr cannot be reassigned", name.str()))
        .note(existing->second.range, "declared here");
    return;
  }
  // A run-time value is accepted, as Triton does: it fails where it has to be compile-time.
  Variable variable;
  variable.value = std::move(value);
  variable.range = range;
  variable.isConstexpr = true;
  variable.depth = current.depth;
  current.locals[name] = std::move(variable);
  current.hidden.erase(name);
}

void Evaluator::assignTarget(const ast::Expr *target, const LangValue &value) {
  if (const auto *name = llvm::dyn_cast<ast::Name>(target)) {
    assignName(name->id, value, name->range);
    return;
  }
  if (const auto *subscript = llvm::dyn_cast<ast::Subscript>(target)) {
    if (frame().isPython())
      assignItem(subscript, value);
    else
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
  unpack(targets, value, target->range);
}

void Evaluator::unpack(ast::ExprList targets, const LangValue &value, SourceRange place) {
  if (value.isPoison()) {
    for (const ast::Expr *each : targets)
      assignTarget(each, value);
    return;
  }
  if (value.isUnknown()) {
    for (const ast::Expr *each : targets)
      assignTarget(llvm::isa<ast::Starred>(each) ? llvm::cast<ast::Starred>(each)->value : each, value);
    return;
  }
  auto spoil = [&] {
    for (const ast::Expr *each : targets)
      if (!frame().isPython() && !llvm::isa<ast::Starred>(each))
        assignTarget(each, LangValue::poison());
  };
  auto starred = llvm::find_if(targets, [](const ast::Expr *each) { return llvm::isa<ast::Starred>(each); });
  if (starred != targets.end() && !frame().domain().hasAllExpressions) {
    emit.error((*starred)->range, "starred assignment targets are not supported");
    return spoil();
  }
  if (!value.isTuple() && !frame().isPython()) {
    emit.error(place, fmt::format("cannot unpack non-iterable value: {} into {} names", value.describe(), targets.size()));
    return spoil();
  }
  auto elements = elementsOf(value, place);
  if (!elements)
    return;
  size_t fixed = targets.size() - (starred != targets.end()), given = elements->size();
  if (given < fixed || (starred == targets.end() && given != fixed)) {
    fail(place,
         given > fixed ? fmt::format("too many values to unpack (expected {}, got {})", fixed, given)
                       : fmt::format("not enough values to unpack (expected {}, got {})", fixed, given),
         "ValueError");
    return spoil();
  }
  auto next = elements->begin();
  const size_t errorsBefore = emit.diagnosticEngine().errorCount();
  for (const ast::Expr *each : targets) {
    if (frame().isPython() && emit.diagnosticEngine().errorCount() != errorsBefore)
      return; // what follows a failure is not assigned
    const auto *rest = llvm::dyn_cast<ast::Starred>(each);
    if (!rest) {
      assignTarget(each, *next++);
      continue;
    }
    assignTarget(rest->value, LangValue::list({next, next + (given - fixed)}));
    next += given - fixed;
  }
}

} // namespace ditron::frontend
