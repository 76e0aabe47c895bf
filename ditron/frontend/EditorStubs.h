//===- EditorStubs.h - The language's stubs for editors and type checkers -------------------------------------*- C++ -*-===//
//
// stubs/EditorStubs.h with the stubs that this program was built from, and libdevice. Private to the room; the public function is in
// Import.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_EDITORSTUBS_H
#define DITRON_FRONTEND_EDITORSTUBS_H

#include "ditron/frontend/stubs/EditorStubs.h"

namespace ditron::frontend {

struct StubText {
  llvm::StringRef name, path, text;
};
/// library/*.pyi as they were when the program was built. Generated.
llvm::ArrayRef<StubText> stubTexts();

/// All files for editors.
std::vector<EditorFile> editorFiles();

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_EDITORSTUBS_H
