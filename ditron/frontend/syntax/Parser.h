//===- Parser.h - Text of a kernel file to its syntax tree ----------------------------------------------*- C++ -*-===//
//
// Recursive descent over the token list with precedence climbing for operators. All of Python's statements and
// expressions parse, so that a file may hold host code beside its kernels; what a kernel may use is decided later, by
// the semantic analysis. After a mistake the parser goes on at the next statement, up to 20 errors. Depth of blocks, of
// parentheses and of the resulting trees is limited, so that no input overflows the stack of the parser or of anyone
// who recurses over its trees. Time is linear in the size of the text.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_PARSER_H
#define DITRON_FRONTEND_SYNTAX_PARSER_H

#include "ditron/frontend/syntax/Ast.h"
#include "ditron/frontend/syntax/Diagnostics.h"
#include <memory>

namespace ditron::frontend {

/// Nesting of blocks (Python's own limit) and of brackets, operators and other recursive forms.
inline constexpr unsigned maxBlockDepth = 100;
inline constexpr unsigned maxExpressionDepth = 200;
/// Height of an expression's tree; a sum of n terms has height n.
inline constexpr unsigned maxExpressionHeight = 1000;
/// Length of an if-elif chain, whose links nest in the tree.
inline constexpr unsigned maxElifChain = 500;

/// Parses a whole file. Never null: after errors (see diagnostics.hasErrors()) the tree holds the statements that
/// parsed. The file must outlive the module, whose names point into its text.
std::unique_ptr<ast::Module> parseModule(const SourceFile &file, DiagnosticEngine &diagnostics);

/// Parses a file that holds one expression (a string annotation, say) into an existing module's memory; null on errors.
ast::Expr *parseExpression(ast::Module &module, const SourceFile &file, DiagnosticEngine &diagnostics);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_PARSER_H
