//===- CollectiveBench.cpp - ditron bench all_reduce, all_gather, reduce_scatter, all_to_all, broadcast ----------------------===//
//
// Sizes in turn, each by the library's plan or by plans of the command line: results are compared with what plain loops give, and on
// GPUs calls are timed, twenty of them captured in one graph.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/ByteSize.h"
#include "base/Progress.h"
#include "base/VisibleGpus.h"
#include "bench/BenchPage.h"
#include "overlap/OverlapCommands.h"
#include "overlap/OverlapTiming.h"
#include "overlap/PlantedFault.h"

#include "ditron/jit/Jit.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/collectives/Collective.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/runtime/Timeline.h"
#include "ditron/sim/Machine.h"
#include "ditron/support/OutputFile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace ditron::tool {

namespace {

struct CollectiveBenchOptions {
  ops::CollectiveKind kind = ops::CollectiveKind::AllReduce;
  std::string target = "sim:sm_80";
  uint32_t ranks = 4, ranksPerNode = 0; ///< 0: all on one node
  std::string dtype = "bf16";
  std::vector<std::string> sizes, plans;
  bool check = false, quiet = false;
  PlantedFault fault = PlantedFault::None;
  std::string jsonFile;
};

/// Of element i of what `rank` gives: integers, whose sums are exact until they are rounded to the type.
double givenValue(uint64_t call, uint32_t rank, int64_t i) {
  return static_cast<double>((static_cast<uint64_t>(i) * 2654435761u + rank * 40503u + call * 977u) >> 7 & 3);
}

class CollectiveBench : ShortCalls {
public:
  CollectiveBench(const CollectiveBenchOptions &options) : options(options), progress(options.quiet) {}
  Status run(const Knobs &knobs);

private:
  Status benchOf(uint64_t bytes, const std::optional<ops::CollectivePlan> &plan);
  Status check(int64_t elements);
  Status compareWith(uint64_t call, uint32_t r, int64_t count);
  Status enqueueOne(uint32_t id) override;
  int64_t parts(bool ofInput) const;

  const CollectiveBenchOptions &options;
  Progress progress;
  DataType dtype = DataType::BF16;
  std::unique_ptr<runtime::World> world;
  std::unique_ptr<jit::Jit> jit;
  std::vector<runtime::Buffer> in, out;
  std::optional<ops::Collective> collective;
  int64_t elements = 0;
  bool simulated = false;
  std::string table;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
};

int64_t CollectiveBench::parts(bool ofInput) const {
  using enum ops::CollectiveKind;
  const bool several = options.kind == AllToAll || options.kind == (ofInput ? ReduceScatter : AllGather);
  return several ? world->numRanks() : 1;
}

Status CollectiveBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkCanWrite("--json", options.jsonFile));
  DITRON_ASSIGN_OR_RETURN(dtype, parseDataTypeOrError(options.dtype));
  seeOnlyGpusOf(options.target, options.ranks);
  DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(options.target));
  simulated = target.simulated;
  DITRON_ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes, parseByteSizes(options.sizes));
  std::vector<std::optional<ops::CollectivePlan>> plans;
  for (const std::string &text : options.plans) {
    DITRON_ASSIGN_OR_RETURN(const ops::CollectivePlan plan, ops::parseCollectivePlan(text));
    plans.push_back(plan);
  }
  if (plans.empty())
    plans.push_back(std::nullopt);
  runtime::WorldOptions worldOptions;
  worldOptions.trace = simulated;
  worldOptions.ranksPerNode = options.ranksPerNode;
  DITRON_ASSIGN_OR_RETURN(world, runtime::World::local(options.ranks, target.text, worldOptions));
  for (const auto &plan : plans)
    if (plan)
      DITRON_RETURN_IF_ERROR(plan->verify(options.kind, world->numRanks(), world->numNodes()));
  DITRON_ASSIGN_OR_RETURN(jit, jit::Jit::create(world->target(), knobs));
  const std::string gpu = world->rank(0).attributes().name;
  const std::string nodes = world->numNodes() > 1 ? fmt::format(" on {} nodes", world->numNodes()) : "";
  table =
      fmt::format("{} of {}, {} x {}{}\n{:>10}  {:<32}{:>12}{:>12}{:>10}\n", toString(options.kind), toString(dtype),
                  options.ranks, gpu, nodes, "bytes", "form blocks warps chunk", "graph us", "alone us", "GB/s");
  for (uint64_t bytes : sizes)
    for (const auto &plan : plans)
      DITRON_RETURN_IF_ERROR(benchOf(bytes, plan));
  progress.stop();
  if (!options.quiet)
    fmt::print(textStream(options.jsonFile, ""), "{}", table);
  const nlohmann::ordered_json report = {
      {"operator", toString(options.kind)}, {"target", target.text},    {"gpu", gpu},  {"ranks", options.ranks},
      {"nodes", world->numNodes()},         {"dtype", toString(dtype)}, {"rows", rows}};
  return writeReport("--json", options.jsonFile, report.dump(1) + "\n");
}

