//===- FStringScanner.cpp - Where strings end and what f-strings hold ---------------------------------------------===//
//
// The scanner alternates between two modes: literal text, which ends at the quotes (or, in a format specification, at
// the field's closing brace), and a field's expression, in which brackets and whole strings are stepped over.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/FStringScanner.h"

#include "ditron/frontend/syntax/Lexer.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

namespace ditron::frontend {

namespace {

/// Longer than any name of a Unicode character.
constexpr uint32_t maxCharacterName = 128;

class Scanner {
public:
  explicit Scanner(llvm::StringRef text) : text(text) {}

  bool skipString(uint32_t &pos, bool isRaw, bool isFormatted, unsigned depth);
  bool skipField(uint32_t &pos, bool isTriple, unsigned depth, unsigned specDepth, FStringPart *part);
  /// Advances over literal text to the next field, to the end of a specification (a lone closing brace) or by nothing.
  /// Returns false after an error. What stopped it is the character at pos.
  bool skipLiteral(uint32_t &pos, bool isRaw, bool isSpec);

  StringScan result;

private:
  bool fail(uint32_t begin, uint32_t end, uint32_t goOn, std::string message) {
    result.error = std::move(message);
    result.errorBegin = begin;
    result.errorEnd = end;
    result.end = goOn;
    return false;
  }
  char at(uint32_t pos) const { return pos < text.size() ? text[pos] : '\0'; }
  bool atEnd(uint32_t pos) const { return pos >= text.size(); }
  bool isLineEnd(uint32_t pos) const { return at(pos) == '\n' || at(pos) == '\r'; }
  uint32_t lineEndFrom(uint32_t pos) const {
    return static_cast<uint32_t>(std::min(text.find_first_of("\r\n", pos), text.size()));
  }
  /// Steps over \N{name}; over the three first characters if no name follows.
  void skipNamedEscape(uint32_t &pos) const {
    size_t close = text.slice(pos, pos + maxCharacterName).find_first_of("}\r\n");
    bool isClosed = close != llvm::StringRef::npos && at(pos + static_cast<uint32_t>(close)) == '}';
    pos += isClosed ? static_cast<uint32_t>(close) + 1 : 3;
  }
  /// Steps over a backslash and what it hides.
  void skipEscape(uint32_t &pos) const { pos += at(pos + 1) == '\r' && at(pos + 2) == '\n' ? 3 : 2; }
  bool skipNestedString(uint32_t &pos, uint32_t wordBegin, unsigned depth);
  bool skipSpec(uint32_t &pos, bool isTriple, unsigned depth, unsigned specDepth);

