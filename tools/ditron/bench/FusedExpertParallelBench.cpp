//===- FusedExpertParallelBench.cpp - ditron bench ep_fused --------------------------------------------------------------===//
//
// A layer's experts over the ranks, tokens to them and back included: dispatch and the first product (SwiGLU) in one launch, the second product and combine in
// another, by one or several plans; with --unfused beside the same by ExpertParallel and grouped products, one after the other. Elements of both results are compared
// with sums in double precision. The time of the second launch is that of both less that of the first with nothing coming back.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/KernelBench.h"
#include "bench/RankBench.h"
#include "overlap/OverlapCommands.h"

#include "ditron/ops/expert_parallel/ExpertParallel.h"
#include "ditron/ops/expert_parallel/FusedExpertParallel.h"
#include "ditron/ops/moe/Routing.h"

#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <random>

namespace ditron::tool {

namespace {

struct FusedBenchOptions : LongCallOptions {
  std::string shape = "256x128x8x2";
  std::vector<int64_t> tokens = {64};
  int64_t maxRows = 0;
  std::vector<std::string> plans;
  bool oneExpert = false;
};

/// As in MoeBench.cpp.
constexpr double allowedError = 2e-2;
constexpr uint64_t samples = 256;
constexpr uint64_t tokensSalt = 1, upSalt = 100, downSalt = 200;

class FusedExpertParallelBench : RankBench, TimedCalls {
public:
  explicit FusedExpertParallelBench(const FusedBenchOptions &options) : RankBench(options), options(options) {}
  Status run(const Knobs &knobs);

private:
  struct Operands {
    std::vector<int32_t> chosen; ///< [tokens, topK]
    std::vector<float> slotWeights;
    runtime::Buffer x, ids, weights, up, down, inner, out;
    runtime::Buffer rows, offsets, handle, tiles;       ///< Unfused.
    ops::PreparedCall tileRows, upProduct, downProduct; ///< Likewise.
  };
  struct Origin {
    uint32_t rank;
    int64_t slot;
  };
  enum class Timed { Both, First, Second };

  Status makeOperands(int64_t tokens);
  Status makeUnfused(int64_t tokens);
  Status benchOf(int64_t tokens, const std::string &planText);
  Status first(uint32_t id);
  Status second(uint32_t id);
  Status enqueue(uint32_t id) override;
  Expected<double> time(Timed what);
  Expected<double> errorOf(int64_t tokens);
  std::vector<Origin> rowsOf(uint32_t id) const;
  int64_t local() const { return experts / options.ranks; }
  double product(uint64_t rowSalt, int64_t row, int64_t k, uint64_t weightsSalt, int64_t weightsRow) const;

  const FusedBenchOptions &options;
  int64_t hidden = 0, inner = 0;
  uint32_t experts = 0, topK = 0;
  std::vector<Operands> operands;
  std::optional<ops::FusedExpertParallel> fused;
  std::optional<ops::ExpertParallel> exchange;
  int64_t tokensOfCall = 0;
  Timed timed = Timed::Both;
  double unfusedTimes[3] = {};
};

Status FusedExpertParallelBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkOptions());
  DITRON_RETURN_IF_ERROR(ops::verifyOperandType("--dtype", dtype));
  DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(options.shape, 4, "HIDDENxINNERxEXPERTSxTOPK"));
  if (sizes[2] > ops::mostExperts || sizes[2] % options.ranks != 0 || sizes[3] > sizes[2] || sizes[3] > ops::mostTopK)
    return invalidArgument(fmt::format(
        "--shape '{}': multiples of the {} ranks up to {} experts, and topK up to as many and to {}, are accepted",
        options.shape, options.ranks, ops::mostExperts, ops::mostTopK));
  hidden = sizes[0], inner = sizes[1];
  experts = static_cast<uint32_t>(sizes[2]), topK = static_cast<uint32_t>(sizes[3]);
  DITRON_RETURN_IF_ERROR(chooseTarget());
  runtime::WorldOptions worldOptions;
  worldOptions.trace = simulated;
  worldOptions.seed = options.seed;
  worldOptions.sms = options.sms;
  DITRON_RETURN_IF_ERROR(start(knobs, worldOptions));
  table = fmt::format(
      "ep_fused of {}, hidden {}, inner {}, top {} of {} experts, {} x {}\n{:>8}{:>11}{:>11}{:>11}{:>9}{:>10}  plan\n",
      toString(dtype), hidden, inner, topK, experts, options.ranks, gpu(), "tokens", "both us", "first us", "second us",
      "speedup", "error");
  for (const int64_t tokens : options.tokens) {
    std::fill(std::begin(unfusedTimes), std::end(unfusedTimes), 0);
    std::vector<std::string> plans = options.plans;
    if (plans.empty())
      plans.emplace_back();
    if (options.unfused)
      plans.insert(plans.begin(), "unfused");
    DITRON_RETURN_IF_ERROR(makeOperands(tokens));
    for (const std::string &plan : plans)
      DITRON_RETURN_IF_ERROR(
          benchOf(tokens, plan).withContext(fmt::format("ep_fused of {} tokens, plan '{}'", tokens, plan)));
  }
  nlohmann::ordered_json report = reportOf("ep_fused");
  report["dtype"] = toString(dtype);
  report["hidden"] = hidden;
  report["inner"] = inner;
  report["experts"] = experts;
  report["top_k"] = topK;
  return finish(std::move(report));
}

