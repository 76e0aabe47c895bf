//===- UlyssesBench.cpp - ditron bench gemm_a2a and a2a_gemm ---------------------------------------------------------------===//
//
// Products around attention whose heads are dealt out to the ranks: overlapped with their exchange, one after the other, and the product alone. Some
// elements of every result are compared with sums in double precision.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/KernelBench.h"
#include "bench/RankBench.h"
#include "overlap/OverlapCommands.h"

#include "ditron/ops/Gemm.h"
#include "ditron/ops/plans/TensorParallelPlan.h"
#include "ditron/ops/sequence_parallel/AllToAllGemm.h"
#include "ditron/ops/sequence_parallel/GemmAllToAll.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

constexpr std::string_view shapeForm = "TOKENSxHIDDENxALL_HEADS";
constexpr double allowedError = 1e-2;

struct UlyssesBenchOptions : RankBenchOptions {
  bool isBefore = true;
  std::string tile;
  uint32_t chunks = 0;
  int64_t batch = 1;
  std::vector<std::string> shapes = {"200x64x128"};
};

class UlyssesBench : RankBench {
public:
  explicit UlyssesBench(const UlyssesBenchOptions &options) : RankBench(options), options(options) {}
  Status run(const Knobs &knobs);

private:
  Status benchShape(const std::string &shape);
  Expected<double> overlappedOrNot(ops::Schedule schedule);
  Expected<double> productAlone();
  Status check(const std::function<runtime::Pointer(uint32_t)> &result);
  /// Value of A of all ranks: row of all tokens, depth.
  double a(int64_t token, int64_t depth) const;

  const UlyssesBenchOptions &options;
  ops::TileConfig tile = ops::libraryTile;
  int64_t tokens = 0, k = 0, n = 0;
  std::vector<runtime::Buffer> given, weights, result;
  double worst = 0;
};

Status UlyssesBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkOptions());
  if (dtype != DataType::BF16 && dtype != DataType::F16)
    return unsupported(fmt::format("--dtype {}: bf16 and fp16 are accepted", toString(dtype)));
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(parseShape(shape, 3, shapeForm).status());
  if (!options.tile.empty()) {
    DITRON_ASSIGN_OR_RETURN(const ops::TensorParallelPlan plan,
                            ops::parseTensorParallelPlan("ag_gemm", "overlapped " + options.tile));
    tile = plan.tile.value_or(ops::libraryTile);
  }
  DITRON_RETURN_IF_ERROR(chooseTarget());
  DITRON_RETURN_IF_ERROR(start(knobs));
  table = fmt::format("{} of {}, {} x {}, {} sequences\n{:<24}{:>13}{:>12}{:>12}{:>11}{:>11}  {}\n",
                      options.isBefore ? "GEMM + all-to-all" : "all-to-all + GEMM", toString(dtype), options.ranks,
                      gpu(), options.batch, "tokens hidden heads", "overlapped us", "unfused us", "product us",
                      "unfused/o.", "product/o.", "error");
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(benchShape(shape).withContext(shape));
  nlohmann::ordered_json report = reportOf(options.isBefore ? "gemm_a2a" : "a2a_gemm");
  report["dtype"] = toString(dtype);
  return finish(std::move(report));
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
  return verifyError(error.value(), allowedError);
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
  if (options.isBefore) {
    DITRON_ASSIGN_OR_RETURN(ops::GemmAllToAll op, ops::GemmAllToAll::create(*world, *jit, product, k, n));
    for (uint32_t id = 0; id < options.ranks; ++id) {
      DITRON_RETURN_IF_ERROR(op.prepare(world->rank(id), rowCount));
      DITRON_RETURN_IF_ERROR(world->rank(id).stream().fill(op.result(id), 0xff, tokens * n / options.ranks));
    }
    DITRON_RETURN_IF_ERROR(world->synchronize()); // the others write there
    const Call call = [&](uint32_t id) {
      return op.enqueue(world->rank(id), world->rank(id).stream(), given[id], weights[id], rowCount);
    };
    DITRON_RETURN_IF_ERROR(callOnce(call));
    DITRON_RETURN_IF_ERROR(check([&](uint32_t id) { return op.result(id); }));
    return microsecondsOf(call);
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
  DITRON_RETURN_IF_ERROR(callOnce(call));
  DITRON_RETURN_IF_ERROR(check([&](uint32_t id) { return result[id].pointer(); }));
  return microsecondsOf(call);
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
  return microsecondsOf([&](uint32_t id) { return calls[id].enqueue(world->rank(id).stream()); });
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
  table += fmt::format("{:<24}{:>13}{:>12}{:>12}{:>11}{:>11}  {:.1e}\n", shape, shown(overlapped, 1), shown(unfused, 1),
                       shown(product, 1), shown(ratio(unfused), 3), shown(ratio(product), 3), worst);
  reportRows.push_back({{"shape", shape},
                        {"batch", options.batch},
                        {"overlapped_microseconds", orNull(overlapped)},
                        {"unfused_microseconds", orNull(unfused)},
                        {"product_microseconds", orNull(product)},
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
    addRankOptions(*command, options);
    command->add_option("--dtype", options.dtype, "bf16 or fp16")->capture_default_str();
    command->add_option("--batch", options.batch, "Sequences")->check(integerBetween(1, 65536))->capture_default_str();
    command
        ->add_option("--shape", options.shapes,
                     std::string(shapeForm) + ", of a sequence and of all ranks; may be given several times")
        ->type_name("SHAPE");
    if (!isBefore)
      command
          ->add_option("--chunks", options.chunks,
                       "Signals for what a rank gives another of a sequence; 0: the library's choice")
          ->check(integerBetween(0, 64))
          ->capture_default_str();
    command->add_option("--tile", options.tile, "Like '128x256x64 warps 8 stages 3 group 8'; else the library's choice")
        ->type_name("TILE");
    addReportOptions(*command, options);
    command->callback([&context, arguments] { context.finish(UlyssesBench(*arguments).run(context.knobs)); });
  }
}

} // namespace ditron::tool
