//===- Containers.cpp - Lists, tuples, dicts and ranges at compile time -------------------------------------------------------===//
//
// Truth, elements, operators and subscripts of Python's containers, in kernels (tuples, strings) and in Python.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/Vectors.h"

#include <fmt/format.h>

namespace ditron::frontend {

bool Evaluator::countSteps(size_t count, SourceRange range) {
  steps += count;
  if (steps <= maxSteps)
    return true;
  fail(range, fmt::format("the evaluation at compile time took more than {} steps", maxSteps), "");
  return false;
}

bool Evaluator::remember(const LangValue &value, SourceRange range) {
  if (!value.sequence() && !value.isDict())
    return true;
  if (made.size() >= maxElements) {
    fail(range, fmt::format("an evaluation at compile time may make {} lists and tuples", maxElements), "");
    return false;
  }
  made.push_back(value);
  return true;
}

/// The number of elements of a range, whose bounds are compile-time ints that fit into 64 bits.
static std::optional<std::array<int64_t, 3>> boundsOf(const RangeValue &range) {
  std::array<int64_t, 3> bounds;
  const LangValue *ends[] = {&range.start, &range.stop, &range.step};
  for (auto [index, bound] : llvm::enumerate(ends)) {
    auto number = bound->isConstant() && bound->constant().isIntegral() ? bound->constant().toInt64() : std::nullopt;
    if (!number)
      return std::nullopt;
    bounds[index] = *number;
  }
  return bounds;
}

std::optional<bool> Evaluator::truthOf(const LangValue &value, SourceRange range) {
  if (value.isConstant())
    return value.constant().isTrue();
  if (const auto *elements = value.sequence())
    return !elements->empty();
  if (value.isDict())
    return !value.items().empty();
  if (const auto *bounds = value.getIf<std::shared_ptr<const RangeValue>>())
    if (auto ends = boundsOf(**bounds))
      return (*ends)[2] > 0 ? (*ends)[0] < (*ends)[1] : (*ends)[0] > (*ends)[1];
  if (value.isTensor()) {
    fail(range, fmt::format("code that runs at compile time cannot depend on run-time values, but this is {}", value.describe()));
    return std::nullopt;
  }
  if (value.isUnknown()) {
    reportUnknown(value, "", range);
    return std::nullopt;
  }
  return true;
}

std::optional<std::vector<LangValue>> Evaluator::elementsOf(const LangValue &iterable, SourceRange range) {
  if (iterable.isPoison())
    return std::nullopt;
  // Of kernels the statements are counted, of Python the steps.
  const size_t most = frame().isPython() ? maxElements : maxStatements;
  auto count = [&](size_t size) {
    if (size <= most && (!frame().isPython() || countSteps(size, range)))
      return true;
    if (size > most)
      fail(range, frame().isPython() ? fmt::format("a loop at compile time may have at most {} rounds", most)
                                     : fmt::format("a loop of more than {} iterations cannot be unrolled", most), "");
    return false;
  };
  std::vector<LangValue> elements;
  if (const auto *sequence = iterable.sequence())
    return count(sequence->size()) ? std::optional(*sequence) : std::nullopt;
  if (iterable.isDict()) {
    for (const auto &[key, value] : iterable.items())
      elements.push_back(key);
    return count(elements.size()) ? std::optional(std::move(elements)) : std::nullopt;
  }
  if (iterable.isString() && frame().isPython()) {
    const std::string &text = iterable.constant().getString();
    if (!count(text.size()))
      return std::nullopt;
    for (char c : text)
      elements.push_back(LangValue::string(std::string(1, c)));
    return elements;
  }
  const auto *sequence = iterable.getIf<std::shared_ptr<const RangeValue>>();
  if (!sequence) {
    if (iterable.isUnknown())
      reportUnknown(iterable, "", range);
    else
      fail(range, fmt::format("{} is not a sequence that is known at compile time", iterable.describe()));
    return std::nullopt;
  }
  auto bounds = boundsOf(**sequence);
  if (!bounds) {
    fail(range, "the bounds of this range are not compile-time ints");
    return std::nullopt;
  }
  auto [start, stop, step] = *bounds;
  // In unsigned arithmetic, which does not overflow.
  uint64_t span = step > 0 ? (stop > start ? uint64_t(stop) - uint64_t(start) : 0)
                           : (start > stop ? uint64_t(start) - uint64_t(stop) : 0);
  uint64_t stride = step > 0 ? uint64_t(step) : 0 - uint64_t(step);
  uint64_t size = stride == 0 ? 0 : (span + stride - 1) / stride;
  if (!count(size))
    return std::nullopt;
  for (uint64_t i = 0; i < size; ++i)
    elements.push_back(LangValue::integer(int64_t(uint64_t(start) + i * uint64_t(step))));
  return elements;
}

LangValue Evaluator::evaluateDict(const ast::Dict *expression) {
  LangValue result = LangValue::dict();
  const auto &dict = *result.getIf<DictValue>();
  for (const ast::DictItem &item : expression->items) {
    LangValue key = item.key ? evaluateValue(item.key) : LangValue::none();
    LangValue value = evaluateValue(item.value);
    if (key.isPoison() || value.isPoison())
      return LangValue::poison();
    if (const LangValue *undecided = unknownIn(key))
      return *undecided;
    if (item.key) {
      setItem(dict, key, std::move(value));
      continue;
    }
    if (value.isUnknown())
      return value;
    if (!value.isDict())
      return fail(item.value->range, fmt::format("'{}' is no dict", value.typeName()));
    for (const auto &[otherKey, otherValue] : value.items())
      setItem(dict, otherKey, otherValue);
  }
  return result;
}

//===------------------------------------------------------------------------------------------------------------------===//
// Operators
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Evaluator::binaryOf(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  if (a.isPoison() || b.isPoison())
    return LangValue::poison();
  if (a.isUnknown() || b.isUnknown())
    return a.isUnknown() ? a : b;
  if (auto set = setOperation(*this, op, a, b, range))
    return *set;
  // What a kernel hands to a constexpr function has attributes there, but no value.
  if (frame().isPython() && !frame().mayEmit && (a.isTensor() || b.isTensor()))
    return fail(range, fmt::format("operator {} cannot be computed at compile time: the operands are {} and {}",
                                   spelling(op).str(), a.describe(), b.describe()));
  if (op == BinaryOp::Mod && a.isString() && frame().isPython())
    return formatPercent(*this, a.constant().getString(), b, range);
  bool isPlain = !a.is<ListValue>() && !b.is<ListValue>() && !a.isDict() && !b.isDict() && (!frame().isPython() || (!a.isTuple() && !b.isTuple()));
  if (isPlain && frame().isPython() && a.isConstant() && b.isConstant()) {
    auto computed = binary(op, a.constant(), b.constant());
    if (!computed.isOk())
      return fail(range, computed.status().message(), exceptionOf(computed.status().message()));
    LangValue result(*computed);
    result.isWrapped = a.isWrapped || b.isWrapped;
    return result;
  }
  if (isPlain) {
    LangValue result = emit.binary(op, a, b, range);
    result.isWrapped = a.isWrapped || b.isWrapped;
    return result;
  }
  auto like = [](const LangValue &value, std::vector<LangValue> elements) {
    return value.isList() ? LangValue::list(std::move(elements)) : LangValue::tuple(std::move(elements));
  };
  const auto *left = a.sequence(), *right = b.sequence();
  auto tooLong = [&] { return fail(range, fmt::format("a list at compile time may have at most {} elements", maxElements), ""); };
  if (op == BinaryOp::Add && left && right && !a.isSet() && !b.isSet() && a.isList() == b.isList()) {
    if (left->size() + right->size() > maxElements)
      return tooLong();
    if (!countSteps(left->size() + right->size(), range))
      return LangValue::poison();
    std::vector<LangValue> elements = *left;
    llvm::append_range(elements, *right);
    return like(a, std::move(elements));
  }
  auto isInt = [](const LangValue &value) { return value.isConstant() && value.constant().isIntegral(); };
  if (op == BinaryOp::Mult && !a.isSet() && !b.isSet() && ((left && isInt(b)) || (right && isInt(a)))) {
    const std::vector<LangValue> &pattern = left ? *left : *right;
    auto count = (left ? b : a).constant().toInt64();
    if (!count || (*count > 0 && pattern.size() > maxElements / static_cast<size_t>(*count)))
      return tooLong();
    std::vector<LangValue> elements;
    for (int64_t i = 0; i < *count; ++i)
      llvm::append_range(elements, pattern);
    return countSteps(elements.size(), range) ? like(left ? a : b, std::move(elements)) : LangValue::poison();
  }
  if (op == BinaryOp::BitOr && a.isDict() && b.isDict()) {
    LangValue result = LangValue::dict(a.items());
    for (const auto &[key, value] : b.items())
      setItem(*result.getIf<DictValue>(), key, value);
    return result;
  }
  if (left && right && !a.is<ListValue>() && !b.is<ListValue>())
    return emit.binary(op, a, b, range);
  return fail(range, fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", spelling(op).str(), a.typeName(),
                                 b.typeName()));
}

