//===- PythonNames.h - What Python has, known here or not -----------------------------------------------------*- C++ -*-===//
//
// A name that Python has and Ditron does not execute is refused; one that Python has not either is an exception, which the program
// may catch. Names of CPython 3.11. Private to the room.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_NATIVES_PYTHONNAMES_H
#define DITRON_FRONTEND_NATIVES_PYTHONNAMES_H

#include "llvm/ADT/StringRef.h"

namespace ditron::frontend {

/// Whether a name of Python's module `builtins`.
bool isFunctionOfPython(llvm::StringRef name);

/// Whether some type of Python's own (numbers, text, containers, functions, classes, exceptions) has an attribute of this name.
bool isAttributeOfPython(llvm::StringRef name);

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_NATIVES_PYTHONNAMES_H
