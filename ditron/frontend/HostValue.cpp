//===- HostValue.cpp - Values of code that runs while compiling ---------------------------------------------------------===//
#include "ditron/frontend/HostValue.h"

#include <fmt/format.h>

namespace ditron::frontend {

int64_t HostRange::size() const {
  if (step > 0)
    return stop > start ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

HostValue HostValue::tuple(HostSequence elements) {
  return HostTuple{std::make_shared<const HostSequence>(std::move(elements))};
}
HostValue HostValue::list(HostSequence elements) {
  return HostList{std::make_shared<HostSequence>(std::move(elements))};
}
HostValue HostValue::dict(std::vector<std::pair<HostValue, HostValue>> items) {
  return HostDict{std::make_shared<std::vector<std::pair<HostValue, HostValue>>>(std::move(items))};
}

HostValue HostValue::fromLanguage(const LangValue &value) {
  if (value.isConstant())
    return HostValue(value.constant());
  if (value.isType())
    return HostValue(value.asType());
  if (value.isTuple() && !value.classInfo()) {
    HostSequence elements;
    for (const LangValue &element : value.elements())
      elements.push_back(fromLanguage(element));
    return tuple(std::move(elements));
  }
  HostValue carried;
  carried.storage = std::make_shared<const LangValue>(value);
  return carried;
}

std::optional<LangValue> HostValue::toLanguage(unsigned depth) const {
  if (depth > maxNesting)
    return std::nullopt;
  if (isConstant())
    return LangValue(constant());
  if (const auto *type = getIf<LangType>())
    return LangValue(*type);
  if (const LangValue *carried = language())
    return *carried;
  if (const HostSequence *elements = sequence()) {
    std::vector<LangValue> values;
    for (const HostValue &element : *elements) {
      std::optional<LangValue> value = element.toLanguage(depth + 1);
      if (!value)
        return std::nullopt;
      values.push_back(std::move(*value));
    }
    return LangValue::tuple(std::move(values));
  }
  if (const auto *range = getIf<HostRange>()) {
    auto bounds = std::make_shared<RangeValue>();
    bounds->start = LangValue::integer(range->start);
    bounds->stop = LangValue::integer(range->stop);
    bounds->step = LangValue::integer(range->step);
    return LangValue(std::shared_ptr<const RangeValue>(std::move(bounds)));
  }
  if (const auto *function = getIf<HostFunction>(); function && function->function && !function->scope->parent)
    return LangValue(FunctionValue{function->function, false, function->scope->file});
  return std::nullopt;
}

const HostSequence *HostValue::sequence() const {
  if (const auto *tuple = getIf<HostTuple>())
    return tuple->elements.get();
  if (const auto *list = getIf<HostList>())
    return list->elements.get();
  return nullptr;
}

bool HostValue::isTrue() const {
  if (isConstant())
    return constant().isTrue();
  if (const HostSequence *elements = sequence())
    return !elements->empty();
  if (const auto *dict = getIf<HostDict>())
    return !dict->items->empty();
  if (const auto *range = getIf<HostRange>())
    return range->size() != 0;
  return true;
}

bool HostValue::equals(const HostValue &other, unsigned depth) const {
  if (depth > maxNesting)
    return false;
  if (isConstant() && other.isConstant()) {
    auto result = compare(CompareOp::Eq, constant(), other.constant());
    return result.isOk() && result->isTrue();
  }
  if (const auto *type = getIf<LangType>()) {
    const auto *another = other.getIf<LangType>();
    return another && *type == *another;
  }
  if ((is<HostTuple>() && other.is<HostTuple>()) || (is<HostList>() && other.is<HostList>())) {
    const HostSequence &a = *sequence(), &b = *other.sequence();
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [&](const HostValue &x, const HostValue &y) { return x.equals(y, depth + 1); });
  }
  if (const auto *dict = getIf<HostDict>()) {
    const auto *another = other.getIf<HostDict>();
    return another && dict->items->size() == another->items->size() &&
           llvm::all_of(*dict->items, [&](const auto &item) {
             const HostValue *value = find(*another, item.first);
             return value && value->equals(item.second, depth + 1);
           });
  }
  if (const auto *function = getIf<HostFunction>()) {
    const auto *another = other.getIf<HostFunction>();
    return another && function->function == another->function && function->lambda == another->lambda;
  }
  if (const auto *native = getIf<HostNative>()) {
    const auto *another = other.getIf<HostNative>();
    return another && native->name == another->name;
  }
  if (const LangValue *carried = language())
    return other.language() && carried->identical(*other.language());
  return false;
}

std::string HostValue::repr(unsigned depth) const {
  if (depth > maxNesting)
    return "...";
  if (isConstant())
    return constant().repr();
  if (const auto *type = getIf<LangType>())
    return LangValue(*type).display();
  if (const HostSequence *elements = sequence()) {
    std::string text;
    for (const HostValue &element : *elements)
      text += (text.empty() ? "" : ", ") + element.repr(depth + 1);
    if (is<HostList>())
      return "[" + text + "]";
    return elements->size() == 1 ? "(" + text + ",)" : "(" + text + ")";
  }
  if (const auto *dict = getIf<HostDict>()) {
    std::string text;
    for (const auto &[key, value] : *dict->items)
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key.repr(depth + 1), value.repr(depth + 1));
    return "{" + text + "}";
  }
  if (const auto *range = getIf<HostRange>())
    return range->step == 1 ? fmt::format("range({}, {})", range->start, range->stop)
                            : fmt::format("range({}, {}, {})", range->start, range->stop, range->step);
  if (const LangValue *carried = language())
    return carried->display();
  if (const auto *function = getIf<HostFunction>())
    return fmt::format("<function {}>", function->function ? function->function->name.text.str() : "<lambda>");
  if (const auto *native = getIf<HostNative>())
    return fmt::format("<function {}>", native->name);
  if (const auto *object = getIf<std::shared_ptr<const HostObject>>()) {
    std::string text;
    for (const auto &[name, value] : (*object)->fields)
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value.repr());
    return fmt::format("{}({})", (*object)->type, text);
  }
  return "<method>";
}

std::string HostValue::str() const { return isConstant() ? constant().str() : repr(); }

std::string HostValue::typeName() const {
  if (isConstant())
    return constant().typeName().str();
  if (is<LangType>())
    return "dtype";
  if (is<HostTuple>())
    return "tuple";
  if (is<HostList>())
    return "list";
  if (is<HostDict>())
    return "dict";
  if (is<HostRange>())
    return "range";
  if (const auto *object = getIf<std::shared_ptr<const HostObject>>())
    return (*object)->type;
  if (const LangValue *carried = language())
    return carried->describe();
  return "function";
}

const HostValue *find(const HostDict &dict, const HostValue &key) {
  for (const auto &[each, value] : *dict.items)
    if (each.equals(key))
      return &value;
  return nullptr;
}

const HostValue *find(const HostObject &object, llvm::StringRef name) {
  for (const auto &[each, value] : object.fields)
    if (each == name)
      return &value;
  return nullptr;
}

} // namespace ditron::frontend
