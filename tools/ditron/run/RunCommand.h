//===- RunCommand.h - The help of ditron run ------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_RUNCOMMAND_H
#define DITRON_TOOLS_DITRON_RUNCOMMAND_H

namespace ditron::tool {

/// SPEC, sequences of kernels, results, exit codes.
extern const char *const runHelp;

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_RUNCOMMAND_H
