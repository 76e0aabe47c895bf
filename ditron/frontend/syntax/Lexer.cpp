//===- Lexer.cpp - Kernel text to tokens --------------------------------------------------------------------------===//
//
// One pass over the bytes. Indentation is measured as CPython does it: once with tab stops of eight and once with tabs
// of one column; when the two measures order two lines differently, the file mixes tabs and blanks in a way that only
// one reader would understand, and is refused.
//
// An opening bracket that is never closed would swallow the rest of the file. A line inside brackets that starts with a
// word that cannot continue an expression (`def`, `return`, ...) therefore ends them, with one message at the bracket.
// Wherever a message was given, an Error token stands in the list; the parser does not complain about it again.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/Lexer.h"

#include "ditron/frontend/syntax/ConstValue.h"
#include "ditron/frontend/syntax/FStringScanner.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"
#include <fmt/format.h>

namespace ditron::frontend {

llvm::StringRef describe(TokenKind kind) {
  switch (kind) {
#define DITRON_TOKEN(name, text)                                                                                       \
  case TokenKind::name: return text;
#include "ditron/frontend/syntax/Tokens.def"
  }
  return "a token";
}

llvm::StringRef toString(TokenKind kind) {
  switch (kind) {
#define DITRON_TOKEN(name, text)                                                                                       \
  case TokenKind::name: return #name;
#include "ditron/frontend/syntax/Tokens.def"
  }
  return "?";
}

namespace {

struct Punctuation {
  TokenKind kind;
  llvm::StringLiteral spelling;
};

constexpr Punctuation punctuations[] = {
#define DITRON_TOKEN(name, text)
#define DITRON_KEYWORD(name, word)
#define DITRON_PUNCTUATION(name, spelling) {TokenKind::name, spelling},
#include "ditron/frontend/syntax/Tokens.def"
};

TokenKind nameOrKeyword(llvm::StringRef word) {
  return llvm::StringSwitch<TokenKind>(word)
#define DITRON_TOKEN(name, text)
#define DITRON_PUNCTUATION(name, spelling)
#define DITRON_KEYWORD(name, word) .Case(word, TokenKind::name)
#include "ditron/frontend/syntax/Tokens.def"
      .Default(TokenKind::Name);
}

/// A word that starts a statement and can stand nowhere inside an expression.
bool startsStatementOnly(llvm::StringRef word) {
  return llvm::StringSwitch<bool>(word)
      .Cases({"def", "class", "return", "import", "while", "with", "try", "raise", "assert"}, true)
      .Cases({"del", "global", "nonlocal", "pass", "break", "continue"}, true)
      .Default(false);
}

/// Code points beyond ASCII that may stand in a name. Without Unicode's identifier tables: everything printable except
/// the blocks of punctuation, blanks and symbols, where the usual accidents (quotes, dashes from a word processor) lie.
bool isNameCodePoint(uint32_t c) {
  if (c < 0xc0)
    return c == 0xaa || c == 0xb5 || c == 0xb7 || c == 0xba;
  bool isSymbol = c == 0xd7 || c == 0xf7 || (c >= 0x2000 && c <= 0x206f) || (c >= 0x20a0 && c <= 0x20cf) ||
                  (c >= 0x2190 && c <= 0x2bff) || (c >= 0x3000 && c <= 0x3004) || (c >= 0x3008 && c <= 0x3020) ||
                  (c >= 0xff00 && c <= 0xff0f) || (c >= 0xff1a && c <= 0xff20) || (c >= 0xff3b && c <= 0xff3e) ||
                  (c >= 0xff5b && c <= 0xff65) || (c >= 0x1f000 && c <= 0x1faff);
  return !isSymbol && llvm::sys::unicode::isPrintable(static_cast<int>(c));
}

class Lexer {
public:
  Lexer(const SourceFile &file, uint32_t begin, uint32_t end, bool isExpression, DiagnosticEngine &diagnostics)
      : file(file), text(file.text().take_front(end)), pos(begin), isExpression(isExpression),
        diagnostics(diagnostics) {}

