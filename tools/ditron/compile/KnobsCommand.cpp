//===- KnobsCommand.cpp - ditron knobs ----------------------------------------------------------------------------===//
//
// Lists the environment variables.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "base/Command.h"

#include <cstdio>
#include <fmt/format.h>

namespace ditron::tool {

void addKnobsCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("knobs", "List the environment variables that Ditron reads");
  command->callback([&context] {
    for (const KnobInfo &info : knobTable())
      fmt::print("{:<24} {:<7} default '{}'{}\n    {}\n", info.name, toString(info.type), info.defaultText,
                 info.effect == KnobEffect::AffectsCode ? ", affects code" : "", info.help);
    context.finish(Status::ok());
  });
}

} // namespace ditron::tool
