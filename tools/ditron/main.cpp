//===- main.cpp - ditron ------------------------------------------------------------------------------------------===//
//
// The command line: a table of subcommands. Each is a file in a folder beside this one.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "HelpExamples.h"
#include "Version.h"
#include "base/Command.h"
#include "layout/LayoutCommand.h"
#include "overlap/OverlapCommands.h"
#include "package/PackageCommands.h"
#include "predict/PredictCommand.h"
#include "swizzle/SwizzleCommand.h"
#include "tune/TuneCommand.h"

#include "ditron/compiler/FatalErrors.h"
#include "ditron/sim/engine/TimeLimit.h"
#include "ditron/support/Suggest.h"
#include "ditron/support/ToolProcess.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace ditron;

namespace {

/// The subcommand of a command line, as far as it is one.
struct Chosen {
  const CLI::App *command = nullptr;
  std::string path = "ditron";
  int next = 1;                         ///< The first word behind it.
  std::vector<std::string> subcommands; ///< Of `command`; one of them is missing if there are any.
};

Chosen chosenCommand(const CLI::App &app) {
  Chosen chosen;
  chosen.command = &app;
  while (!chosen.command->get_subcommands().empty()) {
    chosen.command = chosen.command->get_subcommands().front();
    chosen.path += " " + chosen.command->get_name();
    ++chosen.next;
  }
  for (const CLI::App *candidate : chosen.command->get_subcommands([](const CLI::App *) { return true; }))
    chosen.subcommands.push_back(candidate->get_name());
  return chosen;
}

/// Whether help is asked for of a subcommand that there is not.
bool isHelpOfNothing(const CLI::App &app, int argc, char **argv) {
  const Chosen chosen = chosenCommand(app);
  return !chosen.subcommands.empty() && chosen.next < argc && argv[chosen.next][0] != '-';
}

/// Prints what was wrong with the command line, with the nearest option or subcommand.
int reportUsage(const CLI::App &app, const CLI::ParseError &error, int argc, char **argv) {
  const auto [command, path, next, subcommands] = chosenCommand(app);
  std::string problem = error.what();
  if (!subcommands.empty() && next < argc) {
    const std::string word = argv[next];
    problem = word.starts_with("-")
                  ? fmt::format("'{}' is no option of {}{}", word, path, tool::meantOption(*command, word))
                  : fmt::format("'{}' is no subcommand{}; accepted are {}", word, didYouMean(word, subcommands),
                                fmt::join(subcommands, ", "));
  } else if (!subcommands.empty()) {
    problem = fmt::format("a subcommand is missing: {}", fmt::join(subcommands, ", "));
  } else if (dynamic_cast<const CLI::ExtrasError *>(&error)) {
    // CLI11 says "...: value --word", in any order: the options among the words are what was meant wrongly.
    const size_t colon = problem.rfind(": "), dashes = problem.find(" -");
    const size_t start = dashes != std::string::npos ? dashes + 1 : colon == std::string::npos ? 0 : colon + 2;
    const std::string word = problem.substr(start, problem.find_first_of(" =", start) - start);
    const bool isOption = word.starts_with("-") && command->get_option_no_throw(word);
    problem = fmt::format("'{}' is not expected here{}", word,
                          isOption ? ": behind -- nothing is an option" : tool::meantOption(*command, word));
  } else if (dynamic_cast<const CLI::ArgumentMismatch *>(&error)) {
    // "--seed: 1 required UINT missing"
    if (const size_t colon = problem.find(": "); colon != std::string::npos && problem.ends_with(" missing"))
      problem = fmt::format("{} needs a value", problem.substr(0, colon));
    // "--seed: At Most 1 required but received 2"
    else if (problem.find("At Most 1 required") != std::string::npos)
      problem = problem.substr(0, colon) + " is given more than once";
  }
  fmt::print(stderr, "ditron: error: {}; see {} --help\n", problem, path);
  return ExitUserError;
}

} // namespace

