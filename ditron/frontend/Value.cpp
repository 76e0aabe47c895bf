//===- Value.cpp - What an expression of a kernel evaluates to -------------------------------------------------------===//
//
// Comparison, description and flattening of values.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Value.h"

#include "ditron/frontend/Aggregates.h"
#include "ditron/frontend/builtins/Builtins.h"
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/Iterators.h"
#include "ditron/frontend/ModuleScope.h"
#include "ditron/frontend/natives/Natives.h"
#include "ditron/frontend/Vectors.h"
#include <fmt/format.h>

namespace ditron::frontend {

llvm::StringRef toString(BuiltinModule module) {
  switch (module) {
  case ModulePython: return "builtins";
  case ModuleTriton: return "triton";
  case ModuleTile: return "triton.language";
  case ModuleMath: return "triton.language.math";
  case ModuleDevice: return "libdevice";
  case ModuleExtra: return "language.extra";
  case ModuleDist: return "triton_dist.language";
  case ModuleThread: return "language_extra";
  case ModuleShmem: return "libshmem_device";
  case ModulePeer: return "triton_dist";
  case ModuleMember: return "tensor";
  case ModuleNan: return "triton.language.PropagateNan";
  case ModuleOrdering: return "triton.language.ReductionOrdering";
  case ModuleDescriptor: return "tensor descriptor";
  case ModuleVector: return "vector";
  }
  return "module";
}

LangValue::LangValue(const LangValue &other) = default;
LangValue::LangValue(LangValue &&other) noexcept = default;
LangValue &LangValue::operator=(const LangValue &other) = default;
LangValue &LangValue::operator=(LangValue &&other) noexcept = default;
LangValue::~LangValue() = default;

LangValue LangValue::shape(llvm::ArrayRef<int64_t> dims) {
  std::vector<LangValue> elements;
  for (int64_t dim : dims)
    elements.push_back(integer(dim));
  return tuple(std::move(elements));
}

bool LangValue::isCompileTime() const {
  if (isCompound())
    return llvm::all_of(parts(), [](const LangValue &element) { return element.isCompileTime(); });
  return !isPoison() && !isTensor() && !isDescriptor();
}

const std::vector<LangValue> *LangValue::sequence() const {
  if (const auto *tuple = getIf<TupleValue>())
    return tuple->elements.get();
  if (const auto *list = getIf<ListValue>())
    return list->elements.get();
  return nullptr;
}

std::optional<int64_t> RangeValue::size() const {
  auto bound = [](const LangValue &value) {
    return value.isConstant() && value.constant().isIntegral() ? value.constant().toInt64() : std::nullopt;
  };
  std::optional<int64_t> first = bound(start), end = bound(stop), stride = bound(step);
  if (!first || !end || !stride || *stride == 0)
    return std::nullopt;
  // The distance of two 64-bit numbers needs 65 bits.
  const __int128 distance = *stride > 0 ? __int128(*end) - *first : __int128(*first) - *end;
  const __int128 size = distance <= 0 ? 0 : (distance - 1) / (*stride > 0 ? __int128(*stride) : -__int128(*stride)) + 1;
  return size <= INT64_MAX ? std::optional(static_cast<int64_t>(size)) : std::nullopt;
}

const ClassInfo *LangValue::classInfo() const {
  if (const auto *tuple = getIf<TupleValue>())
    return tuple->cls.get();
  if (const Instance *object = instance())
    return object->cls.get();
  const auto *aggregate = getIf<AggregateValue>();
  return aggregate ? aggregate->cls.get() : nullptr;
}

LangValue LangValue::withParts(std::vector<LangValue> parts) const {
  auto shared = std::make_shared<const std::vector<LangValue>>(std::move(parts));
  if (const auto *aggregate = getIf<AggregateValue>())
    return LangValue(AggregateValue{aggregate->cls, std::move(shared)});
  return LangValue(TupleValue{std::move(shared), std::get<TupleValue>(storage).cls});
}

/// LangValue::identical of values that exist only in Python that runs while compiling. What can be changed is the same only if
/// it is one object: a change of the one is not seen in the other.
static bool identicalPython(const LangValue &a, const LangValue &b) {
  if (const auto *list = a.getIf<ListValue>())
    return list->elements == b.getIf<ListValue>()->elements;
  if (const auto *dict = a.getIf<DictValue>())
    return dict->items == b.getIf<DictValue>()->items;
  if (const auto *lambda = a.getIf<LambdaValue>())
    return lambda->node == b.getIf<LambdaValue>()->node && lambda->environment == b.getIf<LambdaValue>()->environment;
  if (const auto *native = a.getIf<NativeValue>())
    return native->function == b.getIf<NativeValue>()->function;
  if (a.object())
    return a.equals(b);
  if (a.iterator() || a.instance())
    return a.iterator() == b.iterator() && a.instance() == b.instance();
  if (const auto *view = a.getIf<ViewValue>())
    return view->dict.items == b.getIf<ViewValue>()->dict.items && view->kind == b.getIf<ViewValue>()->kind;
  return a.isUnknown() && a.unknown().text == b.unknown().text && a.unknown().range == b.unknown().range;
}

bool LangValue::identical(const LangValue &other) const {
  if (storage.index() != other.storage.index())
    return false;
  if (isPoison())
    return true;
  if (isConstant())
    return constant().identical(other.constant());
  if (isType())
    return asType() == other.asType();
  if (isTensor())
    return ir() == other.ir() && type() == other.type();
  if (isCompound())
    return classInfo() == other.classInfo() && parts().size() == other.parts().size() &&
           llvm::all_of(llvm::zip(parts(), other.parts()),
                        [](auto pair) { return std::get<0>(pair).identical(std::get<1>(pair)); });
  if (isDescriptor()) {
    if (!sameStructure(*this, other) || descriptor().ir != other.descriptor().ir)
      return false;
    llvm::SmallVector<LangValue> mine, others;
    flatten(*this, mine);
    flatten(other, others);
    return llvm::all_of(llvm::zip_equal(mine, others),
                        [](auto pair) { return std::get<0>(pair).identical(std::get<1>(pair)); });
  }
  if (const auto *function = getIf<FunctionValue>())
    return function->node == other.getIf<FunctionValue>()->node;
  if (const auto *module = getIf<ModuleValue>())
    return module->module == other.getIf<ModuleValue>()->module;
  if (const auto *builtin = getIf<BuiltinValue>())
    return builtin->builtin == other.getIf<BuiltinValue>()->builtin;
  if (const auto *method = getIf<MethodValue>())
    return method->name == other.getIf<MethodValue>()->name &&
           method->self->identical(*other.getIf<MethodValue>()->self);
  if (const auto *foreign = getIf<ForeignValue>())
    return foreign->module == other.getIf<ForeignValue>()->module && foreign->name == other.getIf<ForeignValue>()->name;
  if (const auto *file = getIf<FileValue>())
    return file->scope == other.getIf<FileValue>()->scope;
  if (const auto *context = getIf<std::shared_ptr<const ContextValue>>())
    return *context == *other.getIf<std::shared_ptr<const ContextValue>>();
  if (const auto *cls = getIf<ClassValue>())
    return cls->info == other.getIf<ClassValue>()->info;
  if (const auto *range = getIf<std::shared_ptr<const RangeValue>>())
    return *range == *other.getIf<std::shared_ptr<const RangeValue>>();
  return identicalPython(*this, other);
}

std::string LangValue::describe() const {
  if (isPoison())
    return "an invalid value";
  if (isConstant()) {
    if (isNone())
      return "None";
    std::string text = constant().repr();
    if (text.size() > 60)
      text = text.substr(0, 57) + "...";
    return fmt::format("compile-time {} {}", constant().typeName().str(), text);
  }
  if (isType())
    return "dtype " + asType().str();
  if (isTensor())
    return (type().isBlock() ? "block " : "run-time ") + type().str();
  if (isVector(*this))
    return fmt::format("a vector of {} {}", elements().size(),
                       elements().empty() ? "elements" : elements().front().type().str());
  if (const ClassInfo *cls = classInfo())
    return fmt::format("{} '{}'", isTuple() ? "named tuple" : isAggregate() ? "aggregate" : "object of class", cls->name);
  if (isTuple())
    return fmt::format("a tuple of {}", elements().size());
  if (isDescriptor())
    return "tensor descriptor " + descriptor().tile.str();
  if (const auto *function = getIf<FunctionValue>())
    return fmt::format("function '{}'", function->node->name.text.str());
  if (const auto *module = getIf<ModuleValue>())
    return fmt::format("module '{}'", toString(module->module).str());
  if (const auto *builtin = getIf<BuiltinValue>())
    return fmt::format("function '{}'", qualifiedName(*builtin->builtin));
  if (const auto *method = getIf<MethodValue>())
    return fmt::format("member function '{}'", method->name.str());
  if (const auto *foreign = getIf<ForeignValue>())
    return foreign->name.empty() ? fmt::format("module '{}'", foreign->module)
                                 : fmt::format("'{}' of module '{}'", foreign->name, foreign->module);
  if (const auto *file = getIf<FileValue>())
    return fmt::format("module '{}'", file->scope->origin.path);
  if (const auto *context = getIf<std::shared_ptr<const ContextValue>>())
    return fmt::format("the context {}", (*context)->name);
  if (const auto *cls = getIf<ClassValue>())
    return fmt::format("class '{}'", cls->info->name);
  if (is<ListValue>())
    return fmt::format("a {} of {}", typeName(), sequence()->size());
  if (isDict())
    return fmt::format("a dict of {}", items().size());
  if (is<LambdaValue>())
    return "a lambda";
  if (iterator() || is<ViewValue>())
    return fmt::format("a '{}'", typeName());
  if (const auto *native = getIf<NativeValue>())
    return fmt::format("function '{}'", llvm::StringRef(native->function->name).str());
  if (const ObjectValue *plain = object())
    return fmt::format("a '{}'", plain->type);
  if (isUnknown())
    return fmt::format("the value of '{}', which is not known at compile time", unknown().text);
  return "a range";
}

//===------------------------------------------------------------------------------------------------------------------===//
// Python's str(), repr(), == and names of types
//===------------------------------------------------------------------------------------------------------------------===//

std::string LangValue::display(unsigned depth) const {
  if (isConstant())
    return constant().str();
  if (instance())
    return instance()->cls->evaluator->textOfInstance(*this, false, depth);
  if (const ObjectValue *plain = object())
    if (const LangValue *text = find(*plain, "__str__"); text && text->isString())
      return text->constant().getString();
  return repr(depth);
}

/// "a, b" of a sequence's elements.
static std::string reprElements(const std::vector<LangValue> &elements, unsigned depth) {
  std::string text;
  for (const LangValue &element : elements)
    text += (text.empty() ? "" : ", ") + element.repr(depth + 1);
  return text;
}

static std::string reprObject(const ObjectValue &object, unsigned depth) {
  if (const LangValue *text = find(object, "__repr__"); text && text->isString())
    return text->constant().getString();
  std::string text;
  for (const auto &[name, value] : object.fields)
    if (!llvm::StringRef(name).starts_with("__"))
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value.repr(depth + 1));
  return fmt::format("{}({})", object.type, text);
}

