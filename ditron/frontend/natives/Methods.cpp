//===- Methods.cpp - Functions of Python that run while compiling: methods of containers and numbers ---------------===//
//
// Methods of list, tuple, set, dict, int and float; those of str are in Strings.cpp. Sets keep their elements in the
// order in which they came, which Python leaves open.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/Natives.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

using Values = std::vector<LangValue>;

//===------------------------------------------------------------------------------------------------------------------===//
// Lists and tuples
//===------------------------------------------------------------------------------------------------------------------===//

/// The elements of the object, which may be changed.
Values &elementsOf(NativeCall &call) { return *call.self.getIf<ListValue>()->elements; }

/// Whether one more value fits into the list; reports it if not.
bool canHold(NativeCall &call, const LangValue &value) {
  const auto *other = value.getIf<ListValue>();
  if (other && other->elements == call.self.getIf<ListValue>()->elements) {
    call.fail("a list cannot hold itself at compile time", "ValueError");
    return false;
  }
  return call.checkSize(elementsOf(call).size() + 1);
}

LangValue append(NativeCall &call) {
  if (!canHold(call, call.args[0]))
    return LangValue::poison();
  elementsOf(call).push_back(call.args[0]);
  return LangValue::none();
}

LangValue extend(NativeCall &call) {
  std::optional<Values> more = call.elements(0);
  if (!more || !call.checkSize(elementsOf(call).size() + more->size()))
    return LangValue::poison();
  for (const LangValue &value : *more) {
    if (!canHold(call, value))
      return LangValue::poison();
    elementsOf(call).push_back(value);
  }
  return LangValue::none();
}

LangValue insert(NativeCall &call) {
  if (call.args[0].isUnknown())
    return call.args[0];
  std::optional<int64_t> at = call.integer(call.args[0], "the index of a list");
  if (!at || !canHold(call, call.args[1]))
    return LangValue::poison();
  const int64_t size = elementsOf(call).size();
  const int64_t place = std::clamp<int64_t>(*at < 0 ? *at + size : *at, 0, size);
  elementsOf(call).insert(elementsOf(call).begin() + place, call.args[1]);
  return LangValue::none();
}

LangValue popElement(NativeCall &call) {
  std::optional<int64_t> at =
      call.args.empty() ? std::optional<int64_t>(-1) : call.integer(call.args[0], "the index of a list");
  if (!at)
    return LangValue::poison();
  const int64_t size = elementsOf(call).size();
  if (*at < -size || *at >= size)
    return call.fail(size ? "pop index out of range" : "pop from empty list", "IndexError");
  auto it = elementsOf(call).begin() + (*at < 0 ? *at + size : *at);
  LangValue value = *it;
  elementsOf(call).erase(it);
  return value;
}

LangValue reverse(NativeCall &call) {
  std::reverse(elementsOf(call).begin(), elementsOf(call).end());
  return LangValue::none();
}

LangValue sort(NativeCall &call) {
  LangValue sorted = sortValues(call, elementsOf(call));
  if (!sorted.isList())
    return sorted;
  elementsOf(call) = *sorted.sequence();
  return LangValue::none();
}

LangValue clear(NativeCall &call) {
  elementsOf(call).clear();
  return LangValue::none();
}

LangValue copy(NativeCall &call) {
  return call.self.isSet() ? LangValue::set(elementsOf(call), call.self.getIf<ListValue>()->isFrozen) : LangValue::list(elementsOf(call));
}

/// The first element of the object from `begin` to `end` that is equal to the argument; null if there is none.
const LangValue *findElement(const Values &elements, const LangValue &wanted, size_t begin = 0,
                             size_t end = ~size_t(0)) {
  for (size_t i = begin; i < std::min(end, elements.size()); ++i)
    if (elements[i].equals(wanted))
      return &elements[i];
  return nullptr;
}

LangValue remove(NativeCall &call) {
  const LangValue *found = findElement(elementsOf(call), call.args[0]);
  if (!found && call.function.shortName() == "discard")
    return LangValue::none();
  if (!found)
    return call.fail(fmt::format("{} is not in the {}", call.args[0].repr(), call.self.typeName()),
                     call.self.isSet() ? "KeyError" : "ValueError");
  elementsOf(call).erase(elementsOf(call).begin() + (found - elementsOf(call).data()));
  return LangValue::none();
}

