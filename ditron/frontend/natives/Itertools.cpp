//===- Itertools.cpp - Functions of Python that run while compiling: itertools and functools ------------------------===//
//
// What itertools makes of sequences, one element at a time where Python does so, and functools.partial and the decorators, of Python's and of torch's,
// that leave a function as it is.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/Iterators.h"
#include "ditron/frontend/natives/Natives.h"

#include <fmt/format.h>

namespace ditron::frontend {
namespace {

using Values = std::vector<LangValue>;

//===------------------------------------------------------------------------------------------------------------------===//
// itertools
//===------------------------------------------------------------------------------------------------------------------===//

using Element = std::optional<LangValue>;

/// An iterator over values that are known already.
LangValue iterate(const NativeCall &call, Values values) {
  return makeIterator(llvm::StringRef(call.function.name).str(), walkList(std::make_shared<Values>(std::move(values))));
}

/// The elements of the iterables that an iterator gives, one after the other.
LangValue chainSources(const NativeCall &call, std::shared_ptr<Iterator> sources) {
  std::shared_ptr<Iterator> current;
  return makeIterator("itertools.chain", [sources, current](Evaluator &evaluator, SourceRange range) mutable -> Element {
    while (evaluator.countSteps(1, range)) {
      if (current)
        if (Element element = current->next(evaluator, range))
          return element;
      Element next = sources->next(evaluator, range);
      if (!next || next->isPoison() || next->isUnknown())
        return next;
      current = evaluator.iteratorOf(*next, range);
      if (!current)
        break;
    }
    return LangValue::poison();
  });
}

LangValue chainOf(NativeCall &call) {
  LangValue sources = iterate(call, call.args);
  return chainSources(call, *sources.getIf<std::shared_ptr<Iterator>>());
}

LangValue chainFromIterable(NativeCall &call) {
  std::shared_ptr<Iterator> sources = call.evaluator.iteratorOf(call.args[0], call.range);
  return sources ? chainSources(call, std::move(sources)) : LangValue::poison();
}

LangValue countOf(NativeCall &call) {
  const LangValue *start = call.argument(0, "start"), *step = call.argument(1, "step");
  return makeIterator("itertools.count", [next = start ? *start : LangValue::integer(0), step = step ? *step : LangValue::integer(1)](
                                             Evaluator &evaluator, SourceRange range) mutable -> Element {
    LangValue current = next;
    next = evaluator.binaryOf(BinaryOp::Add, next, step, range);
    return current;
  });
}

LangValue cycleOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  if (!elements)
    return LangValue::poison();
  auto kept = std::make_shared<Values>(std::move(*elements));
  return makeIterator("itertools.cycle", [kept, i = size_t(0)](Evaluator &, SourceRange) mutable -> Element {
    return kept->empty() ? Element() : (*kept)[i++ % kept->size()];
  });
}

LangValue compressOf(NativeCall &call) {
  std::optional<std::vector<Values>> lists = call.allElements();
  Values kept;
  for (size_t i = 0; lists && i < std::min((*lists)[0].size(), (*lists)[1].size()); ++i) {
    std::optional<bool> isKept = call.evaluator.truthOf((*lists)[1][i], call.range);
    if (!isKept)
      return LangValue::poison();
    if (*isKept)
      kept.push_back((*lists)[0][i]);
  }
  return lists ? iterate(call, std::move(kept)) : LangValue::poison();
}

LangValue teeOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  std::optional<int64_t> count = call.args.size() > 1 ? call.integer(call.args[1], "n") : std::optional<int64_t>(2);
  Values copies;
  for (int64_t i = 0; elements && count && i < std::min<int64_t>(*count, 1024); ++i)
    copies.push_back(iterate(call, *elements));
  return elements && count ? LangValue::tuple(std::move(copies)) : LangValue::poison();
}

/// itertools.groupby: the groups are known at once, so that one that is read late has not ended.
LangValue groupBy(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  const LangValue *key = call.argument(1, "key");
  Values pairs, group;
  LangValue current;
  auto close = [&] {
    if (!group.empty())
      pairs.push_back(LangValue::tuple({current, iterate(call, std::exchange(group, {}))}));
  };
  for (const LangValue &element : elements.value_or(Values())) {
    LangValue value = key && !key->isNone() ? call.evaluator.call(*key, {element}, {}, call.range) : element;
    if (value.isPoison() || value.isUnknown())
      return value;
    if (!group.empty() && !current.equals(value))
      close();
    current = value;
    group.push_back(element);
  }
  close();
  return elements ? iterate(call, std::move(pairs)) : LangValue::poison();
}

/// Rows as tuples.
LangValue iterateTuples(const NativeCall &call, std::vector<Values> rows) {
  Values tuples;
  for (Values &row : rows)
    tuples.push_back(LangValue::tuple(std::move(row)));
  return iterate(call, std::move(tuples));
}

