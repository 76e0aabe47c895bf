//===- Aggregates.cpp - Classes of kernel files: declaration and fields --------------------------------------------===//
//
// Executes class statements: bases, fields, methods. Checks the values of fields by their
// annotations, and assigns them where that is allowed.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Aggregates.h"

#include "ditron/frontend/Evaluator.h"
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

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Declaration
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Evaluator::defineClass(const ast::ClassDef *node) {
  auto info = std::make_shared<ClassInfo>();
  info->name = node->name.text.str();
  info->range = node->name.range;
  info->environment = frame().environment;
  auto isDecorated = [&](llvm::StringRef name) {
    return llvm::any_of(node->decorators, [&](const ast::Expr *each) { return nameOfDefinition(each) == name; });
  };
  bool isAggregate = isDecorated("aggregate") || isDecorated("_aggregate");
  for (const ast::Expr *base : node->bases) {
    std::string name = nameOfDefinition(base);
    if (name == "object")
      continue;
    if (name == "NamedTuple") {
      info->isNamedTuple = true;
      continue;
    }
    info->isEnum |= name == "Enum";
    LangValue value = evaluateQuietly(base);
    const auto *cls = value.getIf<ClassValue>();
    std::shared_ptr<const ClassInfo> parent = cls ? cls->info : nullptr;
    if (isAggregate && (!parent || parent->isNamedTuple || parent->isPlain)) {
      return fail(base->range,
                  fmt::format("Aggregates can only inherit from other aggregates, but '{}' is none", unparse(base)));
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
  info->isPlain = !isAggregate && !info->isNamedTuple;
  environments.push_back(frame().environment);
  addClassMembers(*info, node);
  return LangValue(ClassValue{std::move(info)});
}

void Evaluator::addClassMembers(ClassInfo &info, const ast::ClassDef *node) {
  for (const ast::Stmt *statement : node->body) {
    if (const auto *annotated = llvm::dyn_cast<ast::AnnAssign>(statement)) {
      const auto *name = llvm::dyn_cast<ast::Name>(annotated->target);
      if (!name)
        continue;
      ClassField field{name->id.str(), name->range, annotated->annotation, annotated->value, info.environment};
      if (auto index = info.indexOf(field.name))
        info.fields[*index] = std::move(field);
      else
        info.fields.push_back(std::move(field));
    } else if (const auto *function = llvm::dyn_cast<ast::FunctionDef>(statement)) {
      LangValue defined = defineFunction(function);
      const auto *value = defined.getIf<FunctionValue>();
      if (!value)
        continue;
      ClassMethod method;
      method.function = *value;
      auto isDecorated = [&](llvm::StringRef name) {
        return llvm::any_of(function->decorators, [&](const ast::Expr *each) { return nameOfDefinition(each) == name; });
      };
      method.isStatic = isDecorated("staticmethod");
      method.isClass = isDecorated("classmethod");
      method.owner = &info;
      info.methods[function->name.text] = method;
    } else if (const auto *assign = llvm::dyn_cast<ast::Assign>(statement)) {
      for (const ast::Expr *target : assign->targets)
        if (const auto *name = llvm::dyn_cast<ast::Name>(target))
          info.constants[name->id] = assign->value;
    }
  }
}

std::shared_ptr<const ClassInfo> Evaluator::namedTupleOf(const ast::Call *call) {
  std::string callee = nameOfDefinition(call->callee);
  if ((callee != "namedtuple" && callee != "NamedTuple") || call->args.size() < 2)
    return nullptr;
  auto [it, isNew] = namedTuples.try_emplace(call, nullptr);
  if (!isNew)
    return it->second;
  auto info = std::make_shared<ClassInfo>();
  info->range = call->range;
  info->environment = frame().environment;
  info->isNamedTuple = true;
  auto text = [](const ast::Expr *expression) -> std::optional<std::string> {
    const auto *constant = llvm::dyn_cast<ast::Constant>(expression);
    return constant && constant->value->isStr() ? std::optional(constant->value->getString()) : std::nullopt;
  };
  info->name = text(call->args[0]).value_or("namedtuple");
  auto add = [&](std::string name) { info->fields.push_back({std::move(name), call->range, nullptr, nullptr, info->environment}); };
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
  return namedTuples[call] = info;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Fields
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Evaluator::checkField(const ClassInfo &cls, size_t index, const LangValue &value, SourceRange range) {
  const ClassField &field = cls.fields[index];
  if (value.isPoison() || cls.isNamedTuple || !field.annotation)
    return value;
  std::string text = annotationText(field.annotation);
  FieldKind kind = FieldKind::Any;
  std::shared_ptr<const ClassInfo> expected;
  llvm::StringRef name = lastComponent(text);
  LangValue annotated = quietlyIn(field.names, [&] { return evaluateQuietly(field.annotation); });
  if (const auto *builtin = annotated.getIf<BuiltinValue>())
    name = builtin->builtin->name;
  if (name == "constexpr")
    kind = FieldKind::Constexpr;
  else if (name == "tensor")
    kind = FieldKind::Tensor;
  else if (name == "tuple")
    kind = FieldKind::Tuple;
  else if ((expected = annotatedClass(field.annotation, field.names)))
    kind = FieldKind::Class;
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

LangValue Evaluator::quietlyIn(const std::shared_ptr<Environment> &names, llvm::function_ref<LangValue()> body) {
  if (!names)
    return LangValue::poison();
  frames.push_back(pythonFrame(names));
  LangValue value = body();
  frames.pop_back();
  return value;
}

std::shared_ptr<const ClassInfo> Evaluator::annotatedClass(const ast::Expr *annotation,
                                                          const std::shared_ptr<Environment> &names) {
  const auto *text = llvm::dyn_cast_or_null<ast::Constant>(annotation);
  LangValue value = quietlyIn(names, [&] {
    if (!text || !text->value->isStr())
      return annotation ? evaluateQuietly(annotation) : LangValue::poison();
    // An annotation in quotes is a name.
    ast::Name name;
    name.id = text->value->getString();
    name.range = text->range;
    return evaluateQuietly(&name);
  });
  const auto *cls = value.getIf<ClassValue>();
  return cls && !cls->info->isPlain ? cls->info : nullptr;
}

LangValue Evaluator::withField(const LangValue &instance, llvm::StringRef name, const LangValue &value,
                              SourceRange range) {
  const ClassInfo &cls = *instance.classInfo();
  auto index = cls.indexOf(name);
  if (!index)
    return emit.fail(range, fmt::format("{} has no field '{}'", instance.describe(), name.str()));
  std::vector<LangValue> parts = instance.parts();
  parts[*index] = checkField(cls, *index, value, range);
  return instance.withParts(std::move(parts));
}

LangValue Evaluator::replaceFields(llvm::ArrayRef<CallArgument> arguments, SourceRange range) {
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

void Evaluator::assignAttribute(const ast::Attribute *target, const LangValue &value) {
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
