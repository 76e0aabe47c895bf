//===- ParseLiterals.cpp - Numbers, strings and f-strings ---------------------------------------------------------===//
//
// Adjacent strings are joined into one constant, or into one JoinedStr when an f-string is among them. The fields of an
// f-string are parsed by a second parser over the same file, so that their nodes have true ranges.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/EscapeDecoder.h"
#include "ditron/frontend/syntax/FStringScanner.h"
#include "ditron/frontend/syntax/NumberText.h"
#include "ditron/frontend/syntax/ParserState.h"

#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

namespace ditron::frontend {

using namespace ast;

Expr *ParserState::constant(SourceRange range, ConstValue value) {
  auto *node = module.create<Constant>(range);
  node->value = module.keep(std::move(value));
  return finish(node);
}

Expr *ParserState::unsupportedLiteral(SourceRange range, llvm::StringRef reason) {
  auto *node = module.create<Unsupported>(range);
  node->reason = reason;
  return finish(node);
}

Expr *ParserState::parseNumber() {
  Token token = take();
  SourceRange range = rangeOf(token);
  std::string digits;
  removeUnderscores(textOf(token), digits); // the lexer has checked their places
  llvm::StringRef text = digits;
  unsigned radix = text.starts_with_insensitive("0x")   ? 16
                   : text.starts_with_insensitive("0o") ? 8
                   : text.starts_with_insensitive("0b") ? 2
                                                        : 10;
  if (radix == 10) {
    if (text.ends_with_insensitive("j"))
      return unsupportedLiteral(range, "complex numbers are not supported");
    if (text.find_first_of(".eE") != llvm::StringRef::npos)
      return constant(range, ConstValue::floating(parseDecimalFloat(text)));
  } else {
    text = text.drop_front(2);
  }
  std::optional<BigInt> value = BigInt::fromDigits(text, radix);
  if (!value)
    return error(range, fmt::format("the integer literal is too large: at most {} decimal digits or {} bits",
                                    BigInt::maxDecimalDigits, BigInt::maxBits));
  return constant(range, ConstValue::integer(std::move(*value)));
}

//===--------------------------------------------------------------------------------------------------------------===//
// Strings
//===--------------------------------------------------------------------------------------------------------------===//

/// Adjacent strings while they are collected.
struct ParserState::StringPieces {
  Exprs values; ///< Finished parts; the text after them is still pending.
  std::string text;
  SourceRange textRange;
  bool isBytes = false;
  llvm::StringRef unsupported; ///< Why a part cannot be represented; empty if all can.

  void addText(llvm::StringRef more, SourceRange range) {
    text += more;
    textRange = textRange.join(range);
  }
};

Expr *ParserState::parseStrings() {
  uint32_t begin = current().begin;
  StringPieces pieces;
  bool isFirst = true, isFormatted = false;
  while (at(TokenKind::String) || at(TokenKind::FString)) {
    Token token = take();
    llvm::StringRef prefix = textOf(token).take_until([](char c) { return c == '"' || c == '\''; });
    bool isBytes = prefix.contains_insensitive("b");
    if (!isFirst && isBytes != pieces.isBytes)
      return error(rangeOf(token), "cannot mix bytes and nonbytes literals");
    pieces.isBytes = isBytes;
    isFirst = false;
    isFormatted |= token.kind == TokenKind::FString;
    if (!addString(token, pieces))
      return nullptr;
  }
  SourceRange range = rangeFrom(begin);
  if (!pieces.unsupported.empty())
    return unsupportedLiteral(range, pieces.unsupported);
  if (isFormatted) {
    JoinedStr *joined = joinPieces(pieces, range);
    return joined ? finish(joined) : nullptr;
  }
  return constant(range, pieces.isBytes ? ConstValue::bytes(std::move(pieces.text))
                                        : ConstValue::string(std::move(pieces.text)));
}

bool ParserState::addString(const Token &token, StringPieces &pieces) {
  llvm::StringRef whole = textOf(token);
  llvm::StringRef prefix = whole.take_until([](char c) { return c == '"' || c == '\''; });
  llvm::StringRef quoted = whole.drop_front(prefix.size());
  bool isRaw = prefix.contains_insensitive("r");
  uint32_t quotes = quoted.size() >= 6 && quoted[1] == quoted[0] && quoted[2] == quoted[0] ? 3 : 1;
  uint32_t begin = token.begin + static_cast<uint32_t>(prefix.size()) + quotes;
  uint32_t end = token.end - quotes;
  if (token.kind == TokenKind::FString)
    return addFString(begin, end, isRaw, /*isSpec=*/false, pieces);
  DecodedText decoded = decodeEscapes(file.text().slice(begin, end), isRaw, pieces.isBytes);
  if (!decoded.error.empty())
    return error(file.range(begin + decoded.errorBegin, begin + decoded.errorEnd), decoded.error), false;
  if (!decoded.unsupported.empty())
    pieces.unsupported = decoded.unsupported;
  pieces.addText(decoded.text, rangeOf(token));
  return true;
}

/// The two braces of `{{` and `}}` are one in the text. This comes before the escapes: "\x7b" is no brace of a pair.
static std::string halveBraces(llvm::StringRef text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if ((text[i] == '{' || text[i] == '}') && i + 1 < text.size() && text[i + 1] == text[i])
      ++i;
  }
  return out;
}