/// Counts one more row of a list of rows; false at a limit.
bool countRow(const NativeCall &call, size_t rows, size_t width) {
  return call.checkSize(rows + 1) && call.evaluator.countSteps(1 + width, call.range);
}

LangValue productOf(NativeCall &call) {
  std::optional<std::vector<Values>> once = call.allElements();
  const LangValue *given = call.keyword("repeat");
  std::optional<int64_t> repeat = given ? call.integer(*given, "repeat") : std::optional<int64_t>(1);
  if (!once || !repeat)
    return LangValue::poison();
  if (*repeat < 0)
    return call.fail("repeat argument cannot be negative", "ValueError");
  if (*repeat > 64)
    return call.fail(fmt::format("repeat must be at most 64 at compile time, but is {}", *repeat), "");
  std::vector<Values> rows = {{}};
  for (int64_t i = 0; i < *repeat; ++i)
    for (const Values &list : *once) {
      std::vector<Values> longer;
      for (const Values &row : rows)
        for (const LangValue &element : list) {
          if (!countRow(call, longer.size(), row.size()))
            return LangValue::poison();
          longer.push_back(row);
          longer.back().push_back(element);
        }
      rows = std::move(longer);
    }
  return iterateTuples(call, std::move(rows));
}

/// All choices of `count` indices below `size`, in lexical order, that `next` allows: of what was chosen so far, and the
/// index to add.
std::optional<std::vector<Values>> choose(const NativeCall &call, const Values &elements, size_t count,
                                          llvm::function_ref<bool(llvm::ArrayRef<size_t>, size_t)> allows) {
  std::vector<Values> rows;
  llvm::SmallVector<size_t> chosen;
  size_t next = 0;
  while (true) {
    if (!call.evaluator.countSteps(1, call.range))
      return std::nullopt;
    if (chosen.size() == count) {
      if (!countRow(call, rows.size(), count))
        return std::nullopt;
      Values row;
      for (size_t index : chosen)
        row.push_back(elements[index]);
      rows.push_back(std::move(row));
    } else {
      while (next < elements.size() && !allows(chosen, next))
        ++next;
      if (next < elements.size()) {
        chosen.push_back(next);
        next = 0;
        continue;
      }
    }
    if (chosen.empty())
      return rows;
    next = chosen.pop_back_val() + 1;
  }
}

/// permutations, combinations and combinations_with_replacement.
LangValue selections(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  const LangValue *given = call.argument(1, "r");
  std::optional<int64_t> count = given && !given->isNone() ? call.integer(*given, "the number of elements")
                                                           : std::optional<int64_t>(elements ? elements->size() : 0);
  if (!elements || !count)
    return LangValue::poison();
  if (*count < 0)
    return call.fail("r must be non-negative", "ValueError");
  llvm::StringRef name = call.function.shortName();
  if (name != "combinations_with_replacement" && *count > static_cast<int64_t>(elements->size()))
    return iterate(call, {});
  if (!call.checkSize(*count))
    return LangValue::poison();
  auto rows = choose(call, *elements, *count, [&](llvm::ArrayRef<size_t> chosen, size_t index) {
    if (name == "permutations")
      return !llvm::is_contained(chosen, index);
    return chosen.empty() || (name == "combinations" ? index > chosen.back() : index >= chosen.back());
  });
  return rows ? iterateTuples(call, std::move(*rows)) : LangValue::poison();
}

LangValue repeatOf(NativeCall &call) {
  const LangValue *given = call.argument(1, "times");
  if (!given)
    return makeIterator("itertools.repeat", [value = call.args[0]](Evaluator &, SourceRange) -> Element { return value; });
  std::optional<int64_t> times = call.integer(*given, "the number of repetitions");
  if (!times || !call.checkSize(std::max<int64_t>(0, *times)) ||
      !call.evaluator.countSteps(std::max<int64_t>(0, *times), call.range))
    return LangValue::poison();
  return iterate(call, Values(std::max<int64_t>(0, *times), call.args[0]));
}

LangValue accumulateOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  const LangValue *function = call.argument(1, "func"), *initial = call.keyword("initial");
  if (!elements)
    return LangValue::poison();
  Values sums;
  if (initial && !initial->isNone())
    sums.push_back(*initial);
  for (const LangValue &element : *elements) {
    if (sums.empty()) {
      sums.push_back(element);
      continue;
    }
    LangValue next = function && !function->isNone()
                         ? call.evaluator.call(*function, {sums.back(), element}, {}, call.range)
                         : call.evaluator.binaryOf(BinaryOp::Add, sums.back(), element, call.range);
    if (next.isPoison() || next.isUnknown())
      return next;
    sums.push_back(std::move(next));
  }
  return iterate(call, std::move(sums));
}

