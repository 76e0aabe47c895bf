//===- MachineDescription_test.cpp - Files of machines are read strictly --------------------------------------------===//
#include "ditron/predict/JsonFields.h"
#include "ditron/predict/MachineDescription.h"

#include <fstream>
#include <gmock/gmock.h>

namespace ditron::predict {
namespace {

using testing::HasSubstr;

nlohmann::json complete() {
  std::ifstream file(DITRON_SOURCE_DIR "/machines/h200x8.json");
  return nlohmann::json::parse(file);
}

/// The error that one changed value gives; empty for none.
std::string errorWith(const std::string &pointer, const nlohmann::json &value) {
  nlohmann::json description = complete();
  description[nlohmann::json::json_pointer(pointer)] = value;
  return parseMachine(description.dump(), "x.json").status().message();
}

std::string errorWithout(const std::string &pointer) {
  nlohmann::json description = complete();
  const nlohmann::json::json_pointer path(pointer);
  description[path.parent_pointer()].erase(path.back());
  return parseMachine(description.dump(), "x.json").status().message();
}

TEST(MachineDescription, AllNamedMachinesAreReadAndComplete) {
  EXPECT_THAT(machineNames(),
              testing::IsSupersetOf({"h200x8", "h100x8", "h800x8", "h20x8", "l20x8", "mi308xx8", "h20-cluster"}));
  for (const std::string &name : machineNames()) {
    const Expected<MachineDescription> machine = readMachine(name);
    ASSERT_TRUE(machine.isOk()) << name << ": " << machine.status().message();
    EXPECT_GT(machine->gpu.mmaFlopsPerClock(DataType::BF16), 0) << name;
    EXPECT_EQ(machine->network.mostNodes > 1, name.ends_with("-cluster")) << name;
  }
}

TEST(MachineDescription, ValuesArrive) {
  const MachineDescription machine = *readMachine("h800-cluster");
  EXPECT_EQ(machine.gpu.smCount, 132u);    // from h200x8, two files away
  EXPECT_EQ(machine.gpu.hbmGbPerS, 3350);  // from h100x8
  EXPECT_EQ(machine.node.linkGbPerS, 200); // from h800x8
  EXPECT_EQ(machine.network.nicsPerNode, 8u);
  EXPECT_EQ(machine.mostGpus(), 8 * machine.network.mostNodes);
  EXPECT_EQ(machine.gpu.mmaFlopsPerClock(DataType::F64), 0);
}

TEST(MachineDescription, EveryKeyIsNeeded) {
  size_t count = 0;
  const nlohmann::json flat = complete().flatten();
  for (const auto &[pointer, value] : flat.items()) {
    if (pointer.starts_with("/sources") || pointer.starts_with("/gpu/mma_flops_per_clock_per_sm"))
      continue;
    EXPECT_THAT(errorWithout(pointer), HasSubstr("is missing")) << pointer;
    ++count;
  }
  EXPECT_GT(count, 30u);
}

TEST(MachineDescription, EveryNumberHasLimitsAndAKind) {
  const nlohmann::json flat = complete().flatten();
  for (const auto &[pointer, value] : flat.items()) {
    if (!value.is_number())
      continue;
    for (const nlohmann::json &wrong :
         {nlohmann::json("3"), nlohmann::json(-1), nlohmann::json(1e300), nlohmann::json(nullptr)})
      EXPECT_THAT(errorWith(pointer, wrong), HasSubstr("is accepted")) << pointer << " " << wrong;
  }
}

TEST(MachineDescription, UnknownKeysNameTheNearest) {
  EXPECT_EQ(errorWith("/gpu/sm_cuont", 4),
            "x.json: gpu.sm_cuont is no key here; did you mean 'sm_count'?; accepted are architecture, "
            "sm_count, boost_clock_mhz, sustained_clock_mhz, mma_flops_per_clock_per_sm, mma_efficiency, "
            "gather_efficiency, attention_efficiency, tile_overhead_us, l2_mib, l2_bytes_per_clock_per_sm, "
            "hbm_gb_per_s, hbm_efficiency, kernel_launch_us, slowdown_under_copies");
  EXPECT_THAT(errorWith("/nodes", nlohmann::json::object()),
              HasSubstr("x.json: nodes is no key here; did you mean 'node'?"));
  EXPECT_THAT(errorWith("/gpu/mma_flops_per_clock_per_sm/bf61", 1), HasSubstr("did you mean 'bf16'?"));
  EXPECT_THAT(errorWith("/libraries/simple_ms", 1),
              HasSubstr("libraries.simple_ms is no key here; did you mean 'simple_us'?"));
  // Instead of the right one, not beside it.
  nlohmann::json description = complete();
  description["gpu"].erase("sm_count");
  description["gpu"]["sm_cuont"] = 4;
  EXPECT_EQ(parseMachine(description.dump(), "x.json").status().message(),
            "x.json: gpu.sm_cuont is no key here; did you mean 'sm_count'?");
}

TEST(MachineDescription, ValuesThatContradictEachOther) {
  EXPECT_THAT(errorWith("/gpu/sustained_clock_mhz", 3000), HasSubstr("at most boost_clock_mhz, 1980"));
  EXPECT_THAT(errorWith("/node/numa_domains", 2), HasSubstr("numa_gb_per_s is missing; numa_domains is more than 1"));
  nlohmann::json description = complete();
  description["node"]["numa_gb_per_s"] = 20;
  description["node"]["numa_domains"] = 3;
  EXPECT_THAT(parseMachine(description.dump(), "x.json").status().message(), HasSubstr("a divisor of gpus, 8"));
  EXPECT_THAT(errorWith("/node/fabric", "swich"),
              HasSubstr("is 'swich'; did you mean 'switch'?; accepted are switch, mesh, pcie"));
  EXPECT_THAT(errorWith("/gpu", 3), HasSubstr("gpu is 3; an object {...} is expected"));
  EXPECT_THAT(errorWith("/sources", nlohmann::json::array({1})), HasSubstr("sources is a list of texts"));
}

TEST(MachineDescription, TextThatIsNoJson) {
  EXPECT_THAT(parseMachine("{\n  \"name\": \"x\",,\n}", "x.json").status().message(),
              HasSubstr("x.json:2:15: no valid JSON"));
  EXPECT_THAT(parseMachine("", "x.json").status().message(), HasSubstr("x.json:1:1: no valid JSON"));
  EXPECT_THAT(parseMachine("[]", "x.json").status().message(),
              HasSubstr("the whole is []; an object {...} is expected"));
  EXPECT_THAT(parseMachine(R"({"name": "x", "name": "y"})", "x.json").status().message(),
              HasSubstr("'name' stands twice"));
}

TEST(MachineDescription, Bases) {
  EXPECT_THAT(parseMachine(R"({"based_on": "h20x9"})", "x.json").status().message(),
              HasSubstr("x.json: based_on: there is no machine 'h20x9'; did you mean 'h20x8'?"));
  EXPECT_THAT(parseMachine(R"({"based_on": 3})", "x.json").status().message(),
              HasSubstr("based_on is 3; the name of a machine"));
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "/circle.json") << R"({"based_on": "circle.json"})";
  EXPECT_THAT(readMachine(folder + "/circle.json").status().message(), HasSubstr("is it a circle?"));
  std::ofstream(folder + "/half.json") << R"({"name": "half", "based_on": "h200x8", "gpu": {"sm_count": 66}})";
  std::ofstream(folder + "/quarter.json") << R"({"based_on": "half.json", "node": {"gpus": 2}})";
  const MachineDescription machine = *readMachine(folder + "/quarter.json");
  EXPECT_EQ(machine.name, "half, changed by " + folder + "/quarter.json");
  EXPECT_EQ(machine.gpu.smCount, 66u);
  EXPECT_EQ(machine.node.gpus, 2u);
  EXPECT_THAT(readMachine(folder + "/none.json").status().message(), HasSubstr("none.json"));
}

} // namespace
} // namespace ditron::predict
