//===- Diagnostics.h - Messages about kernel sources ----------------------------------------------------*- C++ -*-===//
//
// The frontend reports mistakes of the user's source here and goes on; nobody throws. The engine keeps the messages in
// the order of their report and renders them in clang's form:
//
//   add.py:12:9: error: name 'ofs' is not defined
//       tl.load(x + ofs)
//                   ^~~
//   add.py:3:1: note: called from here
//
// At most 20 errors of a file are kept: after that the engine says so once and drops the rest of that file. Warnings
// and remarks have no limit but their own of 200, so that a generated file cannot fill the memory.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_DIAGNOSTICS_H
#define DITRON_FRONTEND_SYNTAX_DIAGNOSTICS_H

#include "ditron/frontend/syntax/Source.h"
#include "llvm/ADT/DenseMap.h"
#include <deque>
#include <string>
#include <vector>

namespace ditron::frontend {

enum class Severity { Error, Warning, Note, Remark };

/// "error", "warning", "note", "remark".
llvm::StringRef toString(Severity severity);

/// One message with the notes that belong to it.
struct Diagnostic {
  Severity severity = Severity::Error;
  SourceRange range;
  std::string message;
  std::vector<Diagnostic> notes; ///< Each of severity Note, without notes of its own.
  /// Of an error in code that runs while compiling: the class of Python's exception, which `except` clauses ask for. Empty:
  /// no exception of Python's, but something that cannot be executed at compile time.
  std::string exception = "TypeError";
  unsigned raised = 0; ///< The number of the exception's object, from 1, which the evaluator keeps; 0: it has none.

  /// Attaches a note; returns this diagnostic, so that notes can be chained.
  Diagnostic &note(SourceRange where, std::string text);
  /// Attaches a note without a place: the one line that says what to write instead.
  Diagnostic &hint(std::string text) { return note(SourceRange(), std::move(text)); }
  Diagnostic &raises(llvm::StringRef name) {
    exception = name.str();
    return *this;
  }
};

/// Collects and renders the diagnostics of one compilation.
class DiagnosticEngine {
public:
  static constexpr unsigned maxErrorsPerFile = 20;
  static constexpr unsigned maxWarningsPerFile = 200;

  explicit DiagnosticEngine(SourceManager &sources) : sources(sources) {}
  DiagnosticEngine(const DiagnosticEngine &) = delete;
  DiagnosticEngine &operator=(const DiagnosticEngine &) = delete;

  /// Reports a message. The reference stays valid; past the limit it is to a message that is thrown away.
  Diagnostic &report(Severity severity, SourceRange range, std::string message);
  Diagnostic &error(SourceRange range, std::string message) {
    return report(Severity::Error, range, std::move(message));
  }
  Diagnostic &warning(SourceRange range, std::string message) {
    return report(Severity::Warning, range, std::move(message));
  }
  Diagnostic &remark(SourceRange range, std::string message) {
    return report(Severity::Remark, range, std::move(message));
  }

  bool hasErrors() const { return totalErrors != 0; }
  /// All errors ever reported, the dropped ones too.
  size_t errorCount() const { return totalErrors; }
  /// True once a file has used up its errors: a parser or analysis may then stop early.
  bool limitReached(FileId file) const;
  const std::deque<Diagnostic> &diagnostics() const { return kept; }

  /// A place in the sequence of reports.
  struct Mark;
  Mark mark() const;
  /// Takes back everything that was reported since a mark.
  std::vector<Diagnostic> rollBack(const Mark &mark);
  SourceManager &sourceManager() const { return sources; }

  /// One diagnostic and its notes as text that ends in a newline.
  std::string render(const Diagnostic &diagnostic) const;
  /// All diagnostics in the order of their report.
  std::string renderAll() const;
  /// ok, or a CompileError whose message is renderAll().
  Status status() const;

private:
  struct Counts {
    unsigned errors = 0;
    unsigned warnings = 0;
  };

public:
  struct Mark {
    size_t kept = 0, errors = 0;
    llvm::DenseMap<FileId, Counts> counts;
  };

private:
  SourceManager &sources;
  std::deque<Diagnostic> kept;
  Diagnostic discarded;
  llvm::DenseMap<FileId, Counts> counts;
  size_t totalErrors = 0;
};

/// The header line, source line and caret of one message, without its notes.
std::string renderMessage(const SourceManager &sources, Severity severity, SourceRange range, llvm::StringRef message);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_DIAGNOSTICS_H