Status FusedExpertParallelBench::makeOperands(int64_t tokens) {
  tokensOfCall = tokens;
  fused.reset();
  exchange.reset();
  operands = std::vector<Operands>(options.ranks);
  const int64_t slots = tokens * topK;
  const int64_t most = std::min<int64_t>(slots * options.ranks, experts * tokens);
  const int64_t maxRows = options.maxRows == 0 ? most : std::min(options.maxRows, most);
  std::mt19937 random(static_cast<uint32_t>(options.seed + 1));
  std::vector<int32_t> all(experts);
  std::iota(all.begin(), all.end(), 0);
  for (uint32_t id = 0; id < options.ranks; ++id) {
    Operands &o = operands[id];
    runtime::Rank &rank = world->rank(id);
    for (int64_t token = 0; token < tokens; ++token)
      for (uint32_t j = 0; j < topK; ++j) {
        std::swap(all[j], options.oneExpert && j == 0 ? *std::ranges::find(all, 0) : all[j + random() % (experts - j)]);
        o.chosen.push_back(all[j]);
        o.slotWeights.push_back(static_cast<float>(1 + random() % 7) / 8);
      }
    DITRON_ASSIGN_OR_RETURN(o.x, rank.allocate(dtype, tokens * hidden, "x"));
    DITRON_ASSIGN_OR_RETURN(o.out, rank.allocate(dtype, tokens * hidden, "out"));
    DITRON_ASSIGN_OR_RETURN(o.ids, rank.allocate(DataType::I32, slots, "ids"));
    DITRON_ASSIGN_OR_RETURN(o.weights, rank.allocate(DataType::F32, slots, "weights"));
    DITRON_ASSIGN_OR_RETURN(o.up, rank.allocate(dtype, local() * 2 * inner * hidden, "up"));
    DITRON_ASSIGN_OR_RETURN(o.down, rank.allocate(dtype, local() * hidden * inner, "down"));
    DITRON_ASSIGN_OR_RETURN(o.inner, rank.allocate(dtype, maxRows * inner, "inner"));
    DITRON_RETURN_IF_ERROR(data->fill(o.x, tokensSalt + id));
    DITRON_RETURN_IF_ERROR(data->fill(o.up, upSalt + id));
    DITRON_RETURN_IF_ERROR(data->fill(o.down, downSalt + id));
    DITRON_RETURN_IF_ERROR(o.ids.upload(o.chosen.data(), o.ids.bytes()));
    DITRON_RETURN_IF_ERROR(o.weights.upload(o.slotWeights.data(), o.weights.bytes()));
  }
  for (uint32_t id = 0; id < options.ranks; ++id)
    if (const auto rows = static_cast<int64_t>(rowsOf(id).size()); rows > maxRows)
      return invalidArgument(fmt::format("--max-rows {}: of {} tokens {} rows come to rank {}, and those without room "
                                         "would be left out; {} and more are accepted, or 0",
                                         options.maxRows, tokens, rows, id, rows));
  return Status::ok();
}

