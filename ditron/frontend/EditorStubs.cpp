//===- EditorStubs.cpp - The language's stubs for editors and type checkers -----------------------------------------------===//
//
// Reads the stubs once more, from text: only who wants files for an editor waits for that.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/frontend/EditorStubs.h"

#include "ditron/frontend/builtins/Builtins.h"
#include "ditron/frontend/Import.h"
#include "ditron/support/OutputFile.h"
#include <filesystem>
#include <fmt/format.h>

namespace ditron::frontend {

std::vector<EditorFile> editorFiles() {
  std::vector<StubFile> files;
  for (const StubText &text : stubTexts())
    files.push_back({text.name.str(), text.path.str(), text.text.str()});
  SourceManager sources;
  DiagnosticEngine diagnostics(sources);
  std::optional<Stubs> stubs = readStubs(files, diagnostics);
  if (!stubs)
    return {}; // they were read without an error when the program was built
  for (const Builtin &row : builtinTable()) {
    if (!(row.modules & ModuleDevice))
      continue;
    StubFunction function;
    function.name = row.name.str();
    function.doc = row.doc.str();
    function.result = row.result.str();
    function.owner = "libdevice";
    function.modules = {"libdevice"};
    for (const BuiltinParam &param : row.params)
      function.params.push_back({param.name.str(), "num", false, false, std::nullopt});
    stubs->functions.push_back(std::move(function));
  }
  return editorStubs(*stubs);
}

Status writeEditorStubs(const std::string &folder) {
  for (const EditorFile &file : editorFiles()) {
    const std::filesystem::path path = std::filesystem::path(folder) / file.path;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error)
      return notFound(fmt::format("cannot make the folder '{}': {}", path.parent_path().string(), error.message()));
    DITRON_RETURN_IF_ERROR(writeWholeFile(path.string(), file.text));
  }
  return Status::ok();
}

} // namespace ditron::frontend