  std::vector<Token> run();

private:
  struct Indentation {
    uint32_t column = 0;    ///< With tab stops of eight.
    uint32_t tabsAsOne = 0; ///< With tabs of one column.
  };
  struct Bracket {
    char opening;
    uint32_t offset;
    size_t token; ///< Index of its token.
  };

  bool checkEncoding();
  void lexLineStart();
  void changeIndentation(Indentation indentation, uint32_t lineBegin);
  void lexToken();
  void lexLineEnd();
  void lexBackslash();
  void lexName();
  void lexNumber();
  void lexString(uint32_t begin, bool isRaw, bool isFormatted);
  void lexPunctuation();
  void closeBracket(char closing);
  void reportUnclosedBracket();
  void skipLine();

  bool atEnd() const { return pos >= text.size(); }
  char peek(uint32_t ahead = 0) const { return pos + ahead < text.size() ? text[pos + ahead] : '\0'; }
  bool atLineEnd() const { return peek() == '\n' || peek() == '\r'; }
  /// Length of the line end at pos: 1, or 2 for CR LF.
  uint32_t lineEndLength() const { return peek() == '\r' && peek(1) == '\n' ? 2 : 1; }
  bool joinsLines() const { return isExpression || !brackets.empty(); }
  size_t nameLength(size_t at) const;
  uint32_t codePointAt(size_t at, size_t &length) const;
  void push(TokenKind kind, uint32_t begin) { tokens.push_back({kind, begin, pos}); }
  void error(uint32_t begin, uint32_t end, std::string message) {
    diagnostics.error(file.range(begin, end), std::move(message));
    tokens.push_back({TokenKind::Error, begin, end});
  }