LangValue sliceOf(NativeCall &call) {
  std::shared_ptr<Iterator> source = call.evaluator.iteratorOf(call.args[0], call.range);
  if (!source)
    return LangValue::poison();
  int64_t bounds[3] = {0, INT64_MAX, 1};
  for (size_t i = 1; i < call.args.size(); ++i) {
    if (call.args[i].isNone())
      continue;
    std::optional<int64_t> number = call.integer(call.args[i], "the bound of itertools.islice");
    if (!number)
      return LangValue::poison();
    const size_t which = call.args.size() == 2 ? 1 : i - 1;
    if (*number < (which == 2 ? 1 : 0))
      return call.fail(fmt::format("the bounds of itertools.islice must not be negative, but one is {}", *number),
                       "ValueError");
    bounds[which] = *number;
  }
  const int64_t end = bounds[1], step = bounds[2];
  return makeIterator("itertools.islice", [source, end, step, i = int64_t(0), next = bounds[0]](Evaluator &evaluator,
                                                                                              SourceRange range) mutable -> Element {
    while (next < end && evaluator.countSteps(1, range)) {
      Element element = source->next(evaluator, range);
      if (!element || element->isPoison())
        return element;
      if (i++ != next)
        continue;
      next = step > INT64_MAX - next ? INT64_MAX : next + step;
      return element;
    }
    for (; i < std::min(next, end) && end != INT64_MAX; ++i) // what lies before the end is taken, as Python does
      if (!source->next(evaluator, range))
        break;
    return std::nullopt;
  });
}

LangValue pairwiseOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  Values pairs;
  for (size_t i = 1; elements && i < elements->size(); ++i)
    pairs.push_back(LangValue::tuple({(*elements)[i - 1], (*elements)[i]}));
  return elements ? iterate(call, std::move(pairs)) : LangValue::poison();
}

//===------------------------------------------------------------------------------------------------------------------===//
// functools, and decorators that leave a function as it is
//===------------------------------------------------------------------------------------------------------------------===//

/// functools.partial: the function and its first arguments.
LangValue partialOf(NativeCall &call) {
  LangValue keywords = LangValue::dict();
  for (const auto &[name, value] : call.keywords)
    setItem(*keywords.getIf<DictValue>(), LangValue::string(name.str()), value);
  return LangValue::object("functools.partial",
                           {{"func", call.args[0]},
                            {"args", LangValue::tuple(Values(call.args.begin() + 1, call.args.end()))},
                            {"keywords", keywords}});
}

LangValue callPartial(NativeCall &call) {
  const ObjectValue &partial = *call.self.object();
  Values args = find(partial, "args")->elements();
  llvm::append_range(args, call.args);
  Keywords keywords;
  for (const auto &[name, value] : find(partial, "keywords")->items())
    if (!call.keyword(name.constant().getString()))
      keywords.emplace_back(call.evaluator.intern(name.constant().getString()), value);
  llvm::append_range(keywords, call.keywords);
  return call.evaluator.call(*find(partial, "func"), std::move(args), keywords, call.range);
}

/// functools.wraps(f): a decorator, whatever its argument.
LangValue decoratorMaker(NativeCall &) { return LangValue::object("functools.decorator", {}); }
LangValue firstArgument(NativeCall &call) { return call.args[0]; }

/// functools.lru_cache as a function: of a function of the program's, one that keeps its results.
LangValue cacheOf(NativeCall &call) {
  if (call.args.size() == 1 && call.keywords.empty()) {
    if (const auto *function = call.args[0].getIf<FunctionValue>()) {
      FunctionValue cached = *function;
      cached.cache = std::make_shared<CallCache>();
      return LangValue(std::move(cached));
    }
    if (const auto *lambda = call.args[0].getIf<LambdaValue>()) {
      LambdaValue cached = *lambda;
      cached.cache = std::make_shared<CallCache>();
      return LangValue(std::move(cached));
    }
  }
  return identityDecorator(call);
}

LangValue clearCache(NativeCall &call) {
  call.self.getIf<FunctionValue>()->cache->results.clear();
  return LangValue::none();
}

/// dataclasses.field(...)
LangValue fieldOf(NativeCall &call) {
  std::vector<std::pair<std::string, LangValue>> options;
  for (const auto &[name, value] : call.keywords)
    options.emplace_back(name.str(), value);
  return LangValue::object("dataclasses.Field", std::move(options));
}

