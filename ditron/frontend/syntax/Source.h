//===- Source.h - Source buffers and ranges of kernel files ---------------------------------------------*- C++ -*-===//
//
// A SourceFile is one text with a table of its line starts; a SourceManager owns the files of one compilation and
// numbers them. A SourceRange names a file and a half-open range of byte offsets, so that it is small enough to sit in
// every AST node; lines and columns are computed only when a message needs them. Lines and columns count from 1,
// columns count bytes, as clang and MLIR do. This file does not decode the text: encoding errors are the lexer's to
// report.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_SOURCE_H
#define DITRON_FRONTEND_SYNTAX_SOURCE_H

#include "ditron/support/Status.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace ditron::frontend {

/// The number of a file within its SourceManager.
using FileId = uint32_t;

/// The id of no file; a range that carries it has no place in any source.
inline constexpr FileId noFile = ~FileId(0);

/// A half-open range of byte offsets [begin, end) in one file.
struct SourceRange {
  FileId file = noFile;
  uint32_t begin = 0;
  uint32_t end = 0;

  bool isValid() const { return file != noFile; }
  uint32_t size() const { return end - begin; }
  bool operator==(const SourceRange &) const = default;

  /// The smallest range that covers both; an invalid operand is ignored, and so is one of another file.
  SourceRange join(SourceRange other) const;
  /// The empty range at the first offset; what a caret without an underline points at.
  SourceRange start() const { return {file, begin, begin}; }
};

/// A place for people: line and column, both from 1, the column in bytes.
struct LineColumn {
  uint32_t line = 1;
  uint32_t column = 1;
  bool operator==(const LineColumn &) const = default;
};

/// One source text and its line table.
class SourceFile {
public:
  SourceFile(FileId id, std::string path, std::string text);

  FileId id() const { return fileId; }
  llvm::StringRef path() const { return filePath; }
  llvm::StringRef text() const { return contents; }
  uint32_t size() const { return static_cast<uint32_t>(contents.size()); }

  /// The line and column of an offset; an offset past the end gives the place just after the last byte.
  LineColumn lineColumn(uint32_t offset) const;
  /// The offset of a line and column, clamped to the file; inverse of lineColumn for places inside the text.
  uint32_t offsetOf(LineColumn place) const;
  /// The text of a line (from 1) without its line end; empty for a line that does not exist.
  llvm::StringRef lineText(uint32_t line) const;
  uint32_t lineCount() const { return static_cast<uint32_t>(lineStarts.size()); }
  /// The text of a range of this file, clamped to the file.
  llvm::StringRef textOf(SourceRange range) const;
  SourceRange range(uint32_t begin, uint32_t end) const { return {fileId, begin, end}; }

private:
  FileId fileId;
  std::string filePath;
  std::string contents;
  std::vector<uint32_t> lineStarts; ///< Offset of the first byte of every line; never empty.
};

/// Owns the files of one compilation. Files never move, so references and texts stay valid as long as the manager.
class SourceManager {
public:
  /// Takes a text that is already in memory, for example a module built from a string.
  Expected<FileId> add(std::string path, std::string text);
  /// Reads a file from disk.
  Expected<FileId> load(const std::string &path);

  const SourceFile &file(FileId id) const { return files[id]; }
  bool contains(FileId id) const { return id < files.size(); }
  size_t size() const { return files.size(); }
  /// The text of a range; empty for an invalid range.
  llvm::StringRef textOf(SourceRange range) const;
  /// The start of a range as line and column; 1:1 for an invalid range.
  LineColumn beginOf(SourceRange range) const;
  /// The start of a range as errors carry it; empty for an invalid range.
  SourceLocation locationOf(SourceRange range) const;
  /// The end of a range (exclusive) as line and column.
  LineColumn endOf(SourceRange range) const;

private:
  std::deque<SourceFile> files;
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_SOURCE_H
