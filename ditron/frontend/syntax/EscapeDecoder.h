//===- EscapeDecoder.h - Escapes of string literals -----------------------------------------------------*- C++ -*-===//
//
// Turns the text between the quotes of a literal into its value: escapes are replaced (not in raw strings), line ends
// become LF.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_ESCAPEDECODER_H
#define DITRON_FRONTEND_SYNTAX_ESCAPEDECODER_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace ditron::frontend {

/// The value of a literal's text, or why there is none.
struct DecodedText {
  std::string text;        ///< UTF-8, or the bytes of a bytes literal.
  std::string error;       ///< Python refuses the literal; empty for success.
  uint32_t errorBegin = 0; ///< Offsets into the literal's text.
  uint32_t errorEnd = 0;
  llvm::StringRef unsupported; ///< Python accepts the literal, Ditron cannot represent it; empty otherwise.
};

DecodedText decodeEscapes(llvm::StringRef text, bool isRaw, bool isBytes);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_ESCAPEDECODER_H