static std::string reprView(const ViewValue &view, unsigned depth) {
  std::string text;
  for (const auto &[key, value] : *view.dict.items) {
    text += text.empty() ? "" : ", ";
    text += view.kind == ViewValue::Kind::Keys     ? key.repr(depth + 1)
            : view.kind == ViewValue::Kind::Values ? value.repr(depth + 1)
                                                   : fmt::format("({}, {})", key.repr(depth + 1), value.repr(depth + 1));
  }
  return fmt::format("{}([{}])", LangValue(view).typeName(), text);
}

static std::string reprRange(const RangeValue &range, unsigned depth) {
  std::string bounds = fmt::format("{}, {}", range.start.repr(depth + 1), range.stop.repr(depth + 1));
  bool isPlain = range.step.isConstant() && range.step.constant().toInt64() == 1;
  return fmt::format("range({}{})", bounds, isPlain ? "" : ", " + range.step.repr(depth + 1));
}

std::string LangValue::repr(unsigned depth) const {
  if (depth > maxNesting)
    return "...";
  if (isConstant())
    return constant().repr();
  if (isType())
    return asType().str();
  if (isTensor())
    return type().str();
  if (instance())
    return instance()->cls->evaluator->textOfInstance(*this, true, depth);
  if (const ClassInfo *cls = classInfo()) {
    std::string text;
    for (auto [index, part] : llvm::enumerate(parts()))
      text += fmt::format("{}{}={}", index ? ", " : "", cls->fields[index].name, part.repr(depth + 1));
    return fmt::format("{}({})", cls->name, text);
  }
  if (isTuple())
    return fmt::format("({}{})", reprElements(elements(), depth), elements().size() == 1 ? "," : "");
  if (isList())
    return fmt::format("[{}]", reprElements(*sequence(), depth));
  if (isSet()) {
    std::string elements = sequence()->empty() ? "" : fmt::format("{{{}}}", reprElements(*sequence(), depth));
    return elements.empty() || getIf<ListValue>()->isFrozen ? fmt::format("{}({})", typeName(), elements) : elements;
  }
  if (const auto *view = getIf<ViewValue>())
    return reprView(*view, depth);
  if (isDict()) {
    std::string text;
    for (const auto &[key, value] : items())
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key.repr(depth + 1), value.repr(depth + 1));
    return "{" + text + "}";
  }
  if (const auto *range = getIf<std::shared_ptr<const RangeValue>>())
    return reprRange(**range, depth);
  if (const ObjectValue *plain = object())
    return reprObject(*plain, depth);
  if (const auto *native = getIf<NativeValue>())
    return native->function->isClass ? fmt::format("<class '{}'>", llvm::StringRef(native->function->name).str())
                                     : fmt::format("<built-in function {}>", native->function->shortName().str());
  if (const auto *function = getIf<FunctionValue>())
    return fmt::format("<function {}>", function->node->name.text.str());
  if (is<LambdaValue>())
    return "<function <lambda>>";
  if (const auto *cls = getIf<ClassValue>())
    return fmt::format("<{} '{}'>", cls->info->isEnum ? "enum" : "class", cls->info->isEnum ? cls->info->name : cls->info->qualifiedName);
  if (iterator())
    return fmt::format("<{} object>", typeName());
  return describe();
}

