//===- UlyssesBench.cpp - ditron bench gemm_a2a and a2a_gemm ---------------------------------------------------------------===//
//
// Products around attention whose heads are dealt out to the ranks: overlapped with their exchange, one after the other, and the product alone. Some
// elements of every result are compared with sums in double precision.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/NormalData.h"
#include "base/Progress.h"
#include "base/VisibleGpus.h"
#include "bench/BenchPage.h"
#include "bench/KernelBench.h"
#include "overlap/OverlapCommands.h"
#include "overlap/OverlapTiming.h"

#include "ditron/jit/Jit.h"
#include "ditron/ops/Gemm.h"
#include "ditron/ops/plans/TensorParallelPlan.h"
#include "ditron/ops/sequence_parallel/AllToAllGemm.h"
#include "ditron/ops/sequence_parallel/GemmAllToAll.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/support/OutputFile.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

constexpr std::string_view shapeForm = "TOKENSxHIDDENxALL_HEADS";
constexpr double allowedError = 1e-2;

struct UlyssesBenchOptions {
  bool isBefore = true;
  std::string target = "sim:sm_80", dtype = "bf16", tile, jsonFile;
  uint32_t ranks = 4, chunks = 1;
  int64_t batch = 1;
  std::vector<std::string> shapes = {"200x64x128"};
  uint64_t seed = 0;
  bool quiet = false;
};

class UlyssesCalls final : public ShortCalls {
public:
  std::function<Status(uint32_t)> one;
  Status enqueueOne(uint32_t id) override { return one(id); }
};

class UlyssesBench {
public:
  explicit UlyssesBench(const UlyssesBenchOptions &options) : options(options), progress(options.quiet) {}
  Status run(const Knobs &knobs);

private:
  using Call = std::function<Status(uint32_t)>;
  Status benchShape(const std::string &shape);
  Expected<double> timed(const Call &call);
  Expected<double> overlappedOrNot(ops::Schedule schedule);
  Expected<double> productAlone();
  Status check(const std::function<runtime::Pointer(uint32_t)> &result);
  /// Value of A of all ranks: row of all tokens, depth.
  double a(int64_t token, int64_t depth) const;

  const UlyssesBenchOptions &options;
  Progress progress;
  DataType dtype = DataType::BF16;
  ops::TileConfig tile = ops::libraryTile;
  bool simulated = false;
  std::unique_ptr<runtime::World> world;
  std::unique_ptr<jit::Jit> jit;
  std::optional<NormalData> data;
  int64_t tokens = 0, k = 0, n = 0;
  std::vector<runtime::Buffer> given, weights, result;
  double worst = 0;
  std::string table;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
};

Status UlyssesBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkCanWrite("--json", options.jsonFile));
  DITRON_ASSIGN_OR_RETURN(dtype, parseDataTypeOrError(options.dtype));
  if (dtype != DataType::BF16 && dtype != DataType::F16)
    return unsupported(fmt::format("--dtype {}: bf16 and fp16 are accepted", toString(dtype)));
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(parseShape(shape, 3, shapeForm).status());
  if (!options.tile.empty()) {
    DITRON_ASSIGN_OR_RETURN(const ops::TensorParallelPlan plan,
                            ops::parseTensorParallelPlan("ag_gemm", "overlapped " + options.tile));
    tile = plan.tile.value_or(ops::libraryTile);
  }
  seeOnlyGpusOf(options.target, options.ranks);
  DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(options.target));
  simulated = target.simulated;
  DITRON_ASSIGN_OR_RETURN(world, runtime::World::local(options.ranks, target.text, {}));
  DITRON_ASSIGN_OR_RETURN(jit, jit::Jit::create(world->target(), knobs));
  data.emplace(dtype, options.seed);
  const std::string gpu = world->rank(0).attributes().name;
  table = fmt::format("{} of {}, {} x {}, {} sequences\n{:<24}{:>13}{:>12}{:>12}{:>11}{:>11}  {}\n",
                      options.isBefore ? "GEMM + all-to-all" : "all-to-all + GEMM", toString(dtype), options.ranks, gpu,
                      options.batch, "tokens hidden heads", "overlapped us", "unfused us", "product us", "unfused/o.",
                      "product/o.", "error");
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(benchShape(shape).withContext(shape));
  progress.stop();
  if (!options.quiet)
    fmt::print(textStream(options.jsonFile, ""), "{}", table);
  const nlohmann::ordered_json report = {{"operator", options.isBefore ? "gemm_a2a" : "a2a_gemm"},
                                         {"target", target.text},
                                         {"gpu", gpu},
                                         {"ranks", options.ranks},
                                         {"dtype", toString(dtype)},
                                         {"rows", rows}};
  return writeReport("--json", options.jsonFile, report.dump(1) + "\n");
}

