//===- NumberText.h - Pieces of the grammar of numbers --------------------------------------------------*- C++ -*-===//
//
// What the parser's literals and the compile-time conversions int() and float() share.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_NUMBERTEXT_H
#define DITRON_FRONTEND_SYNTAX_NUMBERTEXT_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace ditron::frontend {

/// Copies the text without its underscores; false if one of them is not between two letters or digits.
bool removeUnderscores(llvm::StringRef text, std::string &digits);

/// The nearest double of a decimal number that is known to be well formed; infinity when it is too large.
double parseDecimalFloat(llvm::StringRef text);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_NUMBERTEXT_H
