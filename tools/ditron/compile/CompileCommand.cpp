//===- CompileCommand.cpp - ditron compile ------------------------------------------------------------------------===//
//
// Compiles one variant of a kernel and shows a stage of it.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "base/Command.h"
#include "base/Progress.h"
#include "base/VisibleGpus.h"

#include "ditron/compiler/Compiler.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/support/OutputFile.h"

#include <cstdio>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

struct CompileArguments {
  std::string kernel;
  std::string signature;
  std::string emit;
  std::string output;
  std::string target = "sim:sm_80";
  SourceOptions source;
  std::optional<uint32_t> numWarps, numStages, config;
  bool listConfigs = false;
  bool debug = false;
  bool time = false;
  bool remarks = false;
  bool quiet = false;
};

constexpr const char *footer = R"(The signature gives each parameter, in order, its type or compile-time value:
  "*bf16, *bf16:16, i32, constexpr BLOCK=64"
A type is i1, i8 ... i64, u8 ... u64, fp16, bf16, fp32, fp64, fp8e5, fp8e4nv, or * and one of these for a pointer; ':16'
promises a multiple of 16. tensordesc<bf16[128,64]> is a tensor descriptor of the host ('nan' behind the shape: its padding), after which
':16:8' promises rows at multiples of 16 bytes and a last size that is a multiple of 8.

Stages: ast (syntax tree), tile (imported), layout (before lowering), llvm (LLVM IR), asm (assembly). Without --emit the
kernel is compiled completely and described.)";

std::string describeArtifact(const Artifact &artifact) {
  const std::string launched =
      artifact.launchWarps > artifact.numWarps ? fmt::format(" ({} at launch)", artifact.launchWarps) : "";
  std::string text = fmt::format("{} for {}: {} warps of {} threads{}, {} bytes of shared memory, {} bytes of code\n",
                                 artifact.kernel, artifact.target, artifact.numWarps, artifact.threadsPerWarp, launched,
                                 artifact.sharedBytes, artifact.code.size());
  if (artifact.loopsOverPrograms)
    text += "  blocks run one program of the launch after the other\n";
  for (const ArtifactParameter &parameter : artifact.parameters)
    text += fmt::format("  {}: {}{}\n", parameter.name, parameter.type,
                        parameter.divisibility > 1 ? fmt::format(", a multiple of {}", parameter.divisibility) : "");
  for (const ArtifactTensorMap &map : artifact.tensorMaps)
    text += fmt::format("  tensor map of {}: {}, boxes of {}, swizzle of {} bytes{}\n", artifact.parameters[map.base].name,
                        map.element, fmt::join(map.box, "x"), map.swizzleBytes, map.fillNan ? ", NaN outside" : "");
  return text;
}

Status writeText(const std::string &path, const std::string &text) {
  if (path.empty() || path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return Status::ok();
  }
  return writeWholeFile(path, text).withContext("--output");
}

/// Adds the values of a configuration to a signature that has none of them.
Status addConfig(const compiler::KernelInterface &interface, const CompileArguments &arguments,
                 frontend::KernelSignature &signature, compiler::CompileOptions &options) {
  std::vector<std::string> given;
  size_t next = 0;
  for (const frontend::ArgumentSpec &spec : signature.arguments) {
    const std::optional<size_t> index = spec.name.empty() ? next : interface.find(spec.name);
    if (!index || *index >= interface.parameters.size())
      return Status::ok(); // wrong, which the compiler says better
    given.push_back(interface.parameters[*index].name);
    next = *index + 1;
  }
  DITRON_ASSIGN_OR_RETURN(const frontend::TuningConfig *config, compiler::chooseConfig(interface, given, arguments.config));
  if (!config)
    return Status::ok();
  if (arguments.config && (arguments.numWarps || arguments.numStages))
    return invalidArgument(fmt::format("--config {} sets {}", *arguments.config,
                                       arguments.numWarps ? "--num-warps" : "--num-stages"));
  for (const auto &[name, value] : config->values)
    signature.arguments.push_back(frontend::ArgumentSpec::constexprOf(value, name));
  options.numWarps = arguments.numWarps.value_or(config->numWarps);
  options.numStages = arguments.numStages.value_or(config->numStages);
  return Status::ok();
}

/// The signature, or an error that shows what the kernel's parameters are.
Expected<frontend::KernelSignature> readSignature(const KernelReference &reference,
                                                  const compiler::KernelInterface &interface, const std::string &text) {
  if (!text.empty())
    return frontend::parseSignature(text);
  std::vector<std::string> parameters;
  for (const compiler::KernelParameter &parameter : interface.parameters)
    if (!parameter.hasDefault)
      parameters.push_back(parameter.isConstexpr ? "constexpr " + parameter.name + "=..." : parameter.name + "'s type");
  if (parameters.empty())
    return frontend::KernelSignature();
  return invalidArgument(
      fmt::format("kernel '{}' needs --signature \"{}\"", reference.kernel, fmt::join(parameters, ", ")));
}