/// Runs the command of these words, as main got them.
static int runWords(tool::CommandContext &context, int argc, char **argv) {
  CLI::App app("Ditron: compiles distributed kernels written in the Triton language, and runs them.", "ditron");
  app.require_subcommand(1);
  app.set_version_flag("--version", tool::versionText());
  app.footer(
      "Exit codes: 0 done; 1 the command line, a file or the kernel's source is wrong; 2 the kernel failed while\n"
      "running (deadlock, access out of bounds); 3 not enough memory, threads or disk; 4 a bug of Ditron; 5 a result "
      "of\n"
      "`ditron run` is not the expected one; 128 + n signal n asked for the end.");
  constexpr void (*commands[])(CLI::App &, tool::CommandContext &) = {
      tool::addRunCommand,     tool::addReplayCommand,  tool::addCompileCommand, tool::addBuildCommand,
      tool::addInspectCommand, tool::addBenchCommand,   tool::addDemoCommand,    tool::addLaunchCommand,
      tool::addDoctorCommand,  tool::addCacheCommand,   tool::addKnobsCommand,   tool::addLayoutCommand,
      tool::addExplainCommand, tool::addPredictCommand, tool::addSwizzleCommand, tool::addTuneCommand,
  };
  for (auto *add : commands)
    add(app, context);
  tool::addHelpExamples(app);
  std::vector<std::string> words(argv + 1, argv + argc);
  context.words = words;
  std::ranges::transform(words, words.begin(), tool::withStandardInput);
  if (words.size() > 1 && words.front() == "--version") {
    fmt::print(stderr, "ditron: error: '{}' is not expected here: --version stands alone; see ditron --help\n",
               words[1]);
    return ExitUserError;
  }
  if (!words.empty() && words.front() == "launch")
    if (auto mark = std::ranges::find(words, "--"); mark != words.end())
      *mark = tool::programMark;
  std::ranges::reverse(words); // as CLI11 wants a vector
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError &error) {
    // "Errors" with code 0 are --help and --version.
    const bool isWanted = error.get_exit_code() == 0 && !isHelpOfNothing(app, argc, argv);
    return isWanted ? app.exit(error) : reportUsage(app, error, argc, argv);
  }
  return context.exitCode;
}

/// Runs the command, and the one that it asks for, and gives the exit code.
static int runCommand(int argc, char **argv) {
  tool::CommandContext context;
  Expected<Knobs> knobs = Knobs::fromEnvironment();
  if (!knobs.isOk()) {
    context.finish(knobs.status());
    return context.exitCode;
  }
  context.knobs = *knobs;
  const int exitCode = runWords(context, argc, argv);
  if (context.next.empty())
    return exitCode;
  std::vector<std::string> words = std::move(context.next);
  context.next.clear();
  std::vector<char *> pointers = {argv[0]};
  for (std::string &word : words)
    pointers.push_back(word.data());
  return runWords(context, static_cast<int>(pointers.size()), pointers.data());
}

/// Ctrl-C and its like: a simulated run ends with its report; anything else, or a second one, ends at once.
static void onInterruption(int signal) {
  if (sim::TimeLimit::interruption() != 0 || !sim::TimeLimit::interrupt(signal))
    endProcess(exitOfSignal(signal), "interrupted");
}

/// Initialisers of libraries take a while, in which a request would end the process: this comes before them, right behind the loader.
/// By the system call itself: sanitizers replace the function, and are not ready then.
static void ignoreEarlyReportRequests(int, char **, char **) {
  const unsigned long ignore[4] = {1}; // the kernel's sigaction: SIG_IGN, no flags, an empty mask
  syscall(SYS_rt_sigaction, SIGUSR1, ignore, nullptr, sizeof(unsigned long));
}
[[gnu::section(".preinit_array"), gnu::used]] static void (*const beforeAll)(int, char **,
                                                                             char **) = ignoreEarlyReportRequests;

/// SIGUSR1: a simulated run says what waits for what, and goes on; anything else takes no notice.
static void onReportRequest(int) { sim::TimeLimit::requestReport(); }

int main(int argc, char **argv) {
  ToolProcess process("ditron");
  compiler::reportFatalErrors();
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, onInterruption) == SIG_IGN)
      std::signal(signal, SIG_IGN); // as with nohup
  std::signal(SIGUSR1, onReportRequest);
  const int exitCode = process.finish(runCommand(argc, argv));
  const int signal = sim::TimeLimit::interruption();
  return signal ? exitOfSignal(signal) : exitCode;
}
