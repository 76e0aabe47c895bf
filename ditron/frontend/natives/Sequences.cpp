//===- Sequences.cpp - Functions of Python that run while compiling: sequences -------------------------------------===//
//
// Lists, tuples, sets, dicts and ranges, the functions over them, and the containers of the module collections. What is an
// iterator in Python is a list here; next() takes its first element away.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/Natives.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace ditron::frontend {
namespace {

using Values = std::vector<LangValue>;

std::string nameOf(const NativeCall &call) { return llvm::StringRef(call.function.name).str(); }

LangValue callLanguage(NativeCall &call, Values args) {
  return call.evaluator.call(LangValue(BuiltinValue{findBuiltin(ModulePython, call.function.name)}), std::move(args),
                             call.keywords, call.range);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Makers
//===------------------------------------------------------------------------------------------------------------------===//

LangValue listOf(NativeCall &call) {
  std::optional<Values> elements = call.args.empty() ? Values() : call.elements(0);
  return elements ? LangValue::list(std::move(*elements)) : LangValue::poison();
}

LangValue tupleOf(NativeCall &call) {
  if (!call.args.empty() && call.args[0].isTuple() && !call.args[0].classInfo())
    return call.args[0];
  std::optional<Values> elements = call.args.empty() ? Values() : call.elements(0);
  return elements ? LangValue::tuple(std::move(*elements)) : LangValue::poison();
}

LangValue setOf(NativeCall &call) {
  std::optional<Values> elements = call.args.empty() ? Values() : call.elements(0);
  return elements ? makeSet(call.evaluator, *elements, call.range) : LangValue::poison();
}

LangValue dictOf(NativeCall &call) {
  LangValue result = LangValue::dict();
  const NativeFunction *update = findNative("dict.update");
  NativeCall updating{call.evaluator, *update, result, call.args, call.keywords, call.range};
  LangValue done = update->handler(updating);
  return done.isNone() ? result : done;
}

LangValue defaultDictOf(NativeCall &call) {
  std::shared_ptr<const LangValue> factory;
  if (!call.args.empty() && !call.args[0].isNone())
    factory = std::make_shared<const LangValue>(call.args[0]);
  NativeCall rest = call;
  if (!rest.args.empty())
    rest.args.erase(rest.args.begin());
  LangValue plain = dictOf(rest);
  return plain.isDict() ? LangValue(DictValue{plain.getIf<DictValue>()->items, std::move(factory)}) : plain;
}

LangValue fromKeys(NativeCall &call) {
  std::optional<Values> keys = call.elements(0);
  LangValue result = LangValue::dict();
  for (const LangValue &key : keys.value_or(Values())) {
    if (!call.evaluator.countSteps(1 + result.items().size(), call.range))
      return LangValue::poison();
    setItem(*result.getIf<DictValue>(), key, call.args.size() > 1 ? call.args[1] : LangValue::none());
  }
  return keys ? result : LangValue::poison();
}

/// collections.Counter of a sequence: a dict of how often each element occurs.
LangValue counterOf(NativeCall &call) {
  std::optional<Values> elements = call.args.empty() ? Values() : call.elements(0);
  if (!elements)
    return LangValue::poison();
  if (const LangValue *unknown = firstUnknown(*elements))
    return *unknown;
  LangValue counts = LangValue::dict();
  for (const LangValue &element : *elements) {
    if (!call.evaluator.countSteps(1 + counts.items().size(), call.range))
      return LangValue::poison();
    LangValue *known = find(*counts.getIf<DictValue>(), element);
    setItem(*counts.getIf<DictValue>(), element, LangValue::integer(known ? *known->constant().toInt64() + 1 : 1));
  }
  return LangValue(
      DictValue{counts.getIf<DictValue>()->items, std::make_shared<const LangValue>(NativeValue{findNative("int")})});
}

LangValue rangeOf(NativeCall &call) {
  if (llvm::any_of(call.args, [](const LangValue &value) { return value.isTensor(); }))
    return callLanguage(call, call.args);
  int64_t bounds[3] = {0, 0, 1};
  for (auto [index, value] : llvm::enumerate(call.args)) {
    std::optional<int64_t> number = call.integer(value, "the bound of a range");
    if (!number)
      return LangValue::poison();
    bounds[call.args.size() == 1 ? 1 : index] = *number;
  }
  if (bounds[2] == 0)
    return call.fail("the step of a range must not be zero", "ValueError");
  auto range = std::make_shared<RangeValue>();
  range->start = LangValue::integer(bounds[0]);
  range->stop = LangValue::integer(bounds[1]);
  range->step = LangValue::integer(bounds[2]);
  range->startRange = range->stopRange = range->stepRange = call.range;
  return LangValue(std::shared_ptr<const RangeValue>(std::move(range)));
}

//===------------------------------------------------------------------------------------------------------------------===//
// From a sequence to a value
//===------------------------------------------------------------------------------------------------------------------===//

LangValue lengthOf(NativeCall &call) {
  const LangValue &value = call.args[0];
  if (value.isTensor())
    return callLanguage(call, call.args);
  if (const std::vector<LangValue> *elements = value.sequence())
    return LangValue::integer(elements->size());
  if (value.isDict())
    return LangValue::integer(value.items().size());
  if (value.isConstant())
    return call.result(length(value.constant()));
  if (const auto *range = value.getIf<std::shared_ptr<const RangeValue>>())
    if (std::optional<int64_t> size = (*range)->size())
      return LangValue::integer(*size);
  if (value.isAggregate())
    if (LangValue method = call.evaluator.attributeOf(value, "__len__", call.range, false); !method.isPoison())
      return call.evaluator.call(method, {}, {}, call.range);
  return call.fail(fmt::format("{} has no length", value.describe()));
}

LangValue sumOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  if (!elements)
    return LangValue::poison();
  const LangValue *start = call.argument(1, "start");
  LangValue total = start ? *start : LangValue::integer(0);
  for (const LangValue &element : *elements) {
    total = element.isUnknown() ? element : call.evaluator.binaryOf(BinaryOp::Add, total, element, call.range);
    if (total.isPoison() || total.isUnknown())
      return total;
  }
  return total;
}

/// all and any.
LangValue quantify(NativeCall &call) {
  const bool isAll = call.function.name == "all";
  std::optional<Values> elements = call.elements(0);
  if (!elements)
    return LangValue::poison();
  for (const LangValue &element : *elements) {
    if (element.isUnknown())
      return element;
    std::optional<bool> truth = call.evaluator.truthOf(element, call.range);
    if (!truth)
      return LangValue::poison();
    if (*truth != isAll)
      return LangValue::boolean(!isAll);
  }
  return LangValue::boolean(isAll);
}

/// min and max.
LangValue extremeOf(NativeCall &call) {
  std::optional<Values> elements = call.args.size() == 1 ? call.elements(0) : std::optional(call.args);
  if (!elements)
    return LangValue::poison();
  if (const LangValue *unknown = firstUnknown(*elements))
    return *unknown;
  const LangValue *key = call.keyword("key"), *fallback = call.keyword("default");
  if (elements->empty())
    return fallback ? *fallback : call.fail(fmt::format("{}() of an empty sequence", nameOf(call)), "ValueError");
  if (!key && llvm::any_of(*elements, [](const LangValue &value) { return value.isTensor(); }))
    return callLanguage(call, *elements);
  const CompareOp op = call.function.name == "min" ? CompareOp::Lt : CompareOp::Gt;
  auto keyOf = [&](const LangValue &value) {
    return key && !key->isNone() ? call.evaluator.call(*key, {value}, {}, call.range) : value;
  };
  LangValue best = elements->front(), bestKey = keyOf(best);
  for (const LangValue &element : llvm::drop_begin(*elements)) {
    LangValue candidate = keyOf(element);
    for (const LangValue *each : {&candidate, &bestKey})
      if (each->isPoison() || each->isUnknown())
        return *each;
    std::optional<bool> isBetter = call.evaluator.compareOf(op, candidate, bestKey, call.range);
    if (!isBetter)
      return LangValue::poison();
    if (*isBetter) {
      best = element;
      bestKey = std::move(candidate);
    }
  }
  return best;
}

LangValue reduceOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(1);
  if (!elements)
    return LangValue::poison();
  if (call.args.size() > 2)
    elements->insert(elements->begin(), call.args[2]);
  if (elements->empty())
    return call.fail("functools.reduce() of an empty sequence with no initial value");
  LangValue total = elements->front();
  for (const LangValue &element : llvm::drop_begin(*elements)) {
    if (total.isPoison() || total.isUnknown())
      return total;
    total = call.evaluator.call(call.args[0], {total, element}, {}, call.range);
  }
  return total;
}

