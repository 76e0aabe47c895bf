//===- HelpExamples.h - A command that works, in the help of each subcommand ----------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_HELPEXAMPLES_H
#define DITRON_TOOLS_DITRON_HELPEXAMPLES_H

#include <CLI/CLI.hpp>

namespace ditron::tool {

/// Adds "Example:" and commands below the help of every subcommand that has some. They run in the folder of the repository; the
/// test `printed-commands` runs them.
void addHelpExamples(CLI::App &app);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_HELPEXAMPLES_H