/// As ExpertParallelMoe does it.
Status FusedExpertParallelBench::makeUnfused(int64_t tokens) {
  DITRON_ASSIGN_OR_RETURN(exchange, ops::ExpertParallel::create(*world, *jit,
                                                                {.hidden = hidden,
                                                                 .experts = experts,
                                                                 .topK = topK,
                                                                 .maxTokens = tokens,
                                                                 .dtype = dtype,
                                                                 .maxRows = options.maxRows}));
  ops::GroupedGemmProblem up;
  up.maxRows = exchange->maxRows();
  up.experts = static_cast<uint32_t>(local());
  up.n = 2 * inner;
  up.k = hidden;
  up.dtype = up.resultType = dtype;
  up.activation = ops::Activation::SwiGlu;
  ops::GroupedGemmProblem down = up;
  down.n = hidden;
  down.k = inner;
  down.activation = ops::Activation::None;
  const auto planOf = [&](ops::GroupedGemmProblem even) {
    even.maxRows = std::min(even.maxRows, tokens * topK);
    return ops::chooseGroupedGemmPlan(even, world->target());
  };
  const ops::GemmPlan upPlan = planOf(up);
  ops::GemmPlan downPlan = planOf(down);
  downPlan.tile.blockM = upPlan.tile.blockM;
  for (uint32_t id = 0; id < options.ranks; ++id) {
    Operands &o = operands[id];
    runtime::Rank &rank = world->rank(id);
    DITRON_ASSIGN_OR_RETURN(o.rows, rank.allocate(dtype, up.maxRows * hidden, "rows"));
    DITRON_ASSIGN_OR_RETURN(o.offsets, rank.allocate(DataType::I32, local() + 1, "offsets"));
    DITRON_ASSIGN_OR_RETURN(o.handle, rank.allocate(DataType::I32, exchange->handleElements(), "handle"));
    DITRON_ASSIGN_OR_RETURN(
        o.tiles,
        rank.allocate(DataType::I32, 1 + 2 * ops::mostTilesOf(up.maxRows, up.experts, upPlan.tile.blockM), "tiles"));
    DITRON_ASSIGN_OR_RETURN(o.tileRows, ops::prepareTiles(*jit, rank, up.experts, up.maxRows, upPlan.tile.blockM,
                                                          o.offsets.pointer(), o.tiles.pointer()));
    ops::GroupedGemmOperands given;
    given.offsets = o.offsets.pointer();
    given.tiles = o.tiles.pointer();
    given.a = o.rows.pointer(), given.b = o.up.pointer(), given.c = o.inner.pointer();
    DITRON_ASSIGN_OR_RETURN(o.upProduct, ops::prepareGroupedGemm(*jit, rank, up, given, upPlan));
    given.a = o.inner.pointer(), given.b = o.down.pointer(), given.c = o.rows.pointer();
    DITRON_ASSIGN_OR_RETURN(o.downProduct, ops::prepareGroupedGemm(*jit, rank, down, given, downPlan));
    DITRON_RETURN_IF_ERROR(exchange->prepare(rank));
  }
  return Status::ok();
}

Status FusedExpertParallelBench::first(uint32_t id) {
  const Operands &o = operands[id];
  runtime::Rank &rank = world->rank(id);
  if (fused)
    return fused->dispatchGemm(rank, rank.stream(), {o.x, tokensOfCall, o.ids, o.up, o.inner});
  DITRON_RETURN_IF_ERROR(
      exchange->dispatch(rank, rank.stream(), {o.x, tokensOfCall, o.ids, o.weights, o.rows, {}, o.offsets, o.handle}));
  DITRON_RETURN_IF_ERROR(o.tileRows.enqueue(rank.stream()));
  return o.upProduct.enqueue(rank.stream());
}

Status FusedExpertParallelBench::second(uint32_t id) {
  const Operands &o = operands[id];
  runtime::Rank &rank = world->rank(id);
  if (fused)
    return fused->gemmCombine(rank, rank.stream(), {o.inner, o.down, o.out, tokensOfCall, o.weights});
  DITRON_RETURN_IF_ERROR(o.downProduct.enqueue(rank.stream()));
  return exchange->combine(rank, rank.stream(), {o.rows, o.out, tokensOfCall, o.handle});
}

Status FusedExpertParallelBench::enqueue(uint32_t id) {
  if (timed != Timed::Second)
    DITRON_RETURN_IF_ERROR(first(id));
  if (timed != Timed::First)
    return second(id);
  return fused ? fused->skipCombine(world->rank(id), world->rank(id).stream()) : Status::ok();
}

Expected<double> FusedExpertParallelBench::time(Timed what) {
  timed = what;
  if (simulated)
    return simulatedMicroseconds(*this);
  DITRON_ASSIGN_OR_RETURN(const OverlapTimes times, timeOverlap(*world, *this, options.timedCalls));
  return times.best();
}

std::vector<FusedExpertParallelBench::Origin> FusedExpertParallelBench::rowsOf(uint32_t id) const {
  std::vector<std::vector<Origin>> ofExperts(local());
  for (uint32_t source = 0; source < options.ranks; ++source)
    for (int64_t slot = 0; slot < tokensOfCall * topK; ++slot)
      if (const int64_t expert = operands[source].chosen[slot]; expert / local() == id)
        ofExperts[expert % local()].push_back({source, slot});
  std::vector<Origin> rows;
  for (const std::vector<Origin> &each : ofExperts)
    rows.insert(rows.end(), each.begin(), each.end());
  return rows;
}