  const SourceFile &file;
  llvm::StringRef text;
  uint32_t pos;
  bool isExpression;
  DiagnosticEngine &diagnostics;
  std::vector<Token> tokens;
  llvm::SmallVector<Indentation, 16> indentations{Indentation()};
  llvm::SmallVector<Bracket, 16> brackets;
};

bool Lexer::checkEncoding() {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.end()), *at = begin;
  if (!llvm::isLegalUTF8String(&at, end)) {
    auto offset = static_cast<uint32_t>(at - begin);
    error(offset, offset + 1,
          fmt::format("the file is not UTF-8: invalid byte 0x{:02x}", static_cast<unsigned char>(text[offset])));
    return false;
  }
  if (size_t zero = text.find('\0'); zero != llvm::StringRef::npos) {
    error(static_cast<uint32_t>(zero), static_cast<uint32_t>(zero) + 1, "the file contains a null byte");
    return false;
  }
  return true;
}

std::vector<Token> Lexer::run() {
  if (!isExpression) {
    if (!checkEncoding()) {
      pos = static_cast<uint32_t>(text.size());
      push(TokenKind::EndOfFile, pos);
      return std::move(tokens);
    }
    if (text.starts_with("\xef\xbb\xbf"))
      pos = 3;
    lexLineStart();
  }
  // Messages past the limit are dropped, so there is no point in looking for more.
  while (!atEnd() && !diagnostics.limitReached(file.id()))
    lexToken();
  pos = static_cast<uint32_t>(text.size());
  if (!isExpression) {
    if (!brackets.empty())
      reportUnclosedBracket();
    if (!tokens.empty() && tokens.back().kind != TokenKind::Newline && tokens.back().kind != TokenKind::Dedent)
      push(TokenKind::Newline, pos);
    for (; indentations.size() > 1; indentations.pop_back())
      push(TokenKind::Dedent, pos);
  }
  push(TokenKind::EndOfFile, pos);
  return std::move(tokens);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Lines and indentation
//===--------------------------------------------------------------------------------------------------------------===//

/// Skips blank and comment lines, then compares the indentation of the first line with content.
void Lexer::lexLineStart() {
  while (!atEnd()) {
    uint32_t lineBegin = pos;
    Indentation indentation;
    for (; peek() == ' ' || peek() == '\t' || peek() == '\f'; ++pos) {
      if (peek() == '\f') {
        indentation = Indentation();
      } else {
        indentation.column = peek() == '\t' ? (indentation.column / 8 + 1) * 8 : indentation.column + 1;
        ++indentation.tabsAsOne;
      }
    }
    if (peek() == '#')
      skipLine();
    if (atEnd())
      return;
    if (atLineEnd()) {
      pos += lineEndLength();
      continue;
    }
    // A line that holds only a backslash goes on in the next one; its own indentation counts, as in CPython.
    changeIndentation(indentation, lineBegin);
    return;
  }
}

void Lexer::changeIndentation(Indentation indentation, uint32_t lineBegin) {
  Indentation current = indentations.back();
  // No Error tokens here: the lines themselves are fine and their own mistakes are worth reporting.
  auto complain = [&](llvm::StringRef message) { diagnostics.error(file.range(lineBegin, pos), message.str()); };
  auto mixed = [&] { complain("inconsistent use of tabs and spaces in indentation"); };
  if (indentation.column == current.column) {
    if (indentation.tabsAsOne != current.tabsAsOne)
      mixed();
    return;
  }
  if (indentation.column > current.column) {
    if (indentation.tabsAsOne <= current.tabsAsOne)
      mixed();
    indentations.push_back(indentation);
    push(TokenKind::Indent, lineBegin);
    return;
  }
  while (indentation.column < indentations.back().column) {
    indentations.pop_back();
    push(TokenKind::Dedent, pos);
  }
  if (indentation.column != indentations.back().column) {
    complain("unindent does not match any outer indentation level");
    // Go on as if the line belonged to the innermost block that was left.
    indentations.push_back(indentation);
    tokens.pop_back();
  } else if (indentation.tabsAsOne != indentations.back().tabsAsOne) {
    mixed();
  }
}

void Lexer::skipLine() {
  while (!atEnd() && !atLineEnd())
    ++pos;
}

void Lexer::lexLineEnd() {
  uint32_t begin = pos;
  pos += lineEndLength();
  if (!joinsLines()) {
    push(TokenKind::Newline, begin);
    lexLineStart();
    return;
  }
  if (isExpression)
    return;
  // Inside brackets: does the next line give away that one of them was never closed?
  size_t wordBegin = text.find_first_not_of(" \t\f", pos);
  if (wordBegin == llvm::StringRef::npos)
    return;
  size_t length = nameLength(wordBegin);
  if (length == 0 || !startsStatementOnly(text.substr(wordBegin, length)))
    return;
  uint32_t next = pos;
  pos = begin;
  reportUnclosedBracket();
  pos = next;
  push(TokenKind::Newline, begin);
  lexLineStart();
}

void Lexer::reportUnclosedBracket() {
  Bracket bracket = brackets.back();
  diagnostics.error(file.range(bracket.offset, bracket.offset + 1),
                    fmt::format("'{}' was never closed", bracket.opening));
  // The token reaches back to the bracket: what the parser finds missing in between is the same mistake.
  tokens.push_back({TokenKind::Error, bracket.offset, pos});
  brackets.clear();
}

void Lexer::lexBackslash() {
  uint32_t begin = pos++;
  if (atLineEnd()) {
    pos += lineEndLength();
    if (atEnd())
      error(begin, begin + 1, "unexpected end of file after a line continuation");
    return;
  }
  error(begin, begin + 1, "unexpected character after line continuation character");
  skipLine();
}

//===--------------------------------------------------------------------------------------------------------------===//
// Tokens
//===--------------------------------------------------------------------------------------------------------------===//

void Lexer::lexToken() {
  char c = peek();
  if (c == ' ' || c == '\t' || c == '\f') {
    ++pos;
  } else if (atLineEnd()) {
    lexLineEnd();
  } else if (c == '#') {
    skipLine();
  } else if (c == '\\') {
    lexBackslash();
  } else if (c == '"' || c == '\'') {
    lexString(pos, /*isRaw=*/false, /*isFormatted=*/false);
  } else if (llvm::isDigit(c) || (c == '.' && llvm::isDigit(peek(1)))) {
    lexNumber();
  } else if (nameLength(pos) != 0) {
    lexName();
  } else {
    lexPunctuation();
  }
}

uint32_t Lexer::codePointAt(size_t at, size_t &length) const {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data() + at), *next = begin;
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.data() + text.size());
  llvm::UTF32 codePoint = 0;
  if (llvm::convertUTF8Sequence(&next, end, &codePoint, llvm::strictConversion) != llvm::conversionOK) {
    length = 1;
    return 0xfffd;
  }
  length = static_cast<size_t>(next - begin);
  return codePoint;
}

