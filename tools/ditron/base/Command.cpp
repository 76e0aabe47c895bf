//===- Command.cpp - What the subcommands of ditron share ---------------------------------------------------------===//
//
// Exit codes, error output, and the forms FILE:KERNEL and NAME=VALUE.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "base/Command.h"

#include "ditron/compiler/KernelInterface.h"
#include "ditron/frontend/Signature.h"
#include "ditron/frontend/syntax/Source.h"
#include "ditron/support/InputFile.h"
#include "ditron/support/OutputFile.h"
#include "ditron/support/Suggest.h"
#include "ditron/values/TextPieces.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

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
  case StatusCode::TimeOut:
  case StatusCode::OutOfBounds:
  case StatusCode::DataRace: return ExitKernelFailed;
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
  // Rendered diagnostics begin with their own file and line; warnings may come first.
  const std::string firstLine = message.substr(0, message.find('\n'));
  if (firstLine.find(": error: ") != std::string::npos ||
      (firstLine.find(": warning: ") != std::string::npos && message.find(": error: ") != std::string::npos))
    fmt::print(stderr, "{}\n", message);
  else
    fmt::print(stderr, "ditron: error: {}\n", message);
}

void addSourceOptions(CLI::App *command, SourceOptions &options) {
  command
      ->add_option("--define", options.defines,
                   "What a name or expression of the module level is that only your machine knows: USE_TMA=True, "
                   "'torch.cuda.device_count()=8', 'import flash_attn=False'")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  command
      ->add_option("--path", options.paths,
                   "Folder in which the kernel file's own imports are searched, after its own; several, or separated by ':'")
      ->take_all()
      ->allow_extra_args(false)
      ->delimiter(':')
      ->type_name("FOLDER");
}

/// What messages call standard input; the line and column follow it as they follow a path.
constexpr const char *standardInput = "<stdin>";

static Expected<compiler::KernelSource> readSource(const std::string &path) {
  if (path != "-" && path != standardInput)
    return compiler::KernelSource::read(path);
  // It can be read once, and several kernels may be in it.
  static const Expected<std::string> text = [] {
    InputFile input = InputFile::standardInput();
    return readToEnd(input, maxSourceBytes);
  }();
  compiler::KernelSource source;
  source.path = standardInput;
  DITRON_ASSIGN_OR_RETURN(source.text, Expected<std::string>(text));
  if (source.text.empty())
    return invalidArgument("no kernel file came from standard input");
  return source;
}

Expected<KernelReference> readKernelReference(const std::string &text, const SourceOptions &options) {
  const size_t colon = text.rfind(':');
  DITRON_ASSIGN_OR_RETURN(compiler::KernelSource source, readSource(text.substr(0, colon)));
  source.searchPaths = options.paths;
  DITRON_ASSIGN_OR_RETURN(source.defines, frontend::parseDefines(options.defines));
  if (colon != std::string::npos && colon + 1 < text.size())
    return KernelReference{std::move(source), text.substr(colon + 1)};
  DITRON_ASSIGN_OR_RETURN(std::vector<std::string> kernels, compiler::kernelNames(source));
  if (kernels.size() == 1)
    return KernelReference{std::move(source), std::move(kernels.front())};
  return invalidArgument(fmt::format("'{}' names no kernel; write FILE.py:KERNEL; {} has {}", text, source.path,
                                     kernels.empty() ? "none" : fmt::format("{}", fmt::join(kernels, ", "))));
}

std::string withStandardInput(std::string word) {
  return word.starts_with("-:") ? standardInput + word.substr(1) : word;
}

std::string meantOption(const CLI::App &command, const std::string &word) {
  std::vector<std::string> known;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      known.push_back("--" + name);
  return didYouMean(word, known);
}

CLI::Validator integerBetween(uint64_t least, uint64_t most) {
  auto check = [least, most](std::string &text) -> std::string {
    const std::optional<uint64_t> value = values::wholeNumber<uint64_t>(text);
    if (value && *value >= least && *value <= most)
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

CLI::Validator powerOfTwoTo(uint32_t most) {
  auto check = [most](std::string &text) -> std::string {
    const std::optional<uint32_t> value = values::wholeNumber<uint32_t>(text);
    if (value && std::has_single_bit(*value) && *value <= most)
      return "";
    return fmt::format("'{}' is not accepted; write a power of two from 1 to {}", text, most);
  };
  return CLI::Validator(check, "");
}

Status checkCanWrite(std::string_view option, const std::string &path) {
  if (path.empty() || path == "-")
    return Status::ok();
  // A pipe would have its reader see an end.
  std::error_code ignored;
  const auto type = std::filesystem::status(path, ignored).type();
  if (type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::character)
    return Status::ok();
  return OutputFile::create(path).status().withContext(option);
}

Expected<std::pair<std::string, std::string>> splitAssignment(std::string_view option, const std::string &text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return invalidArgument(fmt::format("{} '{}': write NAME=VALUE", option, text));
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

} // namespace ditron::tool
