//===- LocalNames.h - Which names belong to a function --------------------------------------------------------*- C++ -*-===//
//
// Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_LOCALNAMES_H
#define DITRON_FRONTEND_LOCALNAMES_H

#include "ditron/frontend/syntax/Ast.h"
#include "llvm/ADT/StringSet.h"

namespace ditron::frontend {

/// The names that are a Python function's own because something in its body binds them, wherever that stands: assignments,
/// loops, `with`, `except`, imports, definitions, `del`. Without its parameters, and without what it declares global or nonlocal.
llvm::StringSet<> localNames(const ast::FunctionDef *function);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_LOCALNAMES_H