double FusedExpertParallelBench::product(uint64_t rowSalt, int64_t row, int64_t k, uint64_t weightsSalt,
                                         int64_t weightsRow) const {
  double sum = 0;
  for (int64_t depth = 0; depth < k; ++depth)
    sum += double(data->at(rowSalt, row * k + depth)) * data->at(weightsSalt, weightsRow * k + depth);
  return sum;
}

static Expected<std::vector<float>> downloadRow(const runtime::Buffer &rows, int64_t row, int64_t elements) {
  std::vector<std::byte> bytes(elements * sizeOf(rows.type()));
  DITRON_RETURN_IF_ERROR(rows.download(bytes.data(), bytes.size(), row * bytes.size()));
  return toFloats(rows.type(), bytes.data(), elements);
}

/// Of some elements of inner rows, from what was sent; and of out, from the inner rows that there are.
Expected<double> FusedExpertParallelBench::errorOf(int64_t tokens) {
  RelativeError innerError(dtype), outError(dtype);
  std::vector<std::vector<int64_t>> rowOfSlot(options.ranks, std::vector<int64_t>(tokens * topK));
  std::vector<std::vector<Origin>> rows;
  for (uint32_t id = 0; id < options.ranks; ++id) {
    rows.push_back(rowsOf(id));
    for (size_t row = 0; row < rows[id].size(); ++row)
      rowOfSlot[rows[id][row].rank][rows[id][row].slot] = static_cast<int64_t>(row);
  }
  std::mt19937_64 random(options.seed);
  for (uint32_t id = 0; id < options.ranks; ++id) {
    const Operands &o = operands[id];
    for (uint64_t i = 0; i < samples && !rows[id].empty(); ++i) {
      const auto row = static_cast<int64_t>(i == 0 ? rows[id].size() - 1 : random() % rows[id].size());
      const auto column = static_cast<int64_t>(random() % inner);
      const auto &[source, slot] = rows[id][row];
      const int64_t expert = operands[source].chosen[slot] % local(), weightsRow = expert * 2 * inner + 2 * column;
      DITRON_ASSIGN_OR_RETURN(const std::vector<float> actual, downloadRow(o.inner, row, inner));
      const double gate = product(tokensSalt + source, slot / topK, hidden, upSalt + id, weightsRow),
                   through = product(tokensSalt + source, slot / topK, hidden, upSalt + id, weightsRow + 1);
      innerError.add(actual[column], gate / (1 + std::exp(-gate)) * through);
    }
    for (uint64_t i = 0; i < samples; ++i) {
      const auto token = static_cast<int64_t>(i == 0 ? tokens - 1 : random() % tokens),
                 column = static_cast<int64_t>(random() % hidden);
      double sum = 0;
      for (int64_t slot = token * topK; slot < (token + 1) * topK; ++slot) {
        const int64_t expert = o.chosen[slot];
        const auto owner = static_cast<uint32_t>(expert / local());
        DITRON_ASSIGN_OR_RETURN(const std::vector<float> row,
                                downloadRow(operands[owner].inner, rowOfSlot[id][slot], inner));
        double result = 0;
        for (int64_t depth = 0; depth < inner; ++depth)
          result +=
              double(row[depth]) * data->at(downSalt + owner, (expert % local() * hidden + column) * inner + depth);
        sum += o.slotWeights[slot] * result;
      }
      DITRON_ASSIGN_OR_RETURN(const std::vector<float> actual, downloadRow(o.out, token, hidden));
      outError.add(actual[column], sum);
    }
  }
  return std::max(innerError.value(), outError.value());
}

