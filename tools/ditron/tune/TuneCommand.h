//===- TuneCommand.h - ditron tune --------------------------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_TUNECOMMAND_H
#define DITRON_TOOLS_DITRON_TUNECOMMAND_H

#include "base/Command.h"

namespace ditron::tool {

/// `ditron tune OPERATOR --out FILE`: measures plans of an operator and writes the best into a table.
void addTuneCommand(CLI::App &app, CommandContext &context);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_TUNECOMMAND_H