bool ParserState::addFString(uint32_t begin, uint32_t end, bool isRaw, bool isSpec, StringPieces &pieces) {
  std::vector<FStringPart> parts;
  if (!splitFString(file, begin, end, isRaw, isSpec, diagnostics, parts))
    return false;
  for (const FStringPart &part : parts) {
    if (part.isField) {
      if (!addField(part, isRaw, pieces))
        return false;
      continue;
    }
    llvm::StringRef raw = file.text().slice(part.begin, part.end);
    DecodedText decoded = decodeEscapes(isSpec ? raw.str() : halveBraces(raw), isRaw, /*isBytes=*/false);
    if (!decoded.error.empty())
      return error(file.range(part.begin, part.end), decoded.error), false;
    if (!decoded.unsupported.empty())
      pieces.unsupported = decoded.unsupported;
    pieces.addText(decoded.text, file.range(part.begin, part.end));
  }
  return true;
}

bool ParserState::addField(const FStringPart &part, bool isRaw, StringPieces &pieces) {
  SourceRange range = file.range(part.fieldBegin, part.fieldEnd);
  llvm::StringRef source = file.text().slice(part.begin, part.end);
  if (source.trim().empty())
    return error(range, "f-string: empty expression not allowed"), false;
  DepthGuard guard(*this);
  if (!guard.check())
    return false;
  ParserState fieldParser(module, file, diagnostics, tokenizeExpression(file, part.begin, part.end, diagnostics),
                          expressionDepth);
  Expr *value = fieldParser.parseField();
  if (!value)
    return false;
  if (part.hasEquals)
    pieces.addText(file.text().slice(part.begin, part.equalsEnd), range);
  auto *node = module.create<FormattedValue>(range);
  node->value = value;
  node->conversion = part.conversion;
  if (part.hasEquals && !part.conversion && !part.hasSpec)
    node->conversion = 'r';
  if (part.hasSpec) {
    StringPieces spec;
    if (!addFString(part.specBegin, part.specEnd, isRaw, /*isSpec=*/true, spec))
      return false;
    if (!spec.unsupported.empty())
      pieces.unsupported = spec.unsupported;
    node->formatSpec = joinPieces(spec, file.range(part.specBegin, part.specEnd));
    if (!node->formatSpec)
      return false;
  }
  if (!pieces.text.empty())
    pieces.values.push_back(constant(pieces.textRange, ConstValue::string(std::move(pieces.text))));
  pieces.text.clear();
  pieces.textRange = SourceRange();
  Expr *finished = finish(node);
  if (!finished)
    return false;
  pieces.values.push_back(finished);
  return true;
}

JoinedStr *ParserState::joinPieces(StringPieces &pieces, SourceRange range) {
  if (!pieces.text.empty())
    pieces.values.push_back(constant(pieces.textRange, ConstValue::string(std::move(pieces.text))));
  auto *node = module.create<JoinedStr>(range);
  node->values = list(pieces.values);
  return finish(node) ? node : nullptr;
}

} // namespace ditron::frontend