Status compile(const CompileArguments &arguments, const Knobs &knobs) {
  DITRON_ASSIGN_OR_RETURN(KernelReference reference, readKernelReference(arguments.kernel, arguments.source));
  if (!arguments.output.empty() && arguments.output != "-") {
    const NamedFile files[] = {{"--output", arguments.output}, {"the kernel file", reference.source.path, /*isRead=*/true}};
    DITRON_RETURN_IF_ERROR(checkDistinctFiles(files));
  }
  std::optional<compiler::EmitStage> stage;
  if (!arguments.emit.empty()) {
    Expected<compiler::EmitStage> parsed = compiler::parseEmitStage(arguments.emit);
    if (!parsed.isOk())
      return parsed.status().withContext("--emit");
    stage = *parsed;
  }
  frontend::KernelSignature signature;
  compiler::CompileOptions options;
  options.numWarps = arguments.numWarps.value_or(4);
  options.numStages = arguments.numStages.value_or(3);
  if (stage != compiler::EmitStage::Ast) {
    DITRON_ASSIGN_OR_RETURN(const compiler::KernelInterface interface,
                            compiler::describeKernel(reference.source, reference.kernel, arguments.target));
    if (arguments.listConfigs) {
      const frontend::TuningSpace &space = interface.tuning;
      std::string text = compiler::listConfigs(interface);
      if (!space.keys.empty())
        text += fmt::format("chosen anew for each {}\n", fmt::join(space.keys, ", "));
      if (!space.heuristics.empty())
        text += fmt::format("computed at launch: {}\n", fmt::join(space.heuristics, ", "));
      if (!space.problem.empty())
        return Status(StatusCode::CompileError, "the decorators could not be evaluated: " + space.problem);
      return writeText(arguments.output, text.empty() ? "no configurations\n" : text);
    }
    DITRON_ASSIGN_OR_RETURN(signature, readSignature(reference, interface, arguments.signature));
    DITRON_RETURN_IF_ERROR(addConfig(interface, arguments, signature, options));
  }
  seeOnlyGpusOf(arguments.target, 1);
  DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(arguments.target));
  options.target = target.text;
  options.debug = arguments.debug;
  options.knobs = knobs;
  compiler::CompileReport report;
  Progress progress(arguments.quiet);
  progress.activity("compiling " + reference.kernel);
  Expected<std::string> text = std::string();
  if (stage) {
    text = compiler::emitStage(reference.source, reference.kernel, signature, options, *stage, &report);
  } else {
    Expected<Artifact> artifact =
        compiler::compileKernel(reference.source, reference.kernel, signature, options, &report);
    text =
        artifact.isOk() ? Expected<std::string>(describeArtifact(*artifact)) : Expected<std::string>(artifact.status());
  }
  progress.stop();
  fmt::print(stderr, "{}{}", report.printed, report.messages);
  if (arguments.remarks)
    fmt::print(stderr, "{}", report.remarks);
  if (arguments.time || knobs.timing)
    fmt::print(stderr, "{}", report.timesText());
  DITRON_RETURN_IF_ERROR(text.status());
  return writeText(arguments.output, *text);
}

} // namespace

void addCompileCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("compile", "Compile a kernel and show what becomes of it");
  auto arguments = std::make_shared<CompileArguments>();
  command->add_option("kernel", arguments->kernel, "Kernel file and function: FILE.py:KERNEL; the file - is standard input, the function may be left out if it is the only one")
      ->required()
      ->type_name("FILE.py:KERNEL");
  command->add_option("--signature", arguments->signature, "Types and compile-time values of the parameters")
      ->type_name("TEXT");
  command->add_option("--emit", arguments->emit, "Stage to show: ast, tile, layout, llvm or asm")->type_name("STAGE");
  command->add_option("-o,--output", arguments->output, "Where to write it; default is stdout")->type_name("FILE");
  command
      ->add_option("--target", arguments->target,
                   "What to compile for: a full name such as cuda:sm_90a, or cuda for this machine's GPU")
      ->capture_default_str();
  command->add_option("--num-warps", arguments->numWarps, "Warps per block")
      ->check(powerOfTwoTo(32))
      ->default_str("4");
  command->add_option("--num-stages", arguments->numStages, "Stages of pipelined loops")
      ->check(integerBetween(1, 16))
      ->default_str("3");
  command->add_option("--config", arguments->config, "Which configuration of @triton.autotune to compile")
      ->check(integerBetween(0, 65535))
      ->type_name("N");
  command->add_flag("--list-configs", arguments->listConfigs, "Print the configurations of @triton.autotune");
  addSourceOptions(command, arguments->source);
  command->add_flag("--debug", arguments->debug, "Check assertions of the kernel, and integers for overflow");
  command->add_flag("--time", arguments->time, "Print the time of every stage");
  command->add_flag("--remarks", arguments->remarks, "Print what the passes did and did not do, and why");
  command->add_flag("--quiet", arguments->quiet, "Print no progress");
  command->footer(footer);
  command->callback([arguments, &context] { context.finish(compile(*arguments, context.knobs)); });
}

} // namespace ditron::tool
