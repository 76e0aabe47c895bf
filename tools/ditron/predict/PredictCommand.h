//===- PredictCommand.h - ditron predict ----------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_PREDICTCOMMAND_H
#define DITRON_TOOLS_DITRON_PREDICTCOMMAND_H

#include "base/Command.h"

namespace ditron::tool {

void addPredictCommand(CLI::App &app, CommandContext &context);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_PREDICTCOMMAND_H
