//===- AstPrinter.h - Trees as text ---------------------------------------------------------------------*- C++ -*-===//
//
// Two printers. dump shows the tree, one node per line, indented, in a form that is stable and made for tests and for
// `--emit ast`. unparse gives an expression back as source text with the fewest parentheses that keep its meaning, for
// messages that quote a condition or an argument.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_ASTPRINTER_H
#define DITRON_FRONTEND_SYNTAX_ASTPRINTER_H

#include "ditron/frontend/syntax/Ast.h"
#include <string>

namespace ditron::frontend {

struct DumpOptions {
  /// Set: every node is followed by <line:column-line:column>, the end exclusive.
  const SourceManager *ranges = nullptr;
};

/// The tree of a file.
std::string dump(const ast::Module &module, const DumpOptions &options = {});
/// The tree of one statement or expression.
std::string dump(const ast::Node *node, const DumpOptions &options = {});

/// An expression as source text on one line.
std::string unparse(const ast::Expr *expression);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_ASTPRINTER_H
