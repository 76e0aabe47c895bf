//===- LayoutCommand.h - ditron layout ------------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_LAYOUTCOMMAND_H
#define DITRON_TOOLS_DITRON_LAYOUTCOMMAND_H

#include "base/Command.h"

namespace ditron::tool {

void addLayoutCommand(CLI::App &app, CommandContext &context);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_LAYOUTCOMMAND_H