LangValue countElement(NativeCall &call) {
  const Values &elements = *call.self.sequence();
  if (const LangValue *unknown = firstUnknown(elements))
    return *unknown;
  return LangValue::integer(llvm::count_if(elements, [&](const LangValue &each) { return each.equals(call.args[0]); }));
}

LangValue indexOfElement(NativeCall &call) {
  const Values &elements = *call.self.sequence();
  int64_t bounds[2] = {0, static_cast<int64_t>(elements.size())};
  for (size_t i = 1; i < call.args.size(); ++i) {
    std::optional<int64_t> bound = call.integer(call.args[i], "the bound of a search");
    if (!bound)
      return LangValue::poison();
    bounds[i - 1] = *bound < 0 ? std::max<int64_t>(0, *bound + elements.size()) : *bound;
  }
  if (const LangValue *unknown = firstUnknown(elements))
    return *unknown;
  const LangValue *found = findElement(elements, call.args[0], bounds[0], bounds[1]);
  return found ? LangValue::integer(found - elements.data())
               : call.fail(fmt::format("{} is not in the {}", call.args[0].repr(), call.self.typeName()), "ValueError");
}

//===------------------------------------------------------------------------------------------------------------------===//
// Sets
//===------------------------------------------------------------------------------------------------------------------===//

bool contains(llvm::ArrayRef<LangValue> elements, const LangValue &wanted) {
  return llvm::any_of(elements, [&](const LangValue &each) { return each.equals(wanted); });
}

LangValue addElement(NativeCall &call) {
  if (!call.evaluator.countSteps(elementsOf(call).size(), call.range) || !call.checkSize(elementsOf(call).size() + 1))
    return LangValue::poison();
  if (!isHashable(call.args[0]))
    return call.fail(fmt::format("unhashable type: '{}'", call.args[0].typeName()));
  if (!contains(elementsOf(call), call.args[0]))
    elementsOf(call).push_back(call.args[0]);
  orderSet(elementsOf(call));
  return LangValue::none();
}

/// union, intersection, difference and symmetric_difference with any number of iterables.
LangValue combineSets(NativeCall &call) {
  llvm::StringRef name = call.function.shortName();
  LangValue result = LangValue::set(elementsOf(call));
  const BinaryOp op = name.starts_with("union") || name == "update" ? BinaryOp::BitOr
                      : name.starts_with("intersection")            ? BinaryOp::BitAnd
                      : name.starts_with("difference")              ? BinaryOp::Sub
                                                                    : BinaryOp::BitXor;
  for (size_t i = 0; i < call.args.size(); ++i) {
    std::optional<Values> elements = call.elements(i);
    LangValue other = elements ? makeSet(call.evaluator, *elements, call.range) : LangValue::poison();
    if (!other.isSet())
      return other;
    std::optional<LangValue> combined = setOperation(call.evaluator, op, result, other, call.range);
    if (!combined || !combined->isSet())
      return combined.value_or(LangValue::poison());
    result = std::move(*combined);
  }
  if (!name.ends_with("update"))
    return result;
  elementsOf(call) = *result.sequence();
  return LangValue::none();
}

/// issubset, issuperset and isdisjoint.
LangValue relateSets(NativeCall &call) {
  std::optional<Values> other = call.elements(0);
  if (!other)
    return LangValue::poison();
  if (const LangValue *unknown = firstUnknown(*other))
    return *unknown;
  const Values &self = elementsOf(call);
  if (!call.evaluator.countSteps(self.size() * other->size() / 16, call.range))
    return LangValue::poison();
  llvm::StringRef name = call.function.shortName();
  if (name == "isdisjoint")
    return LangValue::boolean(llvm::none_of(self, [&](const LangValue &each) { return contains(*other, each); }));
  const Values &smaller = name == "issubset" ? self : *other, &larger = name == "issubset" ? *other : self;
  return LangValue::boolean(llvm::all_of(smaller, [&](const LangValue &each) { return contains(larger, each); }));
}

