//===- EditorStubs.h - The language for editors and type checkers ----------------------------------------*- C++ -*-===//
//
// The declaration of the language as stub files that Pylance, mypy and their kin understand: packages triton, triton_dist and
// ditron, in which every function has its parameters, types and documentation. Our decorators and words of parameters are
// replaced by Python's; what this version refuses is missing, so that an editor underlines it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_STUBS_EDITORSTUBS_H
#define DITRON_FRONTEND_STUBS_EDITORSTUBS_H

#include "ditron/frontend/stubs/Stubs.h"

namespace ditron::frontend {

struct EditorFile {
  std::string path; ///< "triton/language/__init__.pyi"
  std::string text;
};

/// All files; functions of libdevice, which no stub declares, belong to the module "libdevice".
std::vector<EditorFile> editorStubs(const Stubs &stubs);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_STUBS_EDITORSTUBS_H
