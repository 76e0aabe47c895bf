//===- SyntaxTesting.h - What the tests of the syntax library share -------------------------------------*- C++ -*-===//
//
// A Parsed holds everything that one source text gives, with the lifetimes in order.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_TEST_SYNTAXTESTING_H
#define DITRON_FRONTEND_SYNTAX_TEST_SYNTAXTESTING_H

#include "ditron/frontend/syntax/AstPrinter.h"
#include "ditron/frontend/syntax/Lexer.h"
#include "ditron/frontend/syntax/Parser.h"
#include <string>

namespace ditron::frontend {

/// A parsed text and what was said about it.
struct Parsed {
  explicit Parsed(std::string text)
      : diagnostics(sources), file(*sources.add("k.py", std::move(text))),
        module(parseModule(sources.file(file), diagnostics)) {}

  std::string tree(bool ranges = false) const { return dump(*module, {ranges ? &sources : nullptr}); }
  std::string messages() const { return diagnostics.renderAll(); }
  /// The expression of the first statement, which must be one.
  const ast::Expr *expression() const { return llvm::cast<ast::ExprStmt>(module->body.front())->value; }

  SourceManager sources;
  DiagnosticEngine diagnostics;
  FileId file;
  std::unique_ptr<ast::Module> module;
};

/// The messages of a text, one line each: "line:column: message", without source lines and notes.
inline std::string briefMessages(const Parsed &parsed) {
  std::string out;
  for (const Diagnostic &diagnostic : parsed.diagnostics.diagnostics()) {
    LineColumn place = parsed.sources.beginOf(diagnostic.range);
    out += std::to_string(place.line) + ":" + std::to_string(place.column) + ": " + diagnostic.message + "\n";
  }
  return out;
}

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_TEST_SYNTAXTESTING_H