/// The length of the name that starts at an offset; 0 if none does.
size_t Lexer::nameLength(size_t at) const {
  size_t i = at;
  while (i < text.size()) {
    char c = text[i];
    if (llvm::isAlpha(c) || c == '_' || (i > at && llvm::isDigit(c))) {
      ++i;
      continue;
    }
    if (static_cast<unsigned char>(c) < 0x80)
      break;
    size_t length;
    if (!isNameCodePoint(codePointAt(i, length)))
      break;
    i += length;
  }
  return i - at;
}

void Lexer::lexName() {
  uint32_t begin = pos;
  auto length = static_cast<uint32_t>(nameLength(pos));
  llvm::StringRef word = text.substr(pos, length);
  char after = peek(length);
  if (length <= 2 && (after == '"' || after == '\'')) {
    std::string prefix = word.lower();
    bool isPrefix =
        llvm::StringSwitch<bool>(prefix).Cases({"r", "u", "b", "f", "br", "rb", "fr", "rf"}, true).Default(false);
    if (isPrefix) {
      pos += length;
      lexString(begin, llvm::StringRef(prefix).contains('r'), llvm::StringRef(prefix).contains('f'));
      return;
    }
  }
  pos += length;
  push(nameOrKeyword(word), begin);
}

void Lexer::lexNumber() {
  uint32_t begin = pos;
  auto isPart = [&](llvm::StringRef digits) {
    return digits.contains(llvm::toLower(peek())) || (peek() == '_' && digits.contains(llvm::toLower(peek(1))));
  };
  auto takeDigits = [&](llvm::StringRef digits) {
    uint32_t from = pos;
    while (!atEnd() && isPart(digits))
      ++pos;
    return pos - from;
  };
  constexpr llvm::StringLiteral decimal = "0123456789";
  std::string problem;
  char radix = peek() == '0' ? llvm::toLower(peek(1)) : '\0';
  bool isFloat = false;
  if (radix == 'x' || radix == 'o' || radix == 'b') {
    pos += 2;
    llvm::StringRef digits = radix == 'x' ? "0123456789abcdef" : radix == 'o' ? "01234567" : "01";
    llvm::StringRef name = radix == 'x' ? "hexadecimal" : radix == 'o' ? "octal" : "binary";
    if (takeDigits(digits) == 0 || llvm::isDigit(peek()))
      problem = fmt::format("invalid {} literal", name.str());
  } else {
    takeDigits(decimal);
    uint32_t wholeEnd = pos;
    if (peek() == '.') {
      isFloat = true;
      ++pos;
      if (llvm::isDigit(peek()))
        takeDigits(decimal);
    }
    uint32_t exponentSign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if (llvm::toLower(peek()) == 'e' && llvm::isDigit(peek(1 + exponentSign))) {
      isFloat = true;
      pos += 1 + exponentSign;
      takeDigits(decimal);
    }
    llvm::StringRef whole = text.slice(begin, wholeEnd);
    bool isImaginary = llvm::toLower(peek()) == 'j';
    if (isImaginary)
      ++pos;
    if (!isFloat && !isImaginary && whole.starts_with("0") && whole.find_first_not_of("0_") != llvm::StringRef::npos)
      problem = "leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers";
  }
  // Letters right after a number are wrong, but for the few keywords that Python allows there: `1if x else 2`.
  if (size_t length = nameLength(pos)) {
    bool isKeyword = llvm::StringSwitch<bool>(text.substr(pos, length))
                         .Cases({"and", "else", "for", "if", "in", "is", "not", "or"}, true)
                         .Default(false);
    if (!isKeyword) {
      pos += static_cast<uint32_t>(length);
      if (problem.empty())
        problem = "invalid number literal";
      while (llvm::isAlnum(peek()) || peek() == '_')
        ++pos;
    }
  } else if (problem.empty() && peek() == '_') {
    ++pos;
    problem = "invalid number literal";
  }
  if (!problem.empty()) {
    while (llvm::isAlnum(peek()) || (peek() == '.' && llvm::isDigit(peek(1))))
      ++pos;
    error(begin, pos, std::move(problem));
    return;
  }
  push(TokenKind::Number, begin);
}