LangValue nextOf(NativeCall &call) {
  const auto *list = call.args[0].getIf<ListValue>();
  if (!list || list->isSet)
    return call.fail(fmt::format("'{}' object is not an iterator", call.args[0].typeName()));
  if (list->elements->empty())
    return call.args.size() > 1 ? call.args[1] : call.fail("the iterator has no more elements", "StopIteration");
  LangValue first = list->elements->front();
  list->elements->erase(list->elements->begin());
  return first;
}

//===------------------------------------------------------------------------------------------------------------------===//
// From sequences to a list
//===------------------------------------------------------------------------------------------------------------------===//

LangValue sortedOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  return elements ? sortValues(call, std::move(*elements)) : LangValue::poison();
}

LangValue reversedOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  if (!elements)
    return LangValue::poison();
  std::reverse(elements->begin(), elements->end());
  return LangValue::list(std::move(*elements));
}

LangValue enumerateOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  const LangValue *given = call.argument(1, "start");
  std::optional<int64_t> start = given ? call.integer(*given, "the start") : std::optional<int64_t>(0);
  if (!elements || !start)
    return LangValue::poison();
  Values pairs;
  for (LangValue &element : *elements) {
    LangValue index = call.evaluator.binaryOf(BinaryOp::Add, LangValue::integer(*start),
                                              LangValue::integer(pairs.size()), call.range);
    pairs.push_back(LangValue::tuple({std::move(index), std::move(element)}));
  }
  return LangValue::list(std::move(pairs));
}