Status CollectiveBench::benchOf(uint64_t bytes, const std::optional<ops::CollectivePlan> &plan) {
  elements = static_cast<int64_t>(bytes / sizeOf(dtype));
  DITRON_RETURN_IF_ERROR(verifyWholeElements(bytes, dtype));
  DITRON_ASSIGN_OR_RETURN(
      ops::Collective made,
      ops::Collective::create(*world, *jit,
                              {.kind = options.kind, .dtype = dtype, .maxElements = elements, .plan = plan}));
  const std::string text = made.planFor(elements).text();
  collective = std::move(made);
  progress.activity(fmt::format("{} bytes: {}", bytes, text));
  in = std::vector<runtime::Buffer>(world->numRanks());
  out = std::vector<runtime::Buffer>(world->numRanks());
  for (uint32_t id = 0; id < world->numRanks(); ++id) {
    DITRON_ASSIGN_OR_RETURN(in[id], world->rank(id).allocate(dtype, parts(true) * elements, "in"));
    DITRON_ASSIGN_OR_RETURN(out[id], world->rank(id).allocate(dtype, parts(false) * elements, "out"));
    DITRON_RETURN_IF_ERROR(collective->prepare(world->rank(id), elements));
  }
  if (options.check)
    DITRON_RETURN_IF_ERROR(check(elements).withContext(fmt::format("{} bytes by {}", bytes, text)));
  OverlapTimes times;
  double simulatedMicroseconds = 0;
  if (simulated) {
    world->machine()->clearTrace();
    for (uint32_t id = 0; id < world->numRanks(); ++id)
      DITRON_RETURN_IF_ERROR(enqueueOne(id));
    DITRON_RETURN_IF_ERROR(world->synchronize());
    DITRON_ASSIGN_OR_RETURN(const int64_t picoseconds, runtime::spanOfRecordedWork(*world));
    simulatedMicroseconds = static_cast<double>(picoseconds) * 1e-6;
  } else {
    DITRON_ASSIGN_OR_RETURN(times, timeShortCalls(*world, *this));
  }
  const double graph = times.asGraph, alone = times.inARow;
  const auto shown = [](double value) { return value > 0 ? fmt::format("{:.2f}", value) : "-"; };
  table += fmt::format("{:>10}  {:<32}{:>12}{:>12}{:>10}\n", bytes, text, shown(graph), shown(alone),
                       shown(graph > 0 ? static_cast<double>(bytes) / graph * 1e-3 : 0));
  rows.push_back({{"bytes", bytes},
                  {"plan", text},
                  {"graph_us", graph},
                  {"in_a_row_us", alone},
                  {"simulated_us", simulatedMicroseconds}});
  return Status::ok();
}

Status CollectiveBench::enqueueOne(uint32_t id) {
  return collective->enqueue(world->rank(id), world->rank(id).stream(), in[id], out[id], elements);
}

