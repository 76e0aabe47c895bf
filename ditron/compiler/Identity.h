//===- Identity.h - Which compiler this is --------------------------------------------------------------------*- C++ -*-===//
//
// Code that another compiler made may differ in anything, so the compiler is part of every key under which compiled code is
// kept: the build IDs that the linker wrote into the files that hold our code, LLVM's and MLIR's. A file without one is named
// by its size and time.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_COMPILER_IDENTITY_H
#define DITRON_COMPILER_IDENTITY_H

#include <string>
#include <string_view>

namespace ditron::compiler {

/// One line of text. For simulated targets it names the processor too, whose instructions their code uses.
std::string compilerIdentity(std::string_view target);

} // namespace ditron::compiler

#endif // DITRON_COMPILER_IDENTITY_H
