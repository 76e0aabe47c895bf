//===- BuildCommand.cpp - ditron build ----------------------------------------------------------------------------===//
//
// Compiles kernels by signature, and what operators need for shapes, into one package.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "package/PackageCommands.h"

#include "Version.h"
#include "base/Progress.h"
#include "base/VisibleGpus.h"

#include "ditron/aot/OperatorBuild.h"
#include "ditron/ops/KernelLaunch.h"
#include "ditron/package/PackageFile.h"
#include "ditron/package/TypedHeader.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/support/InputFile.h"
#include "ditron/support/OutputFile.h"
#include "ditron/support/Plural.h"

#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <sstream>

namespace ditron::tool {

namespace {

struct BuildArguments {
  std::vector<std::string> kernels, signatures, targets;
  std::string op, shapesFile;
  std::vector<std::string> shapes;
  std::string output, header, depfile, space = "kernels";
  SourceOptions source;
  std::optional<uint32_t> numWarps, numStages, config;
  uint32_t multiprocessors = 0;
  bool debug = false, add = false, quiet = false;
};

constexpr std::string_view libraryPrefix = "ditron:";

/// A shape with its operator.
struct WantedShape {
  std::string op, shape, where;
};

/// FILE.py:KERNEL, or ditron:FILE:KERNEL for the kernels of the library's operators.
Expected<aot::VariantOrder> readOrder(const std::string &text, const SourceOptions &options) {
  if (!text.starts_with(libraryPrefix)) {
    aot::VariantOrder order;
    DITRON_ASSIGN_OR_RETURN(KernelReference reference, readKernelReference(text, options));
    order.sourceName = std::filesystem::path(reference.source.path).filename();
    order.kernel = reference.kernel;
    order.source = std::move(reference.source);
    return order;
  }
  const size_t colon = text.find(':', libraryPrefix.size());
  if (colon == std::string::npos)
    return invalidArgument(
        fmt::format("'{}' is no kernel of the library; they are called like ditron:gemm:gemm_pointers", text));
  DITRON_ASSIGN_OR_RETURN(
      const runtime::KernelReference kernel,
      ops::libraryKernel(std::string_view(text).substr(libraryPrefix.size(), colon - libraryPrefix.size()),
                         std::string_view(text).substr(colon + 1)));
  return aot::VariantOrder::of(kernel);
}

/// A shape on each line; '#' begins a comment; a first word without '=' is the operator.
Status readShapes(const std::string &text, const std::string &op, const std::string &where, std::vector<WantedShape> &shapes) {
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    std::istringstream stream(line);
    WantedShape shape = {op, "", where.empty() ? "--shape" : fmt::format("{}:{}", where, number)};
    bool isFirst = true;
    for (std::string word; stream >> word; isFirst = false) {
      if (isFirst && word.find('=') == std::string::npos)
        shape.op = word;
      else
        shape.shape += (shape.shape.empty() ? "" : " ") + word;
    }
    if (isFirst)
      continue;
    if (shape.op.empty())
      return invalidArgument(fmt::format("{}: '{}' names no operator, and there is no --op", shape.where, line));
    shapes.push_back(std::move(shape));
  }
  return Status::ok();
}

Expected<std::vector<WantedShape>> wantedShapes(const BuildArguments &arguments) {
  constexpr uint64_t mostBytes = 16 << 20;
  std::vector<WantedShape> shapes;
  if (!arguments.shapesFile.empty()) {
    DITRON_ASSIGN_OR_RETURN(const std::string text, readWholeFile(arguments.shapesFile, "--shapes", mostBytes));
    DITRON_RETURN_IF_ERROR(readShapes(text, arguments.op, arguments.shapesFile, shapes));
  }
  for (const std::string &shape : arguments.shapes)
    DITRON_RETURN_IF_ERROR(readShapes(shape, arguments.op, "", shapes));
  if (!arguments.op.empty() && shapes.empty())
    return invalidArgument(fmt::format("--op {} needs --shape or --shapes", arguments.op));
  return shapes;
}

/// The signature of each kernel: one for each, one for all, or several for one.
Expected<std::vector<std::pair<std::string, std::string>>> pairSignatures(const BuildArguments &arguments) {
  const size_t kernels = arguments.kernels.size(), signatures = arguments.signatures.size();
  std::vector<std::pair<std::string, std::string>> pairs;
  if (kernels == 0 && signatures > 0)
    return invalidArgument("--signature needs a kernel, FILE.py:KERNEL");
  if (kernels > 1 && signatures > 1 && kernels != signatures)
    return invalidArgument(fmt::format("{} kernels and {} signatures; give one for each, or one for all", kernels, signatures));
  for (size_t i = 0; i < std::max(kernels, signatures); ++i)
    pairs.emplace_back(arguments.kernels[kernels == 1 ? 0 : i], signatures == 0 ? "" : arguments.signatures[signatures == 1 ? 0 : i]);
  return pairs;
}

Expected<std::vector<std::string>> readTargets(const std::vector<std::string> &texts) {
  std::vector<std::string> targets;
  for (const std::string &text : texts) {
    seeOnlyGpusOf(text, 1);
    DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(text));
    targets.push_back(target.text);
  }
  return targets;
}