Expected<double> UlyssesBench::timed(const Call &call) {
  if (simulated)
    return 0.0;
  UlyssesCalls calls;
  calls.one = call;
  DITRON_ASSIGN_OR_RETURN(const OverlapTimes times, timeShortCalls(*world, calls));
  return times.best();
}

double UlyssesBench::a(int64_t token, int64_t depth) const {
  const int64_t inSequence = tokens / options.batch, sequence = token / inSequence, at = token % inSequence;
  const ops::RowShards shards(inSequence, options.ranks);
  if (options.isBefore) {
    const auto rank = static_cast<uint32_t>(at / shards.rowsPerRank);
    const int64_t row = sequence * shards.rowsOf(rank) + at - shards.firstRowOf(rank);
    return data->at(1 + rank, row * k + depth);
  }
  const int64_t part = k / options.ranks;
  return data->at(1 + depth / part, token * part + depth % part);
}

Status UlyssesBench::check(const std::function<runtime::Pointer(uint32_t)> &resultOf) {
  const int64_t inSequence = tokens / options.batch;
  const ops::RowShards shards(inSequence, options.ranks);
  RelativeError error(dtype);
  for (uint32_t id = 0; id < options.ranks; ++id) {
    const int64_t own = options.isBefore ? tokens : ops::ownTokens(shards, id, options.batch);
    const int64_t columns = options.isBefore ? n / options.ranks : n;
    if (own == 0)
      continue;
    DITRON_ASSIGN_OR_RETURN(runtime::Buffer copy, world->rank(id).allocate(dtype, own * columns, "copy"));
    DITRON_RETURN_IF_ERROR(world->rank(id).stream().copy(copy, resultOf(id), own * columns));
    DITRON_RETURN_IF_ERROR(world->synchronize());
    DITRON_ASSIGN_OR_RETURN(const std::vector<float> values, copy.downloadFloats());
    constexpr int64_t samples = 97;
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t index = i * (own * columns - 1) / (samples - 1), row = index / columns;
      const int64_t column = index % columns + (options.isBefore ? id * columns : 0);
      const int64_t perRank = shards.rowsOf(id);
      const int64_t token = options.isBefore ? row : row / perRank * inSequence + shards.firstRowOf(id) + row % perRank;
      double sum = 0;
      for (int64_t depth = 0; depth < k; ++depth)
        sum += a(token, depth) * data->at(100, column * k + depth);
      error.add(values[index], sum);
    }
  }
  worst = std::max(worst, error.value());
  if (!(error.value() <= allowedError))
    return internalError(fmt::format("wrong result, error {:.3g} of the root mean square", error.value()));
  return Status::ok();
}

Expected<double> UlyssesBench::overlappedOrNot(ops::Schedule schedule) {
  ops::SequenceProductOptions product;
  product.dtype = dtype;
  product.batch = options.batch;
  product.maxRows = tokens / options.batch;
  product.schedule = schedule;
  product.weightOrder = ops::MatrixOrder::Transposed;
  product.tile = tile;
  const int64_t rowCount = product.maxRows;
  const auto once = [&](const Call &call) -> Status {
    for (uint32_t id = 0; id < options.ranks; ++id)
      DITRON_RETURN_IF_ERROR(call(id));
    return world->synchronize();
  };
  if (options.isBefore) {
    DITRON_ASSIGN_OR_RETURN(ops::GemmAllToAll op, ops::GemmAllToAll::create(*world, *jit, product, k, n));
    for (uint32_t id = 0; id < options.ranks; ++id)
      DITRON_RETURN_IF_ERROR(op.prepare(world->rank(id), rowCount));
    const Call call = [&](uint32_t id) {
      return op.enqueue(world->rank(id), world->rank(id).stream(), given[id], weights[id], rowCount);
    };
    DITRON_RETURN_IF_ERROR(once(call));
    DITRON_RETURN_IF_ERROR(check([&](uint32_t id) { return op.result(id); }));
    return timed(call);
  }
  DITRON_ASSIGN_OR_RETURN(ops::AllToAllGemm op, ops::AllToAllGemm::create(*world, *jit, product, k, options.chunks));
  for (uint32_t id = 0; id < options.ranks; ++id) {
    DITRON_RETURN_IF_ERROR(op.prepare(world->rank(id), rowCount, n));
    DITRON_RETURN_IF_ERROR(world->rank(id).stream().copy(op.operand(id), given[id], tokens * k / options.ranks));
    DITRON_RETURN_IF_ERROR(world->rank(id).stream().fill(result[id], 0xff, result[id].count()));
  }
  const Call call = [&](uint32_t id) {
    return op.enqueue(world->rank(id), world->rank(id).stream(), weights[id], result[id], rowCount, n);
  };
  DITRON_RETURN_IF_ERROR(once(call));
  DITRON_RETURN_IF_ERROR(check([&](uint32_t id) { return result[id].pointer(); }));
  return timed(call);
}

