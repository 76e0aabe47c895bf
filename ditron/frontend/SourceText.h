//===- SourceText.h - A file's path and text ------------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_FRONTEND_SOURCETEXT_H
#define DITRON_FRONTEND_SOURCETEXT_H

#include <string>

namespace ditron {

/// A file as it was when it was read; or, with a module name, a text that never was a file: imports of that name lead to it from
/// anywhere, and `path` is only what messages call it.
struct SourceText {
  std::string path;
  std::string text;
  std::string module = {};
  bool operator==(const SourceText &) const = default;
};

} // namespace ditron

#endif // DITRON_FRONTEND_SOURCETEXT_H