/// "package: files", as make and ninja read it.
Status writeDepfile(const BuildArguments &arguments, const std::set<std::string> &files) {
  auto escape = [](const std::string &path) {
    std::string text;
    for (const char character : std::filesystem::absolute(path).string()) {
      if (character == '$')
        text += '$';
      else if (character == ' ' || character == '#')
        text += '\\';
      text += character;
    }
    return text;
  };
  std::string text = escape(arguments.output) + ":";
  for (const std::string &file : files)
    text += " \\\n  " + escape(file);
  return writeWholeFile(arguments.depfile, text + "\n");
}

Status checkOutputs(const BuildArguments &arguments) {
  std::vector<NamedFile> outputs;
  for (const auto &[option, path] : {std::pair("--output", arguments.output), std::pair("--header", arguments.header),
                                     std::pair("--depfile", arguments.depfile)}) {
    DITRON_RETURN_IF_ERROR(checkCanWrite(option, path));
    if (!path.empty())
      outputs.push_back({option, path});
  }
  return checkDistinctFiles(outputs);
}

Status build(const BuildArguments &arguments, const Knobs &knobs) {
  DITRON_ASSIGN_OR_RETURN(const auto pairs, pairSignatures(arguments));
  DITRON_ASSIGN_OR_RETURN(const std::vector<WantedShape> shapes, wantedShapes(arguments));
  DITRON_ASSIGN_OR_RETURN(const std::vector<std::string> targets, readTargets(arguments.targets));
  if (pairs.empty() && shapes.empty())
    return invalidArgument("nothing to build: name kernels as FILE.py:KERNEL, or an operator by --op");
  if (arguments.output == "-")
    return invalidArgument("--output -: a package is not written to standard output; write the path of a file");
  DITRON_RETURN_IF_ERROR(checkOutputs(arguments));
  aot::PackageBuilder builder(knobs, versionText());
  if (std::error_code error; arguments.add && std::filesystem::exists(arguments.output, error)) {
    DITRON_ASSIGN_OR_RETURN(package::Package existing, package::loadPackage(arguments.output));
    existing.compiler = versionText();
    builder.addTo(std::move(existing));
  }
  Progress progress(arguments.quiet);
  builder.observer = [&](const std::string &kernel, const std::string &, const compiler::CompileReport *report) {
    if (!report)
      return progress.activity("compiling " + kernel);
    if (report->printed.empty() && report->messages.empty())
      return;
    progress.stop();
    fmt::print(stderr, "{}{}", report->printed, report->messages);
  };
  std::set<std::string> filesRead;
  for (const std::string &target : targets) {
    for (const auto &[kernel, signature] : pairs) {
      DITRON_ASSIGN_OR_RETURN(aot::VariantOrder order, readOrder(kernel, arguments.source));
      order.source = compiler::readImports(std::move(order.source));
      const NamedFile files[] = {{"--output", arguments.output}, {"the kernel file", order.source.path, /*isRead=*/true}};
      DITRON_RETURN_IF_ERROR(checkDistinctFiles(files));
      if (!kernel.starts_with(libraryPrefix)) {
        filesRead.insert(order.source.path);
        for (const SourceText &imported : order.source.imported)
          filesRead.insert(imported.path);
      }
      order.target = target;
      runtime::LaunchOptions options = {.numWarps = arguments.numWarps, .numStages = arguments.numStages, .debug = arguments.debug};
      options.config = arguments.config;
      DITRON_RETURN_IF_ERROR(builder.addSignature(order, signature, options));
    }
    for (const WantedShape &shape : shapes)
      DITRON_RETURN_IF_ERROR(
          aot::addOperator(builder, {shape.op, shape.shape, target, arguments.multiprocessors}).withContext(shape.where));
  }
  progress.stop();
  DITRON_RETURN_IF_ERROR(package::savePackage(arguments.output, builder.package()));
  if (!arguments.header.empty())
    DITRON_RETURN_IF_ERROR(writeWholeFile(arguments.header, package::typedHeader(builder.package(), arguments.space,
                                                                                 std::filesystem::absolute(arguments.output))));
  if (!arguments.depfile.empty())
    DITRON_RETURN_IF_ERROR(writeDepfile(arguments, filesRead));
  size_t variants = 0;
  for (const package::Kernel &kernel : builder.package().kernels)
    variants += kernel.variants.size();
  if (!arguments.quiet)
    fmt::print("{}: {} in {}, {} compiled now\n", arguments.output, plural(variants, "variant"),
               plural(builder.package().kernels.size(), "kernel"), builder.compilations());
  return Status::ok();
}

} // namespace

void addBuildCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("build", "Compile kernels ahead of time, into a package that runs without the compiler");
  auto arguments = std::make_shared<BuildArguments>();
  arguments->targets = {"sim:sm_80"};
  command->add_option("kernel", arguments->kernels, "Kernel files and functions: FILE.py:KERNEL, or ditron:gemm:gemm_pointers for one of the library")
      ->type_name("FILE.py:KERNEL");
  command
      ->add_option("--signature", arguments->signatures,
                   "Types and compile-time values of the parameters, as for ditron compile; one for each kernel, or "
                   "several for one")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->add_option("--num-warps", arguments->numWarps, "Warps per block")->check(powerOfTwoTo(32))->default_str("4");
  command->add_option("--num-stages", arguments->numStages, "Stages of pipelined loops")->check(integerBetween(1, 16))->default_str("3");
  command->add_option("--config", arguments->config, "Which configuration of @triton.autotune to compile")
      ->check(integerBetween(0, 65535))
      ->type_name("N");
  command->add_flag("--debug", arguments->debug, "Check assertions of the kernels, and integers for overflow");
  command->add_option("--op", arguments->op, "Operator of the library to build for")->type_name("NAME");
  command->add_option("--shape", arguments->shapes, "What it is to be called with: NAME=VALUE words; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->add_option("--shapes", arguments->shapesFile, "The same from a file, a shape on each line, which may begin with the operator")
      ->type_name("FILE");
  command->add_option("--multiprocessors", arguments->multiprocessors, "Of the GPU, for operators that choose tiles by it; default is that of the target's usual GPU")
      ->check(integerBetween(1, 1024))
      ->type_name("N");
  command->add_option("--target", arguments->targets, "What to compile for; may be given several times")
      ->type_name("TARGET")
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output, "The package")->required()->type_name("FILE");
  command->add_option("--header", arguments->header, "Also write a C++ header with a typed call for each kernel")->type_name("FILE");
  command->add_option("--depfile", arguments->depfile, "Also write which kernel files the package depends on, imported ones too, for make and ninja")
      ->type_name("FILE");
  command->add_option("--namespace", arguments->space, "Of that header")->type_name("NAME")->capture_default_str();
  command->add_flag("--add", arguments->add, "Add to what the package has");
  addSourceOptions(command, arguments->source);
  command->add_flag("--quiet", arguments->quiet, "Print errors only");
  command->footer("Shapes of operators (in brackets what may be left out):\n" + aot::operatorHelp() +
                  "\nFor GPUs the package has PTX, and machine code where DITRON_PTXAS names an assembler. See docs/packages.md.");
  command->callback([arguments, &context] { context.finish(build(*arguments, context.knobs)); });
}

} // namespace ditron::tool
