//===- Strings.cpp - Functions of Python that run while compiling: text ---------------------------------------------===//
//
// The methods of str, apart from format (Format.cpp). Positions and widths count code points, as in Python. What
// depends on Unicode's tables of letters is done for ASCII only, and is an error for other text.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/Natives.h"

#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

constexpr llvm::StringLiteral blanks = " \t\n\r\v\f";

llvm::StringRef selfOf(const NativeCall &call) { return call.self.constant().getString(); }
std::string nameOf(const NativeCall &call) { return llvm::StringRef(call.function.name).str(); }
LangValue text(llvm::StringRef value) { return LangValue::string(value.str()); }

bool startsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

bool isAscii(llvm::StringRef value) {
  return llvm::all_of(value, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// A string argument; null after a reported error.
const std::string *textAt(const NativeCall &call, size_t index) {
  return call.text(call.args[index], "the argument of " + nameOf(call));
}

bool checkAscii(const NativeCall &call) {
  if (isAscii(selfOf(call)))
    return true;
  call.fail(fmt::format("{} takes ASCII text at compile time, but got {}", nameOf(call), call.self.describe()), "");
  return false;
}

LangValue checkedText(const NativeCall &call, std::string result) {
  return call.checkText(result) ? LangValue::string(std::move(result)) : LangValue::poison();
}

//===------------------------------------------------------------------------------------------------------------------===//
// Letters
//===------------------------------------------------------------------------------------------------------------------===//

/// upper, lower, casefold, swapcase, capitalize and title.
LangValue changeCase(NativeCall &call) {
  if (!checkAscii(call))
    return LangValue::poison();
  llvm::StringRef name = call.function.shortName();
  std::string result = selfOf(call).str();
  bool isStart = true;
  for (char &c : result) {
    const bool wasUpper = llvm::isUpper(c);
    bool isUpper =
        name == "upper" || (name == "swapcase" ? !wasUpper : (name == "capitalize" || name == "title") && isStart);
    isStart = name == "title" && !llvm::isAlpha(c);
    c = isUpper ? llvm::toUpper(c) : llvm::toLower(c);
  }
  return LangValue::string(std::move(result));
}

template <bool (*predicate)(char)> LangValue allCharacters(NativeCall &call) {
  if (!checkAscii(call))
    return LangValue::poison();
  return LangValue::boolean(!selfOf(call).empty() && llvm::all_of(selfOf(call), predicate));
}

bool isDigitCharacter(char c) { return llvm::isDigit(c); }
bool isLetter(char c) { return llvm::isAlpha(c); }
bool isLetterOrDigit(char c) { return llvm::isAlnum(c); }
bool isBlank(char c) { return blanks.contains(c) || (c >= 0x1c && c <= 0x1f); }

/// isupper and islower: at least one letter, and none of the other case.
LangValue hasCase(NativeCall &call) {
  if (!checkAscii(call))
    return LangValue::poison();
  const bool wantsUpper = call.function.shortName() == "isupper";
  const bool hasUpper = llvm::any_of(selfOf(call), [](char c) { return llvm::isUpper(c); });
  const bool hasLower = llvm::any_of(selfOf(call), [](char c) { return llvm::isLower(c); });
  return LangValue::boolean(wantsUpper ? hasUpper && !hasLower : hasLower && !hasUpper);
}

LangValue isIdentifier(NativeCall &call) {
  if (!checkAscii(call))
    return LangValue::poison();
  llvm::StringRef self = selfOf(call);
  return LangValue::boolean(!self.empty() && !llvm::isDigit(self[0]) &&
                            llvm::all_of(self, [](char c) { return llvm::isAlnum(c) || c == '_'; }));
}

LangValue isAsciiText(NativeCall &call) { return LangValue::boolean(isAscii(selfOf(call))); }

//===------------------------------------------------------------------------------------------------------------------===//
// Ends and widths
//===------------------------------------------------------------------------------------------------------------------===//

/// strip, lstrip and rstrip.
LangValue stripText(NativeCall &call) {
  llvm::StringRef name = call.function.shortName(), self = selfOf(call);
  std::string characters = (blanks + llvm::StringRef("\x1c\x1d\x1e\x1f")).str();
  if (!call.args.empty() && !call.args[0].isNone()) {
    const std::string *given = textAt(call, 0);
    if (!given)
      return LangValue::poison();
    characters = *given;
  }
  auto isStripped = [&](llvm::StringRef character) { return llvm::StringRef(characters).contains(character); };
  while (name != "rstrip" && !self.empty() && isStripped(self.take_front(codePointOffset(self, 1))))
    self = self.drop_front(codePointOffset(self, 1));
  while (name != "lstrip" && !self.empty()) {
    size_t last = self.size() - 1;
    while (last > 0 && !startsCodePoint(self[last]))
      --last;
    if (!isStripped(self.substr(last)))
      break;
    self = self.take_front(last);
  }
  return text(self);
}

/// removeprefix and removesuffix.
LangValue removeEnd(NativeCall &call) {
  const std::string *part = textAt(call, 0);
  if (!part)
    return LangValue::poison();
  llvm::StringRef self = selfOf(call);
  if (call.function.shortName() == "removeprefix")
    self.consume_front(*part);
  else
    self.consume_back(*part);
  return text(self);
}

/// ljust, rjust, center and zfill.
LangValue padText(NativeCall &call) {
  llvm::StringRef name = call.function.shortName(), self = selfOf(call);
  std::optional<int64_t> width = call.integer(call.args[0], "the width");
  std::string filler = name == "zfill" ? "0" : " ";
  if (width && call.args.size() > 1) {
    const std::string *given = textAt(call, 1);
    if (!given)
      return LangValue::poison();
    if (codePoints(*given) != 1)
      return call.fail("The fill character must be exactly one character long");
    filler = *given;
  }
  if (!width)
    return LangValue::poison();
  const int64_t missing = std::max<int64_t>(0, *width - codePoints(self));
  if (missing > static_cast<int64_t>(ConstValue::maxStringBytes / filler.size()))
    return call.checkText(std::string(ConstValue::maxStringBytes + 1, ' ')), LangValue::poison();
  // CPython puts the odd one to the left if the width is odd.
  int64_t left = name == "rjust" || name == "zfill" ? missing
                 : name == "ljust"                  ? 0
                                                    : missing / 2 + (missing & *width & 1);
  std::string before, after;
  for (int64_t i = 0; i < missing; ++i)
    (i < left ? before : after) += filler;
  const bool hasSign = name == "zfill" && (self.starts_with("-") || self.starts_with("+"));
  return checkedText(call, (self.substr(0, hasSign) + before + self.substr(hasSign) + after).str());
}

//===------------------------------------------------------------------------------------------------------------------===//
// Search
//===------------------------------------------------------------------------------------------------------------------===//

/// The part of the text that the arguments `start` and `end` name; `first` is the offset of its begin. Nullopt after an error.
std::optional<llvm::StringRef> window(const NativeCall &call, size_t index, size_t &first) {
  llvm::StringRef self = selfOf(call);
  const int64_t size = codePoints(self);
  int64_t bounds[2] = {0, size};
  for (size_t i = 0; i < 2 && index + i < call.args.size(); ++i) {
    if (call.args[index + i].isNone())
      continue;
    std::optional<int64_t> bound = call.integer(call.args[index + i], "the bound of a search");
    if (!bound)
      return std::nullopt;
    bounds[i] = *bound < 0 ? std::max<int64_t>(0, *bound + size) : *bound;
  }
  if (bounds[0] > size || bounds[1] < bounds[0]) {
    first = llvm::StringRef::npos;
    return llvm::StringRef();
  }
  first = codePointOffset(self, bounds[0]);
  return self.substr(first, codePointOffset(self, bounds[1]) - first);
}

/// startswith and endswith, of a text or of any of a tuple.
LangValue hasEnd(NativeCall &call) {
  size_t first = 0;
  std::optional<llvm::StringRef> part = window(call, 1, first);
  if (!part)
    return LangValue::poison();
  std::vector<LangValue> options =
      call.args[0].isTuple() ? call.args[0].elements() : std::vector<LangValue>{call.args[0]};
  for (const LangValue &option : options) {
    if (option.isUnknown())
      return option;
    const std::string *wanted = call.text(option, "the argument of " + nameOf(call));
    if (!wanted)
      return LangValue::poison();
    if (first != llvm::StringRef::npos &&
        (call.function.shortName() == "startswith" ? part->starts_with(*wanted) : part->ends_with(*wanted)))
      return LangValue::boolean(true);
  }
  return LangValue::boolean(false);
}

/// find, rfind, index and rindex.
LangValue findText(NativeCall &call) {
  llvm::StringRef name = call.function.shortName();
  const std::string *wanted = textAt(call, 0);
  size_t first = 0;
  std::optional<llvm::StringRef> part = wanted ? window(call, 1, first) : std::nullopt;
  if (!part)
    return LangValue::poison();
  size_t at = llvm::StringRef::npos;
  if (first != llvm::StringRef::npos)
    at = name.starts_with("r") ? part->rfind(*wanted) : part->find(*wanted);
  if (at == llvm::StringRef::npos)
    return name.ends_with("index") ? call.fail("substring not found", "ValueError") : LangValue::integer(-1);
  return LangValue::integer(codePoints(selfOf(call).substr(0, first + at)));
}

LangValue countText(NativeCall &call) {
  const std::string *wanted = textAt(call, 0);
  size_t first = 0;
  std::optional<llvm::StringRef> part = wanted ? window(call, 1, first) : std::nullopt;
  if (!part)
    return LangValue::poison();
  if (first == llvm::StringRef::npos)
    return LangValue::integer(0);
  return LangValue::integer(wanted->empty() ? codePoints(*part) + 1 : part->count(*wanted));
}

LangValue replaceText(NativeCall &call) {
  const std::string *from = textAt(call, 0), *to = from ? textAt(call, 1) : nullptr;
  const LangValue *given = call.argument(2, "count");
  std::optional<int64_t> limit =
      given ? call.integer(*given, "the number of replacements") : std::optional<int64_t>(-1);
  if (!to || !limit)
    return LangValue::poison();
  llvm::StringRef self = selfOf(call);
  std::string result;
  for (int64_t done = 0; *limit < 0 || done < *limit; ++done) {
    // An empty text is found before each code point and at the end.
    size_t at = from->empty() ? (done == 0      ? 0
                                 : self.empty() ? llvm::StringRef::npos
                                                : codePointOffset(self, 1))
                              : self.find(*from);
    if (at == llvm::StringRef::npos)
      break;
    result += self.substr(0, at).str() + *to;
    self = self.substr(at + from->size());
    if (!call.checkText(result))
      return LangValue::poison();
  }
  return checkedText(call, result + self.str());
}

//===------------------------------------------------------------------------------------------------------------------===//
// Parts
//===------------------------------------------------------------------------------------------------------------------===//

LangValue listOfTexts(llvm::ArrayRef<llvm::StringRef> parts) {
  std::vector<LangValue> values;
  for (llvm::StringRef part : parts)
    values.push_back(text(part));
  return LangValue::list(std::move(values));
}

/// The words between blanks, from the left or the right.
std::vector<llvm::StringRef> words(llvm::StringRef rest, int64_t limit, bool fromRight) {
  std::vector<llvm::StringRef> parts;
  while (!(rest = fromRight ? rest.rtrim(blanks) : rest.ltrim(blanks)).empty()) {
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(rest);
      break;
    }
    size_t at = fromRight ? rest.find_last_of(blanks) : rest.find_first_of(blanks);
    if (at == llvm::StringRef::npos) {
      parts.push_back(rest);
      break;
    }
    parts.push_back(fromRight ? rest.substr(at + 1) : rest.substr(0, at));
    rest = fromRight ? rest.substr(0, at) : rest.substr(at + 1);
  }
  return parts;
}

/// split and rsplit.
LangValue splitText(NativeCall &call) {
  const bool fromRight = call.function.shortName() == "rsplit";
  const LangValue *separator = call.argument(0, "sep"), *given = call.argument(1, "maxsplit");
  std::optional<int64_t> limit = given ? call.integer(*given, "maxsplit") : std::optional<int64_t>(-1);
  if (!limit)
    return LangValue::poison();
  llvm::StringRef rest = selfOf(call);
  std::vector<llvm::StringRef> parts;
  if (!separator || separator->isNone()) {
    parts = words(rest, *limit, fromRight);
  } else {
    const std::string *by = call.text(*separator, "the separator");
    if (!by)
      return LangValue::poison();
    if (by->empty())
      return call.fail("empty separator", "ValueError");
    size_t at;
    while ((*limit < 0 || static_cast<int64_t>(parts.size()) < *limit) &&
           (at = fromRight ? rest.rfind(*by) : rest.find(*by)) != llvm::StringRef::npos) {
      parts.push_back(fromRight ? rest.substr(at + by->size()) : rest.substr(0, at));
      rest = fromRight ? rest.substr(0, at) : rest.substr(at + by->size());
    }
    parts.push_back(rest);
  }
  if (fromRight)
    std::reverse(parts.begin(), parts.end());
  return listOfTexts(parts);
}

LangValue splitLines(NativeCall &call) {
  const LangValue *given = call.argument(0, "keepends");
  std::optional<bool> keeps = given ? call.evaluator.truthOf(*given, call.range) : std::optional(false);
  if (!keeps || !checkAscii(call))
    return LangValue::poison();
  llvm::StringRef rest = selfOf(call);
  std::vector<llvm::StringRef> lines;
  while (!rest.empty()) {
    size_t end = std::min(rest.find_first_of("\n\r\v\f\x1c\x1d\x1e"), rest.size());
    size_t next = std::min(rest.size(), end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
    lines.push_back(rest.substr(0, *keeps ? next : end));
    rest = rest.substr(next);
  }
  return listOfTexts(lines);
}

/// partition and rpartition.
LangValue partitionText(NativeCall &call) {
  const std::string *by = textAt(call, 0);
  if (!by)
    return LangValue::poison();
  if (by->empty())
    return call.fail("empty separator", "ValueError");
  const bool fromRight = call.function.shortName() == "rpartition";
  llvm::StringRef self = selfOf(call);
  size_t at = fromRight ? self.rfind(*by) : self.find(*by);
  if (at == llvm::StringRef::npos)
    return fromRight ? LangValue::tuple({text(""), text(""), text(self)})
                     : LangValue::tuple({text(self), text(""), text("")});
  return LangValue::tuple({text(self.substr(0, at)), text(*by), text(self.substr(at + by->size()))});
}

LangValue joinTexts(NativeCall &call) {
  std::optional<std::vector<LangValue>> parts = call.elements(0);
  if (!parts)
    return LangValue::poison();
  std::string result;
  for (auto [index, part] : llvm::enumerate(*parts)) {
    if (part.isUnknown())
      return part;
    if (!part.isString())
      return call.fail(fmt::format("join takes strings, but item {} is '{}'", index, part.typeName()));
    result += (index ? selfOf(call).str() : "") + part.constant().getString();
    if (!call.checkText(result))
      return LangValue::poison();
  }
  return LangValue::string(std::move(result));
}

} // namespace

int64_t codePoints(llvm::StringRef text) { return llvm::count_if(text, startsCodePoint); }

size_t codePointOffset(llvm::StringRef text, int64_t index) {
  for (size_t at = 0; at < text.size(); ++at)
    if (startsCodePoint(text[at]) && index-- == 0)
      return at;
  return text.size();
}

llvm::ArrayRef<NativeFunction> nativeStringMethods() {
  constexpr unsigned any = NativeFunction::any;
  static constexpr NativeFunction rows[] = {
      {"str.capitalize", 0, 0, changeCase},
      {"str.casefold", 0, 0, changeCase},
      {"str.center", 1, 2, padText},
      {"str.count", 1, 3, countText},
      {"str.endswith", 1, 3, hasEnd},
      {"str.find", 1, 3, findText},
      {"str.format", 0, any, formatText, "*"},
      {"str.index", 1, 3, findText},
      {"str.isalnum", 0, 0, allCharacters<isLetterOrDigit>},
      {"str.isalpha", 0, 0, allCharacters<isLetter>},
      {"str.isascii", 0, 0, isAsciiText},
      {"str.isdecimal", 0, 0, allCharacters<isDigitCharacter>},
      {"str.isdigit", 0, 0, allCharacters<isDigitCharacter>},
      {"str.isidentifier", 0, 0, isIdentifier},
      {"str.islower", 0, 0, hasCase},
      {"str.isnumeric", 0, 0, allCharacters<isDigitCharacter>},
      {"str.isspace", 0, 0, allCharacters<isBlank>},
      {"str.isupper", 0, 0, hasCase},
      {"str.join", 1, 1, joinTexts},
      {"str.ljust", 1, 2, padText},
      {"str.lower", 0, 0, changeCase},
      {"str.lstrip", 0, 1, stripText},
      {"str.partition", 1, 1, partitionText},
      {"str.removeprefix", 1, 1, removeEnd},
      {"str.removesuffix", 1, 1, removeEnd},
      {"str.replace", 2, 3, replaceText, "count"},
      {"str.rfind", 1, 3, findText},
      {"str.rindex", 1, 3, findText},
      {"str.rjust", 1, 2, padText},
      {"str.rpartition", 1, 1, partitionText},
      {"str.rsplit", 0, 2, splitText, "sep maxsplit"},
      {"str.rstrip", 0, 1, stripText},
      {"str.split", 0, 2, splitText, "sep maxsplit"},
      {"str.splitlines", 0, 1, splitLines, "keepends"},
      {"str.startswith", 1, 3, hasEnd},
      {"str.strip", 0, 1, stripText},
      {"str.swapcase", 0, 0, changeCase},
      {"str.title", 0, 0, changeCase},
      {"str.upper", 0, 0, changeCase},
      {"str.zfill", 1, 1, padText},
  };
  return rows;
}

} // namespace ditron::frontend
