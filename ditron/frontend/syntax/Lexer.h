//===- Lexer.h - Kernel text to tokens ------------------------------------------------------------------*- C++ -*-===//
//
// Python 3 tokenisation: indentation becomes Indent and Dedent tokens, lines end in Newline, brackets and backslashes
// join lines, comments vanish. A whole text is cut into a vector at once; the parser looks ahead freely in it. An
// f-string is one token here, ends found by its nesting rules (Python 3.12's); its fields are tokenised again when the
// parser gets to them. Mistakes are reported with their range and the lexer goes on, so that it always ends in
// EndOfFile.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_LEXER_H
#define DITRON_FRONTEND_SYNTAX_LEXER_H

#include "ditron/frontend/syntax/Diagnostics.h"
#include "ditron/frontend/syntax/Source.h"
#include <vector>

namespace ditron::frontend {

enum class TokenKind : uint8_t {
#define DITRON_TOKEN(name, text) name,
#include "ditron/frontend/syntax/Tokens.def"
};

/// The token as people know it: "')'", "'return'", "a name", "the end of the line".
llvm::StringRef describe(TokenKind kind);
/// The kind's own name, for dumps and tests: "Name", "RParen", "KwReturn".
llvm::StringRef toString(TokenKind kind);

/// One token. The text is not stored: it is the file's text between the offsets.
struct Token {
  TokenKind kind = TokenKind::EndOfFile;
  uint32_t begin = 0;
  uint32_t end = 0;
};

/// Tokenises a whole file.
std::vector<Token> tokenize(const SourceFile &file, DiagnosticEngine &diagnostics);

/// Tokenises an expression that stands between two offsets, as inside brackets: line ends are blanks, no indentation.
std::vector<Token> tokenizeExpression(const SourceFile &file, uint32_t begin, uint32_t end,
                                      DiagnosticEngine &diagnostics);

/// One literal or replacement field of an f-string's text, found by splitFString.
struct FStringPart {
  bool isField = false;
  uint32_t begin = 0; ///< Literal: its raw text. Field: its expression.
  uint32_t end = 0;
  uint32_t fieldBegin = 0; ///< Field: with its braces.
  uint32_t fieldEnd = 0;
  bool hasEquals = false; ///< `{x=}`; the text up to and including `=` and blanks is [begin, equalsEnd).
  uint32_t equalsEnd = 0;
  char conversion = 0;
  bool hasSpec = false; ///< [specBegin, specEnd) is the text after the colon, itself made of literals and fields.
  uint32_t specBegin = 0;
  uint32_t specEnd = 0;
};

/// Cuts the inside of an f-string, or of a format specification, into its parts; reports mistakes and returns false.
bool splitFString(const SourceFile &file, uint32_t begin, uint32_t end, bool isRaw, bool isFormatSpec,
                  DiagnosticEngine &diagnostics, std::vector<FStringPart> &parts);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_LEXER_H