/// Of what `call` has left on rank `r`.
Status CollectiveBench::compareWith(uint64_t call, uint32_t r, int64_t count) {
  using enum ops::CollectiveKind;
  const uint32_t ranks = world->numRanks();
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> result, out[r].downloadFloats());
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t place = static_cast<int64_t>(i) % count;
    const uint32_t source = static_cast<uint32_t>(static_cast<int64_t>(i) / count);
    double wanted = 0;
    if (options.kind == AllReduce || options.kind == ReduceScatter)
      for (uint32_t each = 0; each < ranks; ++each)
        wanted += givenValue(call, each, options.kind == AllReduce ? place : r * count + place);
    else
      wanted = givenValue(call, options.kind == Broadcast ? 0 : source,
                          options.kind == AllToAll ? r * count + place : place);
    wanted = ops::roundedTo(dtype, wanted);
    if (result[i] != static_cast<float>(wanted))
      return internalError(fmt::format("call {}: element {} is {}, expected {}", call, i, result[i], wanted));
  }
  return Status::ok();
}

Status CollectiveBench::check(int64_t count) {
  runtime::Buffer planted;
  for (uint64_t call = 0; call < 2; ++call) {
    DITRON_RETURN_IF_ERROR(plantBefore(options.fault, *world, planted));
    DITRON_RETURN_IF_ERROR(world->runRanks([&](runtime::Rank &me) -> Status {
      std::vector<float> values(in[me.id()].count());
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(givenValue(call, me.id(), static_cast<int64_t>(i)));
      DITRON_RETURN_IF_ERROR(in[me.id()].uploadFloats(values));
      DITRON_RETURN_IF_ERROR(me.stream().fill(out[me.id()], 0x5a, out[me.id()].count()));
      DITRON_RETURN_IF_ERROR(collective->enqueue(me, me.stream(), in[me.id()], out[me.id()], count));
      return me.stream().synchronize();
    }));
    DITRON_RETURN_IF_ERROR(plantBehind(options.fault, out[0]));
    DITRON_RETURN_IF_ERROR(world->runRanks([&](runtime::Rank &me) { return compareWith(call, me.id(), count); }));
  }
  return Status::ok();
}

} // namespace

void addCollectiveBenchCommands(CLI::App &bench, CommandContext &context) {
  for (ops::CollectiveKind kind : ops::allCollectiveKinds()) {
    CLI::App *command =
        bench.add_subcommand(std::string(toString(kind)), fmt::format("The collective {}, by sizes", toString(kind)));
    auto arguments = std::make_shared<CollectiveBenchOptions>();
    CollectiveBenchOptions &options = *arguments;
    options.kind = kind;
    options.sizes = {"16K", "64K", "256K", "1M"};
    std::vector<std::string_view> forms;
    for (ops::CollectiveForm form : ops::formsOf(kind))
      forms.push_back(toString(form));
    command->add_option("--target", options.target, "What to run on: sim, cuda (this machine's GPUs), or a full name")
        ->capture_default_str();
    command->add_option("--ranks", options.ranks, "Number of ranks")
        ->check(integerBetween(1, 64))
        ->capture_default_str();
    command
        ->add_option("--ranks-per-node", options.ranksPerNode,
                     "Simulated nodes of so many ranks; without it all are on one")
        ->check(integerBetween(1, 64));
    command->add_option("--dtype", options.dtype, "Of the elements")->capture_default_str();
    command
        ->add_option("--bytes", options.sizes,
                     kind == ops::CollectiveKind::AllReduce ? "Sizes, like 64K,1M"
                                                            : "Sizes of what one rank gives to another, like 64K,1M")
        ->delimiter(',')
        ->capture_default_str();
    command
        ->add_option(
            "--plan", options.plans,
            fmt::format(
                "How to do it: FORM BLOCKS WARPS [BYTES], like 'chunks 64 16 16384'; several are compared. Forms: {}",
                fmt::join(forms, ", ")))
        ->type_name("PLAN");
    addPlantOption(command, options.fault);
    command->add_flag("--check", options.check, "Compare with plain loops; a wrong result is an error");
    command->add_option("--json", options.jsonFile, "Write the result to this file; - is standard output")
        ->type_name("FILE");
    command->add_flag("--quiet", options.quiet, "Print errors only");
    command->callback([&context, arguments] { context.finish(CollectiveBench(*arguments).run(context.knobs)); });
  }
}

} // namespace ditron::tool
