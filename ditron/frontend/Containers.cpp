//===- Containers.cpp - Lists, tuples, dicts and ranges at compile time -------------------------------------------------------===//
//
// Truth, elements, operators and subscripts of Python's containers, in kernels (tuples, strings) and in Python.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/Iterators.h"
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
  if (!value.sequence() && !value.isDict() && !value.instance() && !value.iterator())
    return true;
  if (made.size() >= maxElements) {
    fail(range, fmt::format("an evaluation at compile time may make {} lists, tuples and objects", maxElements), "");
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
  if (const auto *view = value.getIf<ViewValue>())
    return !view->dict.items->empty();
  if (value.instance()) {
    if (!numberOf(value).instance())
      return truthOf(numberOf(value), range);
    for (llvm::StringRef name : {"__bool__", "__len__"})
      if (std::optional<LangValue> truth = callProtocol(value, name, {}, range))
        return truth->isPoison() ? std::nullopt : truthOf(*truth, range);
    return true;
  }
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

/// The characters of a text, each a str; a character may be several bytes.
static std::vector<LangValue> charactersOf(llvm::StringRef text) {
  std::vector<LangValue> characters;
  while (!text.empty()) {
    llvm::StringRef character = text.take_front(codePointOffset(text, 1));
    characters.push_back(LangValue::string(character.str()));
    text = text.drop_front(character.size());
  }
  return characters;
}

/// The members of an Enum, without second names of one.
static std::vector<LangValue> membersOf(const std::shared_ptr<const ClassInfo> &info) {
  std::vector<LangValue> members;
  for (const auto &[name, binding] : info->members->names)
    if (const Instance *member = binding.value.instance();
        member && member->cls == info && member->attributes.lookup("name").display() == name)
      members.push_back(binding.value);
  return members;
}

/// How many numbers a range has. In unsigned arithmetic, which does not overflow.
static uint64_t sizeOfRange(int64_t start, int64_t stop, int64_t step) {
  const uint64_t span = step > 0 ? (stop > start ? uint64_t(stop) - uint64_t(start) : 0)
                                 : (start > stop ? uint64_t(start) - uint64_t(stop) : 0);
  const uint64_t stride = step > 0 ? uint64_t(step) : 0 - uint64_t(step);
  return stride == 0 ? 0 : (span + stride - 1) / stride;
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
    return count(text.size()) ? std::optional(charactersOf(text)) : std::nullopt;
  }
  if (iterable.iterator() || iterable.is<ViewValue>() || (iterable.instance() && numberOf(iterable).instance())) {
    std::shared_ptr<Iterator> iterator = iteratorOf(iterable, range);
    while (iterator) {
      std::optional<LangValue> element = iterator->next(*this, range);
      if (!element)
        return elements;
      if (element->isPoison() || !count(elements.size() + 1 > most ? elements.size() + 1 : 1))
        return std::nullopt;
      elements.push_back(std::move(*element));
    }
    return std::nullopt;
  }
  if (const auto *cls = iterable.getIf<ClassValue>(); cls && cls->info->isEnum && cls->info->members)
    return membersOf(cls->info);
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
  const uint64_t size = sizeOfRange(start, stop, step);
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
      if (!isHashable(key))
        return fail(item.key->range, fmt::format("unhashable type: '{}'", key.typeName()));
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

/// The elements of keys or items as a set, with which they are compared; any other value as it is.
static LangValue setOfView(Evaluator &evaluator, const LangValue &value, SourceRange range) {
  const auto *view = value.getIf<ViewValue>();
  if (!view || view->kind == ViewValue::Kind::Values)
    return value;
  auto elements = evaluator.elementsOf(value, range);
  return elements ? makeSet(evaluator, *elements, range) : LangValue::poison();
}

LangValue Evaluator::binaryOfViews(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  LangValue left = setOfView(*this, a, range), right = setOfView(*this, b, range);
  if (left.is<ViewValue>() || right.is<ViewValue>() || left.isPoison())
    return fail(range, fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", spelling(op).str(), a.typeName(), b.typeName()));
  if (right.isSet())
    return binaryOf(op, left, right, range);
  auto elements = elementsOf(right, range); // keys take any iterable
  return elements ? binaryOf(op, left, makeSet(*this, *elements, range), range) : LangValue::poison();
}

/// + and * of lists and tuples, | of dicts; nullopt for other operators and operands.
static std::optional<LangValue> binaryOfContainers(Evaluator &evaluator, BinaryOp op, const LangValue &a, const LangValue &b,
                                                   SourceRange range) {
  auto like = [](const LangValue &value, std::vector<LangValue> elements) {
    return value.isList() ? LangValue::list(std::move(elements)) : LangValue::tuple(std::move(elements));
  };
  auto tooLong = [&] {
    return evaluator.fail(range, fmt::format("a list at compile time may have at most {} elements", Evaluator::maxElements), "");
  };
  auto isInt = [](const LangValue &value) { return value.isConstant() && value.constant().isIntegral(); };
  const auto *left = a.sequence(), *right = b.sequence();
  if (op == BinaryOp::Add && left && right && !a.isSet() && !b.isSet() && a.isList() == b.isList()) {
    if (left->size() + right->size() > Evaluator::maxElements)
      return tooLong();
    if (!evaluator.countSteps(left->size() + right->size(), range))
      return LangValue::poison();
    std::vector<LangValue> elements = *left;
    llvm::append_range(elements, *right);
    return like(a, std::move(elements));
  }
  if (op == BinaryOp::Mult && !a.isSet() && !b.isSet() && ((left && isInt(b)) || (right && isInt(a)))) {
    const std::vector<LangValue> &pattern = left ? *left : *right;
    auto count = (left ? b : a).constant().toInt64();
    if (!count || (*count > 0 && pattern.size() > Evaluator::maxElements / static_cast<size_t>(*count)))
      return tooLong();
    std::vector<LangValue> elements;
    for (int64_t i = 0; i < *count; ++i)
      llvm::append_range(elements, pattern);
    return evaluator.countSteps(elements.size(), range) ? like(left ? a : b, std::move(elements)) : LangValue::poison();
  }
  if (op == BinaryOp::BitOr && a.isDict() && b.isDict()) {
    LangValue result = LangValue::dict(a.items());
    for (const auto &[key, value] : b.items())
      setItem(*result.getIf<DictValue>(), key, value);
    return result;
  }
  return std::nullopt;
}

LangValue Evaluator::binaryOf(BinaryOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  if (a.isPoison() || b.isPoison())
    return LangValue::poison();
  if (a.isUnknown() || b.isUnknown())
    return a.isUnknown() ? a : b;
  if (a.is<ViewValue>() || b.is<ViewValue>())
    return binaryOfViews(op, a, b, range);
  if (auto set = setOperation(*this, op, a, b, range))
    return *set;
  if (a.instance() || b.instance())
    return operateOnInstance(op, a, b, range);
  // What a kernel hands to a constexpr function has attributes there, but no value.
  if (frame().isPython() && !frame().mayEmit && (a.isTensor() || b.isTensor()))
    return fail(range, fmt::format("operator {} cannot be computed at compile time: the operands are {} and {}",
                                   spelling(op).str(), a.describe(), b.describe()));
  if (op == BinaryOp::Mod && a.isString() && frame().isPython())
    return formatPercent(*this, a.constant().getString(), b, range);
  const bool hasTuples = a.isTuple() || b.isTuple();
  const bool isPlain = !a.is<ListValue>() && !b.is<ListValue>() && !a.isDict() && !b.isDict() && !(frame().isPython() && hasTuples);
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
  if (std::optional<LangValue> result = binaryOfContainers(*this, op, a, b, range))
    return *result;
  if (a.sequence() && b.sequence() && !a.is<ListValue>() && !b.is<ListValue>())
    return emit.binary(op, a, b, range);
  return fail(range, fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", spelling(op).str(), a.typeName(),
                                 b.typeName()));
}

std::optional<bool> Evaluator::compareOf(CompareOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  const bool isIdentity = op == CompareOp::Is || op == CompareOp::IsNot;
  if (const LangValue *undecided = unknownIn(a) ? unknownIn(a) : unknownIn(b); undecided && !isIdentity) {
    reportUnknown(*undecided, "", range);
    return std::nullopt;
  }
  const bool isMembership = op == CompareOp::In || op == CompareOp::NotIn;
  if (!isIdentity && !isMembership && (a.is<ViewValue>() || b.is<ViewValue>())) {
    LangValue left = setOfView(*this, a, range), right = setOfView(*this, b, range);
    if (!left.is<ViewValue>() && !right.is<ViewValue>())
      return compareOf(op, left, right, range);
  }
  if (auto sets = compareSets(op, a, b))
    return sets;
  if (!isIdentity && !isMembership && (a.instance() || b.instance()))
    return compareInstances(op, a, b, range);
  switch (op) {
  case CompareOp::Eq: return a.equals(b);
  case CompareOp::NotEq: return !a.equals(b);
  case CompareOp::Is:
  case CompareOp::IsNot: return (a.identical(b) || (a.isType() && a.equals(b))) == (op == CompareOp::Is);
  case CompareOp::In:
  case CompareOp::NotIn: {
    std::optional<bool> isIn = contains(b, a, range);
    return isIn ? std::optional(*isIn == (op == CompareOp::In)) : std::nullopt;
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
  return compareOrder(op, a, b, range);
}

std::optional<bool> Evaluator::contains(const LangValue &container, const LangValue &element, SourceRange range) {
  if (const NativeFunction *contains = findNativeMethod(container, "__contains__")) {
    LangValue result = callNative({*this, *contains, container, {element}, {}, range});
    if (result.isUnknown())
      reportUnknown(result, "", range);
    return result.isConstant() ? std::optional(result.constant().isTrue()) : std::nullopt;
  }
  if (std::optional<LangValue> result = callProtocol(container, "__contains__", {element}, range))
    return result->isPoison() ? std::nullopt : truthOf(*result, range);
  if (const auto *dict = container.getIf<DictValue>())
    return find(*dict, element) != nullptr;
  if (const auto *view = container.getIf<ViewValue>(); view && view->kind == ViewValue::Kind::Keys)
    return find(view->dict, element) != nullptr;
  if (container.isConstant()) {
    const LangValue &wanted = numberOf(element);
    auto result = compare(CompareOp::In, wanted.isConstant() ? wanted.constant() : ConstValue::none(), container.constant());
    if (result.isOk())
      return result->isTrue();
    fail(range, result.status().message());
    return std::nullopt;
  }
  std::shared_ptr<Iterator> iterator = iteratorOf(container, range);
  while (iterator) {
    std::optional<LangValue> each = iterator->next(*this, range);
    if (!each)
      return false;
    if (each->isPoison() || !countSteps(1, range))
      return std::nullopt;
    if (each->identical(element) || each->equals(element))
      return true;
  }
  return std::nullopt;
}

std::optional<bool> Evaluator::compareOrder(CompareOp op, const LangValue &a, const LangValue &b, SourceRange range) {
  const auto *left = a.sequence(), *right = b.sequence();
  if (left && right && !a.isSet() && !b.isSet() && a.isList() == b.isList()) {
    for (auto [x, y] : llvm::zip(*left, *right))
      if (!x.equals(y))
        return compareOf(op, x, y, range);
    return compareOf(op, LangValue::integer(left->size()), LangValue::integer(right->size()), range);
  }
  if (std::optional<int> order = orderOfObjects(a, b))
    return op == CompareOp::Lt ? *order < 0 : op == CompareOp::LtE ? *order <= 0 : op == CompareOp::Gt ? *order > 0 : *order >= 0;
  fail(range, fmt::format("'{}' not supported between instances of '{}' and '{}'", spelling(op).str(), a.typeName(), b.typeName()));
  return std::nullopt;
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
  return itemOfValue(value, index, expression->index->range);
}

LangValue Evaluator::itemOfValue(const LangValue &value, const LangValue &given, SourceRange place) {
  if (const auto *dict = value.getIf<DictValue>())
    return itemOf(*this, *dict, given, place);
  if (value.instance() && numberOf(value).instance()) {
    std::optional<LangValue> item = callProtocol(value, "__getitem__", {given}, place);
    return item ? *item : fail(place, fmt::format("'{}' object is not subscriptable", value.typeName()));
  }
  const LangValue &index = numberOf(given);
  auto at = index.isConstant() && index.constant().isIntegral() ? std::optional(index.constant()) : std::nullopt;
  if (!at)
    return fail(place, fmt::format("the index of a {} must be a compile-time int, but got {}", value.typeName(), index.describe()));
  const std::vector<LangValue> *elements = value.sequence();
  std::vector<LangValue> all;
  if (!elements) {
    auto walked = value.isSet() || value.is<ViewValue>() || value.iterator() ? std::nullopt : elementsOfAny(value, place);
    if (!walked)
      return value.isPoison() ? value : fail(place, fmt::format("'{}' object is not subscriptable", value.typeName()));
    all = std::move(*walked);
    elements = &all;
  }
  int64_t size = elements->size();
  auto i = at->toInt64();
  if (!i || *i < -size || *i >= size)
    return fail(place, fmt::format("index {} is out of range for {}", index.display(), value.describe()), "IndexError");
  return LangValue((*elements)[*i < 0 ? *i + size : *i]);
}

std::optional<std::vector<LangValue>> Evaluator::elementsOfAny(const LangValue &value, SourceRange range) {
  if (!value.isString())
    return elementsOf(value, range);
  std::vector<LangValue> characters; // in kernels, too, whose loops do not walk text
  for (llvm::StringRef rest = value.constant().getString(); !rest.empty();) {
    llvm::StringRef character = rest.take_front(codePointOffset(rest, 1));
    characters.push_back(LangValue::string(character.str()));
    rest = rest.drop_front(character.size());
  }
  return characters;
}

std::optional<Evaluator::SlicePlaces> Evaluator::placesOf(const LangValue &value, const ast::Slice *slice, int64_t size,
                                                          LangValue &failure) {
  bool isGood = true;
  auto bound = [&](const ast::Expr *expression) -> std::optional<int64_t> {
    LangValue given = expression ? evaluate(expression) : LangValue::none();
    if (given.isUnknown())
      failure = given;
    given = numberOf(given);
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
  if (!isGood || failure.isUnknown())
    return std::nullopt;
  SlicePlaces places;
  places.step = step.value_or(1);
  if (places.step == 0) {
    fail(slice->range, "slice step cannot be zero", "ValueError");
    return std::nullopt;
  }
  auto clamp = [&](std::optional<int64_t> at, int64_t missing) {
    if (!at)
      return missing;
    int64_t i = *at < 0 ? *at + size : *at;
    return places.step > 0 ? std::clamp<int64_t>(i, 0, size) : std::clamp<int64_t>(i, -1, size - 1);
  };
  places.begin = clamp(lower, places.step > 0 ? 0 : size - 1);
  places.end = clamp(upper, places.step > 0 ? size : -1);
  // The stride may be so large that the next place does not fit into 64 bits.
  for (int64_t i = places.begin; places.step > 0 ? i < places.end : i > places.end;) {
    places.indices.push_back(i);
    if (places.step > 0 ? places.end - i <= places.step : places.end - i >= places.step)
      break;
    i += places.step;
  }
  return places;
}

LangValue Evaluator::sliceContainer(const LangValue &value, const ast::Slice *slice) {
  if (value.instance() && numberOf(value).instance())
    return fail(slice->range, fmt::format("a slice of {} calls its __getitem__, which is not done at compile time", value.describe()), "");
  if (value.isDict() || value.isSet() || value.iterator() || value.is<ViewValue>())
    return fail(slice->range, fmt::format("'{}' cannot be sliced", value.typeName()));
  auto elements = elementsOfAny(value, slice->range);
  if (!elements)
    return LangValue::poison();
  LangValue failure;
  auto places = placesOf(value, slice, elements->size(), failure);
  if (!places)
    return failure;
  std::vector<LangValue> picked;
  std::string text;
  for (int64_t i : places->indices)
    if (value.isString())
      text += (*elements)[i].constant().getString();
    else
      picked.push_back((*elements)[i]);
  if (value.isString())
    return LangValue::string(std::move(text));
  if (isVector(value)) // a slice of a vector is a vector
    return value.withParts(std::move(picked));
  if (const auto *whole = value.getIf<std::shared_ptr<const RangeValue>>()) {
    auto part = std::make_shared<RangeValue>(**whole);
    int64_t start = *(*whole)->start.constant().toInt64(), stride = *(*whole)->step.constant().toInt64();
    part->start = LangValue::integer(start + places->begin * stride);
    part->stop = LangValue::integer(start + places->end * stride);
    part->step = LangValue::integer(places->step * stride);
    return LangValue(std::shared_ptr<const RangeValue>(std::move(part)));
  }
  return value.isTuple() ? LangValue::tuple(std::move(picked)) : LangValue::list(std::move(picked));
}

bool Evaluator::assignSlice(const LangValue &object, const ast::Slice *slice, const LangValue *value) {
  const auto *list = object.isList() ? object.getIf<ListValue>() : nullptr;
  if (!list)
    return !fail(slice->range, fmt::format("'{}' object does not support slice assignment", object.typeName())).isPoison();
  LangValue failure;
  auto places = placesOf(object, slice, list->elements->size(), failure);
  auto given = !places ? std::nullopt : value ? elementsOf(*value, slice->range) : std::optional(std::vector<LangValue>());
  if (!given) {
    if (failure.isUnknown())
      reportUnknown(failure, "", slice->range);
    return false;
  }
  std::vector<LangValue> &elements = *list->elements;
  if (places->step == 1) {
    auto begin = elements.begin() + places->begin;
    auto at = elements.erase(begin, elements.begin() + std::max(places->begin, places->end));
    elements.insert(at, given->begin(), given->end());
    return true;
  }
  if (!value) {
    std::sort(places->indices.begin(), places->indices.end());
    for (int64_t i : llvm::reverse(places->indices))
      elements.erase(elements.begin() + i);
    return true;
  }
  if (given->size() != places->indices.size())
    return !fail(slice->range, fmt::format("attempt to assign sequence of size {} to extended slice of size {}", given->size(),
                                           places->indices.size()), "ValueError").isPoison();
  for (auto [i, each] : llvm::zip_equal(places->indices, *given))
    elements[i] = each;
  return true;
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
  if (const auto *slice = llvm::dyn_cast<ast::Slice>(target->index); slice && object.isList()) {
    if (value.isUnknown())
      return spoilObject(target->value, value), true;
    return assignSlice(object, slice, &value);
  }
  if (const auto *dict = object.getIf<DictValue>(); dict && !index.isPoison()) {
    if (!isHashable(index))
      return !fail(target->index->range, fmt::format("unhashable type: '{}'", index.typeName())).isPoison();
    setItem(*dict, index, value);
    return true;
  }
  if (object.instance() && !index.isPoison())
    if (std::optional<LangValue> done = callProtocol(object, "__setitem__", {index, value}, target->range))
      return !done->isPoison();
  index = numberOf(index);
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
