//===- Library.h - The part of the language that is written in the language ---------------------------------*- C++ -*-===//
//
// Many functions of the language need nothing but the language: sorting, random numbers, barriers, tile channels. They are
// kernel files in library/, embedded as text and parsed when a kernel uses one. @library in the stubs says under which
// names of the built-in modules they are found. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_LIBRARY_H
#define DITRON_FRONTEND_LIBRARY_H

#include "ditron/frontend/ModuleScope.h"
#include "ditron/frontend/syntax/Diagnostics.h"
#include "llvm/ADT/StringMap.h"
#include <string_view>

namespace ditron::frontend {

struct LibrarySource {
  std::string_view path; ///< Where it was at build time, for diagnostics.
  std::string_view text; ///< Empty when there is no such file.
};
/// The file library/<name>.py.
LibrarySource librarySource(std::string_view name);

/// The library's files that one import uses.
class Library {
public:
  explicit Library(DiagnosticEngine &diagnostics) : diagnostics(diagnostics) {}

  /// The module level of library/<name>.py, parsed at its first use; null, with an error reported, if it does not parse.
  const ModuleScope *scope(llvm::StringRef name);

private:
  struct File {
    std::unique_ptr<ast::Module> module;
    std::unique_ptr<ModuleScope> scope;
  };
  DiagnosticEngine &diagnostics;
  llvm::StringMap<File> files;
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_LIBRARY_H
