//===- KernelMessages.h - MLIR diagnostics in terms of the kernel's source ------------------------------*- C++ -*-===//
//
// While one of these lives, what MLIR's passes report through its context is collected and rendered as the frontend
// renders its own messages: file, line, column, the source line with a caret, and a note for each call that was
// inlined.
//
// Which errors are the user's? Passes report those at an operation with emitError and a sentence about the kernel. A
// verifier that fails ("'tile.load' op ..."), or a conversion that does not know an operation, is a mistake of the
// compiler. A conversion also gives up on an operation whose pattern has just said what is wrong with the kernel (assembly
// that the target has no model of, say): that is not reported a second time.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_COMPILER_KERNELMESSAGES_H
#define DITRON_COMPILER_KERNELMESSAGES_H

#include "ditron/frontend/syntax/Diagnostics.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

namespace ditron::compiler {

class KernelMessages {
public:
  KernelMessages(mlir::MLIRContext &context, const frontend::SourceManager &sources);

  bool hasErrors() const { return !errors.empty(); }
  /// At least one of them is a mistake of the compiler.
  bool hasCompilerBug() const { return compilerBug; }
  /// All of them are about something that the target has too little of.
  bool areResourceLimits() const { return hasErrors() && !otherErrors; }
  const std::string &errorText() const { return errors; }
  /// The place of the first error.
  const SourceLocation &errorLocation() const { return firstError; }
  /// Warnings since construction, and remarks.
  const std::string &warningText() const { return warnings; }
  const std::string &remarkText() const { return remarks; }

  /// What has been said so far; to be forgotten, with all errors, down to here.
  struct Place {
    size_t warnings = 0, remarks = 0;
  };
  Place place() const { return {warnings.size(), remarks.size()}; }
  void goBackTo(Place place);

private:
  void receive(mlir::Diagnostic &diagnostic);
  std::string render(const mlir::Diagnostic &diagnostic, frontend::Severity severity) const;

  const frontend::SourceManager &sources;
  std::string errors, warnings, remarks;
  SourceLocation firstError;
  bool compilerBug = false, otherErrors = false;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace ditron::compiler
#endif // DITRON_COMPILER_KERNELMESSAGES_H