Expected<double> UlyssesBench::productAlone() {
  if (simulated)
    return 0.0;
  std::vector<ops::PreparedCall> calls;
  for (uint32_t id = 0; id < options.ranks; ++id) {
    const ops::GemmProblem problem = {.m = tokens / options.ranks, .n = n, .k = k, .dtype = dtype};
    DITRON_ASSIGN_OR_RETURN(ops::PreparedCall call,
                            ops::prepareGemm(*jit, world->rank(id), problem, given[id], weights[id], result[id]));
    calls.push_back(std::move(call));
  }
  return timed([&](uint32_t id) { return calls[id].enqueue(world->rank(id).stream()); });
}

Status UlyssesBench::benchShape(const std::string &shape) {
  progress.activity(shape);
  DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(shape, 3, shapeForm));
  tokens = sizes[0] * options.batch;
  k = options.isBefore ? sizes[1] : sizes[2];
  n = options.isBefore ? sizes[2] : sizes[1];
  worst = 0;
  for (std::vector<runtime::Buffer> *buffers : {&given, &weights, &result})
    *buffers = std::vector<runtime::Buffer>(options.ranks);
  const int64_t most = ops::RowShards(sizes[0], options.ranks).rowsPerRank * options.batch;
  for (uint32_t id = 0; id < options.ranks; ++id) {
    runtime::Rank &rank = world->rank(id);
    DITRON_ASSIGN_OR_RETURN(given[id],
                            rank.allocate(dtype, options.isBefore ? most * k : tokens * k / options.ranks, "a"));
    DITRON_ASSIGN_OR_RETURN(weights[id], rank.allocate(dtype, k * n, "b"));
    DITRON_ASSIGN_OR_RETURN(result[id], rank.allocate(dtype, most * n, "result"));
    DITRON_RETURN_IF_ERROR(data->fill(given[id], 1 + id));
    DITRON_RETURN_IF_ERROR(data->fill(weights[id], 100));
  }
  DITRON_ASSIGN_OR_RETURN(const double overlapped, overlappedOrNot(ops::Schedule::Overlapped));
  DITRON_ASSIGN_OR_RETURN(const double unfused, overlappedOrNot(ops::Schedule::Unfused));
  // Of a rank's tokens, if the ranks divide them.
  double product = 0;
  if (tokens % options.ranks == 0) {
    DITRON_ASSIGN_OR_RETURN(product, productAlone());
  }
  const auto ratio = [&](double other) { return overlapped > 0 ? other / overlapped : 0.0; };
  table += fmt::format("{:<24}{:>13.1f}{:>12.1f}{:>12.1f}{:>11.3f}{:>11.3f}  {:.1e}\n", shape, overlapped, unfused,
                       product, ratio(unfused), ratio(product), worst);
  rows.push_back({{"shape", shape},
                  {"batch", options.batch},
                  {"overlapped_microseconds", overlapped},
                  {"unfused_microseconds", unfused},
                  {"product_microseconds", product},
                  {"error", worst}});
  return Status::ok();
}

} // namespace

void addUlyssesBenchCommands(CLI::App &bench, CommandContext &context) {
  for (bool isBefore : {true, false}) {
    CLI::App *command =
        bench.add_subcommand(isBefore ? "gemm_a2a" : "a2a_gemm",
                             isBefore ? "Product whose columns are dealt out to the ranks, before attention by heads"
                                      : "Product of what attention by heads has left on the ranks");
    auto arguments = std::make_shared<UlyssesBenchOptions>();
    UlyssesBenchOptions &options = *arguments;
    options.isBefore = isBefore;
    command->add_option("--target", options.target, "What to run on: sim, cuda (this machine's GPUs), or a full name")
        ->capture_default_str();
    command->add_option("--ranks", options.ranks, "Number of ranks")
        ->check(integerBetween(1, 64))
        ->capture_default_str();
    command->add_option("--dtype", options.dtype, "bf16 or fp16")->capture_default_str();
    command->add_option("--batch", options.batch, "Sequences")->check(integerBetween(1, 65536))->capture_default_str();
    command
        ->add_option("--shape", options.shapes,
                     std::string(shapeForm) + ", of a sequence and of all ranks; may be given several times")
        ->type_name("SHAPE");
    if (!isBefore)
      command->add_option("--chunks", options.chunks, "Signals for what a rank gives another of a sequence")
          ->check(integerBetween(1, 64))
          ->capture_default_str();
    command->add_option("--tile", options.tile, "Like '128x256x64 warps 8 stages 3 group 8'; else the library's choice")
        ->type_name("TILE");
    command->add_option("--seed", options.seed, "Chooses the data")->capture_default_str();
    command->add_option("--json", options.jsonFile, "Write the result to this file; - is standard output")
        ->type_name("FILE");
    command->add_flag("--quiet", options.quiet, "Print errors only");
    command->callback([&context, arguments] { context.finish(UlyssesBench(*arguments).run(context.knobs)); });
  }
}

} // namespace ditron::tool
