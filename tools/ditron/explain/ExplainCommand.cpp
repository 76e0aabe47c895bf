//===- ExplainCommand.cpp - ditron explain --------------------------------------------------------------------------===//
//
// Why something does not go on.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "base/Command.h"
#include "explain/LiveWaits.h"

namespace ditron::tool {

namespace {
struct ExplainArguments {
  uint32_t pid = 0;
  bool json = false, dot = false;
};
} // namespace

void addExplainCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("explain", "Say what running kernels wait for");
  auto arguments = std::make_shared<ExplainArguments>();
  command
      ->add_option("--pid", arguments->pid,
                   "A process that runs kernels on GPUs, or the launcher of several; it is not stopped, and no "
                   "privilege is needed")
      ->required()
      ->check(integerBetween(1, INT32_MAX))
      ->type_name("P");
  CLI::Option *json = command->add_flag("--json", arguments->json, "As JSON, each wait by itself");
  command->add_flag("--dot", arguments->dot, "As a graph for Graphviz")->excludes(json);
  command->callback([arguments, &context] {
    context.finish(explainProcess(arguments->pid, arguments->json  ? LiveWaitsForm::Json
                                                  : arguments->dot ? LiveWaitsForm::Dot
                                                                   : LiveWaitsForm::Text));
  });
}

} // namespace ditron::tool
