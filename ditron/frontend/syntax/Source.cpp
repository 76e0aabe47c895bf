//===- Source.cpp - Source buffers and ranges of kernel files -----------------------------------------------------===//
//
// The line table accepts the three line ends that Python accepts: LF, CR LF and a lone CR.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/syntax/Source.h"

#include "ditron/support/InputFile.h"

#include <algorithm>
#include <fmt/format.h>

namespace ditron::frontend {

SourceRange SourceRange::join(SourceRange other) const {
  if (!isValid())
    return other;
  if (other.file != file)
    return *this;
  return {file, std::min(begin, other.begin), std::max(end, other.end)};
}

SourceFile::SourceFile(FileId id, std::string path, std::string text)
    : fileId(id), filePath(std::move(path)), contents(std::move(text)) {
  lineStarts.push_back(0);
  for (uint32_t i = 0; i < contents.size(); ++i) {
    bool isLineFeed = contents[i] == '\n';
    bool isLoneReturn = contents[i] == '\r' && (i + 1 == contents.size() || contents[i + 1] != '\n');
    if (isLineFeed || isLoneReturn)
      lineStarts.push_back(i + 1);
  }
}

LineColumn SourceFile::lineColumn(uint32_t offset) const {
  offset = std::min(offset, size());
  auto after = std::upper_bound(lineStarts.begin(), lineStarts.end(), offset);
  uint32_t line = static_cast<uint32_t>(after - lineStarts.begin());
  return {line, offset - lineStarts[line - 1] + 1};
}

uint32_t SourceFile::offsetOf(LineColumn place) const {
  uint32_t line = std::clamp<uint32_t>(place.line, 1, lineCount());
  uint32_t column = std::max<uint32_t>(place.column, 1);
  return static_cast<uint32_t>(std::min<uint64_t>(uint64_t(lineStarts[line - 1]) + column - 1, size()));
}

llvm::StringRef SourceFile::lineText(uint32_t line) const {
  if (line == 0 || line > lineCount())
    return {};
  uint32_t end = line < lineCount() ? lineStarts[line] : size();
  return text().slice(lineStarts[line - 1], end).rtrim("\r\n");
}

llvm::StringRef SourceFile::textOf(SourceRange range) const { return text().slice(range.begin, range.end); }

Expected<FileId> SourceManager::add(std::string path, std::string text) {
  if (text.size() > maxSourceBytes)
    return invalidArgument(
        fmt::format("the source '{}' has {} bytes; at most {} are accepted", path, text.size(), maxSourceBytes));
  FileId id = static_cast<FileId>(files.size());
  files.emplace_back(id, std::move(path), std::move(text));
  return id;
}

Expected<FileId> SourceManager::load(const std::string &path) {
  DITRON_ASSIGN_OR_RETURN(std::string text, readWholeFile(path, "source file", maxSourceBytes));
  return add(path, std::move(text));
}

llvm::StringRef SourceManager::textOf(SourceRange range) const {
  return contains(range.file) ? files[range.file].textOf(range) : llvm::StringRef();
}

LineColumn SourceManager::beginOf(SourceRange range) const {
  return contains(range.file) ? files[range.file].lineColumn(range.begin) : LineColumn();
}

SourceLocation SourceManager::locationOf(SourceRange range) const {
  if (!contains(range.file))
    return {};
  const LineColumn begin = beginOf(range);
  return {files[range.file].path().str(), begin.line, begin.column};
}

LineColumn SourceManager::endOf(SourceRange range) const {
  return contains(range.file) ? files[range.file].lineColumn(range.end) : LineColumn();
}

} // namespace ditron::frontend
