//===- Instances.cpp - Objects of Python's own classes while compiling -----------------------------------------------------===//
//
// A class that is neither aggregate nor NamedTuple has objects of Python: attributes that anybody may change, methods found by
// Python's order of the bases, properties, and the methods of Python's protocols behind operators and functions. Dataclasses
// get what @dataclass writes for them; members of enumerations are objects that exist once. An object whose class has a base
// that nobody knows is unknown itself.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"

#include <fmt/format.h>

namespace ditron::frontend {

//===------------------------------------------------------------------------------------------------------------------===//
// Construction
//===------------------------------------------------------------------------------------------------------------------===//

/// The name of a combination of flags as Python composes it: "A|B", "A|8" with bits that no constant has; None without constants.
static LangValue nameOfFlags(const ClassInfo &cls, int64_t number) {
  std::string text;
  int64_t rest = number;
  for (const auto &[name, binding] : cls.members->names) {
    const Instance *member = binding.value.instance();
    const std::optional<int64_t> bit = member && member->cls.get() == &cls ? member->number.constant().toInt64() : std::nullopt;
    if (!bit || !llvm::has_single_bit(static_cast<uint64_t>(*bit)) || !(rest & *bit))
      continue;
    text += (text.empty() ? "" : "|") + name.str();
    rest &= ~*bit;
  }
  if (text.empty())
    return LangValue::none();
  return LangValue::string(rest ? fmt::format("{}|{}", text, rest) : text);
}

/// A number as a combination of an IntFlag's members. A negative one counts from the highest bit of all: ~F.A are the others.
static LangValue flagsOf(const std::shared_ptr<const ClassInfo> &cls, int64_t number) {
  if (number < 0) {
    int64_t all = 0;
    for (const auto &[name, binding] : cls->members->names)
      if (const Instance *member = binding.value.instance(); member && member->cls == cls)
        all |= member->number.constant().toInt64().value_or(0);
    const uint64_t magnitude = -static_cast<uint64_t>(number);
    number += static_cast<int64_t>(std::max(llvm::bit_ceil(static_cast<uint64_t>(all) + 1), uint64_t(1) << llvm::bit_width(magnitude)));
  }
  LangValue &flags = (*cls->combinations)[number];
  if (flags.instance())
    return flags;
  auto instance = std::make_shared<Instance>();
  instance->cls = cls;
  instance->number = LangValue::integer(number);
  for (llvm::StringRef key : {"value", "_value_"})
    instance->attributes[key] = instance->number;
  for (llvm::StringRef key : {"name", "_name_"})
    instance->attributes[key] = nameOfFlags(*cls, number);
  return flags = LangValue(instance);
}

/// The member of an enumeration with a value.
static LangValue enumMember(Evaluator &evaluator, const std::shared_ptr<const ClassInfo> &info, const LangValue &wanted, SourceRange range) {
  const ClassInfo &cls = *info;
  for (const auto &[name, binding] : cls.members->names) {
    const Instance *member = binding.value.instance();
    if (member && member->cls.get() == &cls &&
        (member->attributes.lookup("value").equals(wanted) || binding.value.identical(wanted)))
      return binding.value;
  }
  const LangValue &number = numberOf(wanted);
  if (cls.combinations && number.isConstant() && number.constant().isIntegral())
    if (std::optional<int64_t> bits = number.constant().toInt64(); bits && std::abs(*bits) < int64_t(1) << 62)
      return *bits < 0 ? enumMember(evaluator, info, numberOf(flagsOf(info, *bits)), range) : flagsOf(info, *bits);
  return evaluator.fail(range, fmt::format("{} is not a valid {}", wanted.repr(), cls.name), "ValueError");
}

LangValue Evaluator::constructInstance(const std::shared_ptr<const ClassInfo> &cls, llvm::ArrayRef<CallArgument> arguments,
                                      SourceRange range) {
  if (cls->isOpaque || cls->member("__new__"))
    return unknown(range, fmt::format("{}(...)", cls->name));
  for (const CallArgument &argument : arguments)
    if (argument.value.isPoison())
      return LangValue::poison();
  if (cls->isEnum) {
    if (arguments.size() != 1)
      return fail(range, fmt::format("{}() takes the value of a member", cls->name));
    return arguments[0].value.isUnknown() ? arguments[0].value : enumMember(*this, cls, arguments[0].value, range);
  }
  // A function that @abstractmethod left in place.
  for (const auto &[name, method] : cls->methods) {
    const LangValue *found = cls->member(name);
    const auto *function = found ? found->getIf<FunctionValue>() : nullptr;
    if (function && llvm::any_of(function->node->decorators,
                                 [&](const ast::Expr *each) { return ast::lastName(each) == "abstractmethod"; }))
      return fail(range, fmt::format("Can't instantiate abstract class {} with abstract method {}", cls->name, name.str()));
  }
  auto instance = std::make_shared<Instance>();
  instance->cls = cls;
  LangValue object(instance);
  if (!cls->nativeBase.empty()) {
    std::vector<LangValue> given;
    for (const CallArgument &argument : arguments)
      if (argument.keyword.empty())
        given.push_back(argument.value);
    instance->attributes["args"] = LangValue::tuple(std::move(given));
  }
  if (cls->member("__init__")) {
    LangValue initializer = objectAttribute(object, "__init__", range);
    LangValue done = callValue(initializer, arguments.vec(), range, range, range);
    if (done.isUnknown())
      return done;
    return done.isPoison() ? done : object;
  }
  if (cls->dataclass)
    return constructDataclass(object, arguments, range);
  if (!arguments.empty() && cls->nativeBase.empty())
    return fail(range, fmt::format("{}() takes no arguments", cls->name));
  return object;
}

/// The value that a field has without an argument; poison if it needs one.
static LangValue initialOf(Evaluator &evaluator, const ClassField &field, SourceRange range) {
  const ObjectValue *options = field.initial.object();
  if (!options || options->type != "dataclasses.Field")
    return field.initial;
  if (const LangValue *factory = find(*options, "default_factory"))
    return evaluator.call(*factory, {}, {}, range);
  const LangValue *value = find(*options, "default");
  return value ? *value : LangValue::poison();
}

/// What `field(init=False)` says.
static bool hasOption(const ClassField &field, llvm::StringRef name, bool otherwise) {
  const ObjectValue *options = field.initial.object();
  const LangValue *value = options && options->type == "dataclasses.Field" ? find(*options, name) : nullptr;
  return value && value->isConstant() ? value->constant().isTrue() : otherwise;
}

LangValue Evaluator::constructDataclass(const LangValue &object, llvm::ArrayRef<CallArgument> arguments, SourceRange range) {
  Instance &instance = *object.instance();
  const ClassInfo &cls = *instance.cls;
  std::vector<const ClassField *> positional;
  for (const ClassField &field : cls.fields)
    if (hasOption(field, "init", true) && !hasOption(field, "kw_only", false))
      positional.push_back(&field);
  size_t next = 0;
  for (const CallArgument &argument : arguments) {
    std::optional<size_t> index = argument.keyword.empty() ? std::nullopt : cls.indexOf(argument.keyword);
    const ClassField *field = index                                                    ? &cls.fields[*index]
                              : argument.keyword.empty() && next < positional.size() ? positional[next++]
                                                                                       : nullptr;
    if (!field || !hasOption(*field, "init", true))
      return fail(argument.range, argument.keyword.empty()
                                      ? fmt::format("{}() takes {} positional arguments, but more are given", cls.name, positional.size())
                                      : fmt::format("{}() got an unexpected keyword argument '{}'", cls.name, argument.keyword.str()));
    if (!instance.attributes.insert({intern(field->name), argument.value}).second)
      return fail(argument.range, fmt::format("{}() got multiple values for argument '{}'", cls.name, field->name));
  }
  Instance given = instance;
  instance.attributes.clear();
  for (const ClassField &field : cls.fields) {
    auto it = given.attributes.find(field.name);
    LangValue value = it != given.attributes.end() ? it->second : initialOf(*this, field, range);
    if (value.isPoison() && hasOption(field, "init", true))
      return fail(range, fmt::format("{}() missing a required argument: '{}'", cls.name, field.name));
    if (!value.isPoison())
      instance.attributes[intern(field.name)] = std::move(value);
  }
  if (std::optional<LangValue> after = callProtocol(object, "__post_init__", {}, range); after && after->isPoison())
    return *after;
  return object;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Attributes
//===------------------------------------------------------------------------------------------------------------------===//

/// Whether an attribute of a class is an object whose class has the method: one of a descriptor's.
static bool isDescriptor(const LangValue *member, llvm::StringRef method) {
  return member && member->instance() && member->instance()->cls->member(method);
}

LangValue Evaluator::bindMember(const LangValue &member, const LangValue &object, SourceRange range) {
  const auto *function = member.getIf<FunctionValue>();
  if (!function) {
    if (object.instance() && isDescriptor(&member, "__get__"))
      return *callProtocol(member, "__get__", {object, LangValue(ClassValue{object.instance()->cls})}, range);
    if (!member.is<LambdaValue>())
      return member;
    return call(LangValue(NativeValue{findNative("functools.partial")}), {member, object}, {}, range);
  }
  auto self = std::make_shared<const LangValue>(object);
  switch (function->binding) {
  case FunctionValue::Binding::Static: return member;
  case FunctionValue::Binding::Class:
    self = std::make_shared<const LangValue>(ClassValue{object.instance()->cls});
    [[fallthrough]];
  case FunctionValue::Binding::Method:
    return LangValue(MethodValue{nullptr, function->node->name.text, std::move(self), *function, nullptr});
  default: break;
  }
  LangValue bound(MethodValue{nullptr, function->node->name.text, self, *function, nullptr});
  LangValue value = call(bound, {}, {}, range);
  if (function->binding == FunctionValue::Binding::CachedProperty && !value.isPoison())
    object.instance()->attributes[function->node->name.text] = value;
  return value;
}

LangValue Evaluator::objectAttribute(const LangValue &value, llvm::StringRef name, SourceRange range) {
  Instance &instance = *value.instance();
  const LangValue *member = instance.cls->member(name);
  const auto *function = member ? member->getIf<FunctionValue>() : nullptr;
  if ((function && function->binding == FunctionValue::Binding::Property) || isDescriptor(member, "__set__"))
    return bindMember(*member, value, range);
  if (auto it = instance.attributes.find(name); it != instance.attributes.end())
    return it->second;
  if (member)
    return bindMember(*member, value, range);
  if (name == "__class__")
    return LangValue(ClassValue{instance.cls});
  if (name == "__dict__") {
    LangValue all = LangValue::dict();
    for (const auto &[key, each] : instance.attributes)
      setItem(*all.getIf<DictValue>(), LangValue::string(key.str()), each);
    return all;
  }
  if (!instance.cls->nativeBase.empty() && (name == "__cause__" || name == "__context__" || name == "__traceback__"))
    return unknown(range, fmt::format("{}.{}", instance.cls->name, name.str()));
  if (!instance.number.isPoison())
    return attributeOf(instance.number, name, range, /*reports=*/false);
  if (std::optional<LangValue> found = callProtocol(value, "__getattr__", {LangValue::string(name.str())}, range))
    return *found;
  return LangValue::poison();
}

LangValue Evaluator::setAttribute(const LangValue &object, llvm::StringRef name, const LangValue &value, SourceRange range) {
  if (const auto *cls = object.getIf<ClassValue>(); cls && cls->info->members && !cls->info->isEnum) {
    cls->info->members->names[intern(name)] = Binding{value, range, false};
    return LangValue::none();
  }
  Instance *instance = object.instance();
  if (!instance)
    return fail(range, fmt::format("an attribute of {} cannot be set", object.describe()), "");
  const LangValue *member = instance->cls->member(name);
  const auto *function = member ? member->getIf<FunctionValue>() : nullptr;
  if (function && function->binding == FunctionValue::Binding::Property) {
    if (!function->setter)
      return fail(range, fmt::format("property '{}' of '{}' object has no setter", name.str(), instance->cls->name), "AttributeError");
    LangValue setter(MethodValue{nullptr, function->setter->node->name.text, std::make_shared<const LangValue>(object),
                                 *function->setter, nullptr});
    return call(setter, {value}, {}, range);
  }
  if (isDescriptor(member, "__set__")) {
    LangValue done = *callProtocol(*member, "__set__", {object, value}, range);
    return done.isPoison() || done.isUnknown() ? done : LangValue::none();
  }
  if (instance->cls->member("__setattr__"))
    return fail(range, fmt::format("class '{}' has a method __setattr__, which is not executed at compile time", instance->cls->name), "");
  const bool isFrozen = instance->cls->dataclass && instance->cls->dataclass->isFrozen;
  if (isFrozen || instance->cls->isEnum)
    return fail(range, fmt::format("cannot assign to field '{}'", name.str()), isFrozen ? "FrozenInstanceError" : "AttributeError");
  instance->attributes[intern(name)] = value;
  return LangValue::none();
}

LangValue Evaluator::deleteAttribute(const LangValue &object, llvm::StringRef name, SourceRange range) {
  Instance *instance = object.instance();
  if (!instance)
    return fail(range, "this cannot be deleted at compile time", "");
  if (!instance->attributes.count(name))
    return fail(range, fmt::format("{} has no attribute '{}'", object.describe(), name.str()), "AttributeError");
  instance->attributes.erase(name);
  return LangValue::none();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Protocols
//===------------------------------------------------------------------------------------------------------------------===//

std::optional<LangValue> Evaluator::callProtocol(const LangValue &object, llvm::StringRef name, std::vector<LangValue> args,
                                                SourceRange range) {
  const Instance *instance = object.instance();
  const LangValue *method = instance ? instance->cls->member(name) : nullptr;
  if (!method || method->isNone())
    return std::nullopt;
  LangValue bound = bindMember(*method, object, range);
  return bound.isPoison() ? bound : call(bound, std::move(args), {}, range);
}

/// The method of an operator, without its underscores: "add".
static llvm::StringRef methodName(BinaryOp op) {
  switch (op) {
  case BinaryOp::Add: return "add";
  case BinaryOp::Sub: return "sub";
  case BinaryOp::Mult: return "mul";
  case BinaryOp::MatMult: return "matmul";
  case BinaryOp::Div: return "truediv";
  case BinaryOp::FloorDiv: return "floordiv";
  case BinaryOp::Mod: return "mod";
  case BinaryOp::Pow: return "pow";
  case BinaryOp::LShift: return "lshift";
  case BinaryOp::RShift: return "rshift";
  case BinaryOp::BitOr: return "or";
  case BinaryOp::BitXor: return "xor";
  case BinaryOp::BitAnd: return "and";
  }
  return "";
}

static bool isNotImplemented(const LangValue &value) {
  return value.object() && value.object()->type == "NotImplementedType";
}

LangValue Evaluator::operateOnInstance(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  if (!numberOf(a).instance() && !numberOf(b).instance()) {
    LangValue result = binaryOf(op, numberOf(a), numberOf(b), range);
    const bool isBitwise = op == BinaryOp::BitAnd || op == BinaryOp::BitOr || op == BinaryOp::BitXor;
    for (const LangValue *flags : {&a, &b})
      if (isBitwise && result.isConstant() && flags->instance() && flags->instance()->cls->combinations)
        return enumMember(*this, flags->instance()->cls, result, range);
    return result;
  }
  std::string name = methodName(op).str();
  std::optional<LangValue> result = callProtocol(a, "__" + name + "__", {b}, range);
  if (!result || isNotImplemented(*result))
    result = callProtocol(b, "__r" + name + "__", {a}, range);
  if (result && !isNotImplemented(*result))
    return *result;
  return fail(range, fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", spelling(op).str(), a.typeName(),
                                 b.typeName()));
}

/// The fields of a dataclass as a tuple, or of a namespace as a dict; nullopt for two that are not of one such class.
static std::optional<LangValue> fieldsOf(const LangValue &value, const LangValue &other) {
  const Instance *instance = value.instance(), *second = other.instance();
  if (!instance || !second)
    return std::nullopt;
  if (instance->cls->isNamespace && second->cls->isNamespace) {
    std::vector<std::pair<LangValue, LangValue>> attributes;
    for (const auto &[name, attribute] : instance->attributes)
      attributes.emplace_back(LangValue::string(name.str()), attribute);
    return LangValue::dict(std::move(attributes));
  }
  if (instance->cls != second->cls || !instance->cls->dataclass)
    return std::nullopt;
  std::vector<LangValue> fields;
  for (const ClassField &field : instance->cls->fields)
    if (hasOption(field, "compare", true))
      fields.push_back(instance->attributes.lookup(field.name));
  return LangValue::tuple(std::move(fields));
}

std::optional<bool> Evaluator::compareInstances(CompareOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  static constexpr std::pair<CompareOp, std::pair<llvm::StringLiteral, llvm::StringLiteral>> methods[] = {
      {CompareOp::Eq, {"__eq__", "__eq__"}},  {CompareOp::NotEq, {"__ne__", "__ne__"}}, {CompareOp::Lt, {"__lt__", "__gt__"}},
      {CompareOp::LtE, {"__le__", "__ge__"}}, {CompareOp::Gt, {"__gt__", "__lt__"}},    {CompareOp::GtE, {"__ge__", "__le__"}}};
  if (!numberOf(a).instance() && !numberOf(b).instance())
    return compareOf(op, numberOf(a), numberOf(b), range);
  const auto *row = llvm::find_if(methods, [&](const auto &each) { return each.first == op; });
  std::optional<LangValue> result = callProtocol(a, row->second.first, {b}, range);
  if (!result || isNotImplemented(*result))
    result = callProtocol(b, row->second.second, {a}, range);
  if (result && !isNotImplemented(*result))
    return result->isPoison() ? std::nullopt : truthOf(*result, range);
  const bool isEquality = op == CompareOp::Eq || op == CompareOp::NotEq;
  std::optional<LangValue> left = fieldsOf(a, b), right = fieldsOf(b, a);
  if (left && right) {
    const std::optional<DataclassOptions> &options = a.instance()->cls->dataclass;
    if (isEquality ? !options || options->eq : options && options->order)
      return compareOf(op, *left, *right, range);
  }
  if (op == CompareOp::NotEq) {
    std::optional<bool> isEqual = compareInstances(CompareOp::Eq, a, b, range);
    return isEqual ? std::optional(!*isEqual) : std::nullopt;
  }
  if (op == CompareOp::Eq)
    return a.identical(b);
  fail(range, fmt::format("'{}' not supported between instances of '{}' and '{}'", spelling(op).str(), a.typeName(), b.typeName()));
  return std::nullopt;
}

bool Evaluator::equalInstances(const LangValue &a, const LangValue &b) {
  if (a.identical(b))
    return true;
  return compareInstances(CompareOp::Eq, a, b, emit.callSites.empty() ? SourceRange() : emit.callSites.back()).value_or(false);
}

std::string Evaluator::textOfInstance(const LangValue &value, bool isRepr, unsigned depth) {
  const Instance &instance = *value.instance();
  const ClassInfo &cls = *instance.cls;
  SourceRange range = emit.callSites.empty() ? cls.range : emit.callSites.back();
  std::optional<LangValue> text = isRepr ? std::nullopt : callProtocol(value, "__str__", {}, range);
  if (cls.isNamespace) {
    std::string fields;
    for (const auto &[name, attribute] : instance.attributes)
      fields += fmt::format("{}{}={}", fields.empty() ? "" : ", ", name.str(), attribute.repr(depth + 1));
    return fmt::format("namespace({})", fields);
  }
  const bool writesFields = cls.dataclass && cls.dataclass->repr && !cls.member("__repr__");
  if (!text && !cls.isEnum && !writesFields && (cls.nativeBase.empty() || isRepr))
    text = callProtocol(value, "__repr__", {}, range);
  if (text)
    return text->display();
  if (cls.isEnum) {
    const LangValue member = instance.attributes.lookup("name");
    std::string name = member.isNone() ? cls.name : fmt::format("{}.{}", cls.name, member.display());
    if (isRepr)
      return fmt::format("<{}: {}>", name, instance.attributes.lookup("value").repr(depth + 1));
    return cls.showsNumber ? instance.number.display() : name;
  }
  if (writesFields) {
    std::string fields;
    for (const ClassField &field : cls.fields)
      if (hasOption(field, "repr", true))
        fields += fmt::format("{}{}={}", fields.empty() ? "" : ", ", field.name, instance.attributes.lookup(field.name).repr(depth + 1));
    return fmt::format("{}({})", cls.qualifiedName, fields);
  }
  if (cls.nativeBase.empty())
    return fmt::format("<{} object>", cls.qualifiedName);
  const std::vector<LangValue> &args = instance.attributes.lookup("args").elements();
  if (isRepr)
    return args.size() == 1 ? fmt::format("{}({})", cls.name, args[0].repr(depth + 1)) : cls.name + LangValue::tuple(args).repr(depth + 1);
  return args.empty() ? "" : args.size() == 1 ? args[0].display() : LangValue::tuple(args).repr(depth + 1);
}

} // namespace ditron::frontend
