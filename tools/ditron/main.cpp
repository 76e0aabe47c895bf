//===- main.cpp - ditron ----------------------------------------------------------------------------------------------===//
//
// The command line: a table of subcommands. Each is a file of this folder.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "Command.h"
#include "OverlapCommands.h"

#include <fmt/format.h>

using namespace ditron;

int main(int argc, char **argv) {
  tool::CommandContext context;
  Expected<Knobs> knobs = Knobs::fromEnvironment();
  if (!knobs.isOk()) {
    context.finish(knobs.status());
    return context.exitCode;
  }
  context.knobs = *knobs;

  CLI::App app("Ditron: compiles distributed kernels written in the Triton language, and runs them.", "ditron");
  app.require_subcommand(1);
  app.set_version_flag("--version", "ditron 0.1.0");
  app.footer("Exit codes: 0 done; 1 the command line, a file or the kernel's source is wrong; 2 the kernel failed while\n"
             "running (deadlock, access out of bounds); 3 not enough memory; 4 a bug of Ditron.");
  constexpr void (*commands[])(CLI::App &, tool::CommandContext &) = {
      tool::addRunCommand,
      tool::addCompileCommand,
      tool::addBenchCommand,
      tool::addDemoCommand,
      tool::addKnobsCommand,
  };
  for (auto *add : commands)
    add(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    // Prints help, or the error; CLI11's own codes for errors are all ours for a wrong command line.
    return app.exit(error) == 0 ? tool::ExitDone : tool::ExitUserError;
  }
  return context.exitCode;
}
