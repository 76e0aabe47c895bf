//===- SwizzleCommand.h - ditron swizzle ----------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_SWIZZLECOMMAND_H
#define DITRON_TOOLS_DITRON_SWIZZLECOMMAND_H

#include "base/Command.h"

namespace ditron::tool {

/// `ditron swizzle ag_gemm|gemm_rs`: which tile each rank computes when, as text and as a picture.
void addSwizzleCommand(CLI::App &app, CommandContext &context);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_SWIZZLECOMMAND_H