//===------------------------------------------------------------------------------------------------------------------===//
// What text depends on
//===------------------------------------------------------------------------------------------------------------------===//

/// The smallest hash table that holds so many elements: CPython's, which is at most three fifths full.
static uint64_t leastTableSize(size_t count) {
  uint64_t size = 8;
  while (count * 5 >= (size - 1) * 3)
    size *= 2;
  return size;
}

static bool hasCertainOrder(const std::vector<LangValue> &elements) {
  const uint64_t size = leastTableSize(elements.size());
  return elements.size() < 2 || llvm::all_of(elements, [&](const LangValue &each) {
           const std::optional<int64_t> number = each.isConstant() && each.constant().isIntegral() ? each.constant().toInt64() : std::nullopt;
           return number && *number >= 0 && static_cast<uint64_t>(*number) < size;
         });
}

/// Whether the hash is the same in every process; that of text, objects and None (before 3.12) is not.
static bool hasFixedHash(const LangValue &value) {
  if (value.isTuple() || value.isSet())
    return llvm::all_of(*value.sequence(), hasFixedHash);
  return value.isConstant() && !value.isString() && !value.isNone();
}

void orderSet(std::vector<LangValue> &elements) {
  auto isBefore = [](const LangValue &a, const LangValue &b) { return *a.constant().toInt64() < *b.constant().toInt64(); };
  if (hasCertainOrder(elements) && elements.size() > 1 && !llvm::is_sorted(elements, isBefore))
    llvm::sort(elements, isBefore);
}

