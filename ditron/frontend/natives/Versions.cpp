//===- Versions.cpp - Functions of Python that run while compiling: versions ----------------------------------------===//
//
// packaging.version with the order of PEP 440, and the older LooseVersion of distutils. A version is an object with a key for
// comparisons: a tuple in which the infinities of PEP 440 ("no pre-release part comes behind all of them") are ranks before
// the part.
//
//     1.0.dev1 < 1.0a1 < 1.0 < 1.0+local < 1.0.post1
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/Evaluator.h"
#include "ditron/frontend/natives/Natives.h"

#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

namespace ditron::frontend {
namespace {

/// The parts of a version by PEP 440.
struct ParsedVersion {
  BigInt epoch;
  std::vector<BigInt> release;
  std::optional<std::pair<std::string, BigInt>> pre; ///< "a", "b" or "rc"
  std::optional<BigInt> post, dev;
  std::vector<std::string> local; ///< In lower case.
};

/// Reads a version, in lower case and without blanks around.
class VersionParser {
public:
  explicit VersionParser(llvm::StringRef text) : rest(text) {}

  std::optional<ParsedVersion> parse() {
    ParsedVersion version;
    rest.consume_front("v");
    std::optional<BigInt> first = number();
    if (first && rest.consume_front("!")) {
      version.epoch = *first;
      first = number();
    }
    if (!first)
      return std::nullopt;
    version.release.push_back(*first);
    while (rest.size() > 1 && rest[0] == '.' && llvm::isDigit(rest[1])) {
      rest = rest.drop_front();
      version.release.push_back(*number());
    }
    takePre(version);
    takePost(version);
    if (!takeWord({"dev"}).empty())
      version.dev = suffixNumber();
    if (rest.consume_front("+") && !takeLocal(version))
      return std::nullopt;
    return rest.empty() ? std::optional(std::move(version)) : std::nullopt;
  }

private:
  std::optional<BigInt> number() {
    llvm::StringRef digits = rest.take_while([](char c) { return llvm::isDigit(c); });
    rest = rest.drop_front(digits.size());
    return digits.empty() ? std::nullopt : BigInt::fromDigits(digits, 10);
  }

  /// Takes one of some words with a separator before it; gives the word, or an empty text.
  llvm::StringRef takeWord(std::initializer_list<llvm::StringRef> words) {
    llvm::StringRef after = rest;
    if (!after.empty() && llvm::StringRef("-_.").contains(after[0]))
      after = after.drop_front();
    for (llvm::StringRef word : words)
      if (after.consume_front(word)) {
        rest = after;
        return word;
      }
    return "";
  }

  /// The number behind a word, which may be missing.
  BigInt suffixNumber() {
    llvm::StringRef before = rest;
    if (!rest.empty() && llvm::StringRef("-_.").contains(rest[0]))
      rest = rest.drop_front();
    std::optional<BigInt> value = number();
    if (!value)
      rest = before;
    return value.value_or(BigInt(0));
  }

  void takePre(ParsedVersion &version) {
    llvm::StringRef word = takeWord({"alpha", "a", "beta", "b", "preview", "pre", "c", "rc"});
    if (!word.empty())
      version.pre = {word.starts_with("a") ? "a" : word.starts_with("b") ? "b" : "rc", suffixNumber()};
  }

  void takePost(ParsedVersion &version) {
    if (rest.size() > 1 && rest[0] == '-' && llvm::isDigit(rest[1])) {
      rest = rest.drop_front();
      version.post = *number();
    } else if (!takeWord({"post", "rev", "r"}).empty()) {
      version.post = suffixNumber();
    }
  }

  bool takeLocal(ParsedVersion &version) {
    do {
      llvm::StringRef part = rest.take_while([](char c) { return llvm::isAlnum(c); });
      if (part.empty())
        return false;
      version.local.push_back(part.str());
      rest = rest.drop_front(part.size());
    } while (rest.consume_front(".") || rest.consume_front("-") || rest.consume_front("_"));
    return true;
  }

  llvm::StringRef rest;
};

LangValue integer(const BigInt &value) { return LangValue(ConstValue::integer(value)); }
LangValue rank(int value) { return LangValue::tuple({LangValue::integer(value)}); }

bool isNumber(llvm::StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) { return llvm::isDigit(c); });
}

LangValue keyOf(const ParsedVersion &version) {
  size_t significant = version.release.size();
  while (significant > 0 && version.release[significant - 1].isZero())
    --significant;
  std::vector<LangValue> release, local = {LangValue::integer(version.local.empty() ? -1 : 0)};
  for (size_t i = 0; i < significant; ++i)
    release.push_back(integer(version.release[i]));
  LangValue pre = rank(!version.post && version.dev ? -1 : 1);
  if (version.pre)
    pre =
        LangValue::tuple({LangValue::integer(0), LangValue::string(version.pre->first), integer(version.pre->second)});
  LangValue post = version.post ? LangValue::tuple({LangValue::integer(0), integer(*version.post)}) : rank(-1);
  LangValue dev = version.dev ? LangValue::tuple({LangValue::integer(0), integer(*version.dev)}) : rank(1);
  // A number comes behind any word.
  for (const std::string &part : version.local)
    local.push_back(isNumber(part) ? LangValue::tuple({LangValue::integer(1), integer(*BigInt::fromDigits(part, 10))})
                                   : LangValue::tuple({LangValue::integer(0), LangValue::string(part)}));
  return LangValue::tuple({integer(version.epoch), LangValue::tuple(std::move(release)), pre, post, dev,
                           LangValue::tuple(std::move(local))});
}

