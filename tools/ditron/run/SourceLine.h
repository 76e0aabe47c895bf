//===- SourceLine.h - Errors of running kernels with their lines ----------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_SOURCELINE_H
#define DITRON_TOOLS_DITRON_SOURCELINE_H

#include "ditron/compiler/Options.h"

namespace ditron::tool {

/// An error of a running kernel with the line of the source and a caret below; other errors as they are.
Status withSourceLine(const Status &status, const compiler::KernelSource &source);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_SOURCELINE_H