LangValue popFromSet(NativeCall &call) {
  if (elementsOf(call).empty())
    return call.fail("pop from an empty set", "KeyError");
  if (elementsOf(call).size() > 1)
    return call.unknown(); // Python leaves open which element it is
  LangValue value = elementsOf(call).front();
  elementsOf(call).clear();
  return value;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Dicts
//===------------------------------------------------------------------------------------------------------------------===//

const DictValue &dictOf(const NativeCall &call) { return *call.self.getIf<DictValue>(); }

/// Sets a key of the object; false after an error.
bool setKey(const NativeCall &call, const LangValue &key, const LangValue &value) {
  if (!call.evaluator.countSteps(1 + call.self.items().size() / 16, call.range) ||
      !call.checkSize(call.self.items().size() + 1))
    return false;
  if (!isHashable(key))
    return !call.fail(fmt::format("unhashable type: '{}'", key.typeName())).isPoison();
  setItem(dictOf(call), key, value);
  return true;
}

/// The pairs of a dict, or of a sequence of pairs; nullopt after an error. `failure` is then poison or what is unknown.
std::optional<std::vector<std::pair<LangValue, LangValue>>> pairsOf(const NativeCall &call, const LangValue &from,
                                                                    LangValue &failure) {
  if (from.isDict())
    return from.items();
  std::optional<Values> elements = call.evaluator.elementsOf(from, call.range);
  std::vector<std::pair<LangValue, LangValue>> pairs;
  for (const LangValue &element : elements.value_or(Values())) {
    const Values *both = element.sequence();
    if (element.isUnknown() || (both && both->size() == 2 && (*both)[0].isUnknown())) {
      failure = element.isUnknown() ? element : (*both)[0];
      return std::nullopt;
    }
    if (!both || both->size() != 2) {
      call.fail(fmt::format("a dict is made of pairs, but an element is {}", element.describe()),
                both ? "ValueError" : "");
      return std::nullopt;
    }
    pairs.emplace_back((*both)[0], (*both)[1]);
  }
  return elements ? std::optional(std::move(pairs)) : std::nullopt;
}

LangValue update(NativeCall &call) {
  LangValue failure;
  for (const LangValue &from : call.args) {
    if (from.isUnknown())
      return from;
    auto pairs = pairsOf(call, from, failure);
    if (!pairs)
      return failure;
    for (const auto &[key, value] : *pairs)
      if (!setKey(call, key, value))
        return LangValue::poison();
  }
  for (const auto &[name, value] : call.keywords)
    if (!setKey(call, LangValue::string(name.str()), value))
      return LangValue::poison();
  return LangValue::none();
}

/// keys, values and items.
LangValue entries(NativeCall &call) {
  llvm::StringRef name = call.function.shortName();
  return LangValue(ViewValue{dictOf(call), name == "keys"     ? ViewValue::Kind::Keys
                                           : name == "values" ? ViewValue::Kind::Values
                                                              : ViewValue::Kind::Items});
}

/// get, setdefault and pop.
LangValue lookUp(NativeCall &call) {
  if (call.args[0].isUnknown())
    return call.args[0];
  if (!call.evaluator.countSteps(1 + call.self.items().size() / 16, call.range))
    return LangValue::poison();
  llvm::StringRef name = call.function.shortName();
  const LangValue *known = find(dictOf(call), call.args[0]);
  if (!known && name == "pop" && call.args.size() == 1)
    return call.fail(fmt::format("the dict has no key {}", call.args[0].repr()), "KeyError");
  LangValue value = known ? *known : call.args.size() > 1 ? call.args[1] : LangValue::none();
  if (!known && name == "setdefault" && !setKey(call, call.args[0], value))
    return LangValue::poison();
  if (known && name == "pop")
    llvm::erase_if(call.self.items(), [&](const auto &item) { return item.first.equals(call.args[0]); });
  return value;
}

LangValue popItem(NativeCall &call) {
  if (call.self.items().empty())
    return call.fail("popitem(): dictionary is empty", "KeyError");
  auto [key, value] = call.self.items().back();
  call.self.items().pop_back();
  return LangValue::tuple({key, value});
}

LangValue clearDict(NativeCall &call) {
  call.self.items().clear();
  return LangValue::none();
}

LangValue copyDict(NativeCall &call) {
  LangValue result = LangValue::dict(call.self.items());
  return LangValue(DictValue{result.getIf<DictValue>()->items, dictOf(call).factory});
}

//===------------------------------------------------------------------------------------------------------------------===//
// Numbers
//===------------------------------------------------------------------------------------------------------------------===//

LangValue bitLength(NativeCall &call) { return LangValue::integer(call.self.constant().getInt().bitLength()); }

LangValue bitCount(NativeCall &call) {
  return LangValue::integer(llvm::count(call.self.constant().getInt().abs().toString(2), '1'));
}

LangValue isInteger(NativeCall &call) {
  if (!call.self.constant().isFloat())
    return LangValue::boolean(true);
  const double value = call.self.constant().getFloat();
  return LangValue::boolean(std::isfinite(value) && std::floor(value) == value);
}

/// numpy's and torch's scalars have .item(); so have Python's own, for programs that do not care which they hold.
LangValue conjugate(NativeCall &call) { return call.self; }

LangValue integerRatio(NativeCall &call) {
  const ConstValue &number = call.self.constant();
  if (!number.isFloat())
    return LangValue::tuple({LangValue(ConstValue::integer(number.getInt())), LangValue::integer(1)});
  int exponent = 0;
  double mantissa = std::frexp(number.getFloat(), &exponent);
  if (!std::isfinite(number.getFloat()))
    return call.fail("cannot convert infinity or NaN to integer ratio",
                     std::isnan(number.getFloat()) ? "ValueError" : "OverflowError");
  for (; mantissa != std::floor(mantissa); --exponent)
    mantissa *= 2;
  BigInt top = *BigInt::fromDouble(mantissa), bottom(1);
  (exponent > 0 ? top : bottom) = *shl(exponent > 0 ? top : bottom, BigInt(std::abs(exponent)));
  return LangValue::tuple({LangValue(ConstValue::integer(top)), LangValue(ConstValue::integer(bottom))});
}

} // namespace

