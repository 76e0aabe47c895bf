//===- Aggregates.cpp - Classes of kernel files: declaration and fields --------------------------------------------===//
//
// Reads class statements when a kernel first uses them: bases, fields, methods. Checks the values of fields by their
// annotations, and assigns them where that is allowed.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Aggregates.h"

#include "ditron/frontend/Importer.h"
#include "ditron/frontend/syntax/AstPrinter.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::frontend {
namespace {

/// What an annotation of a field asks of its value.
enum class FieldKind { Any, Tensor, Constexpr, Tuple, Class };

/// An annotation as text; annotations may be written as strings.
std::string annotationText(const ast::Expr *annotation) {
  const auto *constant = llvm::dyn_cast_or_null<ast::Constant>(annotation);
  if (constant && constant->value->isStr())
    return constant->value->getString();
  return annotation ? unparse(annotation) : "";
}

llvm::StringRef lastComponent(llvm::StringRef dotted) {
  return dotted.rsplit('.').second.empty() ? dotted : dotted.rsplit('.').second;
}

/// The name at the end of a decorator or base class, without its arguments: `aggregate` of `@tl.core.aggregate`. A name
/// that the file imports under another one is followed.
std::string plainName(const ast::Expr *expression, const ModuleScope *scope) {
  if (const auto *call = llvm::dyn_cast<ast::Call>(expression))
    expression = call->callee;
  if (const auto *name = llvm::dyn_cast<ast::Name>(expression)) {
    const GlobalBinding *binding = scope->find(name->id);
    if (binding && binding->kind == GlobalBinding::Kind::Import) {
      if (const auto *builtin = binding->imported.getIf<BuiltinValue>())
        return builtin->builtin->name.str();
      if (const auto *foreign = binding->imported.getIf<ForeignValue>(); foreign && !foreign->name.empty())
        return foreign->name;
      if (!binding->importedName.empty())
        return binding->importedName;
    }
    return name->id.str();
  }
  if (const auto *attribute = llvm::dyn_cast<ast::Attribute>(expression))
    return attribute->attr.text.str();
  return "";
}

bool hasDecorator(llvm::ArrayRef<ast::Expr *> decorators, const ModuleScope *scope, llvm::StringRef name) {
  return llvm::any_of(decorators, [&](const ast::Expr *each) { return plainName(each, scope) == name; });
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Declaration
//===------------------------------------------------------------------------------------------------------------------===//

std::shared_ptr<const ClassInfo> Importer::classOf(const ast::ClassDef *node, const ModuleScope *scope,
                                                   SourceRange use) {
  auto [it, isNew] = classes.try_emplace(node, nullptr);
  if (!isNew) // null: it could not be used, which was reported, or it is among its own bases
    return it->second;
  auto info = std::make_shared<ClassInfo>();
  info->name = node->name.text.str();
  info->range = node->name.range;
  info->scope = scope;
  bool isAggregate =
      hasDecorator(node->decorators, scope, "aggregate") || hasDecorator(node->decorators, scope, "_aggregate");
  for (const ast::Expr *base : node->bases) {
    std::string name = plainName(base, scope);
    if (name == "object")
      continue;
    if (name == "NamedTuple") {
      info->isNamedTuple = true;
      continue;
    }
    const ImportedName definition = definitionOf(*scope, base);
    const GlobalBinding *binding = definition.binding;
    std::shared_ptr<const ClassInfo> parent;
    if (binding && binding->kind == GlobalBinding::Kind::Class &&
        (isKernelClass(binding->classDef, definition.scope) || !isAggregate))
      parent = classOf(binding->classDef, definition.scope, use);
    if (isAggregate && (!parent || parent->isNamedTuple)) {
      emit.error(base->range,
                 fmt::format("Aggregates can only inherit from other aggregates, but '{}' is none", unparse(base)));
      return nullptr;
    }
    if (!parent)
      break;
    info->isNamedTuple |= parent->isNamedTuple;
    info->bases.push_back(parent);
    for (const ClassField &field : parent->fields)
      if (!info->indexOf(field.name))
        info->fields.push_back(field);
    for (const auto &[method, definition] : parent->methods)
      info->methods[method] = definition;
    for (const auto &[constant, value] : parent->constants)
      info->constants[constant] = value;
  }
  if (!isAggregate && !info->isNamedTuple) {
    emit.error(use,
               fmt::format("class '{}' cannot be used in a kernel: it is neither decorated with @triton.aggregate nor "
                           "a NamedTuple",
                           info->name))
        .note(node->name.range, "declared here");
    return nullptr;
  }
  for (const ast::Stmt *statement : node->body) {
    if (const auto *annotated = llvm::dyn_cast<ast::AnnAssign>(statement)) {
      const auto *name = llvm::dyn_cast<ast::Name>(annotated->target);
      if (!name)
        continue;
      ClassField field{name->id.str(), name->range, annotated->annotation, annotated->value, scope};
      if (auto index = info->indexOf(field.name))
        info->fields[*index] = std::move(field);
      else
        info->fields.push_back(std::move(field));
    } else if (const auto *function = llvm::dyn_cast<ast::FunctionDef>(statement)) {
      ClassMethod method;
      method.function = FunctionValue{function, scope->isJit(function), scope};
      method.isStatic = hasDecorator(function->decorators, scope, "staticmethod");
      method.isClass = hasDecorator(function->decorators, scope, "classmethod");
      method.owner = info.get();
      info->methods[function->name.text] = method;
    } else if (const auto *assign = llvm::dyn_cast<ast::Assign>(statement)) {
      for (const ast::Expr *target : assign->targets)
        if (const auto *name = llvm::dyn_cast<ast::Name>(target))
          info->constants[name->id] = assign->value;
    }
  }
  return classes[node] = info;
}

bool Importer::isKernelClass(const ast::ClassDef *node, const ModuleScope *scope) {
  return hasDecorator(node->decorators, scope, "aggregate") || hasDecorator(node->decorators, scope, "_aggregate") ||
         llvm::any_of(node->bases, [&](const ast::Expr *base) { return plainName(base, scope) == "NamedTuple"; });
}

std::shared_ptr<const ClassInfo> Importer::namedTupleOf(const ast::Call *call, const ModuleScope *scope) {
  std::string callee = plainName(call->callee, scope);
  if ((callee != "namedtuple" && callee != "NamedTuple") || call->args.size() < 2)
    return nullptr;
  auto [it, isNew] = classes.try_emplace(call, nullptr);
  if (!isNew)
    return it->second;
  auto info = std::make_shared<ClassInfo>();
  info->range = call->range;
  info->scope = scope;
  info->isNamedTuple = true;
  auto text = [](const ast::Expr *expression) -> std::optional<std::string> {
    const auto *constant = llvm::dyn_cast<ast::Constant>(expression);
    return constant && constant->value->isStr() ? std::optional(constant->value->getString()) : std::nullopt;
  };
  info->name = text(call->args[0]).value_or("namedtuple");
  auto add = [&](std::string name) { info->fields.push_back({std::move(name), call->range, nullptr, nullptr, scope}); };
  ast::ExprList items;
  if (const auto *list = llvm::dyn_cast<ast::List>(call->args[1]))
    items = list->elements;
  else if (const auto *tuple = llvm::dyn_cast<ast::Tuple>(call->args[1]))
    items = tuple->elements;
  else if (auto names = text(call->args[1])) { // "a b" or "a, b"
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::SplitString(*names, parts, " ,\t\n");
    for (llvm::StringRef part : parts)
      add(part.str());
  }
  for (const ast::Expr *item : items) {
    // typing.NamedTuple takes pairs of name and type.
    if (const auto *pair = llvm::dyn_cast<ast::Tuple>(item); pair && !pair->elements.empty())
      item = pair->elements.front();
    if (auto name = text(item))
      add(*name);
  }
  return classes[call] = info;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Fields
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Importer::checkField(const ClassInfo &cls, size_t index, const LangValue &value, SourceRange range) {
  const ClassField &field = cls.fields[index];
  if (value.isPoison() || cls.isNamedTuple || !field.annotation)
    return value;
  std::string text = annotationText(field.annotation);
  FieldKind kind = FieldKind::Any;
  std::shared_ptr<const ClassInfo> expected;
  llvm::StringRef name = lastComponent(text);
  std::string resolved = llvm::isa<ast::Name>(field.annotation) ? plainName(field.annotation, field.scope) : name.str();
  if (resolved == "constexpr")
    kind = FieldKind::Constexpr;
  else if (resolved == "tensor")
    kind = FieldKind::Tensor;
  else if (resolved == "tuple")
    kind = FieldKind::Tuple;
  else if (const auto *binding = field.scope->find(text);
           binding && binding->kind == GlobalBinding::Kind::Class && isKernelClass(binding->classDef, field.scope)) {
    kind = FieldKind::Class;
    expected = classOf(binding->classDef, field.scope, field.range);
  } else if (ImportedName definition = definitionOf(*field.scope, field.annotation);
             definition.binding && definition.binding->kind == GlobalBinding::Kind::Class &&
             isKernelClass(definition.binding->classDef, definition.scope)) {
    kind = FieldKind::Class;
    expected = classOf(definition.binding->classDef, definition.scope, field.range);
  }
  bool isGood = true;
  switch (kind) {
  case FieldKind::Any: break;
  case FieldKind::Tensor:
    if (value.isLiteral())
      return emit.toTensor(value, range);
    isGood = value.isTensor();
    break;
  case FieldKind::Constexpr: isGood = value.isCompileTime(); break;
  case FieldKind::Tuple: isGood = value.isTuple(); break;
  case FieldKind::Class:
    isGood = !expected || (value.classInfo() && value.classInfo()->isOrInherits(expected.get()));
    break;
  }
  if (isGood)
    return value;
  emit.error(range, fmt::format("field '{}' of aggregate '{}' expects {}, but got {}", field.name, cls.name, text,
                                value.describe()))
      .note(field.range, "the field is declared here");
  return LangValue::poison();
}

LangValue Importer::withField(const LangValue &instance, llvm::StringRef name, const LangValue &value,
                              SourceRange range) {
  const ClassInfo &cls = *instance.classInfo();
  auto index = cls.indexOf(name);
  if (!index)
    return emit.fail(range, fmt::format("{} has no field '{}'", instance.describe(), name.str()));
  std::vector<LangValue> parts = instance.parts();
  parts[*index] = checkField(cls, *index, value, range);
  return instance.withParts(std::move(parts));
}

LangValue Importer::replaceFields(llvm::ArrayRef<CallArgument> arguments, SourceRange range) {
  LangValue result;
  bool hasInstance = false;
  for (const CallArgument &argument : arguments) {
    if (!hasInstance && (argument.keyword.empty() || argument.keyword == "instance")) {
      result = argument.value;
      hasInstance = true;
      if (!result.classInfo())
        return emit.fail(argument.range, fmt::format("tl.aggregate_replace expects an aggregate instance, but got {}",
                                                     result.describe()));
      continue;
    }
    if (!hasInstance || argument.keyword.empty())
      return emit.fail(argument.range, "tl.aggregate_replace takes one aggregate and fields by name");
    if (!result.classInfo()->indexOf(argument.keyword))
      return emit.fail(argument.keywordRange,
                       fmt::format("{} has no field '{}'", result.describe(), argument.keyword.str()));
    result = withField(result, argument.keyword, argument.value, argument.range);
    if (result.isPoison())
      return result;
  }
  return hasInstance ? result : emit.fail(range, "tl.aggregate_replace expects an aggregate instance");
}

void Importer::assignAttribute(const ast::Attribute *target, const LangValue &value) {
  LangValue object = evaluate(target->value);
  if (object.isPoison())
    return;
  const auto *name = llvm::dyn_cast<ast::Name>(target->value);
  if (!object.isAggregate()) {
    emit.error(target->range, fmt::format("cannot assign to an attribute of {}; only to names and tuples of names",
                                          object.describe()));
    return;
  }
  // A method may change its own instance, which is a value: the caller sees the change in what the method returns.
  if (!name || frame().self.empty() || name->id != frame().self) {
    emit.error(target->range, fmt::format("cannot assign to field '{}' on immutable aggregate '{}'",
                                          target->attr.text.str(), object.classInfo()->name))
        .hint(fmt::format("make a changed copy: tl.aggregate_replace(instance, {}=...)", target->attr.text.str()));
    return;
  }
  LangValue changed = withField(object, target->attr.text, value, target->attr.range);
  if (!changed.isPoison())
    assignName(name->id, std::move(changed), name->range);
}

} // namespace ditron::frontend
