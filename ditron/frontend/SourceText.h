//===- SourceText.h - A file's path and text ------------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_FRONTEND_SOURCETEXT_H
#define DITRON_FRONTEND_SOURCETEXT_H

#include <string>

namespace ditron {

/// A file as it was when it was read.
struct SourceText {
  std::string path;
  std::string text;
  bool operator==(const SourceText &) const = default;
};

} // namespace ditron

#endif // DITRON_FRONTEND_SOURCETEXT_H
