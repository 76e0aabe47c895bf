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
#include "llvm/ADT/StringSet.h"
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

/// Python's order of the bases (the C3 linearization): a class before its bases, and bases as they are written. Empty if
/// there is none.
static std::vector<const ClassInfo *> orderOf(const ClassInfo &info) {
  std::vector<std::vector<const ClassInfo *>> rest;
  for (const auto &base : info.bases)
    rest.push_back(base->order);
  rest.emplace_back();
  for (const auto &base : info.bases)
    rest.back().push_back(base.get());
  std::vector<const ClassInfo *> order = {&info};
  while (llvm::any_of(rest, [](const auto &list) { return !list.empty(); })) {
    const ClassInfo *next = nullptr;
    for (const auto &list : rest) {
      auto isInTail = [&](const auto &other) { return llvm::is_contained(llvm::drop_begin(other, other.empty() ? 0 : 1), list.front()); };
      if (!list.empty() && llvm::none_of(rest, isInTail)) {
        next = list.front();
        break;
      }
    }
    if (!next)
      return {};
    order.push_back(next);
    for (auto &list : rest)
      if (!list.empty() && list.front() == next)
        list.erase(list.begin());
  }
  return order;
}

bool Evaluator::addBase(ClassInfo &info, const ast::Expr *base, bool isAggregate) {
  const std::string name = nameOfDefinition(base);
  static const llvm::StringSet<> withoutMeaning = {"object", "ABC", "Protocol", "Generic"};
  static const llvm::StringSet<> enumerations = {"Enum", "IntEnum", "StrEnum", "IntFlag", "Flag"};
  const auto *subscript = llvm::dyn_cast<ast::Subscript>(base); // Generic[T]
  if (withoutMeaning.contains(name) || (subscript && withoutMeaning.contains(ast::lastName(subscript->value))))
    return true;
  if (name == "NamedTuple")
    return info.isNamedTuple = true;
  LangValue value = evaluateQuietly(base);
  const auto *cls = value.getIf<ClassValue>();
  if (!cls && enumerations.contains(name)) {
    info.isEnum = true;
    info.showsNumber |= name != "Enum" && name != "Flag";
    if (llvm::StringRef(name).starts_with("Int"))
      info.nativeBase = "int";
    else if (name == "StrEnum")
      info.nativeBase = "str";
    info.isOpaque |= name == "Flag";
    if (name == "IntFlag")
      info.combinations = std::make_shared<std::map<int64_t, LangValue>>();
    return true;
  }
  std::shared_ptr<const ClassInfo> parent = cls ? cls->info : nullptr;
  if (isAggregate && (!parent || parent->isNamedTuple || parent->isPlain)) {
    fail(base->range, fmt::format("Aggregates can only inherit from other aggregates, but '{}' is none", unparse(base)));
    return false;
  }
  if (const auto *native = value.getIf<NativeValue>(); native && native->function->isClass) {
    info.nativeBase = native->function->shortName().str();
    info.isOpaque |= !isExceptionOf(info.nativeBase, "BaseException") && info.nativeBase != "int" && info.nativeBase != "str";
    return true;
  }
  if (!parent) {
    info.isOpaque = true;
    return true;
  }
  info.isNamedTuple |= parent->isNamedTuple;
  info.isEnum |= parent->isEnum;
  info.isOpaque |= parent->isOpaque;
  info.showsNumber |= parent->showsNumber;
  if (parent->combinations)
    info.combinations = std::make_shared<std::map<int64_t, LangValue>>();
  if (info.nativeBase.empty())
    info.nativeBase = parent->nativeBase;
  info.bases.push_back(parent);
  for (const ClassField &field : parent->fields)
    if (!info.indexOf(field.name))
      info.fields.push_back(field);
  return true;
}