  llvm::StringRef text;
};

bool Scanner::skipString(uint32_t &pos, bool isRaw, bool isFormatted, unsigned depth) {
  uint32_t begin = pos;
  char mark = at(pos);
  bool isTriple = at(pos + 1) == mark && at(pos + 2) == mark;
  pos += isTriple ? 3 : 1;
  while (!atEnd(pos)) {
    char c = at(pos);
    if (c == mark && (!isTriple || (at(pos + 1) == mark && at(pos + 2) == mark))) {
      pos += isTriple ? 3 : 1;
      return true;
    }
    if (isLineEnd(pos) && !isTriple)
      break;
    if (c == '\\' && isFormatted && (at(pos + 1) == '{' || at(pos + 1) == '}')) {
      ++pos; // not an escape: the backslash stays, the brace counts
    } else if (c == '\\' && isFormatted && !isRaw && at(pos + 1) == 'N' && at(pos + 2) == '{') {
      skipNamedEscape(pos);
    } else if (c == '\\') {
      skipEscape(pos);
    } else if (isFormatted && c == '{' && at(pos + 1) != '{') {
      if (!skipField(pos, isTriple, depth, 0, nullptr))
        return false;
    } else {
      pos += isFormatted && c == '{' ? 2 : 1;
    }
  }
  pos = std::min(pos, static_cast<uint32_t>(text.size()));
  const char *kind = isFormatted ? "f-string" : "string";
  if (isTriple)
    return fail(begin, begin + 3, pos, fmt::format("unterminated triple-quoted {} literal", kind));
  return fail(begin, pos, pos, fmt::format("unterminated {} literal", kind));
}

/// A string inside a field's expression; the letters before its quote are its prefix.
bool Scanner::skipNestedString(uint32_t &pos, uint32_t wordBegin, unsigned depth) {
  std::string prefix = text.slice(wordBegin, pos).lower();
  bool isFormatted = prefix.size() <= 2 && llvm::StringRef(prefix).contains('f');
  bool isRaw = prefix.size() <= 2 && llvm::StringRef(prefix).contains('r');
  if (isFormatted && depth + 1 >= maxFStringDepth)
    return fail(pos, pos + 1, lineEndFrom(pos),
                fmt::format("f-strings are nested too deeply: at most {} levels", maxFStringDepth));
  return skipString(pos, isRaw, isFormatted, depth + 1);
}

bool Scanner::skipField(uint32_t &pos, bool isTriple, unsigned depth, unsigned specDepth, FStringPart *part) {
  uint32_t fieldBegin = pos++;
  uint32_t wordBegin = pos;
  unsigned brackets = 0;
  uint32_t lastEquals = 0; // one past a lone '=' that only blanks have followed
  FStringPart found;
  found.isField = true;
  found.begin = pos;
  found.fieldBegin = fieldBegin;
  while (!atEnd(pos)) {
    char c = at(pos);
    bool isTop = brackets == 0;
    if (c == '"' || c == '\'') {
      if (!skipNestedString(pos, wordBegin, depth))
        return false;
      lastEquals = 0;
      wordBegin = pos;
      continue;
    }
    if (isTop && (c == '}' || c == ':' || (c == '!' && at(pos + 1) != '='))) {
      found.end = lastEquals ? lastEquals - 1 : pos;
      found.hasEquals = lastEquals != 0;
      found.equalsEnd = pos;
      if (c == '!') {
        ++pos;
        found.conversion = at(pos);
        bool isKnown = found.conversion == 's' || found.conversion == 'r' || found.conversion == 'a';
        uint32_t next = pos + 1;
        while (at(next) == ' ')
          ++next;
        if (!isKnown || (at(next) != ':' && at(next) != '}'))
          return fail(pos - 1, pos + (isKnown ? 2 : 1), lineEndFrom(pos),
                      "f-string: invalid conversion: expected '!s', '!r' or '!a'");
        pos = next;
      }
      if (at(pos) == ':') {
        found.hasSpec = true;
        found.specBegin = ++pos;
        if (!skipSpec(pos, isTriple, depth, specDepth))
          return false;
        found.specEnd = pos;
      }
      found.fieldEnd = ++pos;
      if (part)
        *part = found;
      return true;
    }
    if (c == '(' || c == '[' || c == '{')
      ++brackets;
    else if (!isTop && (c == ')' || c == ']' || c == '}'))
      --brackets;
    else if (c == '#')
      pos = lineEndFrom(pos) - 1;
    // A comparison's '=' is part of its operator, not the sign of a self-describing field.
    bool isLoneEquals = c == '=' && isTop && at(pos + 1) != '=' && !llvm::StringRef("=!<>:").contains(at(pos - 1));
    if (isLoneEquals)
      lastEquals = pos + 1;
    else if (!llvm::isSpace(c))
      lastEquals = 0;
    ++pos;
    if (!llvm::isAlnum(c) && c != '_')
      wordBegin = pos;
  }
  return fail(fieldBegin, fieldBegin + 1, lineEndFrom(fieldBegin), "f-string: '{' was never closed");
}

bool Scanner::skipSpec(uint32_t &pos, bool isTriple, unsigned depth, unsigned specDepth) {
  uint32_t begin = pos;
  while (!atEnd(pos) && (isTriple || !isLineEnd(pos))) {
    if (at(pos) == '}')
      return true;
    if (at(pos) != '{') {
      ++pos;
      continue;
    }
    if (specDepth >= 2)
      return fail(pos, pos + 1, lineEndFrom(pos), "f-string: expressions nested too deeply");
    if (!skipField(pos, isTriple, depth, specDepth + 1, nullptr))
      return false;
  }
  return fail(begin - 1, begin, lineEndFrom(begin), "f-string: expecting '}' after the format specification");
}

bool Scanner::skipLiteral(uint32_t &pos, bool isRaw, bool isSpec) {
  while (!atEnd(pos)) {
    char c = at(pos);
    if (c == '\\' && !isRaw && at(pos + 1) == 'N' && at(pos + 2) == '{') {
      skipNamedEscape(pos);
    } else if (c == '\\' && at(pos + 1) != '{' && at(pos + 1) != '}') {
      skipEscape(pos);
    } else if (!isSpec && (c == '{' || c == '}') && at(pos + 1) == c) {
      pos += 2;
    } else if (c == '{') {
      return true;
    } else if (c == '}') {
      return fail(pos, pos + 1, pos + 1, "f-string: single '}' is not allowed");
    } else {
      ++pos;
    }
  }
  pos = static_cast<uint32_t>(text.size());
  return true;
}

} // namespace

StringScan scanString(llvm::StringRef text, uint32_t quote, bool isRaw, bool isFormatted) {
  Scanner scanner(text);
  uint32_t pos = quote;
  if (scanner.skipString(pos, isRaw, isFormatted, 0))
    scanner.result.end = pos;
  return std::move(scanner.result);
}

bool splitFString(const SourceFile &file, uint32_t begin, uint32_t end, bool isRaw, bool isFormatSpec,
                  DiagnosticEngine &diagnostics, std::vector<FStringPart> &parts) {
  Scanner scanner(file.text().take_front(end));
  uint32_t pos = begin;
  while (pos < end) {
    uint32_t literalBegin = pos;
    FStringPart part;
    bool isFine = scanner.skipLiteral(pos, isRaw, isFormatSpec);
    if (isFine && pos > literalBegin) {
      part.begin = literalBegin;
      part.end = pos;
      parts.push_back(part);
    }
    if (isFine && pos < end) {
      isFine = scanner.skipField(pos, /*isTriple=*/true, 0, isFormatSpec ? 1 : 0, &part);
      parts.push_back(part);
    }
    if (!isFine) {
      const StringScan &scan = scanner.result;
      diagnostics.error(file.range(scan.errorBegin, scan.errorEnd), scan.error);
      return false;
    }
  }
  return true;
}

} // namespace ditron::frontend
