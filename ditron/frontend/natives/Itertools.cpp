//===- Itertools.cpp - Functions of Python that run while compiling: itertools and functools ------------------------===//
//
// What itertools makes of sequences, which are lists here, and functools.partial and the decorators, of Python's and of torch's,
// that leave a function as it is.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/Natives.h"

#include <fmt/format.h>

namespace ditron::frontend {
namespace {

using Values = std::vector<LangValue>;

//===------------------------------------------------------------------------------------------------------------------===//
// itertools
//===------------------------------------------------------------------------------------------------------------------===//

LangValue chainLists(NativeCall &call, llvm::ArrayRef<LangValue> iterables) {
  Values result;
  for (const LangValue &iterable : iterables) {
    if (iterable.isUnknown())
      return iterable;
    std::optional<Values> elements = call.evaluator.elementsOf(iterable, call.range);
    if (!elements || !call.checkSize(result.size() + elements->size()))
      return LangValue::poison();
    llvm::append_range(result, *elements);
  }
  return LangValue::list(std::move(result));
}

LangValue chainOf(NativeCall &call) { return chainLists(call, call.args); }

LangValue chainFromIterable(NativeCall &call) {
  std::optional<Values> iterables = call.elements(0);
  return iterables ? chainLists(call, *iterables) : LangValue::poison();
}

/// Rows as a list of tuples.
LangValue listOfTuples(std::vector<Values> rows) {
  Values tuples;
  for (Values &row : rows)
    tuples.push_back(LangValue::tuple(std::move(row)));
  return LangValue::list(std::move(tuples));
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
    return call.fail(fmt::format("repeat must be at most 64 at compile time, but is {}", *repeat), "MemoryError");
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
  return listOfTuples(std::move(rows));
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
    return LangValue::list({});
  if (!call.checkSize(*count))
    return LangValue::poison();
  auto rows = choose(call, *elements, *count, [&](llvm::ArrayRef<size_t> chosen, size_t index) {
    if (name == "permutations")
      return !llvm::is_contained(chosen, index);
    return chosen.empty() || (name == "combinations" ? index > chosen.back() : index >= chosen.back());
  });
  return rows ? listOfTuples(std::move(*rows)) : LangValue::poison();
}

LangValue repeatOf(NativeCall &call) {
  const LangValue *given = call.argument(1, "times");
  if (!given)
    return call.fail("itertools.repeat needs the number of repetitions at compile time");
  std::optional<int64_t> times = call.integer(*given, "the number of repetitions");
  if (!times || !call.checkSize(std::max<int64_t>(0, *times)) ||
      !call.evaluator.countSteps(std::max<int64_t>(0, *times), call.range))
    return LangValue::poison();
  return LangValue::list(Values(std::max<int64_t>(0, *times), call.args[0]));
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
  return LangValue::list(std::move(sums));
}

LangValue sliceOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  if (!elements)
    return LangValue::poison();
  int64_t bounds[3] = {0, static_cast<int64_t>(elements->size()), 1};
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
  Values picked;
  const int64_t end = std::min<int64_t>(bounds[1], elements->size());
  for (int64_t i = bounds[0]; i < end;) {
    picked.push_back((*elements)[i]);
    if (end - i <= bounds[2])
      break;
    i += bounds[2];
  }
  return LangValue::list(std::move(picked));
}

LangValue pairwiseOf(NativeCall &call) {
  std::optional<Values> elements = call.elements(0);
  Values pairs;
  for (size_t i = 1; elements && i < elements->size(); ++i)
    pairs.push_back(LangValue::tuple({(*elements)[i - 1], (*elements)[i]}));
  return elements ? LangValue::list(std::move(pairs)) : LangValue::poison();
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
      {"functools.cache", 0, 1, identityDecorator},
      {"functools.cached_property", 1, 1, firstArgument},
      {"functools.lru_cache", 0, 2, identityDecorator, "maxsize typed"},
      {"functools.partial", 1, any, partialOf, "*", true, true},
      {"functools.update_wrapper", 2, 4, firstArgument, "assigned updated"},
      {"functools.wraps", 1, 3, decoratorMaker, "assigned updated"},
      {"functools.partial.__call__", 0, any, callPartial, "*", true},
      {"functools.decorator.__call__", 1, 1, firstArgument},
      {"contextlib.contextmanager", 1, 1, firstArgument},
      {"dataclasses.dataclass", 0, 1, identityDecorator, "*"},
      {"typing.cast", 2, 2, [](NativeCall &call) { return call.args[1]; }, "", true},
      {"typing.final", 1, 1, firstArgument},
      {"typing.no_type_check", 1, 1, firstArgument},
      {"typing.overload", 1, 1, firstArgument},
      {"typing.runtime_checkable", 1, 1, firstArgument},
  };
  return rows;
}

} // namespace ditron::frontend
