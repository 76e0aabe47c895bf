//===- FStringScanner.h - Where strings end and what f-strings hold -------------------------------------*- C++ -*-===//
//
// The ends of string literals. For plain strings that is the next quote that no backslash hides; an f-string nests:
//
//   f"{table["row"]:{width}.{digits}}"
//     ^field      ^specification, with two fields in it
//
// Python 3.12's rules are used: a field may hold any expression, strings with the same quotes and line ends too. The
// lexer asks for the end only; the parser splits the same text with the same functions (see splitFString in Lexer.h).
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_FSTRINGSCANNER_H
#define DITRON_FRONTEND_SYNTAX_FSTRINGSCANNER_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace ditron::frontend {

/// f-strings inside fields of f-strings nest at most this deep.
inline constexpr unsigned maxFStringDepth = 16;

/// The result of looking for the end of a string literal.
struct StringScan {
  uint32_t end = 0;        ///< After the closing quotes; after an error: where to go on.
  std::string error;       ///< Empty for success.
  uint32_t errorBegin = 0; ///< At the opening quote when the message is about the literal as a whole.
  uint32_t errorEnd = 0;
};

/// Finds the end of the literal whose opening quote is at an offset (after the prefix).
StringScan scanString(llvm::StringRef text, uint32_t quote, bool isRaw, bool isFormatted);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_FSTRINGSCANNER_H
