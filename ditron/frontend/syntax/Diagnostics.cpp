//===- Diagnostics.cpp - Messages about kernel sources ------------------------------------------------------------===//
//
// Rendering aligns the caret by display columns: tabs are expanded, wide and combining characters are counted as the
// terminal shows them, bytes that are no UTF-8 are shown as '?'. Of a very long line only a window around the caret is
// shown.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/Diagnostics.h"

#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"
#include <algorithm>
#include <fmt/format.h>

namespace ditron::frontend {

llvm::StringRef toString(Severity severity) {
  switch (severity) {
  case Severity::Error: return "error";
  case Severity::Warning: return "warning";
  case Severity::Note: return "note";
  case Severity::Remark: return "remark";
  }
  return "message";
}

Diagnostic &Diagnostic::note(SourceRange where, std::string text) {
  notes.push_back(Diagnostic{Severity::Note, where, std::move(text), {}});
  return *this;
}

Diagnostic &DiagnosticEngine::report(Severity severity, SourceRange range, std::string message) {
  // A message without a file is counted with the others of its sort; ~0 and ~0-1 are DenseMap's reserved keys.
  Counts &count = counts[sources.contains(range.file) ? range.file : static_cast<FileId>(sources.size())];
  bool isError = severity == Severity::Error;
  unsigned &used = isError ? count.errors : count.warnings;
  unsigned limit = isError ? maxErrorsPerFile : maxWarningsPerFile;
  totalErrors += isError;
  if (used >= limit) {
    if (used == limit) {
      ++used;
      kept.push_back({Severity::Note,
                      SourceRange{},
                      fmt::format("more than {} {}; the rest is not shown", limit, isError ? "errors" : "warnings"),
                      {}});
    }
    discarded = Diagnostic{severity, range, std::move(message), {}};
    return discarded;
  }
  ++used;
  kept.push_back({severity, range, std::move(message), {}});
  return kept.back();
}

DiagnosticEngine::Mark DiagnosticEngine::mark() const { return {kept.size(), totalErrors, counts}; }

std::vector<Diagnostic> DiagnosticEngine::rollBack(const Mark &mark) {
  std::vector<Diagnostic> taken(std::make_move_iterator(kept.begin() + mark.kept), std::make_move_iterator(kept.end()));
  kept.resize(mark.kept);
  counts = mark.counts;
  totalErrors = mark.errors;
  return taken;
}

bool DiagnosticEngine::limitReached(FileId file) const {
  if (!sources.contains(file))
    return false;
  auto found = counts.find(file);
  return found != counts.end() && found->second.errors >= maxErrorsPerFile;
}

namespace {

constexpr size_t tabStop = 8;
constexpr size_t maxShownColumns = 160;

/// A source line as it is shown, with the display column of every byte of the original.
struct ShownLine {
  std::string text;
  std::vector<size_t> columnOfByte; ///< One more entry than bytes.
};

ShownLine expandLine(llvm::StringRef line) {
  ShownLine shown;
  size_t column = 0;
  for (size_t i = 0; i < line.size();) {
    size_t width = 1;
    size_t bytes = 1;
    std::string piece;
    unsigned char lead = static_cast<unsigned char>(line[i]);
    if (lead == '\t') {
      width = tabStop - column % tabStop;
      piece.assign(width, ' ');
    } else if (lead < 0x20 || lead == 0x7f) {
      piece = "?";
    } else if (lead < 0x80) {
      piece = line[i];
    } else {
      size_t length = llvm::getNumBytesForUTF8(lead);
      const auto *start = reinterpret_cast<const llvm::UTF8 *>(line.data() + i);
      if (i + length <= line.size() && llvm::isLegalUTF8Sequence(start, start + length)) {
        bytes = length;
        piece = line.substr(i, length).str();
        int measured = llvm::sys::unicode::columnWidthUTF8(piece);
        if (measured < 0) { // not printable
          piece = "?";
          measured = 1;
        }
        width = static_cast<size_t>(measured);
      } else {
        piece = "?";
      }
    }
    shown.columnOfByte.insert(shown.columnOfByte.end(), bytes, column);
    shown.text += piece;
    column += width;
    i += bytes;
  }
  shown.columnOfByte.push_back(column);
  return shown;
}

/// The line cut to a window of bytes around the caret, when it is too long to show.
llvm::StringRef windowOf(llvm::StringRef line, size_t &begin, size_t &end, bool &cutLeft, bool &cutRight) {
  cutLeft = cutRight = false;
  if (line.size() <= maxShownColumns)
    return line;
  auto isContinuation = [&](size_t i) { return (static_cast<unsigned char>(line[i]) & 0xc0) == 0x80; };
  size_t from = begin > maxShownColumns / 2 ? begin - maxShownColumns / 2 : 0;
  size_t to = std::min(line.size(), from + maxShownColumns);
  while (from > 0 && isContinuation(from))
    --from;
  while (to < line.size() && isContinuation(to))
    ++to;
  cutLeft = from > 0;
  cutRight = to < line.size();
  begin -= from;
  end = std::min(end, to) - from;
  return line.slice(from, to);
}

} // namespace

std::string renderMessage(const SourceManager &sources, Severity severity, SourceRange range, llvm::StringRef message) {
  std::string label = toString(severity).str();
  if (!sources.contains(range.file))
    return fmt::format("{}: {}\n", label, message.str());
  const SourceFile &file = sources.file(range.file);
  LineColumn place = file.lineColumn(range.begin);
  std::string out =
      fmt::format("{}:{}:{}: {}: {}\n", file.path().str(), place.line, place.column, label, message.str());
  llvm::StringRef line = file.lineText(place.line);
  size_t begin = std::min<size_t>(place.column - 1, line.size());
  // A range over several lines is underlined to the end of its first line.
  size_t length = range.end > range.begin ? range.end - range.begin : 0;
  size_t end = std::min(begin + length, line.size());
  bool cutLeft, cutRight;
  line = windowOf(line, begin, end, cutLeft, cutRight);
  ShownLine shown = expandLine(line);
  size_t column = shown.columnOfByte[begin];
  size_t width = std::max<size_t>(shown.columnOfByte[end] - column, 1);
  llvm::StringRef left = cutLeft ? "..." : "";
  out += fmt::format("{}{}{}\n", left.str(), shown.text, cutRight ? "..." : "");
  out += std::string(left.size() + column, ' ') + '^' + std::string(width - 1, '~') + '\n';
  return out;
}

std::string DiagnosticEngine::render(const Diagnostic &diagnostic) const {
  std::string out = renderMessage(sources, diagnostic.severity, diagnostic.range, diagnostic.message);
  for (const Diagnostic &note : diagnostic.notes)
    out += renderMessage(sources, note.severity, note.range, note.message);
  return out;
}

std::string DiagnosticEngine::renderAll() const {
  std::string out;
  for (const Diagnostic &diagnostic : kept)
    out += render(diagnostic);
  return out;
}

Status DiagnosticEngine::status() const {
  if (!hasErrors())
    return Status::ok();
  Status result(StatusCode::CompileError, renderAll());
  for (const Diagnostic &diagnostic : kept)
    if (diagnostic.severity == Severity::Error)
      return result.at(sources.locationOf(diagnostic.range));
  return result;
}

} // namespace ditron::frontend
