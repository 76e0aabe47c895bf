//===- InspectCommand.cpp - ditron inspect ------------------------------------------------------------------------===//
//
// Says what a package holds.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "package/PackageCommands.h"

#include "ditron/package/PackageFile.h"
#include "ditron/support/OutputFile.h"
#include "ditron/support/Plural.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace ditron::tool {

namespace {

using nlohmann::ordered_json;

struct InspectArguments {
  std::string path, json, code;
};

std::string_view codeName(ArtifactCode kind) {
  switch (kind) {
  case ArtifactCode::HostObject: return "host object";
  case ArtifactCode::Ptx: return "PTX";
  case ArtifactCode::Cubin: return "cubin";
  }
  return "code";
}

std::string codesText(const package::Variant &variant) {
  std::vector<std::string> texts;
  for (const package::Code &code : variant.codes)
    texts.push_back(fmt::format("{} bytes of {}", code.bytes.size(), codeName(code.kind)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string describe(const package::Package &package, const std::string &path) {
  std::string text = fmt::format("{}: format {}, built by {}\n", path, package::formatVersion, package.compiler);
  if (!package.features.empty())
    text += fmt::format("code for simulated targets needs a processor with {}\n", fmt::join(package.features, " "));
  for (const package::Kernel &kernel : package.kernels) {
    text += fmt::format("kernel {} of {} (sha256 {})\n", kernel.name, kernel.source.name, kernel.source.hash.substr(0, 12));
    for (const package::SourceStamp &import : kernel.imports)
      text += fmt::format("  imports {} (sha256 {})\n", import.name, import.hash.substr(0, 12));
    for (const package::Variant &variant : kernel.variants) {
      const Artifact &artifact = variant.artifact;
      const std::string config = variant.config < 0 ? "" : fmt::format(", configuration {}", variant.config);
      text += fmt::format("  {}: {}\n    {}, {}{}{}, {} bytes of shared memory; {}\n", artifact.target, variant.signature,
                          plural(artifact.numWarps, "warp"), plural(variant.numStages, "stage"), config,
                          variant.debug ? ", debug" : "", artifact.sharedBytes, codesText(variant));
    }
  }
  for (const package::OperatorPlan &plan : package.plans)
    text += fmt::format("operator {} for {}: {}\n  {}; {} bytes of symmetric memory\n", plan.op, plan.target, plan.problem, plan.plan,
                        plan.workspaceBytes);
  return text;
}

ordered_json describeVariant(const package::Variant &variant) {
  const Artifact &artifact = variant.artifact;
  ordered_json json = {{"target", artifact.target},
                       {"signature", variant.signature},
                       {"num_warps", artifact.numWarps},
                       {"num_stages", variant.numStages},
                       {"debug", variant.debug},
                       {"shared_bytes", artifact.sharedBytes},
                       {"launch_warps", std::max(artifact.launchWarps, artifact.numWarps)},
                       {"loops_over_programs", artifact.loopsOverPrograms}};
  json["config"] = variant.config < 0 ? ordered_json() : ordered_json(variant.config);
  json["parameters"] = ordered_json::array();
  for (const ArtifactParameter &parameter : artifact.parameters)
    json["parameters"].push_back(
        {{"name", parameter.name}, {"type", parameter.type}, {"bytes", parameter.bytes}, {"divisibility", parameter.divisibility}});
  json["constants"] = ordered_json::object();
  for (const package::Item &item : variant.items)
    if (item.kind == package::Item::Kind::Constant)
      json["constants"][item.path] = package::valueText(item.value);
  json["codes"] = ordered_json::array();
  for (const package::Code &code : variant.codes)
    json["codes"].push_back({{"kind", codeName(code.kind)}, {"bytes", code.bytes.size()}});
  return json;
}

ordered_json describeKernel(const package::Kernel &kernel) {
  ordered_json json = {{"name", kernel.name}, {"source", kernel.source.name}, {"sha256", kernel.source.hash}};
  json["imports"] = ordered_json::array();
  for (const package::SourceStamp &import : kernel.imports)
    json["imports"].push_back({{"name", import.name}, {"sha256", import.hash}});
  json["parameters"] = ordered_json::array();
  for (const package::Parameter &parameter : kernel.parameters) {
    ordered_json described = {{"name", parameter.name}, {"constexpr", parameter.isConstexpr}};
    if (parameter.hasDefault)
      described["default"] = parameter.defaultValue ? package::valueText(*parameter.defaultValue) : "computed by the compiler";
    json["parameters"].push_back(std::move(described));
  }
  json["variants"] = ordered_json::array();
  for (const package::Variant &variant : kernel.variants)
    json["variants"].push_back(describeVariant(variant));
  return json;
}

std::string describeJson(const package::Package &package) {
  ordered_json json = {{"format", package::formatVersion}, {"compiler", package.compiler}, {"features", package.features}};
  json["kernels"] = ordered_json::array();
  for (const package::Kernel &kernel : package.kernels)
    json["kernels"].push_back(describeKernel(kernel));
  json["operators"] = ordered_json::array();
  for (const package::OperatorPlan &plan : package.plans)
    json["operators"].push_back({{"operator", plan.op},
                                 {"target", plan.target},
                                 {"problem", plan.problem},
                                 {"plan", plan.plan},
                                 {"workspace_bytes", plan.workspaceBytes}});
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Status inspect(const InspectArguments &arguments) {
  DITRON_ASSIGN_OR_RETURN(const package::Package package, package::loadPackage(arguments.path));
  if (arguments.json.empty() || arguments.json == "-") {
    fmt::print("{}", arguments.json.empty() ? describe(package, arguments.path) : describeJson(package));
    return Status::ok();
  }
  const NamedFile files[] = {{"--json", arguments.json}, {"the package", arguments.path, /*isRead=*/true}};
  DITRON_RETURN_IF_ERROR(checkDistinctFiles(files));
  return writeWholeFile(arguments.json, describeJson(package)).withContext("--json");
}

} // namespace

void addInspectCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("inspect", "Say what an ahead-of-time package holds");
  auto arguments = std::make_shared<InspectArguments>();
  command->add_option("package", arguments->path, "The package, as ditron build makes them")->required()->type_name("FILE");
  command->add_option("--json", arguments->json, "Write it as JSON to this file; - or nothing is standard output")
      ->type_name("FILE")
      ->expected(0, 1)
      ->default_str("-");
  command->callback([arguments, command, &context] {
    if (command->count("--json") && arguments->json.empty())
      arguments->json = "-";
    context.finish(inspect(*arguments));
  });
}

} // namespace ditron::tool