LangValue Evaluator::defineClass(const ast::ClassDef *node) {
  auto info = std::make_shared<ClassInfo>();
  info->name = node->name.text.str();
  info->qualifiedName = frame().environment->qualifier + info->name;
  info->range = node->name.range;
  info->environment = frame().environment;
  info->evaluator = this;
  bool isAggregate = llvm::any_of(node->decorators, [&](const ast::Expr *each) {
    std::string name = nameOfDefinition(each);
    return name == "aggregate" || name == "_aggregate";
  });
  for (const ast::Expr *base : node->bases)
    if (!addBase(*info, base, isAggregate))
      return LangValue::poison();
  info->isPlain = !isAggregate && !info->isNamedTuple;
  info->isOpaque |= !node->keywords.empty() || (info->isPlain && !info->isEnum && (info->nativeBase == "int" || info->nativeBase == "str"));
  info->order = orderOf(*info);
  if (info->order.empty())
    return fail(node->name.range, "Cannot create a consistent method resolution order (MRO) for the bases");
  for (const ClassInfo *base : llvm::reverse(llvm::drop_begin(info->order)))
    for (const auto &[name, method] : base->methods)
      info->methods[name] = method;
  environments.push_back(frame().environment);
  runClassBody(*info, node);
  if (info->isEnum)
    makeEnumMembers(info);
  for (const ClassInfo *base : llvm::drop_begin(info->order))
    if (const Binding *hook = base->members ? base->members->find("__init_subclass__") : nullptr)
      if (const auto *function = hook->value.getIf<FunctionValue>()) {
        LangValue done = call(LangValue(*function), {LangValue(ClassValue{info})}, {}, node->name.range);
        if (done.isPoison())
          return done;
        break;
      }
  LangValue result(ClassValue{info});
  for (const auto &[name, binding] : std::vector(info->members->names.begin(), info->members->names.end()))
    if (std::optional<LangValue> done = callProtocol(binding.value, "__set_name__", {result, LangValue::string(name.str())}, binding.range))
      if (done->isPoison())
        return *done;
  for (const ast::Expr *decorator : llvm::reverse(node->decorators))
    result = decorateClass(decorator, std::move(result), *info);
  return result;
}

void Evaluator::runClassBody(ClassInfo &info, const ast::ClassDef *node) {
  info.members = std::make_shared<Environment>();
  info.members->file = frame().environment->file;
  info.members->parent = frame().environment;
  info.members->qualifier = info.qualifiedName + ".";
  info.members->isClass = true;
  environments.push_back(info.members);
  const size_t stepsBefore = steps;
  frames.push_back(pythonFrame(info.members));
  frame().isTolerant = true;
  runPython(node->body);
  frames.pop_back();
  steps += stepsBefore; // each tolerant statement begins anew
  for (const auto &[name, binding] : info.members->names) {
    const auto *function = binding.value.getIf<FunctionValue>();
    if (!function) {
      info.methods.erase(name);
      continue;
    }
    ClassMethod &method = info.methods[name];
    method.function = *function;
    method.isStatic = function->binding == FunctionValue::Binding::Static;
    method.isClass = function->binding == FunctionValue::Binding::Class;
    method.owner = &info;
  }
  addFields(info, node);
}

void Evaluator::addFields(ClassInfo &info, const ast::ClassDef *node) {
  for (const ast::Stmt *statement : node->body) {
    const auto *annotated = llvm::dyn_cast<ast::AnnAssign>(statement);
    const auto *name = annotated ? llvm::dyn_cast<ast::Name>(annotated->target) : nullptr;
    if (!name)
      continue;
    const auto *subscript = llvm::dyn_cast_or_null<ast::Subscript>(annotated->annotation);
    if (ast::lastName(subscript ? subscript->value : annotated->annotation) == "ClassVar")
      continue;
    ClassField field{name->id.str(), name->range, annotated->annotation, annotated->value, info.members};
    if (const Binding *initial = annotated->value ? info.members->find(name->id) : nullptr)
      field.initial = initial->value;
    if (auto index = info.indexOf(field.name))
      info.fields[*index] = std::move(field);
    else
      info.fields.push_back(std::move(field));
  }
}

/// The value of enum.auto(): one more than the greatest number so far; of a StrEnum, the name in small letters.
static LangValue automaticValue(const ClassInfo &info, llvm::StringRef name, int64_t greatest) {
  if (info.nativeBase == "str")
    return LangValue::string(name.lower());
  return LangValue::integer(greatest + 1);
}