/// "1!2.3": epoch and release.
std::string baseText(const ParsedVersion &version) {
  std::string text = version.epoch.isZero() ? "" : version.epoch.toString() + "!";
  for (auto [index, part] : llvm::enumerate(version.release))
    text += (index ? "." : "") + part.toString();
  return text;
}

LangValue versionObject(const ParsedVersion &version, llvm::StringRef type) {
  auto part = [&](size_t index) {
    return index < version.release.size() ? integer(version.release[index]) : LangValue::integer(0);
  };
  std::vector<LangValue> release;
  for (const BigInt &number : version.release)
    release.push_back(integer(number));
  std::string publicText = baseText(version), local;
  if (version.pre)
    publicText += version.pre->first + version.pre->second.toString();
  if (version.post)
    publicText += ".post" + version.post->toString();
  if (version.dev)
    publicText += ".dev" + version.dev->toString();
  for (const std::string &each : version.local)
    local += (local.empty() ? "" : ".") + (isNumber(each) ? BigInt::fromDigits(each, 10)->toString() : each);
  std::string text = publicText + (local.empty() ? "" : "+" + local);
  auto optional = [](const std::optional<BigInt> &value) { return value ? integer(*value) : LangValue::none(); };
  return LangValue::object(
      type.str(),
      {{"epoch", integer(version.epoch)},
       {"release", LangValue::tuple(std::move(release))},
       {"major", part(0)},
       {"minor", part(1)},
       {"micro", part(2)},
       {"pre", version.pre ? LangValue::tuple({LangValue::string(version.pre->first), integer(version.pre->second)})
                           : LangValue::none()},
       {"post", optional(version.post)},
       {"dev", optional(version.dev)},
       {"local", local.empty() ? LangValue::none() : LangValue::string(local)},
       {"public", LangValue::string(publicText)},
       {"base_version", LangValue::string(baseText(version))},
       {"is_prerelease", LangValue::boolean(version.pre || version.dev)},
       {"is_postrelease", LangValue::boolean(version.post.has_value())},
       {"is_devrelease", LangValue::boolean(version.dev.has_value())},
       {"__str__", LangValue::string(text)},
       {"__repr__", LangValue::string(fmt::format("<Version('{}')>", text))},
       {"__key__", keyOf(version)}});
}

LangValue parseVersion(NativeCall &call) {
  const LangValue &given = call.args[0];
  if (given.object() && given.object()->type == "Version")
    return given;
  const std::string *text = call.text(given, "a version");
  if (!text)
    return LangValue::poison();
  const std::string lower = llvm::StringRef(*text).trim(" \t\n\r\f\v").lower();
  std::optional<ParsedVersion> version = VersionParser(lower).parse();
  return version ? versionObject(*version, "Version")
                 : call.fail(fmt::format("Invalid version: {}", given.repr()), "InvalidVersion");
}

/// distutils' LooseVersion: numbers and the words between them, as they come.
LangValue looseVersion(NativeCall &call) {
  const std::string *text = call.text(call.args[0], "a version");
  if (!text)
    return LangValue::poison();
  std::vector<LangValue> parts;
  for (llvm::StringRef rest = *text; !rest.empty();) {
    auto isDigit = [](char c) { return llvm::isDigit(c); };
    auto isWord = [](char c) { return c >= 'a' && c <= 'z'; };
    llvm::StringRef part = rest.take_while(isDigit);
    if (part.empty())
      part = rest.take_while(isWord);
    if (part.empty())
      part = rest.take_until([&](char c) { return isDigit(c) || isWord(c) || c == '.'; });
    if (part.empty()) {
      rest = rest.drop_front();
      continue;
    }
    std::optional<BigInt> number = isNumber(part) ? BigInt::fromDigits(part, 10) : std::nullopt;
    parts.push_back(number ? integer(*number) : LangValue::string(part.str()));
    rest = rest.drop_front(part.size());
  }
  LangValue key = LangValue::tuple(parts);
  return LangValue::object("LooseVersion", {{"vstring", call.args[0]},
                                            {"version", LangValue::list(std::move(parts))},
                                            {"__str__", call.args[0]},
                                            {"__repr__", LangValue::string(fmt::format("LooseVersion ('{}')", *text))},
                                            {"__key__", std::move(key)}});
}

} // namespace

llvm::ArrayRef<NativeFunction> nativeVersionFunctions() {
  constexpr unsigned any = NativeFunction::any;
  static constexpr NativeFunction rows[] = {
      {"distutils.version.LooseVersion", 1, 1, looseVersion, "", false, true},
      {"packaging.version.InvalidVersion", 0, any, makeException, "", true, true},
      {"packaging.version.Version", 1, 1, parseVersion, "", false, true},
      {"packaging.version.parse", 1, 1, parseVersion},
      {"pkg_resources.parse_version", 1, 1, parseVersion},
  };
  return rows;
}

} // namespace ditron::frontend
