//===- PackageCommands.h - Subcommands for ahead-of-time packages ----------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_PACKAGE_PACKAGECOMMANDS_H
#define DITRON_TOOLS_DITRON_PACKAGE_PACKAGECOMMANDS_H

#include "base/Command.h"

namespace ditron::tool {

void addBuildCommand(CLI::App &app, CommandContext &context);
void addInspectCommand(CLI::App &app, CommandContext &context);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_PACKAGE_PACKAGECOMMANDS_H
