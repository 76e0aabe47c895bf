//===- AggregateCalls.cpp - Classes of kernel files: construction and methods --------------------------------------===//
//
// Builds instances, by the constructor that the fields imply or by the class's own __init__, which is executed at compile
// time on an instance without fields yet. Finds and calls methods.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/builtins/BuiltinHandlers.h"
#include "ditron/support/Plural.h"

#include <fmt/format.h>

namespace ditron::frontend {

LangValue Evaluator::construct(const std::shared_ptr<const ClassInfo> &cls, llvm::ArrayRef<CallArgument> arguments,
                              SourceRange range) {
  auto instanceOf = [&](std::vector<LangValue> parts) {
    auto shared = std::make_shared<const std::vector<LangValue>>(std::move(parts));
    return cls->isNamedTuple ? LangValue(TupleValue{std::move(shared), cls})
                             : LangValue(AggregateValue{cls, std::move(shared)});
  };
  const ClassMethod *initializer = cls->isNamedTuple ? nullptr : cls->method("__init__");
  size_t errorsBefore = emit.diagnosticEngine().errorCount();
  if (initializer) {
    LangValue self = instanceOf(std::vector<LangValue>(cls->fields.size()));
    return initialize(*initializer, self, arguments, range, errorsBefore);
  }
  std::vector<LangValue> values(cls->fields.size());
  std::vector<bool> isSet(cls->fields.size());
  auto reject = [&](SourceRange place, std::string message) {
    emit.error(place, std::move(message)).note(cls->range, "the class is declared here");
    return LangValue::poison();
  };
  size_t next = 0;
  for (const CallArgument &argument : arguments) {
    std::optional<size_t> index = next;
    if (!argument.keyword.empty()) {
      index = cls->indexOf(argument.keyword);
      if (!index)
        return reject(argument.keywordRange,
                      fmt::format("class '{}' has no field '{}'", cls->name, argument.keyword.str()));
      if (isSet[*index])
        return reject(argument.keywordRange,
                      fmt::format("field '{}' of class '{}' is given twice", argument.keyword.str(), cls->name));
    } else if (next++ >= values.size()) {
      return reject(argument.range, fmt::format("class '{}' has {}, but more values are given", cls->name,
                                                plural(values.size(), "field")));
    }
    values[*index] = checkField(*cls, *index, argument.value, argument.range);
    isSet[*index] = true;
  }
  for (auto [index, field] : llvm::enumerate(cls->fields)) {
    if (isSet[index])
      continue;
    if (field.initial.isPoison())
      return reject(range, fmt::format("class '{}' needs a value for field '{}'", cls->name, field.name));
    LangValue initial = field.initial.isUnknown() && !frame().isPython() ? reportUnknown(field.initial, field.name, range) : field.initial;
    values[index] = checkField(*cls, index, initial, range);
  }
  if (llvm::any_of(values, [](const LangValue &value) { return value.isPoison(); }))
    return LangValue::poison();
  LangValue instance = instanceOf(std::move(values));
  if (const ClassMethod *after = cls->isNamedTuple ? nullptr : cls->method("__post_init__"))
    return initialize(*after, instance, {}, range, errorsBefore);
  return instance;
}

LangValue Evaluator::initialize(const ClassMethod &method, const LangValue &instance,
                               llvm::ArrayRef<CallArgument> arguments, SourceRange range, size_t errorsBefore) {
  llvm::SmallVector<CallArgument> all{CallArgument{"", instance, range, {}, false}};
  all.append(arguments.begin(), arguments.end());
  LangValue result = instance;
  CallOptions options;
  options.isPython = !method.function.isJit;
  options.bindsSelf = true;
  options.selfAfter = &result;
  options.owner = method.owner;
  enterFunction(method.function, all, range, options);
  if (isStopped || !result.isAggregate())
    return LangValue::poison();
  for (auto [field, value] : llvm::zip_equal(result.classInfo()->fields, result.parts())) {
    if (!value.isPoison())
      continue;
    if (emit.diagnosticEngine().errorCount() == errorsBefore)
      emit.error(range, fmt::format("'{}' of class '{}' leaves field '{}' without a value",
                                    method.function.node->name.text.str(), result.classInfo()->name, field.name))
          .note(field.range, "the field is declared here");
    return LangValue::poison();
  }
  return result;
}

/// `_fields` of a NamedTuple.
static LangValue fieldNames(const ClassInfo &cls) {
  std::vector<LangValue> names;
  for (const ClassField &field : cls.fields)
    names.push_back(LangValue::string(field.name));
  return LangValue::tuple(std::move(names));
}

LangValue Evaluator::instanceAttribute(const LangValue &value, llvm::StringRef name) {
  const ClassInfo &cls = *value.classInfo();
  if (auto index = cls.indexOf(name))
    return value.parts()[*index];
  if (cls.isNamedTuple && name == "_replace")
    return LangValue(MethodValue{nullptr, "_replace", std::make_shared<const LangValue>(value), {}, nullptr});
  if (cls.isNamedTuple && name == "_asdict")
    return LangValue(MethodValue{nullptr, "_asdict", std::make_shared<const LangValue>(value), {}, nullptr});
  const ClassMethod *method = cls.method(name);
  if (method && method->function.binding == FunctionValue::Binding::Property)
    return callMethod(MethodValue{nullptr, method->function.node->name.text, std::make_shared<const LangValue>(value), method->function,
                                  nullptr}, method->function.node->headerRange, {}, method->function.node->headerRange);
  if (method && !method->isStatic && !method->isClass)
    return LangValue(MethodValue{nullptr, method->function.node->name.text, std::make_shared<const LangValue>(value),
                                 method->function, nullptr});
  if (const auto *tuple = value.getIf<TupleValue>())
    return classAttribute(tuple->cls, name);
  return classAttribute(value.getIf<AggregateValue>()->cls, name);
}

LangValue Evaluator::classAttribute(const std::shared_ptr<const ClassInfo> &cls, llvm::StringRef name) {
  if (name == "__name__" || name == "__qualname__")
    return LangValue::string(name == "__name__" ? cls->name : cls->qualifiedName);
  if (name == "__mro__" || name == "__bases__") {
    if (name == "__mro__" || cls->bases.empty())
      return unknown(cls->range, fmt::format("{}.{}", cls->name, name.str()));
    std::vector<LangValue> bases;
    for (const auto &base : cls->bases)
      bases.push_back(LangValue(ClassValue{base}));
    return LangValue::tuple(std::move(bases));
  }
  if (cls->isNamedTuple && name == "_fields")
    return fieldNames(*cls);
  if (cls->isNamedTuple && (name == "_make" || name == "_field_defaults"))
    return unknown(cls->range, fmt::format("{}.{}", cls->name, name.str()));
  const ClassMethod *method = cls->method(name);
  const LangValue *member = cls->member(name);
  if (method && (!member || member->is<FunctionValue>())) {
    if (method->function.isJit && !method->isClass)
      return LangValue(method->function);
    return LangValue(MethodValue{nullptr, method->function.node->name.text,
                                 std::make_shared<const LangValue>(ClassValue{cls}), method->function, nullptr});
  }
  if (member)
    if (std::optional<LangValue> value = callProtocol(*member, "__get__", {LangValue::none(), LangValue(ClassValue{cls})}, cls->range))
      return *value;
  if (member)
    return frame().isPython() ? *member : toKernel(*member, cls->range);
  if (cls->isEnum && name == "__members__") {
    LangValue all = LangValue::dict();
    for (const auto &[key, binding] : cls->members->names)
      if (binding.value.instance())
        setItem(*all.getIf<DictValue>(), LangValue::string(key.str()), binding.value);
    return all;
  }
  return LangValue::poison();
}

LangValue Evaluator::callMethod(const MethodValue &method, SourceRange selfRange, llvm::ArrayRef<CallArgument> arguments,
                               SourceRange range) {
  llvm::SmallVector<CallArgument> all;
  CallOptions options;
  options.isPython = !method.function.isJit;
  const auto *cls = method.self->getIf<ClassValue>();
  const ClassInfo *info = cls ? cls->info.get() : method.self->classInfo();
  const ClassInfo *owner = nullptr; // the class whose statement holds the function, for super()
  if (info)
    for (const ClassInfo *each : info->order)
      for (const auto &[name, own] : each->methods)
        if (!owner && own.owner == each && own.function.node == method.function.node)
          owner = each;
  options.owner = owner;
  // Through the class, a plain function gets what is written; only a class method gets the class.
  if (!cls || method.function.binding == FunctionValue::Binding::Class) {
    all.push_back(CallArgument{"", *method.self, selfRange, {}, false});
    options.bindsSelf = true;
  }
  all.append(arguments.begin(), arguments.end());
  return enterFunction(method.function, all, range, options);
}

LangValue &Evaluator::selfValue() {
  return frame().isPython() ? frame().environment->names[frame().self].value : frame().locals[frame().self].value;
}

std::optional<LangValue> Evaluator::callSuper(const ast::Call *call) {
  const auto *attribute = llvm::dyn_cast<ast::Attribute>(call->callee);
  const auto *inner = attribute ? llvm::dyn_cast<ast::Call>(attribute->value) : nullptr;
  const auto *name = inner ? llvm::dyn_cast<ast::Name>(inner->callee) : nullptr;
  if (!name || name->id != "super" || !inner->args.empty() || !frame().owner || frame().self.empty())
    return std::nullopt;
  std::vector<CallArgument> arguments;
  if (!collectArguments(call, arguments))
    return LangValue::poison();
  if (LangValue self = selfValue(); self.instance() || self.is<ClassValue>())
    return callSuperOfInstance(self, attribute, arguments, call->range);
  LangValue &self = selfValue();
  for (const auto &base : frame().owner->bases) {
    if (const ClassMethod *method = base->method(attribute->attr.text)) {
      LangValue changed = self;
      CallOptions options;
      options.isPython = !method->function.isJit;
      options.bindsSelf = true;
      options.selfAfter = &changed;
      options.owner = method->owner;
      arguments.insert(arguments.begin(), CallArgument{"", self, inner->range, {}, false});
      LangValue result = enterFunction(method->function, arguments, call->range, options);
      selfValue() = std::move(changed);
      return result;
    }
    if (attribute->attr.text != "__init__")
      continue;
    // The constructor that the fields of the base imply.
    LangValue built = construct(base, arguments, call->range);
    if (built.isPoison())
      return built;
    for (auto [field, value] : llvm::zip_equal(base->fields, built.parts()))
      self = withField(self, field.name, value, call->range);
    return LangValue::none();
  }
  return emit.fail(attribute->attr.range,
                   fmt::format("no base of class '{}' has '{}'", frame().owner->name, attribute->attr.text.str()));
}

LangValue Evaluator::callSuperOfInstance(const LangValue &self, const ast::Attribute *attribute, llvm::ArrayRef<CallArgument> arguments,
                                        SourceRange range) {
  const auto *given = self.getIf<ClassValue>(); // of a class method
  const ClassInfo *cls = given ? given->info.get() : self.classInfo();
  llvm::StringRef name = attribute->attr.text;
  auto next = llvm::find(cls->order, frame().owner);
  for (next = next == cls->order.end() ? next : std::next(next); next != cls->order.end(); ++next) {
    const Binding *binding = (*next)->members ? (*next)->members->find(name) : nullptr;
    if (!binding)
      continue;
    const auto *function = binding->value.getIf<FunctionValue>();
    LangValue bound = binding->value;
    if (function && function->binding != FunctionValue::Binding::Static)
      bound = LangValue(MethodValue{nullptr, function->node->name.text, std::make_shared<const LangValue>(self), *function, nullptr});
    return callValue(bound, arguments.vec(), range, range, range);
  }
  if (name == "__init__" && self.instance()) {
    std::vector<LangValue> args;
    for (const CallArgument &argument : arguments)
      args.push_back(argument.value);
    if (!cls->nativeBase.empty())
      self.instance()->attributes["args"] = LangValue::tuple(std::move(args));
    else if (!args.empty())
      return fail(range, "object.__init__() takes exactly one argument (the instance to initialize)");
    return LangValue::none();
  }
  if (name == "__init_subclass__" || name == "__post_init__")
    return LangValue::none();
  return fail(attribute->attr.range, fmt::format("'super' object has no attribute '{}'", name.str()), "AttributeError");
}

const std::shared_ptr<const ClassInfo> &constexprTypeClass() {
  static const std::shared_ptr<const ClassInfo> cls = [] {
    auto info = std::make_shared<ClassInfo>();
    info->name = "constexpr_type";
    info->isNamedTuple = true;
    info->fields.push_back({"value", {}, nullptr, nullptr, nullptr});
    return info;
  }();
  return cls;
}

std::optional<LangValue> Evaluator::callSpecialMethod(const LangValue &object, llvm::StringRef name,
                                                     llvm::ArrayRef<CallArgument> arguments, SourceRange objectRange,
                                                     SourceRange range) {
  const ClassInfo *cls = object.classInfo();
  const ClassMethod *method = cls ? cls->method(name) : nullptr;
  if (!method)
    return std::nullopt;
  MethodValue bound{nullptr, method->function.node->name.text, std::make_shared<const LangValue>(object),
                    method->function, nullptr};
  return callMethod(bound, objectRange, arguments, range);
}

namespace builtins {

LangValue aggregateReplace(Evaluator &evaluator, BuiltinCall &call, ValueArg instance) {
  return evaluator.emit.fail(call.range, "tl.aggregate_replace takes one aggregate and fields by name");
}

LangValue constexprType(Evaluator &evaluator, BuiltinCall &call, ValueArg value) {
  return LangValue(TupleValue{std::make_shared<const std::vector<LangValue>>(1, *value), constexprTypeClass()});
}

LangValue decoratorOnly(Evaluator &evaluator, BuiltinCall &call, llvm::ArrayRef<AnyArg> arguments) {
  return evaluator.emit.fail(
      call.range, fmt::format("{} is a decorator and cannot be called in a kernel", qualifiedName(*call.builtin)));
}

} // namespace builtins
} // namespace ditron::frontend
