//===- Command.cpp - What the subcommands of ditron share ---------------------------------------------------------===//
//
// Exit codes, error output, and the forms FILE:KERNEL and NAME=VALUE.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "Command.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

int exitCodeOf(StatusCode code) {
  switch (code) {
  case StatusCode::Ok: return ExitDone;
  case StatusCode::InvalidArgument:
  case StatusCode::NotFound:
  case StatusCode::Unsupported:
  case StatusCode::CompileError: return ExitUserError;
  case StatusCode::Deadlock:
  case StatusCode::OutOfBounds: return ExitKernelFailed;
  case StatusCode::ResourceExhausted: return ExitExhausted;
  case StatusCode::Internal: return ExitBug;
  }
  return ExitBug;
}

} // namespace

void CommandContext::finish(const Status &status, bool kernelFailed) {
  exitCode = exitCodeOf(status.code());
  // An assertion, a rank that does not exist: the code says what was wrong, not when.
  if (kernelFailed && exitCode != ExitExhausted)
    exitCode = ExitKernelFailed;
  if (status.isOk())
    return;
  std::string message = status.message();
  while (!message.empty() && message.back() == '\n')
    message.pop_back();
  // Rendered diagnostics begin with their own file and line.
  const size_t firstLine = message.find('\n');
  if (message.substr(0, firstLine).find(": error: ") != std::string::npos)
    fmt::print(stderr, "{}\n", message);
  else
    fmt::print(stderr, "ditron: error: {}\n", message);
}

void addPathOption(CLI::App *command, std::vector<std::string> &paths) {
  command
      ->add_option("--path", paths,
                   "Folder in which the kernel file's own imports are searched, after its own; several, or separated by ':'")
      ->take_all()
      ->allow_extra_args(false)
      ->delimiter(':')
      ->type_name("FOLDER");
}

Expected<KernelReference> readKernelReference(const std::string &text, const std::vector<std::string> &paths) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
    return invalidArgument(fmt::format("'{}' names no kernel; write FILE.py:KERNEL", text));
  DITRON_ASSIGN_OR_RETURN(compiler::KernelSource source, compiler::KernelSource::read(text.substr(0, colon)));
  source.searchPaths = paths;
  return KernelReference{std::move(source), text.substr(colon + 1)};
}

CLI::Validator integerBetween(uint64_t least, uint64_t most) {
  auto check = [least, most](std::string &text) -> std::string {
    uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (!text.empty() && error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
      return "";
    return fmt::format("'{}' is not accepted; write an integer from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

CLI::Validator secondsFromZero() {
  auto check = [](std::string &text) -> std::string {
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == 0 && value >= 0 && value <= 1e9)
      return "";
    return fmt::format("'{}' is not accepted; write a number of seconds from 0 to 1000000000", text);
  };
  return CLI::Validator(check, "");
}

Expected<std::pair<std::string, std::string>> splitAssignment(std::string_view option, const std::string &text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return invalidArgument(fmt::format("{} '{}': write NAME=VALUE", option, text));
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

} // namespace ditron::tool