size_t shortest(llvm::ArrayRef<Values> lists) {
  size_t size = lists.empty() ? 0 : lists.front().size();
  for (const Values &list : lists)
    size = std::min(size, list.size());
  return size;
}

/// The elements number `index` of all lists; `fill` where a list is too short.
Values rowOf(llvm::ArrayRef<Values> lists, size_t index, const LangValue &fill = LangValue::none()) {
  Values row;
  for (const Values &list : lists)
    row.push_back(index < list.size() ? list[index] : fill);
  return row;
}

LangValue zipOf(NativeCall &call) {
  std::optional<std::vector<Values>> lists = call.allElements();
  if (!lists)
    return LangValue::poison();
  size_t size = shortest(*lists);
  const LangValue *strict = call.keyword("strict");
  if (strict && strict->isConstant() && strict->constant().isTrue() &&
      llvm::any_of(*lists, [&](const Values &list) { return list.size() != size; }))
    return call.fail("the arguments of zip() differ in length", "ValueError");
  Values rows;
  for (size_t i = 0; i < size; ++i)
    rows.push_back(LangValue::tuple(rowOf(*lists, i)));
  return LangValue::list(std::move(rows));
}

LangValue zipLongest(NativeCall &call) {
  std::optional<std::vector<Values>> lists = call.allElements();
  if (!lists)
    return LangValue::poison();
  const LangValue *fill = call.keyword("fillvalue");
  size_t size = 0;
  for (const Values &list : *lists)
    size = std::max(size, list.size());
  Values rows;
  for (size_t i = 0; i < size; ++i)
    rows.push_back(LangValue::tuple(rowOf(*lists, i, fill ? *fill : LangValue::none())));
  return LangValue::list(std::move(rows));
}

LangValue mapOf(NativeCall &call) {
  std::optional<std::vector<Values>> lists = call.allElements(1);
  if (!lists)
    return LangValue::poison();
  Values results;
  for (size_t i = 0, size = shortest(*lists); i < size; ++i) {
    results.push_back(call.evaluator.call(call.args[0], rowOf(*lists, i), {}, call.range));
    if (results.back().isPoison())
      return results.back();
  }
  return LangValue::list(std::move(results));
}

LangValue starMap(NativeCall &call) {
  std::optional<Values> rows = call.elements(1);
  Values results;
  for (const LangValue &row : rows.value_or(Values())) {
    std::optional<Values> arguments = row.isUnknown() ? Values{row} : call.evaluator.elementsOf(row, call.range);
    results.push_back(row.isUnknown() ? row
                      : arguments     ? call.evaluator.call(call.args[0], *arguments, {}, call.range)
                                      : LangValue::poison());
    if (results.back().isPoison())
      return results.back();
  }
  return rows ? LangValue::list(std::move(results)) : LangValue::poison();
}

/// The elements for which a function is true; None stands for the element itself. `wanted` false: is false.
LangValue filterBy(NativeCall &call, bool wanted, bool stopsAtOther, bool startsAtOther) {
  std::optional<Values> elements = call.elements(1);
  if (!elements)
    return LangValue::poison();
  Values kept;
  bool hasStarted = false;
  for (const LangValue &element : *elements) {
    if (hasStarted) {
      kept.push_back(element);
      continue;
    }
    LangValue value = call.args[0].isNone() ? element : call.evaluator.call(call.args[0], {element}, {}, call.range);
    if (value.isPoison() || value.isUnknown())
      return value;
    std::optional<bool> truth = call.evaluator.truthOf(value, call.range);
    if (!truth)
      return LangValue::poison();
    if (*truth == wanted)
      kept.push_back(element);
    else if (stopsAtOther)
      break;
    hasStarted = startsAtOther && *truth == wanted;
  }
  return LangValue::list(std::move(kept));
}