//===------------------------------------------------------------------------------------------------------------------===//
// Sets, for the operators
//===------------------------------------------------------------------------------------------------------------------===//

bool isHashable(const LangValue &value) {
  if (value.isTuple())
    return llvm::all_of(value.elements(), isHashable);
  if (const Instance *instance = value.instance()) {
    const ClassInfo &cls = *instance->cls;
    if (cls.dataclass && cls.dataclass->eq && !cls.dataclass->isFrozen)
      return cls.member("__hash__") != nullptr;
    return !cls.member("__eq__") || cls.member("__hash__");
  }
  const auto *list = value.getIf<ListValue>();
  return !value.isDict() && !value.is<ViewValue>() && (!list || list->isFrozen);
}

LangValue makeSet(Evaluator &evaluator, llvm::ArrayRef<LangValue> elements, SourceRange range) {
  if (const LangValue *unknown = firstUnknown(elements))
    return *unknown;
  Values unique;
  for (const LangValue &element : elements) {
    if (!isHashable(element))
      return evaluator.fail(range, fmt::format("unhashable type: '{}'", element.typeName()));
    if (!evaluator.countSteps(1 + unique.size(), range))
      return LangValue::poison();
    if (!contains(unique, element))
      unique.push_back(element);
  }
  return LangValue::set(std::move(unique));
}

std::optional<LangValue> setOperation(Evaluator &evaluator, BinaryOp op, const LangValue &a, const LangValue &b,
                                      SourceRange range) {
  const bool isSetOperator =
      op == BinaryOp::BitOr || op == BinaryOp::BitAnd || op == BinaryOp::Sub || op == BinaryOp::BitXor;
  if (!a.isSet() || !b.isSet() || !isSetOperator)
    return std::nullopt;
  const Values &left = *a.sequence(), &right = *b.sequence();
  if (!evaluator.countSteps(1 + left.size() * right.size() / 16, range))
    return LangValue::poison();
  Values result;
  for (const LangValue &element : left)
    if (op == BinaryOp::BitOr || contains(right, element) == (op == BinaryOp::BitAnd))
      result.push_back(element);
  if (op == BinaryOp::BitOr || op == BinaryOp::BitXor)
    for (const LangValue &element : right)
      if (!contains(left, element))
        result.push_back(element);
  if (result.size() > Evaluator::maxElements)
    return evaluator.fail(
        range, fmt::format("a set at compile time may have at most {} elements", Evaluator::maxElements), "");
  return LangValue::set(std::move(result), a.getIf<ListValue>()->isFrozen);
}

