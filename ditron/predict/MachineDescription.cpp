//===- MachineDescription.cpp - What a machine can do, as a readable file -------------------------------------------===//
#include "ditron/predict/MachineDescription.h"

#include "ditron/predict/EmbeddedMachine.h"
#include "ditron/predict/JsonFields.h"
#include "ditron/support/InputFile.h"
#include "ditron/support/Suggest.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::predict {

namespace {

/// Names of the files of machines/, with spaces between, from CMake.
constexpr std::string_view embeddedNames = DITRON_MACHINE_NAMES;
constexpr uint64_t mostDescriptionBytes = 1 << 20;
/// Longer chains of "based_on" are a circle.
constexpr int mostBases = 8;
constexpr double mostRate = 1e7, mostUs = 1e6;

const std::vector<std::string> architectures = {"sm_80",   "sm_86",  "sm_89",  "sm_90",  "sm_90a", "sm_100a",
                                                "sm_103a", "sm_120", "gfx90a", "gfx942", "gfx950"};
const std::vector<std::string> mmaTypes = {"bf16", "fp16", "fp8", "int8", "tf32", "fp32"};

Status readGpu(JsonFields fields, GpuDescription &gpu) {
  gpu.architecture = fields.text("architecture", architectures);
  gpu.smCount = static_cast<uint32_t>(fields.integer("sm_count", 1, 4096));
  gpu.boostClockMhz = fields.number("boost_clock_mhz", 1, 1e5);
  gpu.sustainedClockMhz = fields.number("sustained_clock_mhz", 1, 1e5);
  JsonFields mma(fields.child("mma_flops_per_clock_per_sm"), fields.file(),
                 fields.pathOf("mma_flops_per_clock_per_sm"));
  for (const std::string &type : mmaTypes)
    if (const double flops = mma.number(type, 1, 1e7, 0.0); flops > 0)
      gpu.mmaFlopsPerClockPerSm[type] = flops;
  gpu.mmaEfficiency = fields.number("mma_efficiency", 0.01, 1);
  gpu.gatherEfficiency = fields.number("gather_efficiency", 0.01, 1);
  gpu.attentionEfficiency = fields.number("attention_efficiency", 0.01, 1);
  gpu.tileOverheadUs = fields.number("tile_overhead_us", 0, mostUs);
  gpu.l2Mib = fields.number("l2_mib", 0, 1e5);
  gpu.l2BytesPerClockPerSm = fields.number("l2_bytes_per_clock_per_sm", 1, 1e4);
  gpu.hbmGbPerS = fields.number("hbm_gb_per_s", 1, mostRate);
  gpu.hbmEfficiency = fields.number("hbm_efficiency", 0.01, 1);
  gpu.kernelLaunchUs = fields.number("kernel_launch_us", 0, mostUs);
  gpu.slowdownUnderCopies = fields.number("slowdown_under_copies", 0, 10);
  if (gpu.sustainedClockMhz > gpu.boostClockMhz)
    fields.fail("sustained_clock_mhz", fmt::format("is {}; at most boost_clock_mhz, {}, is accepted",
                                                   gpu.sustainedClockMhz, gpu.boostClockMhz));
  DITRON_RETURN_IF_ERROR(fields.finish());
  return mma.finish();
}

Status readCopyEngine(JsonFields fields, CopyEngineDescription &engine) {
  engine.fixedUs = fields.number("fixed_us", 0, mostUs);
  engine.signalUs = fields.number("signal_us", 0, mostUs);
  engine.linkEfficiency = fields.number("link_efficiency", 0.01, 1);
  return fields.finish();
}

Status readNode(JsonFields fields, NodeDescription &node) {
  node.gpus = static_cast<uint32_t>(fields.integer("gpus", 1, 1024));
  const std::string fabric = fields.text("fabric", {"switch", "mesh", "pcie"});
  node.fabric = fabric == "mesh" ? Fabric::Mesh : fabric == "pcie" ? Fabric::Pcie : Fabric::Switch;
  node.linkGbPerS = fields.number("link_gb_per_s", 0.01, mostRate);
  node.smLinkEfficiency = fields.number("sm_link_efficiency", 0.01, 1);
  node.smsForFullLink = static_cast<uint32_t>(fields.integer("sms_for_full_link", 1, 4096));
  node.signalUs = fields.number("signal_us", 0, mostUs);
  node.numaDomains = static_cast<uint32_t>(fields.integer("numa_domains", 1, 64, 1));
  node.numaGbPerS = fields.number("numa_gb_per_s", 0.01, mostRate, 0.0);
  if (node.numaDomains > 1 && node.numaGbPerS == 0)
    fields.fail("numa_gb_per_s", "is missing; numa_domains is more than 1");
  if (node.gpus % node.numaDomains != 0)
    fields.fail("numa_domains", fmt::format("is {}; a divisor of gpus, {}, is accepted", node.numaDomains, node.gpus));
  return fields.finish();
}

Status readNetwork(JsonFields fields, NetworkDescription &network) {
  network.mostNodes = static_cast<uint32_t>(fields.integer("most_nodes", 2, 65536));
  network.nicsPerNode = static_cast<uint32_t>(fields.integer("nics_per_node", 1, 1024));
  network.nicGbPerS = fields.number("nic_gb_per_s", 0.01, mostRate);
  network.nicEfficiency = fields.number("nic_efficiency", 0.01, 1);
  network.latencyUs = fields.number("latency_us", 0, mostUs);
  return fields.finish();
}

Status readLibraries(JsonFields fields, LibrariesDescription &libraries) {
  libraries.lowLatencyUs = fields.number("low_latency_us", 0, mostUs);
  libraries.lowLatencyLinkEfficiency = fields.number("low_latency_link_efficiency", 0.001, 1);
  libraries.simpleUs = fields.number("simple_us", 0, mostUs);
  libraries.simpleLinkEfficiency = fields.number("simple_link_efficiency", 0.001, 1);
  libraries.hopUs = fields.number("hop_us", 0, mostUs);
  libraries.symmetricUs = fields.number("symmetric_us", 0, mostUs);
  libraries.groupedProductPerExpertUs = fields.number("grouped_product_per_expert_us", 0, mostUs);
  libraries.topkSumPasses = fields.number("topk_sum_passes", 1, 1000);
  return fields.finish();
}

/// "folder/x.json" and "base" or "base.json" give "folder/base.json" for what is not part of the program.
std::string besideFile(const std::string &file, const std::string &base) {
  const size_t slash = file.rfind('/');
  return slash == std::string::npos || base.starts_with("/") ? base : file.substr(0, slash + 1) + base;
}

bool isPath(const std::string &name) { return name.find('/') != std::string::npos || name.ends_with(".json"); }

/// The text of a machine by name or path, and what errors call it.
Expected<std::pair<std::string, std::string>> textOf(const std::string &nameOrFile) {
  if (isPath(nameOrFile)) {
    DITRON_ASSIGN_OR_RETURN(std::string text, readWholeFile(nameOrFile, "machine description", mostDescriptionBytes));
    return std::pair(std::move(text), nameOrFile);
  }
  const EmbeddedMachine machine = embeddedMachine(nameOrFile);
  if (machine.text.empty())
    return notFound(
        fmt::format("there is no machine '{}'{}; known are {}; a file is named by a path that ends in .json",
                    nameOrFile, didYouMean(nameOrFile, machineNames()), fmt::join(machineNames(), ", ")));
  return std::pair(std::string(machine.text), nameOrFile + ".json");
}

/// The object with everything that it is based on below it.
Expected<nlohmann::json> wholeObject(std::string_view text, const std::string &file, int depth) {
  DITRON_ASSIGN_OR_RETURN(nlohmann::json object, parseJson(text, file));
  if (!object.is_object() || !object.contains("based_on"))
    return object;
  if (!object["based_on"].is_string())
    return invalidArgument(
        fmt::format("{}: based_on is {}; the name of a machine is expected", file, object["based_on"].dump()));
  if (depth == mostBases)
    return invalidArgument(
        fmt::format("{}: based_on goes on for more than {} files; is it a circle?", file, mostBases));
  const std::string name = object["based_on"];
  const auto base = textOf(isPath(name) ? besideFile(file, name) : name);
  DITRON_RETURN_IF_ERROR(base.status().withContext(fmt::format("{}: based_on", file)));
  DITRON_ASSIGN_OR_RETURN(nlohmann::json whole, wholeObject(base->first, base->second, depth + 1));
  object.erase("based_on");
  // What has other figures must not go by the name of that which it is based on.
  if (!object.contains("name") && whole.contains("name") && whole["name"].is_string())
    object["name"] = fmt::format("{}, changed by {}", whole["name"].get<std::string>(), file);
  whole.merge_patch(object);
  return whole;
}

} // namespace

