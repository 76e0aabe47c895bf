//===- KernelMessages.cpp - MLIR diagnostics in terms of the kernel's source --------------------------------------===//
//
// Translates locations into source ranges. A location is unwrapped into a chain: the innermost place first, then the
// place of each call that was inlined around it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/compiler/KernelMessages.h"

#include "ditron/analysis/ResourceLimit.h"

#include "llvm/ADT/TypeSwitch.h"

namespace ditron::compiler {

using namespace frontend;

namespace {

SourceRange toRange(mlir::FileLineColRange location, const SourceManager &sources) {
  for (FileId id = 0; id < sources.size(); ++id) {
    const SourceFile &file = sources.file(id);
    if (file.path() != location.getFilename().getValue())
      continue;
    const uint32_t begin = file.offsetOf({location.getStartLine(), location.getStartColumn()});
    const uint32_t end = file.offsetOf({location.getEndLine(), location.getEndColumn()});
    return file.range(begin, std::max(begin, end));
  }
  return {};
}

/// Appends the places of a location, innermost first.
void collectPlaces(mlir::Location location, const SourceManager &sources, llvm::SmallVectorImpl<SourceRange> &places) {
  llvm::TypeSwitch<mlir::LocationAttr>(location)
      .Case([&](mlir::FileLineColRange range) {
        if (SourceRange place = toRange(range, sources); place.isValid())
          places.push_back(place);
      })
      .Case([&](mlir::CallSiteLoc call) {
        collectPlaces(call.getCallee(), sources, places);
        collectPlaces(call.getCaller(), sources, places);
      })
      .Case([&](mlir::NameLoc name) { collectPlaces(name.getChildLoc(), sources, places); })
      .Case([&](mlir::FusedLoc fused) {
        // Several places were merged into one operation: the first that is known stands for all.
        for (mlir::Location part : fused.getLocations()) {
          const size_t before = places.size();
          collectPlaces(part, sources, places);
          if (places.size() != before)
            return;
        }
      });
}

/// The innermost place of a diagnostic; invalid when it has none.
SourceRange placeOf(const mlir::Diagnostic &diagnostic, const SourceManager &sources) {
  llvm::SmallVector<SourceRange> places;
  collectPlaces(diagnostic.getLocation(), sources, places);
  return places.empty() ? SourceRange() : places.front();
}

bool isCompilerBug(llvm::StringRef text) {
  return text.starts_with("compiler bug") || (text.starts_with("'") && text.contains("' op ")) ||
         text.starts_with("failed to legalize") || text.contains("unresolved materialization") ||
         text.starts_with("operand #") || text.contains("does not dominate this use");
}

} // namespace

KernelMessages::KernelMessages(mlir::MLIRContext &context, const SourceManager &sources)
    : sources(sources), handler(&context, [this](mlir::Diagnostic &diagnostic) {
        receive(diagnostic);
        return mlir::success();
      }) {}

void KernelMessages::goBackTo(Place place) {
  errors.clear();
  compilerBug = otherErrors = false;
  warnings.resize(place.warnings);
  remarks.resize(place.remarks);
}

void KernelMessages::receive(mlir::Diagnostic &diagnostic) {
  switch (diagnostic.getSeverity()) {
  case mlir::DiagnosticSeverity::Error:
    if (hasErrors() && !compilerBug && llvm::StringRef(diagnostic.str()).starts_with("failed to legalize"))
      break;
    compilerBug |= isCompilerBug(diagnostic.str());
    otherErrors |= !analysis::isResourceLimit(diagnostic);
    if (errors.empty())
      firstError = sources.locationOf(placeOf(diagnostic, sources));
    errors += render(diagnostic, Severity::Error);
    break;
  case mlir::DiagnosticSeverity::Warning: warnings += render(diagnostic, Severity::Warning); break;
  case mlir::DiagnosticSeverity::Note: warnings += render(diagnostic, Severity::Note); break;
  case mlir::DiagnosticSeverity::Remark: remarks += render(diagnostic, Severity::Remark); break;
  }
}

std::string KernelMessages::render(const mlir::Diagnostic &diagnostic, Severity severity) const {
  llvm::SmallVector<SourceRange> places;
  collectPlaces(diagnostic.getLocation(), sources, places);
  std::string text =
      renderMessage(sources, severity, places.empty() ? SourceRange() : places.front(), diagnostic.str());
  for (SourceRange call : llvm::drop_begin(llvm::ArrayRef(places), places.empty() ? 0 : 1))
    text += renderMessage(sources, Severity::Note, call, "called from here");
  for (const mlir::Diagnostic &note : const_cast<mlir::Diagnostic &>(diagnostic).getNotes()) {
    // "see current operation" quotes IR, which means nothing to the author of a kernel.
    if (!compilerBug && llvm::StringRef(note.str()).starts_with("see current operation"))
      continue;
    text += render(note, Severity::Note);
  }
  return text;
}

} // namespace ditron::compiler
