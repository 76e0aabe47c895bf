//===- Modules.h - The files of one import --------------------------------------------------------------------*- C++ -*-===//
//
// A kernel file may import others of the user's: modules and packages, absolute and relative. They are looked for when
// somebody reads an imported name, next to the importing file and then along the search paths, and parsed once. What is not
// found is no error by itself, since files also import host code. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_MODULES_H
#define DITRON_FRONTEND_MODULES_H

#include "ditron/frontend/ModuleScope.h"
#include "ditron/frontend/SourceText.h"
#include "ditron/frontend/syntax/Diagnostics.h"
#include "llvm/ADT/StringMap.h"

namespace ditron::frontend {

class Modules {
public:
  /// `texts` are preferred to what is on disk.
  Modules(DiagnosticEngine &diagnostics, std::vector<std::string> searchPaths, std::vector<SourceText> texts = {});

  /// The kernel's own file, parsed.
  const ModuleScope *addRoot(const SourceFile &file);
  /// The file of a module as `from` imports it ("a.b", ".x", ".."); null if there is none.
  const ModuleScope *find(const ModuleScope &from, llvm::StringRef module);
  /// A module of a package; null if it has none of that name.
  const ModuleScope *findSubmodule(const ModuleScope &package, llvm::StringRef name);
  /// The folders in which a module was looked for, in words.
  std::string searchedPlaces(const ForeignValue &foreign) const;
  /// Reads the files that the imports of all files so far lead to, until there are no new ones.
  void loadAll();
  /// All files but the first, in the order of reading.
  std::vector<SourceText> importedTexts() const;
  /// True if the text of a file that was read names something in quotes: a variable of the environment.
  bool mentions(llvm::StringRef name) const;

private:
  struct File {
    std::unique_ptr<ast::Module> module;
    std::unique_ptr<ModuleScope> scope;
    FileId id = noFile;
    std::string given; ///< The module name of a text that is no file.
  };
  const ModuleScope *open(const std::string &path, bool isPackage);
  /// The text that was given for a module's name; null if none was.
  const ModuleScope *openGiven(llvm::StringRef module);
  const ModuleScope *openFolder(const std::string &folder);
  const ModuleScope *lookIn(const std::string &folder, llvm::ArrayRef<llvm::StringRef> parts, bool takesFolders);
  std::vector<std::string> rootsOf(const ModuleScope &from) const;
  bool exists(const std::string &path) const;

  DiagnosticEngine &diagnostics;
  std::vector<std::string> searchPaths;
  std::vector<SourceText> texts;
  std::string rootFolder;
  llvm::StringMap<File> files; ///< By path, folders without `__init__.py` too; texts that are no files by "<module>".
  std::vector<const ModuleScope *> order;
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_MODULES_H
