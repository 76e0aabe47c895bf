//===- Sequences.cpp - Functions of Python that run while compiling: sequences -------------------------------------===//
//
// Lists, tuples, sets, dicts and ranges, the functions over them, and the containers of the module collections. What is an
// iterator in Python is one here (Iterators.h).
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/Iterators.h"
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
  LangValue made = elements ? makeSet(call.evaluator, *elements, call.range) : LangValue::poison();
  return made.isSet() && call.function.name == "frozenset" ? LangValue::set(*made.sequence(), true) : made;
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
  if (const auto *view = value.getIf<ViewValue>())
    return LangValue::integer(view->dict.items->size());
  if (const auto *cls = value.getIf<ClassValue>(); cls && cls->info->isEnum) {
    std::optional<Values> members = call.elements(0);
    return members ? LangValue::integer(members->size()) : LangValue::poison();
  }
  if (value.isAggregate() || value.instance())
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
  std::shared_ptr<Iterator> iterator = call.evaluator.iteratorOf(call.args[0], call.range);
  while (iterator) {
    std::optional<LangValue> element = iterator->next(call.evaluator, call.range);
    if (!element)
      return LangValue::boolean(isAll);
    if (element->isUnknown() || element->isPoison())
      return *element;
    std::optional<bool> truth = call.evaluator.truthOf(*element, call.range);
    if (!truth || !call.evaluator.countSteps(1, call.range))
      break;
    if (*truth != isAll)
      return LangValue::boolean(!isAll);
  }
  return LangValue::poison();
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
  std::optional<LangValue> element;
  if (Iterator *iterator = call.args[0].iterator())
    element = iterator->next(call.evaluator, call.range);
  else if (std::optional<LangValue> given = call.evaluator.callProtocol(call.args[0], "__next__", {}, call.range))
    return *given;
  else
    return call.fail(fmt::format("'{}' object is not an iterator", call.args[0].typeName()));
  if (element)
    return *element;
  return call.args.size() > 1 ? call.args[1] : call.fail("the iterator has no more elements", "StopIteration");
}

LangValue iterOf(NativeCall &call) {
  if (call.args.size() == 2)
    return call.unknown();
  std::shared_ptr<Iterator> iterator = call.evaluator.iteratorOf(call.args[0], call.range);
  return iterator ? LangValue(std::move(iterator)) : LangValue::poison();
}

//===------------------------------------------------------------------------------------------------------------------===//
// From sequences to an iterator
//===------------------------------------------------------------------------------------------------------------------===//

using Sources = std::vector<std::shared_ptr<Iterator>>;

/// The iterators of the arguments from `first` on; nullopt after an error.
std::optional<Sources> sourcesOf(const NativeCall &call, size_t first = 0) {
  Sources sources;
  for (const LangValue &value : llvm::drop_begin(call.args, first)) {
    sources.push_back(call.evaluator.iteratorOf(value, call.range));
    if (!sources.back())
      return std::nullopt;
  }
  return sources;
}

LangValue sortedOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  return elements ? sortValues(call, std::move(*elements)) : LangValue::poison();
}

LangValue reversedOf(NativeCall &call) {
  const LangValue &value = call.args[0];
  if (value.isSet() || value.iterator())
    return call.fail(fmt::format("'{}' object is not reversible", value.typeName()));
  if (std::optional<LangValue> given = call.evaluator.callProtocol(value, "__reversed__", {}, call.range))
    return *given;
  std::optional<Values> elements = call.elements(0);
  if (!elements)
    return LangValue::poison();
  auto rest = std::make_shared<Values>(std::move(*elements));
  return makeIterator(value.isList() ? "list_reverseiterator" : "reversed", [rest](Evaluator &, SourceRange) -> std::optional<LangValue> {
    if (rest->empty())
      return std::nullopt;
    LangValue last = rest->back();
    rest->pop_back();
    return last;
  });
}

LangValue enumerateOf(NativeCall &call) {
  const LangValue *given = call.argument(1, "start");
  std::optional<Sources> sources = given && !call.args.empty() ? sourcesOf(NativeCall{call.evaluator, call.function, {}, {call.args[0]}, {}, call.range})
                                                               : sourcesOf(call);
  std::optional<int64_t> start = given ? call.integer(*given, "the start") : std::optional<int64_t>(0);
  if (!sources || !start)
    return LangValue::poison();
  return makeIterator("enumerate", [source = sources->front(), start = *start, i = int64_t(0)](
                                       Evaluator &evaluator, SourceRange range) mutable -> std::optional<LangValue> {
    std::optional<LangValue> element = source->next(evaluator, range);
    if (!element || element->isPoison())
      return element;
    LangValue index = evaluator.binaryOf(BinaryOp::Add, LangValue::integer(start), LangValue::integer(i++), range);
    return LangValue::tuple({std::move(index), std::move(*element)});
  });
}

/// The next element of each source; nullopt when one has ended, whose number is then in `ended`. Poison: as `failure`.
std::optional<Values> nextRow(const Sources &sources, Evaluator &evaluator, SourceRange range, size_t &ended, bool &hasFailed) {
  Values row;
  for (auto [index, source] : llvm::enumerate(sources)) {
    std::optional<LangValue> element = source->next(evaluator, range);
    hasFailed = element && element->isPoison();
    if (!element || hasFailed) {
      ended = index;
      return std::nullopt;
    }
    row.push_back(std::move(*element));
  }
  return row;
}