LangValue filterOf(NativeCall &call) { return filterBy(call, true, false, false); }
LangValue filterFalse(NativeCall &call) { return filterBy(call, false, false, false); }
LangValue takeWhile(NativeCall &call) { return filterBy(call, true, true, false); }
LangValue dropWhile(NativeCall &call) { return filterBy(call, false, false, true); }

} // namespace

LangValue sortValues(const NativeCall &call, std::vector<LangValue> values) {
  if (const LangValue *unknown = firstUnknown(values))
    return *unknown;
  const LangValue *key = call.keyword("key"), *reverse = call.keyword("reverse");
  std::optional<bool> isReversed = reverse ? call.evaluator.truthOf(*reverse, call.range) : std::optional(false);
  if (!isReversed)
    return LangValue::poison();
  std::vector<std::pair<LangValue, LangValue>> keyed;
  for (const LangValue &value : values) {
    keyed.emplace_back(key && !key->isNone() ? call.evaluator.call(*key, {value}, {}, call.range) : value, value);
    if (keyed.back().first.isPoison() || keyed.back().first.isUnknown())
      return keyed.back().first;
  }
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t(0));
  // After a failure all are equal, which every order agrees with.
  bool hasFailed = false;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (hasFailed || (hasFailed = !call.evaluator.countSteps(1, call.range)))
      return false;
    const CompareOp op = *isReversed ? CompareOp::Gt : CompareOp::Lt;
    std::optional<bool> isBefore = call.evaluator.compareOf(op, keyed[a].first, keyed[b].first, call.range);
    hasFailed = !isBefore;
    return isBefore.value_or(false);
  });
  if (hasFailed)
    return LangValue::poison();
  std::vector<LangValue> sorted;
  for (size_t index : order)
    sorted.push_back(keyed[index].second);
  return LangValue::list(std::move(sorted));
}

LangValue itemOf(Evaluator &evaluator, const DictValue &dict, const LangValue &key, SourceRange range) {
  if (key.isUnknown())
    return key;
  if (!evaluator.countSteps(1 + dict.items->size() / 16, range))
    return LangValue::poison();
  if (const LangValue *known = find(dict, key))
    return *known;
  if (!dict.factory)
    return evaluator.fail(range, fmt::format("the dict has no key {}", key.repr()), "KeyError");
  LangValue value = evaluator.call(*dict.factory, {}, {}, range);
  if (!value.isPoison())
    setItem(dict, key, value);
  return value;
}

llvm::ArrayRef<NativeFunction> nativeSequenceFunctions() {
  constexpr unsigned any = NativeFunction::any;
  static constexpr NativeFunction rows[] = {
      {"all", 1, 1, quantify},
      {"any", 1, 1, quantify},
      {"dict", 0, 1, dictOf, "*", false, true},
      {"dict.fromkeys", 1, 2, fromKeys},
      {"enumerate", 1, 2, enumerateOf, "start"},
      {"filter", 2, 2, filterOf},
      {"frozenset", 0, 1, setOf, "", false, true},
      {"iter", 1, 1, listOf},
      {"len", 1, 1, lengthOf},
      {"list", 0, 1, listOf, "", false, true},
      {"map", 2, any, mapOf},
      {"max", 1, any, extremeOf, "key default"},
      {"min", 1, any, extremeOf, "key default"},
      {"next", 1, 2, nextOf},
      {"range", 1, 3, rangeOf, "", false, true},
      {"reversed", 1, 1, reversedOf},
      {"set", 0, 1, setOf, "", false, true},
      {"sorted", 1, 1, sortedOf, "key reverse"},
      {"sum", 1, 2, sumOf, "start"},
      {"tuple", 0, 1, tupleOf, "", false, true},
      {"zip", 0, any, zipOf, "strict"},
      {"collections.Counter", 0, 1, counterOf, "", false, true},
      {"collections.OrderedDict", 0, 1, dictOf, "*", false, true},
      {"collections.defaultdict", 0, 2, defaultDictOf, "*", false, true},
      {"itertools.dropwhile", 2, 2, dropWhile},
      {"itertools.filterfalse", 2, 2, filterFalse},
      {"itertools.starmap", 2, 2, starMap},
      {"itertools.takewhile", 2, 2, takeWhile},
      {"itertools.zip_longest", 0, any, zipLongest, "fillvalue"},
      {"functools.reduce", 2, 3, reduceOf},
  };
  return rows;
}

} // namespace ditron::frontend
