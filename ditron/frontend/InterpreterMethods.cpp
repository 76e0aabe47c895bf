//===- InterpreterMethods.cpp - Python that runs while compiling: methods -------------------------------------------------===//
//
// Methods of strings, lists, dicts, numbers and dtypes.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Interpreter.h"

#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <fmt/format.h>

namespace ditron::frontend {

HostValue Interpreter::callMethod(const HostValue &self, llvm::StringRef name, const HostArguments &arguments,
                                  SourceRange range) {
  const HostSequence &args = arguments.positional;
  auto unknown = [&] { return fail(range, fmt::format("'{}' has no method '{}' at compile time", self.typeName(), name.str())); };
  if (self.isString())
    return callStringMethod(self.constant().getString(), name, arguments, range);
  if (const auto *dict = self.getIf<HostDict>())
    return callDictMethod(*dict, name, arguments, range);
  if (const auto *type = self.getIf<LangType>())
    return HostValue::boolean(typePredicate(*type, name).value_or(false));
  if (const auto *list = self.getIf<HostList>())
    if (std::optional<HostValue> result = callListMethod(*list->elements, name, arguments, range))
      return *result;
  if (const HostSequence *elements = self.sequence(); elements && args.size() == 1) {
    if (name == "count")
      return HostValue::integer(llvm::count_if(*elements, [&](const HostValue &each) { return each.equals(args[0]); }));
    if (name == "index") {
      auto it = llvm::find_if(*elements, [&](const HostValue &each) { return each.equals(args[0]); });
      return it == elements->end() ? fail(range, fmt::format("{} is not in the {}", args[0].repr(), self.typeName()))
                                   : HostValue::integer(it - elements->begin());
    }
  }
  if (self.isConstant() && args.empty()) {
    const ConstValue &number = self.constant();
    if (number.isIntegral() && name == "bit_length")
      return HostValue::integer(number.getInt().bitLength());
    if (number.isIntegral() && name == "bit_count")
      return HostValue::integer(llvm::count(number.getInt().abs().toString(2), '1'));
    if (number.isFloat() && name == "is_integer")
      return HostValue::boolean(number.getFloat() == static_cast<double>(static_cast<long long>(number.getFloat())));
  }
  return unknown();
}

bool Interpreter::sort(HostSequence &values, const HostArguments &arguments, SourceRange range) {
  bool isReversed = false;
  const HostValue *key = nullptr;
  for (const auto &[name, value] : arguments.keywords) {
    if (name == "reverse")
      isReversed = value.isTrue();
    else if (name == "key" && !value.isNone())
      key = &value;
  }
  std::vector<std::pair<HostValue, HostValue>> keyed;
  for (const HostValue &value : values) {
    keyed.emplace_back(key ? call(*key, {{value}, {}}, range) : value, value);
    if (failure)
      return false;
  }
  // After a failure all are equal, which every order agrees with.
  llvm::stable_sort(keyed, [&](const auto &a, const auto &b) {
    if (failure || !step(range))
      return false;
    return compareOf(isReversed ? CompareOp::Gt : CompareOp::Lt, a.first, b.first, range).value_or(false);
  });
  if (failure)
    return false;
  for (auto [index, entry] : llvm::enumerate(keyed))
    values[index] = entry.second;
  return true;
}

std::optional<HostValue> Interpreter::callListMethod(HostSequence &list, llvm::StringRef name,
                                                     const HostArguments &arguments, SourceRange range) {
  const HostSequence &args = arguments.positional;
  auto takes = [&](size_t least, size_t most) {
    if (args.size() >= least && args.size() <= most)
      return true;
    fail(range, fmt::format("list.{} got {} arguments", name.str(), args.size()));
    return false;
  };
  auto holdsItself = [&](const HostValue &value) {
    const auto *other = value.getIf<HostList>();
    if (other && other->elements.get() == &list)
      fail(range, "a list cannot hold itself");
    return failure.has_value();
  };
  if (list.size() >= maxElements)
    return fail(range, fmt::format("a list at compile time may have at most {} elements", maxElements));
  if (name == "append") {
    if (takes(1, 1) && !holdsItself(args[0]))
      list.push_back(args[0]);
  } else if (name == "extend") {
    std::optional<HostSequence> more = takes(1, 1) ? elementsOf(args[0], range) : std::nullopt;
    if (more)
      llvm::append_range(list, *more);
  } else if (name == "insert") {
    std::optional<int64_t> at = takes(2, 2) ? integerOf(args[0], range, "the index of a list") : std::nullopt;
    if (at && !holdsItself(args[1])) {
      int64_t size = list.size();
      list.insert(list.begin() + std::clamp<int64_t>(*at < 0 ? *at + size : *at, 0, size), args[1]);
    }
  } else if (name == "pop") {
    std::optional<int64_t> at = !takes(0, 1) ? std::nullopt : args.empty() ? std::optional<int64_t>(-1) : integerOf(args[0], range, "the index of a list");
    int64_t size = list.size();
    if (!at || *at < -size || *at >= size)
      return failure ? HostValue() : fail(range, "pop index is out of range");
    auto it = list.begin() + (*at < 0 ? *at + size : *at);
    HostValue value = *it;
    list.erase(it);
    return value;
  } else if (name == "remove") {
    auto it = takes(1, 1) ? llvm::find_if(list, [&](const HostValue &each) { return each.equals(args[0]); }) : list.end();
    if (it == list.end())
      return failure ? HostValue() : fail(range, fmt::format("{} is not in the list", args[0].repr()));
    list.erase(it);
  } else if (name == "reverse") {
    std::reverse(list.begin(), list.end());
  } else if (name == "sort") {
    sort(list, arguments, range);
  } else if (name == "clear") {
    list.clear();
  } else if (name == "copy") {
    return HostValue::list(list);
  } else {
    return std::nullopt;
  }
  return HostValue();
}

HostValue Interpreter::callDictMethod(const HostDict &dict, llvm::StringRef name, const HostArguments &arguments,
                                      SourceRange range) {
  const HostSequence &args = arguments.positional;
  auto set = [&](const HostValue &key, const HostValue &value) {
    if (const HostValue *known = find(dict, key))
      const_cast<HostValue &>(*known) = value;
    else
      dict.items->emplace_back(key, value);
  };
  if (name == "update") {
    if (!args.empty()) {
      if (const auto *other = args[0].getIf<HostDict>()) {
        auto items = *other->items;
        for (const auto &[key, value] : items)
          set(key, value);
      } else {
        std::optional<HostSequence> pairs = elementsOf(args[0], range);
        for (const HostValue &pair : pairs.value_or(HostSequence())) {
          const HostSequence *both = pair.sequence();
          if (!both || both->size() != 2)
            return fail(range, "a dict is made of pairs");
          if (!step(range))
            return HostValue();
          set((*both)[0], (*both)[1]);
        }
      }
    }
    for (const auto &[key, value] : arguments.keywords)
      set(HostValue::string(key), value);
    return HostValue();
  }
  HostSequence values;
  if (args.empty() && (name == "keys" || name == "values" || name == "items")) {
    for (const auto &[key, value] : *dict.items)
      values.push_back(name == "keys" ? key : name == "values" ? value : HostValue::tuple({key, value}));
    return HostValue::list(std::move(values));
  }
  if (name == "copy" && args.empty())
    return HostValue::dict(*dict.items);
  if ((name == "get" || name == "setdefault" || name == "pop") && (args.size() == 1 || args.size() == 2)) {
    const HostValue *known = find(dict, args[0]);
    HostValue value = known ? *known : args.size() > 1 ? args[1] : HostValue();
    if (!known && name == "pop" && args.size() == 1)
      return fail(range, fmt::format("the dict has no key {}", args[0].repr()));
    if (!known && name == "setdefault")
      set(args[0], value);
    if (known && name == "pop")
      llvm::erase_if(*dict.items, [&](const auto &item) { return item.first.equals(args[0]); });
    return value;
  }
  return fail(range, fmt::format("'dict' has no method '{}' at compile time", name.str()));
}

HostValue Interpreter::callStringMethod(const std::string &text, llvm::StringRef name, const HostArguments &arguments,
                                        SourceRange range) {
  const HostSequence &args = arguments.positional;
  llvm::StringRef self = text;
  std::vector<std::string> given;
  bool isAllText = llvm::all_of(args, [](const HostValue &each) { return each.isString(); });
  for (const HostValue &each : args)
    given.push_back(each.str());
  auto all = [&](auto predicate) { return HostValue::boolean(!self.empty() && llvm::all_of(self, predicate)); };
  if (args.empty()) {
    if (name == "upper")
      return HostValue::string(self.upper());
    if (name == "lower")
      return HostValue::string(self.lower());
    if (name == "capitalize" || name == "title") {
      std::string result = self.lower();
      bool isStart = true;
      for (char &c : result) {
        if (isStart)
          c = llvm::toUpper(c);
        isStart = name == "title" && !llvm::isAlpha(c);
      }
      return HostValue::string(std::move(result));
    }
    if (name == "strip" || name == "lstrip" || name == "rstrip")
      return HostValue::string((name == "strip" ? self.trim() : name == "lstrip" ? self.ltrim() : self.rtrim()).str());
    if (name == "isdigit" || name == "isnumeric" || name == "isdecimal")
      return all(llvm::isDigit);
    if (name == "isalpha")
      return all(llvm::isAlpha);
    if (name == "isalnum")
      return all(llvm::isAlnum);
    if (name == "split") {
      llvm::SmallVector<llvm::StringRef> parts;
      llvm::SplitString(self, parts, " \t\n\r\f\v");
      HostSequence values;
      for (llvm::StringRef part : parts)
        values.push_back(HostValue::string(part.str()));
      return HostValue::list(std::move(values));
    }
  }
  if (name == "format") {
    std::string result;
    size_t next = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      char c = text[i];
      if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
        result += c;
        ++i;
        continue;
      }
      if (c != '{') {
        result += c;
        continue;
      }
      size_t end = text.find('}', i);
      if (end == std::string::npos)
        return fail(range, "a field of the format has no closing '}'");
      auto [field, spec] = self.slice(i + 1, end).split(':');
      const HostValue *value = nullptr;
      unsigned index = 0;
      if (field.empty())
        value = next < args.size() ? &args[next++] : nullptr;
      else if (!field.getAsInteger(10, index))
        value = index < args.size() ? &args[index] : nullptr;
      for (const auto &[key, each] : arguments.keywords)
        if (key == field)
          value = &each;
      if (!value)
        return fail(range, fmt::format("the format has no value for '{{{}}}'", field.str()));
      auto formatted = format(value->isConstant() ? value->constant() : ConstValue::string(value->str()), spec);
      if (!formatted.isOk())
        return fail(range, formatted.status().message());
      result += *formatted;
      i = end;
    }
    return HostValue::string(std::move(result));
  }
  if ((name == "startswith" || name == "endswith") && args.size() == 1) {
    HostSequence options = args[0].sequence() ? *args[0].sequence() : HostSequence{args[0]};
    return HostValue::boolean(llvm::any_of(options, [&](const HostValue &each) {
      return each.isString() && (name == "startswith" ? self.starts_with(each.constant().getString())
                                                      : self.ends_with(each.constant().getString()));
    }));
  }
  if (name == "join" && args.size() == 1) {
    std::optional<HostSequence> parts = elementsOf(args[0], range);
    std::string result;
    for (auto [index, part] : llvm::enumerate(parts.value_or(HostSequence()))) {
      if (!part.isString())
        return fail(range, fmt::format("join takes strings, but item {} is '{}'", index, part.typeName()));
      result += (index ? text : "") + part.constant().getString();
      if (result.size() > ConstValue::maxStringBytes)
        return fail(range, "the text is too long");
    }
    return HostValue::string(std::move(result));
  }
  if (isAllText && args.size() == 1) {
    llvm::StringRef part = given[0];
    if (name == "strip" || name == "lstrip" || name == "rstrip")
      return HostValue::string(
          (name == "strip" ? self.trim(part) : name == "lstrip" ? self.ltrim(part) : self.rtrim(part)).str());
    if (name == "removeprefix" || name == "removesuffix") {
      name == "removeprefix" ? self.consume_front(part) : self.consume_back(part);
      return HostValue::string(self.str());
    }
    if (name == "count" && !part.empty())
      return HostValue::integer(self.count(part));
    if (name == "find" || name == "index" || name == "rfind") {
      size_t at = name == "rfind" ? self.rfind(part) : self.find(part);
      if (at == llvm::StringRef::npos && name == "index")
        return fail(range, "substring not found");
      return HostValue::integer(at == llvm::StringRef::npos ? -1 : static_cast<int64_t>(at));
    }
    if ((name == "split" || name == "rsplit") && !part.empty()) {
      llvm::SmallVector<llvm::StringRef> parts;
      self.split(parts, part);
      HostSequence values;
      for (llvm::StringRef each : parts)
        values.push_back(HostValue::string(each.str()));
      return HostValue::list(std::move(values));
    }
  }
  if (name == "replace" && isAllText && args.size() == 2 && !given[0].empty()) {
    std::string result;
    while (true) {
      size_t at = self.find(given[0]);
      result += self.substr(0, at).str();
      if (at == llvm::StringRef::npos)
        return HostValue::string(std::move(result));
      result += given[1];
      self = self.substr(at + given[0].size());
      if (result.size() > ConstValue::maxStringBytes)
        return fail(range, "the text is too long");
    }
  }
  if (name == "zfill" && args.size() == 1) {
    std::optional<int64_t> width = integerOf(args[0], range, "the width");
    if (!width || *width > 4096)
      return failure ? HostValue() : fail(range, "the width is too large");
    bool hasSign = !self.empty() && (self[0] == '-' || self[0] == '+');
    int64_t missing = std::max<int64_t>(0, *width - static_cast<int64_t>(self.size()));
    return HostValue::string(self.substr(0, hasSign).str() + std::string(missing, '0') + self.substr(hasSign).str());
  }
  return fail(range, fmt::format("'str' has no method '{}' with these arguments at compile time", name.str()));
}

} // namespace ditron::frontend