LangValue zipOf(NativeCall &call) {
  std::optional<Sources> sources = sourcesOf(call);
  if (!sources)
    return LangValue::poison();
  const LangValue *given = call.keyword("strict");
  const bool isStrict = given && given->isConstant() && given->constant().isTrue();
  return makeIterator("zip", [sources = *sources, isStrict](Evaluator &evaluator, SourceRange range) -> std::optional<LangValue> {
    size_t ended = 0;
    bool hasFailed = false;
    if (sources.empty())
      return std::nullopt;
    if (std::optional<Values> row = nextRow(sources, evaluator, range, ended, hasFailed))
      return LangValue::tuple(std::move(*row));
    if (hasFailed)
      return LangValue::poison();
    if (isStrict && (ended > 0 || llvm::any_of(llvm::drop_begin(sources), [&](const auto &each) { return each->next(evaluator, range).has_value(); })))
      return evaluator.fail(range, "the arguments of zip() differ in length", "ValueError");
    return std::nullopt;
  });
}

LangValue zipLongest(NativeCall &call) {
  std::optional<Sources> sources = sourcesOf(call);
  if (!sources)
    return LangValue::poison();
  const LangValue *given = call.keyword("fillvalue");
  return makeIterator("itertools.zip_longest", [sources = *sources, fill = given ? *given : LangValue::none()](
                                                   Evaluator &evaluator, SourceRange range) -> std::optional<LangValue> {
    Values row;
    bool hasAny = false;
    for (const auto &source : sources) {
      std::optional<LangValue> element = source->next(evaluator, range);
      if (element && element->isPoison())
        return element;
      hasAny |= element.has_value();
      row.push_back(element.value_or(fill));
    }
    return hasAny ? std::optional(LangValue::tuple(std::move(row))) : std::nullopt;
  });
}

LangValue mapOf(NativeCall &call) {
  std::optional<Sources> sources = sourcesOf(call, 1);
  if (!sources)
    return LangValue::poison();
  return makeIterator("map", [function = call.args[0], sources = *sources](Evaluator &evaluator, SourceRange range) -> std::optional<LangValue> {
    size_t ended = 0;
    bool hasFailed = false;
    std::optional<Values> row = nextRow(sources, evaluator, range, ended, hasFailed);
    if (!row)
      return hasFailed ? std::optional(LangValue::poison()) : std::nullopt;
    return evaluator.call(function, std::move(*row), {}, range);
  });
}

LangValue starMap(NativeCall &call) {
  std::optional<Sources> sources = sourcesOf(call, 1);
  if (!sources)
    return LangValue::poison();
  return makeIterator("itertools.starmap", [function = call.args[0], source = sources->front()](
                                               Evaluator &evaluator, SourceRange range) -> std::optional<LangValue> {
    std::optional<LangValue> row = source->next(evaluator, range);
    if (!row || row->isPoison() || row->isUnknown())
      return row;
    std::optional<Values> arguments = evaluator.elementsOf(*row, range);
    return arguments ? evaluator.call(function, std::move(*arguments), {}, range) : LangValue::poison();
  });
}

/// What filter() and its kin do with an element of which the function is true or false.
struct FilterRule {
  bool keepsTrue, keepsFalse;
  bool stopsAtFalse = false;  ///< takewhile
  bool startsAtFalse = false; ///< dropwhile: asks no more after the first
};

/// The elements for which a function says so; None stands for the element itself.
LangValue filterBy(NativeCall &call, FilterRule rule) {
  std::optional<Sources> sources = sourcesOf(call, 1);
  if (!sources)
    return LangValue::poison();
  return makeIterator(call.function.shortName().str(), [function = call.args[0], source = sources->front(), rule](
                                                           Evaluator &evaluator, SourceRange range) mutable -> std::optional<LangValue> {
    while (evaluator.countSteps(1, range)) {
      std::optional<LangValue> element = source->next(evaluator, range);
      if (!element || element->isPoison() || (rule.keepsTrue && rule.keepsFalse))
        return element;
      LangValue value = function.isNone() ? *element : evaluator.call(function, {*element}, {}, range);
      std::optional<bool> truth = value.isPoison() ? std::nullopt : evaluator.truthOf(value, range);
      if (!truth)
        break;
      if (!*truth && rule.stopsAtFalse)
        return std::nullopt;
      if (!*truth && rule.startsAtFalse)
        rule.keepsTrue = rule.keepsFalse = true;
      if (*truth ? rule.keepsTrue : rule.keepsFalse)
        return element;
    }
    return LangValue::poison();
  });
}

LangValue filterOf(NativeCall &call) { return filterBy(call, {true, false}); }
LangValue filterFalse(NativeCall &call) { return filterBy(call, {false, true}); }
LangValue takeWhile(NativeCall &call) { return filterBy(call, {true, false, /*stopsAtFalse=*/true}); }
LangValue dropWhile(NativeCall &call) { return filterBy(call, {false, false, false, /*startsAtFalse=*/true}); }

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
      {"iter", 1, 2, iterOf},
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
