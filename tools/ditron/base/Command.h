//===- Command.h - What the subcommands of ditron share -------------------------------------------------*- C++ -*-===//
//
// A subcommand is a file with one function that adds it to the command line; main.cpp has the table of them. Exit codes
// are the same for all: support/ToolProcess.h.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_COMMAND_H
#define DITRON_TOOLS_DITRON_COMMAND_H

#include "ditron/compiler/Options.h"
#include "ditron/sim/explore/Schedule.h"
#include "ditron/support/Knobs.h"
#include "ditron/support/ToolProcess.h"

#include <CLI/CLI.hpp>

namespace ditron::tool {

/// What main gives to the subcommands and gets back.
struct CommandContext {
  Knobs knobs;
  int exitCode = ExitDone;
  std::vector<std::string> words;         ///< Of the command line.
  std::optional<sim::Schedule> schedule;  ///< In place of what --seed draws, when a run is repeated.
  std::optional<sim::Schedule> reference; ///< What went wrong is that results differ from this one's.
  std::vector<std::string> next; ///< The words of the command that this one asks for, to be run with `schedule`.

  /// Prints an error, as far as it is one, and remembers its exit code. `kernelFailed`: it is that of a kernel which ran.
  void finish(const Status &status, bool kernelFailed = false);
};

/// Each adds one subcommand with its options and what it does when chosen. The context outlives the parse.
void addRunCommand(CLI::App &app, CommandContext &context);
void addReplayCommand(CLI::App &app, CommandContext &context);
void addCompileCommand(CLI::App &app, CommandContext &context);
void addCacheCommand(CLI::App &app, CommandContext &context);
void addKnobsCommand(CLI::App &app, CommandContext &context);
void addDoctorCommand(CLI::App &app, CommandContext &context);
void addLaunchCommand(CLI::App &app, CommandContext &context);
void addExplainCommand(CLI::App &app, CommandContext &context);

/// How a kernel file is read: options that several commands have.
struct SourceOptions {
  std::vector<std::string> paths;   ///< --path: where imports are searched.
  std::vector<std::string> defines; ///< --define: NAME=VALUE.
};

/// Splits FILE.py:KERNEL and reads the file; what it imports is searched in the folders of --path, after its own folder. The file - is
/// standard input; without KERNEL the only one of the file is meant. Errors list the kernels of the file when only the kernel
/// is wrong.
struct KernelReference {
  compiler::KernelSource source;
  std::string kernel;
};
Expected<KernelReference> readKernelReference(const std::string &text, const SourceOptions &options);
/// "-:KERNEL", which looks like an option, with the name of standard input; other words as they are.
std::string withStandardInput(std::string word);
/// What stands on the command line of `ditron launch` for the first "--", which CLI11 would not leave in its place.
inline constexpr const char *programMark = "<program>";
/// The option --path of the commands that read kernel files.
void addSourceOptions(CLI::App *command, SourceOptions &options);

/// "; did you mean '--seed'?", of the command's options, when a word is near to one.
std::string meantOption(const CLI::App &command, const std::string &word);

/// A check for options that take an integer: refuses other text, and numbers that are not from `least` to `most`, with the text
/// given and what is accepted.
CLI::Validator integerBetween(uint64_t least, uint64_t most);
/// The same for a time in seconds.
CLI::Validator secondsFromZero();

/// A power of two, from 1 to `most`.
CLI::Validator powerOfTwoTo(uint32_t most);

/// What --out, --trace, --svg and their like write to standard output for; what people read then goes to stderr.
inline constexpr const char *standardOutput = "-";

/// Refuses, before the work begins, a file that could not be written after it; `option` names it in the error. An empty path and
/// "-", the standard output, are fine.
Status checkCanWrite(std::string_view option, const std::string &path);

/// Splits NAME=VALUE; `option` names the option in the error.
Expected<std::pair<std::string, std::string>> splitAssignment(std::string_view option, const std::string &text);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_COMMAND_H