void Evaluator::makeEnumMembers(const std::shared_ptr<ClassInfo> &info) {
  int64_t greatest = 0;
  std::vector<LangValue> members;
  for (auto &[name, binding] : info->members->names) {
    LangValue &value = binding.value;
    if (name.starts_with("_") || isCallable(value) || value.isUnknown() || value.is<ClassValue>())
      continue;
    if (value.object() && value.object()->type == "enum.auto")
      value = automaticValue(*info, name, greatest);
    if (value.isConstant() && value.constant().isIntegral())
      greatest = std::max(greatest, value.constant().toInt64().value_or(greatest));
    auto known = llvm::find_if(members, [&](const LangValue &each) { return each.instance()->attributes.lookup("value").equals(value); });
    if (known != members.end()) { // another name of the same member
      value = *known;
      continue;
    }
    info->isOpaque |= info->methods.count("__init__") != 0;
    auto member = std::make_shared<Instance>();
    member->cls = info;
    for (llvm::StringRef key : {"value", "_value_"})
      member->attributes[key] = value;
    for (llvm::StringRef key : {"name", "_name_"})
      member->attributes[key] = LangValue::string(name.str());
    if (!info->nativeBase.empty())
      member->number = value;
    members.emplace_back(std::move(member));
    value = members.back();
  }
}

LangValue Evaluator::decorateClass(const ast::Expr *decorator, LangValue decorated, ClassInfo &info) {
  const auto *written = llvm::dyn_cast<ast::Call>(decorator);
  LangValue callee = evaluateQuietly(written ? written->callee : decorator);
  const std::string name = nameOfDefinition(decorator);
  static const llvm::StringSet<> withoutEffect = {"unique", "final", "runtime_checkable", "verify"};
  if (callee.is<BuiltinValue>() || name == "aggregate" || name == "_aggregate" || withoutEffect.contains(name))
    return decorated;
  if (name == "dataclass") {
    DataclassOptions options;
    for (const ast::Keyword &keyword : written ? written->keywords : llvm::ArrayRef<ast::Keyword>()) {
      const auto *value = llvm::dyn_cast<ast::Constant>(keyword.value);
      const bool isSet = value && value->value->isTrue();
      if (keyword.name.text == "frozen")
        options.isFrozen = isSet;
      else if (keyword.name.text == "order")
        options.order = isSet;
      else if (keyword.name.text == "eq")
        options.eq = isSet;
      else if (keyword.name.text == "repr")
        options.repr = isSet;
      else
        info.isOpaque |= keyword.name.text != "slots" && isSet;
    }
    info.dataclass = options;
    return decorated;
  }
  if (callee.is<FunctionValue>() || callee.is<LambdaValue>() || (callee.is<NativeValue>() && !info.isOpaque && name != "total_ordering")) {
    LangValue function = written ? evaluateTolerantly(decorator) : callee;
    LangValue result = function.isUnknown() ? function : call(function, {decorated}, {}, decorator->range);
    return result.isPoison() || result.isUnknown() ? decorated : result;
  }
  info.isOpaque = true; // what it makes of the class nobody knows
  return decorated;
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
  info->order = {info.get()};
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
  for (const ast::Keyword &keyword : call->keywords) {
    LangValue values = keyword.name.text == "defaults" ? evaluateTolerantly(keyword.value) : LangValue::poison();
    if (const auto *initial = values.sequence(); initial && initial->size() <= info->fields.size())
      for (size_t i = 0; i < initial->size(); ++i)
        info->fields[info->fields.size() - initial->size() + i].initial = (*initial)[i];
  }
  info->qualifiedName = info->name;
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
  auto index = instance.isCompound() ? cls.indexOf(name) : std::nullopt;
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
  if (object.instance() || (object.is<ClassValue>() && frame().isPython())) {
    setAttribute(object, target->attr.text, value, target->range);
    return;
  }
  if (object.isUnknown() && frame().isPython())
    return;
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