TextProblem textProblemOf(const LangValue &value, unsigned depth) {
  if (value.isConstant())
    return value.constant().isIntegral() && !value.constant().isBool() && value.constant().getInt().toString().empty() ? TextProblem::Digits
                                                                                                                     : TextProblem::None;
  if (depth > LangValue::maxNesting)
    return TextProblem::None;
  if (value.isSet() && !hasCertainOrder(*value.sequence()) && llvm::all_of(*value.sequence(), hasFixedHash))
    return TextProblem::SetOrder;
  if (value.sequence())
    for (const LangValue &element : *value.sequence())
      if (TextProblem problem = textProblemOf(element, depth + 1); problem != TextProblem::None)
        return problem;
  if (value.isDict())
    for (const auto &[key, element] : value.items())
      for (const LangValue *part : {&key, &element})
        if (TextProblem problem = textProblemOf(*part, depth + 1); problem != TextProblem::None)
          return problem;
  return TextProblem::None;
}

LangValue withShownWrappers(const LangValue &value, unsigned depth) {
  if (value.isWrapped)
    return LangValue::object("constexpr", {{"__repr__", LangValue::string(fmt::format("constexpr[{}]", value.display(depth)))}});
  if (depth > LangValue::maxNesting || value.classInfo())
    return value;
  auto shown = [&](std::vector<LangValue> elements) {
    for (LangValue &element : elements)
      element = withShownWrappers(element, depth + 1);
    return elements;
  };
  if (value.isTuple())
    return LangValue::tuple(shown(value.elements()));
  if (value.isList())
    return LangValue::list(shown(*value.sequence()));
  if (!value.isDict())
    return value;
  std::vector<std::pair<LangValue, LangValue>> items = value.items();
  for (auto &[key, element] : items)
    element = withShownWrappers(element, depth + 1);
  return LangValue::dict(std::move(items));
}