std::optional<bool> Evaluator::compareOf(CompareOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  auto unsupported = [&]() -> std::optional<bool> {
    fail(range, fmt::format("'{}' not supported between instances of '{}' and '{}'", spelling(op).str(), a.typeName(),
                            b.typeName()));
    return std::nullopt;
  };
  if (const LangValue *undecided = unknownIn(a) ? unknownIn(a) : unknownIn(b)) {
    reportUnknown(*undecided, "", range);
    return std::nullopt;
  }
  if (auto sets = compareSets(op, a, b))
    return sets;
  switch (op) {
  case CompareOp::Eq: return a.equals(b);
  case CompareOp::NotEq: return !a.equals(b);
  case CompareOp::Is:
  case CompareOp::IsNot: return (a.identical(b) || (a.isType() && a.equals(b))) == (op == CompareOp::Is);
  case CompareOp::In:
  case CompareOp::NotIn: {
    bool isIn = false;
    if (const NativeFunction *contains = findNativeMethod(b, "__contains__")) {
      LangValue result = callNative({*this, *contains, b, {a}, {}, range});
      if (result.isUnknown())
        reportUnknown(result, "", range);
      if (!result.isConstant())
        return std::nullopt;
      isIn = result.constant().isTrue();
    } else if (const auto *dict = b.getIf<DictValue>()) {
      isIn = find(*dict, a) != nullptr;
    } else if (b.isConstant()) {
      auto result = compare(CompareOp::In, a.isConstant() ? a.constant() : ConstValue::none(), b.constant());
      if (!result.isOk()) {
        fail(range, result.status().message());
        return std::nullopt;
      }
      isIn = result->isTrue();
    } else {
      auto elements = elementsOf(b, range);
      if (!elements)
        return std::nullopt;
      isIn = llvm::any_of(*elements, [&](const LangValue &element) { return element.equals(a); });
    }
    return isIn == (op == CompareOp::In);
  }
  default: break;
  }
  if (a.isConstant() && b.isConstant()) {
    auto result = compare(op, a.constant(), b.constant());
    if (result.isOk())
      return result->isTrue();
    fail(range, result.status().message());
    return std::nullopt;
  }
  const auto *left = a.sequence(), *right = b.sequence();
  if (!left || !right || a.isSet() || b.isSet() || a.isList() != b.isList()) {
    std::optional<int> order = orderOfObjects(a, b);
    if (!order)
      return unsupported();
    return op == CompareOp::Lt ? *order < 0 : op == CompareOp::LtE ? *order <= 0 : op == CompareOp::Gt ? *order > 0 : *order >= 0;
  }
  for (auto [x, y] : llvm::zip(*left, *right))
    if (!x.equals(y))
      return compareOf(op, x, y, range);
  return compareOf(op, LangValue::integer(left->size()), LangValue::integer(right->size()), range);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Subscripts
//===------------------------------------------------------------------------------------------------------------------===//

LangValue Evaluator::subscriptContainer(const LangValue &value, const ast::Subscript *expression) {
  if (const auto *slice = llvm::dyn_cast<ast::Slice>(expression->index))
    return sliceContainer(value, slice);
  LangValue index = evaluateValue(expression->index);
  if (index.isPoison() || index.isUnknown())
    return index;
  SourceRange place = expression->index->range;
  if (const auto *dict = value.getIf<DictValue>())
    return itemOf(*this, *dict, index, place);
  auto at = index.isConstant() && index.constant().isIntegral() ? std::optional(index.constant()) : std::nullopt;
  if (!at)
    return fail(place, fmt::format("the index of a {} must be a compile-time int, but got {}", value.typeName(), index.describe()));
  int64_t size = 0, start = 0, step = 1;
  if (const auto *elements = value.sequence()) {
    size = elements->size();
  } else if (value.isString()) {
    size = value.constant().getString().size();
  } else {
    auto elements = elementsOf(value, place);
    if (!elements)
      return LangValue::poison();
    size = elements->size();
    start = size > 0 ? *elements->front().constant().toInt64() : 0;
    step = size > 1 ? *(*elements)[1].constant().toInt64() - start : 1;
  }
  auto i = at->toInt64();
  if (!i || *i < -size || *i >= size)
    return fail(place, fmt::format("index {} is out of range for {}", index.display(), value.describe()), "IndexError");
  int64_t position = *i < 0 ? *i + size : *i;
  if (const auto *elements = value.sequence())
    return LangValue((*elements)[position]);
  return value.isString() ? LangValue::string(value.constant().getString().substr(position, 1))
                          : LangValue::integer(start + position * step);
}

LangValue Evaluator::sliceContainer(const LangValue &value, const ast::Slice *slice) {
  std::vector<LangValue> elements;
  int64_t size = 0;
  if (value.isString()) {
    size = value.constant().getString().size();
  } else {
    if (value.isDict())
      return fail(slice->range, "'dict' cannot be sliced");
    auto all = elementsOf(value, slice->range);
    if (!all)
      return LangValue::poison();
    elements = std::move(*all);
    size = elements.size();
  }
  LangValue unknownBound;
  bool isGood = true;
  auto bound = [&](const ast::Expr *expression) -> std::optional<int64_t> {
    LangValue given = expression ? evaluate(expression) : LangValue::none();
    if (given.isUnknown())
      unknownBound = given;
    if (given.isNone() || given.isPoison() || given.isUnknown()) {
      isGood &= !given.isPoison();
      return std::nullopt;
    }
    if (given.isConstant() && given.constant().isIntegral())
      return given.constant().toInt64().value_or(given.constant().getInt().isNegative() ? INT64_MIN / 2 : INT64_MAX / 2);
    fail(expression->range, fmt::format("the index of a {} must be a compile-time int, but got {}", value.typeName(), given.describe()));
    isGood = false;
    return std::nullopt;
  };
  auto lower = bound(slice->lower), upper = bound(slice->upper), step = bound(slice->step);
  if (!isGood || unknownBound.isUnknown())
    return unknownBound;
  int64_t stride = step.value_or(1);
  if (stride == 0)
    return fail(slice->range, "slice step cannot be zero", "ValueError");
  auto clamp = [&](std::optional<int64_t> at, int64_t missing) {
    if (!at)
      return missing;
    int64_t i = *at < 0 ? *at + size : *at;
    return stride > 0 ? std::clamp<int64_t>(i, 0, size) : std::clamp<int64_t>(i, -1, size - 1);
  };
  int64_t begin = clamp(lower, stride > 0 ? 0 : size - 1), end = clamp(upper, stride > 0 ? size : -1);
  std::vector<LangValue> picked;
  std::string text;
  // The stride may be so large that the next place does not fit into 64 bits.
  for (int64_t i = begin; stride > 0 ? i < end : i > end;) {
    if (value.isString())
      text += value.constant().getString()[i];
    else
      picked.push_back(elements[i]);
    if (stride > 0 ? end - i <= stride : end - i >= stride)
      break;
    i += stride;
  }
  if (value.isString())
    return LangValue::string(std::move(text));
  if (isVector(value)) // a slice of a vector is a vector
    return value.withParts(std::move(picked));
  return value.isTuple() ? LangValue::tuple(std::move(picked)) : LangValue::list(std::move(picked));
}

void Evaluator::spoilObject(const ast::Expr *object, const LangValue &reason) {
  const auto *name = llvm::dyn_cast<ast::Name>(object);
  for (Environment *names = frame().environment.get(); name && names; names = names->parent.get())
    if (auto it = names->names.find(name->id); it != names->names.end()) {
      if (it->second.value.is<ListValue>() || it->second.value.isDict())
        it->second.value = reason;
      return;
    }
}

bool Evaluator::assignItem(const ast::Subscript *target, const LangValue &value) {
  LangValue object = evaluate(target->value);
  LangValue index = object.isPoison() || llvm::isa<ast::Slice>(target->index) ? LangValue::poison() : evaluateValue(target->index);
  if (object.isUnknown() || index.isUnknown()) {
    spoilObject(target->value, index.isUnknown() ? index : object);
    return true;
  }
  if (const auto *dict = object.getIf<DictValue>(); dict && !index.isPoison()) {
    setItem(*dict, index, value);
    return true;
  }
  if (const NativeFunction *native = object.object() ? findNativeMethod(object, "__setitem__") : nullptr; native && !index.isPoison())
    return !callNative({*this, *native, object, {index, value}, {}, target->range}).isPoison();
  const auto *list = object.isList() ? object.getIf<ListValue>() : nullptr;
  if (index.isPoison() || !list) {
    if (!object.isPoison() && (llvm::isa<ast::Slice>(target->index) || !index.isPoison()))
      fail(target->range, fmt::format("an element of {} cannot be assigned", object.typeName()));
    return false;
  }
  auto i = index.isConstant() && index.constant().isIntegral() ? index.constant().toInt64() : std::nullopt;
  int64_t size = list->elements->size();
  if (!i || *i < -size || *i >= size) {
    fail(target->index->range, fmt::format("list assignment index {} is out of range", index.repr()), "IndexError");
    return false;
  }
  (*list->elements)[*i < 0 ? *i + size : *i] = value;
  return true;
}

} // namespace ditron::frontend