/// A string whose quotes start at pos and whose prefix starts at begin.
void Lexer::lexString(uint32_t begin, bool isRaw, bool isFormatted) {
  uint32_t quote = pos;
  StringScan scan = scanString(text, quote, isRaw, isFormatted);
  if (scan.error.empty()) {
    pos = scan.end;
    push(isFormatted ? TokenKind::FString : TokenKind::String, begin);
    return;
  }
  pos = scan.end;
  uint32_t errorBegin = scan.errorBegin == quote ? begin : scan.errorBegin;
  error(errorBegin, std::max(scan.errorEnd, errorBegin + 1), std::move(scan.error));
}

void Lexer::lexPunctuation() {
  uint32_t begin = pos;
  llvm::StringRef rest = text.drop_front(pos);
  for (const Punctuation &candidate : punctuations) {
    if (!rest.starts_with(candidate.spelling))
      continue;
    char c = peek();
    if (c == ')' || c == ']' || c == '}') {
      closeBracket(c);
      return;
    }
    pos += static_cast<uint32_t>(candidate.spelling.size());
    if (c == '(' || c == '[' || c == '{')
      brackets.push_back({c, begin, tokens.size()});
    push(candidate.kind, begin);
    return;
  }
  size_t length;
  uint32_t codePoint = codePointAt(pos, length);
  pos += static_cast<uint32_t>(length);
  llvm::StringRef character = text.slice(begin, pos);
  bool isShown = isPrintable(codePoint);
  error(begin, pos,
        isShown && codePoint < 0x80
            ? fmt::format("invalid character '{}'", character.str())
            : fmt::format("invalid character {}(U+{:04X})",
                          isShown ? fmt::format("'{}' ", character.str()) : std::string(), codePoint));
}

void Lexer::closeBracket(char closing) {
  uint32_t begin = pos++;
  char opening = closing == ')' ? '(' : closing == ']' ? '[' : '{';
  if (!brackets.empty() && brackets.back().opening == opening) {
    brackets.pop_back();
    push(closing == ')' ? TokenKind::RParen : closing == ']' ? TokenKind::RBracket : TokenKind::RBrace, begin);
    return;
  }
  if (brackets.empty()) {
    error(begin, pos, fmt::format("unmatched '{}'", closing));
    return;
  }
  Bracket last = brackets.back();
  diagnostics
      .error(file.range(begin, pos), fmt::format("closing '{}' does not match opening '{}'", closing, last.opening))
      .note(file.range(last.offset, last.offset + 1), "the bracket is opened here");
  tokens.push_back({TokenKind::Error, begin, pos});
  // Close up to the bracket that was meant; without one, take this as the closing of the innermost.
  size_t meant = brackets.size();
  while (meant > 0 && brackets[meant - 1].opening != opening)
    --meant;
  brackets.truncate(meant > 0 ? meant - 1 : brackets.size() - 1);
}

} // namespace

std::vector<Token> tokenize(const SourceFile &file, DiagnosticEngine &diagnostics) {
  return Lexer(file, 0, file.size(), /*isExpression=*/false, diagnostics).run();
}

std::vector<Token> tokenizeExpression(const SourceFile &file, uint32_t begin, uint32_t end,
                                      DiagnosticEngine &diagnostics) {
  return Lexer(file, begin, end, /*isExpression=*/true, diagnostics).run();
}

} // namespace ditron::frontend