std::optional<bool> compareSets(CompareOp op, const LangValue &a, const LangValue &b) {
  if (!a.isSet() || !b.isSet())
    return std::nullopt;
  const Values &left = *a.sequence(), &right = *b.sequence();
  auto isWithin = [](const Values &smaller, const Values &larger) {
    return llvm::all_of(smaller, [&](const LangValue &each) { return contains(larger, each); });
  };
  switch (op) {
  case CompareOp::LtE: return isWithin(left, right);
  case CompareOp::Lt: return left.size() < right.size() && isWithin(left, right);
  case CompareOp::GtE: return isWithin(right, left);
  case CompareOp::Gt: return right.size() < left.size() && isWithin(right, left);
  case CompareOp::Eq: return a.equals(b);
  case CompareOp::NotEq: return !a.equals(b);
  default: return std::nullopt;
  }
}

llvm::ArrayRef<NativeFunction> nativeMethods() {
  constexpr unsigned any = NativeFunction::any;
  static constexpr NativeFunction rows[] = {
      {"list.append", 1, 1, append, "", true},
      {"list.clear", 0, 0, clear},
      {"list.copy", 0, 0, copy},
      {"list.count", 1, 1, countElement},
      {"list.extend", 1, 1, extend},
      {"list.index", 1, 3, indexOfElement},
      {"list.insert", 2, 2, insert, "", true},
      {"list.pop", 0, 1, popElement},
      {"list.remove", 1, 1, remove},
      {"list.reverse", 0, 0, reverse},
      {"list.sort", 0, 0, sort, "key reverse"},
      {"tuple.count", 1, 1, countElement},
      {"tuple.index", 1, 3, indexOfElement},
      {"set.add", 1, 1, addElement},
      {"set.clear", 0, 0, clear},
      {"set.copy", 0, 0, copy},
      {"set.difference", 0, any, combineSets},
      {"set.difference_update", 0, any, combineSets},
      {"set.discard", 1, 1, remove},
      {"set.intersection", 0, any, combineSets},
      {"set.intersection_update", 0, any, combineSets},
      {"set.isdisjoint", 1, 1, relateSets},
      {"set.issubset", 1, 1, relateSets},
      {"set.issuperset", 1, 1, relateSets},
      {"set.pop", 0, 0, popFromSet},
      {"set.remove", 1, 1, remove},
      {"set.symmetric_difference", 1, 1, combineSets},
      {"set.union", 0, any, combineSets},
      {"set.update", 0, any, combineSets},
      {"dict.clear", 0, 0, clearDict},
      {"dict.copy", 0, 0, copyDict},
      {"dict.get", 1, 2, lookUp, "", true},
      {"dict.items", 0, 0, entries},
      {"dict.keys", 0, 0, entries},
      {"dict.pop", 1, 2, lookUp, "", true},
      {"dict.popitem", 0, 0, popItem},
      {"dict.setdefault", 1, 2, lookUp, "", true},
      {"dict.update", 0, 1, update, "*", true},
      {"dict.values", 0, 0, entries},
      {"int.as_integer_ratio", 0, 0, integerRatio},
      {"int.bit_count", 0, 0, bitCount},
      {"int.bit_length", 0, 0, bitLength},
      {"int.conjugate", 0, 0, conjugate},
      {"int.is_integer", 0, 0, isInteger},
      {"float.as_integer_ratio", 0, 0, integerRatio},
      {"float.conjugate", 0, 0, conjugate},
      {"float.is_integer", 0, 0, isInteger},
  };
  return rows;
}

} // namespace ditron::frontend