/// dataclasses.replace, asdict, astuple and fields.
LangValue ofDataclass(NativeCall &call) {
  const auto *given = call.args[0].getIf<ClassValue>();
  Instance *instance = call.args[0].instance();
  const ClassInfo *cls = given ? given->info.get() : call.args[0].classInfo();
  llvm::StringRef name = call.function.shortName();
  if (!cls || !cls->dataclass || (!instance && name != "fields"))
    return name == "is_dataclass" ? LangValue::boolean(cls && cls->dataclass) : call.fail(fmt::format("{}() takes a dataclass", name.str()));
  if (name == "is_dataclass")
    return LangValue::boolean(true);
  Values values;
  LangValue table = LangValue::dict();
  Keywords keywords = call.keywords;
  for (const ClassField &field : cls->fields) {
    LangValue value = instance ? instance->attributes.lookup(field.name) : LangValue::poison();
    if (name == "fields")
      value = LangValue::object("Field", {{"name", LangValue::string(field.name)}});
    else if (value.instance() && value.instance()->cls->dataclass && name != "replace")
      value = call.evaluator.call(LangValue(NativeValue{&call.function}), {value}, {}, call.range);
    if (value.isPoison())
      return value;
    values.push_back(value);
    if (name == "asdict")
      value = call.evaluator.call(LangValue(NativeValue{findNative("copy.deepcopy")}), {value}, {}, call.range);
    setItem(*table.getIf<DictValue>(), LangValue::string(field.name), value);
    if (name == "replace" && !call.keyword(field.name))
      keywords.emplace_back(call.evaluator.intern(field.name), value);
  }
  if (name == "asdict")
    return table;
  return name == "replace" ? call.evaluator.call(LangValue(ClassValue{instance->cls}), {}, keywords, call.range)
                           : LangValue::tuple(std::move(values));
}

} // namespace

LangValue identityDecorator(NativeCall &call) {
  if (call.args.size() == 1 && call.keywords.empty() && isCallable(call.args[0]))
    return call.args[0];
  return LangValue::object("functools.decorator", {});
}

llvm::ArrayRef<NativeFunction> nativeIteratorFunctions() {
  constexpr unsigned any = NativeFunction::any;
  static constexpr NativeFunction rows[] = {
      {"itertools.accumulate", 1, 2, accumulateOf, "func initial"},
      {"itertools.chain", 0, any, chainOf},
      {"itertools.chain.from_iterable", 1, 1, chainFromIterable},
      {"itertools.combinations", 1, 2, selections, "r"},
      {"itertools.combinations_with_replacement", 1, 2, selections, "r"},
      {"itertools.islice", 2, 4, sliceOf},
      {"itertools.pairwise", 1, 1, pairwiseOf},
      {"itertools.permutations", 1, 2, selections, "r"},
      {"itertools.product", 0, any, productOf, "repeat"},
      {"itertools.repeat", 1, 2, repeatOf, "times"},
      {"itertools.compress", 2, 2, compressOf},
      {"itertools.count", 0, 2, countOf, "start step"},
      {"itertools.cycle", 1, 1, cycleOf},
      {"itertools.groupby", 1, 2, groupBy, "key"},
      {"itertools.tee", 1, 2, teeOf},
      {"functools.cache", 0, 1, cacheOf},
      {"functools.cache_clear", 0, 0, clearCache},
      {"functools.cached_property", 1, 1, firstArgument},
      {"functools.lru_cache", 0, 2, cacheOf, "maxsize typed"},
      {"functools.partial", 1, any, partialOf, "*", true, true},
      {"functools.update_wrapper", 2, 4, firstArgument, "assigned updated"},
      {"functools.wraps", 1, 3, decoratorMaker, "assigned updated"},
      {"functools.partial.__call__", 0, any, callPartial, "*", true},
      {"functools.decorator.__call__", 1, 1, firstArgument},
      {"contextlib.contextmanager", 1, 1, firstArgument},
      {"dataclasses.dataclass", 0, 1, identityDecorator, "*"},
      {"dataclasses.asdict", 1, 1, ofDataclass},
      {"dataclasses.astuple", 1, 1, ofDataclass},
      {"dataclasses.field", 0, 0, fieldOf, "*", true},
      {"dataclasses.fields", 1, 1, ofDataclass},
      {"dataclasses.is_dataclass", 1, 1, ofDataclass},
      {"dataclasses.replace", 1, 1, ofDataclass, "*"},
      {"dataclasses.FrozenInstanceError", 0, any, makeException, "", true, true},
      {"enum.auto", 0, 0, [](NativeCall &) { return LangValue::object("enum.auto", {}); }},
      {"typing.cast", 2, 2, [](NativeCall &call) { return call.args[1]; }, "", true},
      {"typing.final", 1, 1, firstArgument},
      {"typing.no_type_check", 1, 1, firstArgument},
      {"typing.overload", 1, 1, firstArgument},
      {"typing.runtime_checkable", 1, 1, firstArgument},
  };
  return rows;
}

} // namespace ditron::frontend
