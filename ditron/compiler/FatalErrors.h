//===- FatalErrors.h - What LLVM ends a process with ----------------------------------------------------*- C++ -*-===//
//
// LLVM ends the process where it knows no other way: a stream that cannot be written to, memory that cannot be had, what a
// backend cannot select. A program of ours then says whose fault it is and keeps to its exit codes.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_COMPILER_FATALERRORS_H
#define DITRON_COMPILER_FATALERRORS_H

namespace ditron::compiler {

/// For the main function of a program that has a ToolProcess (support/ToolProcess.h).
void reportFatalErrors();

} // namespace ditron::compiler
#endif // DITRON_COMPILER_FATALERRORS_H
