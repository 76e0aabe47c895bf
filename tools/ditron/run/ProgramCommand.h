//===- ProgramCommand.h - ditron run PROGRAM.json -------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_PROGRAMCOMMAND_H
#define DITRON_TOOLS_DITRON_PROGRAMCOMMAND_H

#include "run/ExploreRun.h"

namespace ditron::tool {

/// Whether what stands where a kernel is expected is a run file.
bool isRunFile(std::string_view kernel);

/// Runs the run file. Options that are about one kernel, and results that its steps name, are refused.
void runProgram(const std::string &path, const RunOptions &options, const CLI::App &command, CommandContext &context);

/// Runs it under many schedules (ExploreRun.h).
void exploreRunFile(const std::string &path, const RunOptions &options, const ExploreArguments &arguments,
                    const CLI::App &command, CommandContext &context);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_PROGRAMCOMMAND_H