Status FusedExpertParallelBench::benchOf(int64_t tokens, const std::string &planText) {
  progress.activity(fmt::format("{} tokens, {}", tokens, planText));
  fused.reset();
  exchange.reset();
  const bool isUnfused = planText == "unfused";
  std::string name = planText;
  if (isUnfused) {
    DITRON_RETURN_IF_ERROR(makeUnfused(tokens));
    name = fmt::format("unfused, {}", exchange->plan().text());
  } else {
    for (Operands &o : operands) // room for its own
      o.rows = {}, o.handle = {};
    ops::FusedExpertParallelOptions made;
    made.hidden = hidden;
    made.columns = 2 * inner;
    made.depth = inner;
    made.experts = experts;
    made.topK = topK;
    made.maxTokens = tokens;
    made.dtype = dtype;
    made.activation = ops::Activation::SwiGlu;
    made.maxRows = options.maxRows;
    if (!planText.empty()) {
      DITRON_ASSIGN_OR_RETURN(made.plan, ops::parseFusedExpertParallelPlan(planText));
    }
    DITRON_ASSIGN_OR_RETURN(fused, ops::FusedExpertParallel::create(*world, *jit, made));
    for (uint32_t id : world->localRanks())
      DITRON_RETURN_IF_ERROR(fused->prepare(world->rank(id)));
    name = fused->plan().text();
  }
  nlohmann::ordered_json row = {{"tokens", tokens}, {"form", isUnfused ? "unfused" : "fused"}, {"plan", name}};
  std::string errorText = "-";
  for (int call = 0; options.check && call < 2; ++call) {
    timed = Timed::Both;
    DITRON_RETURN_IF_ERROR(world->runRanks([&](runtime::Rank &me) -> Status {
      for (runtime::Buffer *result : {&operands[me.id()].inner, &operands[me.id()].out})
        DITRON_RETURN_IF_ERROR(me.stream().fill(*result, 0xff, result->count())); // NaN in every type
      DITRON_RETURN_IF_ERROR(enqueue(me.id()));
      return me.stream().synchronize();
    }));
    DITRON_ASSIGN_OR_RETURN(const double error, errorOf(tokens));
    DITRON_RETURN_IF_ERROR(verifyErrorOfCall(call, error, allowedError));
    row["error"] = error;
    errorText = fmt::format("{:.1e}", error);
  }
  double times[3] = {};
  if (simulated || options.timedCalls > 0) {
    DITRON_ASSIGN_OR_RETURN(times[0], time(Timed::Both));
    DITRON_ASSIGN_OR_RETURN(times[1], time(Timed::First));
    if (isUnfused) {
      DITRON_ASSIGN_OR_RETURN(times[2], time(Timed::Second));
    } else {
      times[2] = times[0] - times[1];
    }
    row["us"] = times[0];
    row["first_us"] = times[1];
    row["second_us"] = times[2];
  }
  if (isUnfused)
    std::copy(std::begin(times), std::end(times), unfusedTimes);
  const bool isCompared = !isUnfused && unfusedTimes[0] > 0 && times[0] > 0;
  if (isCompared)
    row["speedup"] = unfusedTimes[0] / times[0];
  table += fmt::format("{:>8}{:>11}{:>11}{:>11}{:>9}{:>10}  {}\n", tokens, shown(times[0], 1), shown(times[1], 1),
                       shown(times[2], 1), isCompared ? fmt::format("{:.2f}", unfusedTimes[0] / times[0]) : "-",
                       errorText, name);
  reportRows.push_back(std::move(row));
  return Status::ok();
}

} // namespace

void addFusedExpertParallelBenchCommand(CLI::App &bench, CommandContext &context) {
  auto arguments = std::make_shared<FusedBenchOptions>();
  FusedBenchOptions &options = *arguments;
  CLI::App *command = bench.add_subcommand(
      "ep_fused", "Expert parallelism: tokens to their experts, both products and back, in two launches");
  addRankOptions(*command, options);
  command->add_option("--tokens", options.tokens, "Tokens of each rank, several with commas between")
      ->delimiter(',')
      ->check(integerBetween(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--shape", options.shape, "HIDDENxINNERxEXPERTSxTOPK")->type_name("SHAPE")->capture_default_str();
  command->add_option("--max-rows", options.maxRows, "Rows that a rank has room for; 0: all that can come")
      ->check(integerBetween(0, INT32_MAX))
      ->capture_default_str();
  command->add_option("--dtype", options.dtype, "Of tokens and weights: bf16, fp16 or fp32")->capture_default_str();
  command->add_option("--plan", options.plans, "How, instead of the library's choice; may be given several times")
      ->type_name("PLAN");
  command->add_flag("--one-expert", options.oneExpert, "Expert 0 is one of each token's");
  addLongCallOptions(*command, options, 2);
  command->add_flag("--unfused", options.unfused, "Also one step after the other, to compare with");
  command->add_flag("--check", options.check, "Compare with plain sums; a wrong result is an error");
  addJsonOption(*command, options);
  command->add_flag("--quiet", options.quiet, "Print errors only");
  command->callback([&context, arguments] { context.finish(FusedExpertParallelBench(*arguments).run(context.knobs)); });
}

} // namespace ditron::tool