double GpuDescription::mmaFlopsPerClock(DataType type) const {
  const char *name = type == DataType::BF16                               ? "bf16"
                     : type == DataType::F16                              ? "fp16"
                     : type == DataType::F8E5 || type == DataType::F8E4NV ? "fp8"
                     : type == DataType::I8                               ? "int8"
                     : type == DataType::F32                              ? "tf32"
                                                                          : "";
  const auto found = mmaFlopsPerClockPerSm.find(name);
  return found == mmaFlopsPerClockPerSm.end() ? 0 : found->second;
}

std::vector<std::string> machineNames() {
  std::vector<std::string> names;
  for (std::string_view list = embeddedNames; !list.empty();) {
    const size_t end = std::min(list.find(' '), list.size());
    names.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  std::ranges::sort(names);
  return names;
}

Expected<MachineDescription> parseMachine(std::string_view text, const std::string &file) {
  DITRON_ASSIGN_OR_RETURN(const nlohmann::json whole, wholeObject(text, file, 0));
  MachineDescription machine;
  JsonFields fields(whole, file, "");
  machine.name = fields.text("name", {});
  if (fields.has("sources")) // free text: where the figures come from
    for (const nlohmann::json &line : whole["sources"])
      if (!line.is_string())
        fields.fail("sources", "is a list of texts");
  // A missing part is an error of this object, and so is a mistyped one: both come before errors inside the parts.
  const nlohmann::json &gpu = fields.child("gpu"), &engine = fields.child("copy_engine"), &node = fields.child("node"),
                       &libraries = fields.child("libraries");
  const bool hasNetwork = fields.has("network");
  DITRON_RETURN_IF_ERROR(fields.finish());
  DITRON_RETURN_IF_ERROR(readGpu(JsonFields(gpu, file, "gpu"), machine.gpu));
  DITRON_RETURN_IF_ERROR(readCopyEngine(JsonFields(engine, file, "copy_engine"), machine.copyEngine));
  DITRON_RETURN_IF_ERROR(readNode(JsonFields(node, file, "node"), machine.node));
  DITRON_RETURN_IF_ERROR(readLibraries(JsonFields(libraries, file, "libraries"), machine.libraries));
  if (hasNetwork)
    DITRON_RETURN_IF_ERROR(readNetwork(JsonFields(whole["network"], file, "network"), machine.network));
  return machine;
}

Expected<MachineDescription> readMachine(const std::string &nameOrFile) {
  DITRON_ASSIGN_OR_RETURN(const auto text, textOf(nameOrFile));
  return parseMachine(text.first, text.second);
}

} // namespace ditron::predict