static bool equalElements(const std::vector<LangValue> &a, const std::vector<LangValue> &b, unsigned depth) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](const LangValue &x, const LangValue &y) {
           return x.equals(y, depth + 1);
         });
}

static bool equalSets(const std::vector<LangValue> &a, const std::vector<LangValue> &b, unsigned depth) {
  return a.size() == b.size() && llvm::all_of(a, [&](const LangValue &x) {
           return llvm::any_of(b, [&](const LangValue &y) { return x.equals(y, depth + 1); });
         });
}

static bool equalDicts(const DictValue &a, const DictValue &b, unsigned depth) {
  return a.items == b.items || (a.items->size() == b.items->size() && llvm::all_of(*a.items, [&](const auto &item) {
                                  const LangValue *value = find(b, item.first);
                                  return value && value->equals(item.second, depth + 1);
                                }));
}

static bool equalObjects(const ObjectValue &a, const ObjectValue &b, unsigned depth) {
  if (&a == &b)
    return true;
  if (a.type != b.type)
    return false;
  const LangValue *key = find(a, "__key__"), *other = find(b, "__key__");
  if (key && other)
    return key->equals(*other, depth + 1);
  return a.fields.size() == b.fields.size() &&
         std::equal(a.fields.begin(), a.fields.end(), b.fields.begin(), [&](const auto &x, const auto &y) {
           return x.first == y.first && x.second.equals(y.second, depth + 1);
         });
}

static bool equalRanges(const RangeValue &a, const RangeValue &b, unsigned depth) {
  std::optional<int64_t> size = a.size();
  if (!size || size != b.size())
    return &a == &b;
  return *size == 0 || (a.start.equals(b.start, depth + 1) && (*size == 1 || a.step.equals(b.step, depth + 1)));
}

bool LangValue::equals(const LangValue &other, unsigned depth) const {
  if (depth > maxNesting)
    return false;
  if (instance() || other.instance()) {
    if (!numberOf(*this).instance() && !numberOf(other).instance())
      return numberOf(*this).equals(numberOf(other), depth);
    const Instance *object = instance() ? instance() : other.instance();
    return object->cls->evaluator->equalInstances(*this, other);
  }
  // What a launch's array is made of and what torch calls it.
  if (isType() != other.isType()) {
    const ObjectValue *dtype = isType() ? other.object() : object();
    const LangValue *type = dtype ? find(*dtype, "__dtype__") : nullptr;
    return type && type->equals(isType() ? *this : other, depth + 1);
  }
  if (storage.index() != other.storage.index())
    return false;
  if (isConstant()) {
    auto result = compare(CompareOp::Eq, constant(), other.constant());
    return result.isOk() && result->isTrue();
  }
  if (isTuple())
    return equalElements(elements(), other.elements(), depth);
  if (is<ListValue>()) {
    if (isSet() != other.isSet())
      return false;
    return isSet() ? equalSets(*sequence(), *other.sequence(), depth)
                   : sequence() == other.sequence() || equalElements(*sequence(), *other.sequence(), depth);
  }
  if (isDict())
    return equalDicts(*getIf<DictValue>(), *other.getIf<DictValue>(), depth);
  if (const ObjectValue *plain = object())
    return equalObjects(*plain, *other.object(), depth);
  if (const auto *range = getIf<std::shared_ptr<const RangeValue>>())
    return equalRanges(**range, **other.getIf<std::shared_ptr<const RangeValue>>(), depth);
  return identical(other);
}

