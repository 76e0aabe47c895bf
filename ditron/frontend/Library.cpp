//===- Library.cpp - The part of the language that is written in the language -----------------------------------------===//
#include "ditron/frontend/Library.h"

#include "ditron/frontend/syntax/Parser.h"

namespace ditron::frontend {

const ModuleScope *Library::scope(llvm::StringRef name) {
  auto [it, isNew] = files.try_emplace(name);
  File &file = it->second;
  if (!isNew)
    return file.scope.get();
  LibrarySource source = librarySource(std::string_view(name.data(), name.size()));
  auto id = diagnostics.sourceManager().add(std::string(source.path), std::string(source.text));
  if (!id.isOk())
    return nullptr;
  size_t before = diagnostics.errorCount();
  file.module = parseModule(diagnostics.sourceManager().file(*id), diagnostics);
  if (diagnostics.errorCount() == before)
    file.scope = std::make_unique<ModuleScope>(*file.module);
  return file.scope.get();
}

} // namespace ditron::frontend