std::string LangValue::typeName() const {
  if (isConstant())
    return constant().typeName().str();
  if (isType())
    return "dtype";
  if (const ClassInfo *cls = classInfo())
    return cls->name;
  if (isTuple())
    return "tuple";
  if (const auto *list = getIf<ListValue>())
    return list->isFrozen ? "frozenset" : list->isSet ? "set" : "list";
  if (iterator())
    return iterator()->type;
  if (const auto *view = getIf<ViewValue>())
    return view->kind == ViewValue::Kind::Keys ? "dict_keys" : view->kind == ViewValue::Kind::Values ? "dict_values" : "dict_items";
  if (isDict())
    return getIf<DictValue>()->factory ? "defaultdict" : "dict";
  if (is<std::shared_ptr<const RangeValue>>())
    return "range";
  if (const ObjectValue *plain = object())
    return plain->type;
  if (isTensor())
    return "tensor";
  if (is<ModuleValue>() || is<FileValue>() || is<ForeignValue>())
    return "module";
  if (const auto *native = getIf<NativeValue>())
    return native->function->isClass ? "type" : "builtin_function_or_method";
  if (is<ClassValue>())
    return "type";
  if (is<FunctionValue>() || is<LambdaValue>() || is<BuiltinValue>())
    return "function";
  if (is<MethodValue>())
    return "method";
  return describe();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Dicts and objects
//===------------------------------------------------------------------------------------------------------------------===//

const LangValue *unknownIn(const LangValue &value, unsigned depth) {
  if (value.isUnknown())
    return &value;
  if (depth > LangValue::maxNesting)
    return nullptr;
  if (const auto *elements = value.sequence())
    for (const LangValue &element : *elements)
      if (const LangValue *found = unknownIn(element, depth + 1))
        return found;
  if (const ObjectValue *object = value.object()) // an exception whose text is not known
    if (const LangValue *text = find(*object, "__str__"); text && text->isUnknown())
      return text;
  if (const auto *view = value.getIf<ViewValue>())
    return unknownIn(LangValue(view->dict), depth);
  if (value.isDict())
    for (const auto &[key, item] : value.items())
      if (const LangValue *found = unknownIn(key, depth + 1) ? unknownIn(key, depth + 1) : unknownIn(item, depth + 1))
        return found;
  return nullptr;
}

LangValue *find(const DictValue &dict, const LangValue &key) {
  for (auto &[each, value] : *dict.items)
    if (each.equals(key))
      return &value;
  return nullptr;
}

void setItem(const DictValue &dict, const LangValue &key, LangValue value) {
  if (LangValue *known = find(dict, key))
    *known = std::move(value);
  else
    dict.items->emplace_back(key, std::move(value));
}

const LangValue *find(const ObjectValue &object, llvm::StringRef name) {
  for (const auto &[each, value] : object.fields)
    if (each == name)
      return &value;
  return nullptr;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Values as leaves
//===------------------------------------------------------------------------------------------------------------------===//

void flatten(const LangValue &value, llvm::SmallVectorImpl<LangValue> &leaves) {
  if (value.isDescriptor()) {
    const DescriptorValue &descriptor = value.descriptor();
    leaves.push_back(descriptor.base);
    leaves.append(descriptor.sizes.begin(), descriptor.sizes.end());
    leaves.append(descriptor.strides.begin(), descriptor.strides.end());
    return;
  }
  if (!value.isCompound()) {
    leaves.push_back(value);
    return;
  }
  for (const LangValue &element : value.parts())
    flatten(element, leaves);
}

/// A descriptor of other parts; the same one if the parts are the same.
static LangValue descriptorOf(const LangValue &like, llvm::ArrayRef<LangValue> parts) {
  llvm::SmallVector<LangValue> before;
  flatten(like, before);
  if (llvm::all_of(llvm::zip_equal(before, parts),
                   [](auto pair) { return std::get<0>(pair).identical(std::get<1>(pair)); }))
    return like;
  // One part that was reported spoils all.
  if (llvm::any_of(parts, [](const LangValue &part) { return part.isPoison(); }))
    return LangValue::poison();
  DescriptorValue result = like.descriptor();
  result.ir = nullptr;
  result.base = parts.front();
  parts = parts.drop_front();
  result.sizes.assign(parts.begin(), parts.begin() + result.sizes.size());
  result.strides.assign(parts.begin() + result.sizes.size(), parts.end());
  return LangValue(std::make_shared<const DescriptorValue>(std::move(result)));
}

LangValue unflatten(const LangValue &like, llvm::ArrayRef<LangValue> &leaves) {
  if (like.isDescriptor()) {
    const size_t count = 1 + like.descriptor().sizes.size() + like.descriptor().strides.size();
    LangValue result = descriptorOf(like, leaves.take_front(count));
    leaves = leaves.drop_front(count);
    return result;
  }
  if (!like.isCompound()) {
    LangValue leaf = leaves.front();
    leaves = leaves.drop_front();
    return leaf;
  }
  std::vector<LangValue> elements;
  for (const LangValue &element : like.parts())
    elements.push_back(unflatten(element, leaves));
  return like.withParts(std::move(elements));
}

LangValue withoutDescriptorIr(const LangValue &value) {
  if (value.isDescriptor()) {
    DescriptorValue result = value.descriptor();
    result.ir = nullptr;
    return LangValue(std::make_shared<const DescriptorValue>(std::move(result)));
  }
  if (!value.isCompound())
    return value;
  std::vector<LangValue> elements;
  for (const LangValue &element : value.parts())
    elements.push_back(withoutDescriptorIr(element));
  return value.withParts(std::move(elements));
}

bool sameStructure(const LangValue &a, const LangValue &b) {
  if (a.isDescriptor() || b.isDescriptor())
    return a.isDescriptor() && b.isDescriptor() && a.descriptor().tile == b.descriptor().tile &&
           a.descriptor().fillsNan == b.descriptor().fillsNan;
  if (a.isTuple() != b.isTuple() || a.isAggregate() != b.isAggregate())
    return false;
  if (!a.isCompound())
    return true;
  // The type of an aggregate includes its compile-time fields.
  if (a.isAggregate() && a.classInfo() == b.classInfo())
    for (auto [x, y] : llvm::zip_equal(a.parts(), b.parts()))
      if (!x.isPoison() && !y.isPoison() && (x.isCompileTime() || y.isCompileTime()) && !x.identical(y))
        return false;
  return a.classInfo() == b.classInfo() && a.parts().size() == b.parts().size() &&
         llvm::all_of(llvm::zip(a.parts(), b.parts()),
                      [](auto pair) { return sameStructure(std::get<0>(pair), std::get<1>(pair)); });
}

std::pair<std::string, std::string> describeDifference(const LangValue &a, const LangValue &b) {
  if (!a.isAggregate() || !b.isAggregate() || a.classInfo() != b.classInfo())
    return {a.describe(), b.describe()};
  for (auto [field, x, y] : llvm::zip_equal(a.classInfo()->fields, a.parts(), b.parts()))
    if (!sameStructure(x, y) || ((x.isCompileTime() || y.isCompileTime()) && !x.identical(y))) {
      auto [inA, inB] = describeDifference(x, y);
      return {fmt::format("{} whose field '{}' is {}", a.describe(), field.name, inA),
              fmt::format("one whose field '{}' is {}", field.name, inB)};
    }
  return {a.describe(), b.describe()};
}

} // namespace ditron::frontend
