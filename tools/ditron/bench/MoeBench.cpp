//===- MoeBench.cpp - ditron bench ag_moe, moe_rs, moe_ar --------------------------------------------------------------===//
//
// Mixtures of experts over the ranks, by shapes of experts and numbers of tokens: elements of the results are compared with sums in double
// precision, and on GPUs calls are timed, overlapped and, with --unfused, one step after the other. Experts are chosen at random, every topK of a token others.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/PlanFault.h"
#include "base/WorldText.h"
#include "bench/KernelBench.h"
#include "bench/RankBench.h"
#include "overlap/OverlapCommands.h"

#include "ditron/ops/moe/AllGatherMoe.h"
#include "ditron/ops/moe/MoeReduction.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <random>

namespace ditron::tool {

namespace {

enum class MoeOperator { AllGather, ReduceScatter, AllReduce };

/// Sizes of tokens and experts.
struct MoeShape {
  int64_t hidden = 256, inner = 256;
  uint32_t experts = 8, topK = 2;
};

struct MoeBenchOptions : LongCallOptions {
  MoeBenchOptions() {
    target = "sim:sm_90a";
    timedCalls = 20;
  }
  MoeOperator op = MoeOperator::AllGather;
  std::string name;
  std::vector<int64_t> tokens = {256};
  MoeShape shape;
  std::vector<std::string> shapes; ///< Instead of it; HIDDENxINNERxEXPERTSxTOPK.
  uint32_t chunks = 1, sumMultiprocessors = 0;
  std::string activation = "none", weights = "nk", plan;
  std::vector<std::string> slowRanks;
  PlantedFault fault = PlantedFault::None;
  std::string traceFile;
};

/// Beyond rounding a result may be wrong by this much of the results' root mean square: rows and sums are rounded before they are added.
constexpr double allowedError = 2e-2;
constexpr uint64_t samples = 512;
/// Data of the operands, by the salts of NormalData.
constexpr uint64_t tokensSalt = 1, weightsSalt = 100, rowsSalt = 200;

class MoeBench : RankBench, TimedCalls {
public:
  explicit MoeBench(const MoeBenchOptions &options) : RankBench(options), options(options) {}
  Status run(const Knobs &knobs);

private:
  /// A rank's memory of one number of tokens.
  struct Operands {
    runtime::Buffer tokens, ids, slotWeights, weights, rows, result;
    std::optional<ops::Routing> routing; ///< Of reductions.
  };
  bool gathers() const { return options.op == MoeOperator::AllGather; }
  bool isScattered() const { return options.op == MoeOperator::ReduceScatter; }
  int64_t resultColumns() const { return activation == ops::Activation::SwiGlu ? innerOfRank / 2 : innerOfRank; }
  Status readShapes(std::vector<MoeShape> &shapes) const;
  Status benchShape();
  Status benchOf(int64_t tokens, ops::Schedule schedule);
  Status makeGather(int64_t tokens, ops::Schedule schedule);
  Status makeReduction(int64_t tokens, ops::Schedule schedule);
  void chooseExperts(int64_t tokens);
  Status enqueue(uint32_t id) override;
  Expected<double> errorOf(int64_t tokens);
  double gatheredElement(uint32_t id, int32_t slot, int64_t column) const;
  double reducedElement(int64_t token, int64_t column) const;
  double product(uint64_t rowSalt, int64_t row, uint32_t id, int32_t expert, int64_t column) const;
  std::vector<int32_t> slotsInOrder(uint32_t firstRank) const;

  const MoeBenchOptions &options;
  MoeShape shape;
  ops::Activation activation = ops::Activation::None;
  ops::MatrixOrder order = ops::MatrixOrder::Transposed;
  int64_t innerOfRank = 0;
  std::optional<ops::GemmPlan> plan;
  Status blamed(const Status &status) const { return plan ? blamedOnPlan(status) : status; }
  std::vector<Operands> operands;
  std::optional<ops::AllGatherMoe> gather;
  std::optional<ops::MoeReduction> reduction;
  int64_t tokensOfCall = 0;
  std::vector<int32_t> chosen;    ///< [tokens, topK]
  std::vector<float> slotWeights; ///< likewise
  std::vector<int32_t> rowOfSlot; ///< Of reductions, the same on all ranks.
};

Status MoeBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkOptions());
  DITRON_RETURN_IF_ERROR(checkCanWrite("--trace", options.traceFile));
  if (!options.traceFile.empty() && options.traceFile == options.jsonFile)
    return invalidArgument(fmt::format("--trace {}: --json is the same file", options.traceFile));
  DITRON_RETURN_IF_ERROR(ops::verifyOperandType("--dtype", dtype));
  DITRON_ASSIGN_OR_RETURN(activation, ops::parseActivation(options.activation));
  order = options.weights == "nk" ? ops::MatrixOrder::Transposed : ops::MatrixOrder::Plain;
  if (!options.plan.empty()) {
    auto parsed = ops::parseGemmPlan(options.plan, ops::GemmPlan());
    if (!parsed.isOk())
      return parsed.status().withContext("--plan");
    plan = *parsed;
  }
  for (const int64_t tokens : options.tokens)
    if (tokens < 1 || tokens % options.ranks != 0)
      return invalidArgument(fmt::format("--tokens {}: multiples of the {} ranks are accepted", tokens, options.ranks));
  std::vector<MoeShape> shapes;
  DITRON_RETURN_IF_ERROR(readShapes(shapes));
  DITRON_RETURN_IF_ERROR(chooseTarget());
  if (!options.traceFile.empty() && !simulated)
    return invalidArgument("--trace: simulated GPUs only");
  runtime::WorldOptions worldOptions;
  worldOptions.trace = simulated;
  worldOptions.seed = options.seed;
  worldOptions.sms = options.sms;
  DITRON_ASSIGN_OR_RETURN(worldOptions.slowRanks, parseSlowRanks(options.slowRanks, options.ranks));
  DITRON_RETURN_IF_ERROR(start(knobs, worldOptions));
  for (size_t i = 0; i < shapes.size(); ++i) {
    shape = shapes[i];
    Status done = benchShape();
    if (!done.isOk())
      return options.shapes.empty() ? done : done.withContext(options.shapes[i]);
  }
  nlohmann::ordered_json report = reportOf(options.name);
  report["dtype"] = toString(dtype);
  report["activation"] = options.activation;
  return finish(std::move(report));
}

Status MoeBench::readShapes(std::vector<MoeShape> &shapes) const {
  for (const std::string &text : options.shapes) {
    DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(text, 4, "HIDDENxINNERxEXPERTSxTOPK"));
    if (sizes[2] > ops::mostExperts || sizes[3] > ops::mostTopK)
      return invalidArgument(fmt::format("--shape '{}': up to {} experts and topK up to {} are accepted", text,
                                         ops::mostExperts, ops::mostTopK));
    shapes.push_back({sizes[0], sizes[1], static_cast<uint32_t>(sizes[2]), static_cast<uint32_t>(sizes[3])});
  }
  if (shapes.empty())
    shapes.push_back(options.shape);
  for (const MoeShape &each : shapes)
    if (each.topK > each.experts)
      return invalidArgument(fmt::format("top {} of {} experts: at most all experts are accepted (--top-k, --shape)",
                                         each.topK, each.experts));
  return Status::ok();
}

Status MoeBench::benchShape() {
  // Slices of whole 16 bytes, which the fast forms need.
  innerOfRank = ops::ceilDivide(ops::ceilDivide(shape.inner, options.ranks), 8) * 8;
  table += fmt::format("{} of {}, hidden {}, inner {} ({} of a rank{}), top {} of {} experts, {} x {}\n{:>10}  "
                       "{:<12}{:>12}{:>12}{:>12}{:>10}{:>10}\n",
                       options.name, toString(dtype), shape.hidden, shape.inner, innerOfRank,
                       activation == ops::Activation::None ? "" : fmt::format(", {}", toString(activation)), shape.topK,
                       shape.experts, options.ranks, gpu(), "tokens", "schedule", "single us", "graph us",
                       "in a row us", "TFLOP/s", "error");
  for (const int64_t tokens : options.tokens)
    for (const ops::Schedule schedule : {ops::Schedule::Overlapped, ops::Schedule::Unfused})
      if (schedule == ops::Schedule::Overlapped || options.unfused)
        DITRON_RETURN_IF_ERROR(
            benchOf(tokens, schedule)
                .withContext(fmt::format("{} of {} tokens, {}", options.name, tokens, toString(schedule))));
  return Status::ok();
}

void MoeBench::chooseExperts(int64_t tokens) {
  std::mt19937 random(static_cast<uint32_t>(options.seed + 1));
  std::vector<int32_t> all(shape.experts);
  std::iota(all.begin(), all.end(), 0);
  chosen.clear();
  slotWeights.clear();
  for (int64_t token = 0; token < tokens; ++token)
    for (uint32_t j = 0; j < shape.topK; ++j) {
      std::swap(all[j], all[j + random() % (shape.experts - j)]);
      chosen.push_back(all[j]);
      slotWeights.push_back(static_cast<float>(1 + random() % 7) / 8);
    }
  rowOfSlot.assign(chosen.size(), 0);
  const std::vector<int32_t> slots = slotsInOrder(0);
  for (size_t row = 0; row < slots.size(); ++row)
    rowOfSlot[slots[row]] = static_cast<int32_t>(row);
}

std::vector<int32_t> MoeBench::slotsInOrder(uint32_t firstRank) const {
  std::vector<int32_t> slots(chosen.size());
  std::iota(slots.begin(), slots.end(), 0);
  const size_t count = slots.size(), first = firstRank * (count / options.ranks);
  std::ranges::sort(slots, {}, [&](int32_t slot) { return std::pair(chosen[slot], (slot + count - first) % count); });
  return slots;
}

Status MoeBench::makeGather(int64_t tokens, ops::Schedule schedule) {
  const int64_t own = tokens / options.ranks, slots = own * shape.topK;
  ops::AllGatherMoeOptions made;
  made.dtype = made.resultType = dtype;
  made.hidden = shape.hidden;
  made.columns = innerOfRank;
  made.experts = shape.experts;
  made.topK = shape.topK;
  made.maxTokensPerRank = own;
  made.weightOrder = order;
  made.activation = activation;
  made.schedule = schedule;
  made.chunksPerRank = options.chunks;
  made.plan = plan;
  DITRON_ASSIGN_OR_RETURN(gather, ops::AllGatherMoe::create(*world, *jit, made));
  for (uint32_t id : world->localRanks()) {
    Operands &o = operands[id];
    runtime::Rank &rank = world->rank(id);
    DITRON_ASSIGN_OR_RETURN(o.tokens, rank.allocate(dtype, own * shape.hidden, "tokens"));
    DITRON_ASSIGN_OR_RETURN(o.ids, rank.allocate(DataType::I32, slots, "ids"));
    DITRON_ASSIGN_OR_RETURN(o.slotWeights, rank.allocate(DataType::F32, slots, "slot weights"));
    DITRON_ASSIGN_OR_RETURN(o.weights, rank.allocate(dtype, shape.experts * innerOfRank * shape.hidden, "weights"));
    DITRON_ASSIGN_OR_RETURN(o.result, rank.allocate(dtype, tokens * shape.topK * resultColumns(), "rows"));
    DITRON_RETURN_IF_ERROR(data->fill(o.tokens, tokensSalt + id));
    DITRON_RETURN_IF_ERROR(data->fill(o.weights, weightsSalt + id));
    DITRON_RETURN_IF_ERROR(o.ids.upload(chosen.data() + id * slots, o.ids.bytes()));
    DITRON_RETURN_IF_ERROR(o.slotWeights.upload(slotWeights.data() + id * slots, o.slotWeights.bytes()));
    DITRON_RETURN_IF_ERROR(blamed(gather->prepare(rank, own)));
  }
  return Status::ok();
}

Status MoeBench::makeReduction(int64_t tokens, ops::Schedule schedule) {
  const int64_t slots = tokens * shape.topK, own = tokens / options.ranks;
  ops::MoeReductionOptions made;
  made.result = isScattered() ? ops::MoeResult::Scattered : ops::MoeResult::Everywhere;
  made.dtype = made.resultType = dtype;
  made.depth = innerOfRank;
  made.hidden = shape.hidden;
  made.maxTokens = tokens;
  made.weightOrder = order;
  made.schedule = schedule;
  ops::GroupedGemmProblem problem;
  problem.maxRows = slots;
  problem.experts = shape.experts;
  problem.n = shape.hidden;
  problem.k = innerOfRank;
  problem.dtype = problem.resultType = dtype;
  problem.order = order;
  made.plan = plan;
  made.sumMultiprocessors = options.sumMultiprocessors;
  const uint32_t blockM = plan.value_or(ops::chooseGroupedGemmPlan(problem, world->target())).tile.blockM;
  std::vector<ops::MoeRows> rows(options.ranks);
  for (uint32_t id : world->localRanks()) {
    Operands &o = operands[id];
    runtime::Rank &rank = world->rank(id);
    DITRON_ASSIGN_OR_RETURN(o.routing, ops::Routing::create(rank, *jit, {shape.experts, shape.topK, tokens, blockM}));
    DITRON_ASSIGN_OR_RETURN(o.ids, rank.allocate(DataType::I32, slots, "ids"));
    DITRON_ASSIGN_OR_RETURN(o.slotWeights, rank.allocate(DataType::F32, slots, "slot weights"));
    DITRON_ASSIGN_OR_RETURN(o.rows, rank.allocate(dtype, slots * innerOfRank, "rows"));
    DITRON_ASSIGN_OR_RETURN(o.weights, rank.allocate(dtype, shape.experts * innerOfRank * shape.hidden, "weights"));
    DITRON_ASSIGN_OR_RETURN(o.result, rank.allocate(dtype, (isScattered() ? own : tokens) * shape.hidden, "result"));
    DITRON_RETURN_IF_ERROR(data->fill(o.rows, rowsSalt + id));
    DITRON_RETURN_IF_ERROR(data->fill(o.weights, weightsSalt + id));
    DITRON_RETURN_IF_ERROR(o.ids.upload(chosen.data(), o.ids.bytes()));
    DITRON_RETURN_IF_ERROR(o.slotWeights.upload(slotWeights.data(), o.slotWeights.bytes()));
    DITRON_RETURN_IF_ERROR(o.routing->enqueue(rank.stream(), o.ids, tokens));
    rows[id] = ops::MoeRows::of(*o.routing, o.slotWeights.pointer());
  }
  DITRON_RETURN_IF_ERROR(world->synchronize());
  DITRON_ASSIGN_OR_RETURN(reduction, ops::MoeReduction::create(*world, *jit, made, rows));
  for (uint32_t id : world->localRanks())
    DITRON_RETURN_IF_ERROR(blamed(reduction->prepare(world->rank(id), tokens)));
  return Status::ok();
}

Status MoeBench::enqueue(uint32_t id) {
  runtime::Rank &rank = world->rank(id);
  const Operands &o = operands[id];
  if (gathers())
    return gather->enqueue(rank, rank.stream(), {o.tokens, o.ids, o.slotWeights, o.weights, o.result, {}, {}},
                           tokensOfCall / options.ranks);
  return reduction->enqueue(rank, rank.stream(), {o.rows, o.weights, o.result, {}, {}}, tokensOfCall);
}

double MoeBench::product(uint64_t rowSalt, int64_t row, uint32_t id, int32_t expert, int64_t column) const {
  const int64_t n = gathers() ? innerOfRank : shape.hidden, k = gathers() ? shape.hidden : innerOfRank;
  double sum = 0;
  for (int64_t depth = 0; depth < k; ++depth)
    sum += double(data->at(rowSalt, row * k + depth)) *
           data->at(weightsSalt + id,
                    expert * n * k + (order == ops::MatrixOrder::Transposed ? column * k + depth : depth * n + column));
  return sum;
}

double MoeBench::gatheredElement(uint32_t id, int32_t slot, int64_t column) const {
  const int64_t own = tokensOfCall / options.ranks, token = slot / shape.topK;
  const auto of = [&](int64_t each) { return product(tokensSalt + token / own, token % own, id, chosen[slot], each); };
  if (activation != ops::Activation::SwiGlu)
    return of(column);
  const double gate = of(2 * column);
  return gate / (1 + std::exp(-gate)) * of(2 * column + 1);
}

double MoeBench::reducedElement(int64_t token, int64_t column) const {
  double sum = 0;
  for (uint32_t id = 0; id < options.ranks; ++id)
    for (int64_t slot = token * shape.topK; slot < (token + 1) * shape.topK; ++slot)
      sum += slotWeights[slot] * product(rowsSalt + id, rowOfSlot[slot], id, chosen[slot], column);
  return sum;
}

/// Of the elements that this process has.
Expected<double> MoeBench::errorOf(int64_t tokens) {
  RelativeError error(dtype);
  for (uint32_t id : world->localRanks()) {
    DITRON_ASSIGN_OR_RETURN(const std::vector<float> actual, operands[id].result.downloadFloats());
    const int64_t columns = gathers() ? resultColumns() : shape.hidden;
    const std::vector<int32_t> slots = gathers() ? slotsInOrder(id) : std::vector<int32_t>();
    uint64_t state = options.seed + id + 1;
    for (uint64_t i = 0; i < samples; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      const uint64_t index = i == 0 ? 0 : i == 1 ? actual.size() - 1 : (state >> 20) % actual.size();
      const auto row = static_cast<int64_t>(index) / columns, column = static_cast<int64_t>(index) % columns;
      const int64_t firstToken = isScattered() ? id * (tokens / options.ranks) : 0;
      error.add(actual[index],
                gathers() ? gatheredElement(id, slots[row], column) : reducedElement(firstToken + row, column));
    }
    // What was not written is NaN.
    if (std::ranges::any_of(actual, [](float value) { return std::isnan(value); }))
      return std::numeric_limits<double>::infinity();
  }
  return error.value();
}

Status MoeBench::benchOf(int64_t tokens, ops::Schedule schedule) {
  progress.activity(fmt::format("{} tokens, {}", tokens, toString(schedule)));
  tokensOfCall = tokens;
  gather.reset();
  reduction.reset();
  operands = std::vector<Operands>(options.ranks);
  chooseExperts(tokens);
  DITRON_RETURN_IF_ERROR(gathers() ? makeGather(tokens, schedule) : makeReduction(tokens, schedule));
  std::string errorText = "-";
  nlohmann::ordered_json row = {{"hidden", shape.hidden},
                                {"inner", shape.inner},
                                {"inner_of_rank", innerOfRank},
                                {"experts", shape.experts},
                                {"top_k", shape.topK},
                                {"tokens", tokens},
                                {"schedule", toString(schedule)},
                                {"plan", (gathers() ? gather->productPlan() : reduction->productPlan()).text()}};
  runtime::Buffer planted;
  for (int call = 0; options.check && call < 2; ++call) {
    DITRON_RETURN_IF_ERROR(plantBefore(options.fault, *world, planted));
    DITRON_RETURN_IF_ERROR(world->runRanks([&](runtime::Rank &me) -> Status {
      runtime::Buffer &result = operands[me.id()].result;
      const std::vector<std::byte> pattern(result.bytes(), std::byte{0xff}); // NaN in every type
      DITRON_RETURN_IF_ERROR(result.upload(pattern.data(), pattern.size()));
      DITRON_RETURN_IF_ERROR(enqueue(me.id()));
      return me.stream().synchronize();
    }));
    DITRON_RETURN_IF_ERROR(plantBehind(options.fault, operands[world->localRanks().front()].result));
    DITRON_ASSIGN_OR_RETURN(const double error, errorOf(tokens));
    DITRON_RETURN_IF_ERROR(verifyErrorOfCall(call, error, allowedError));
    row["error"] = error;
    errorText = fmt::format("{:.1e}", error);
  }
  OverlapTimes times;
  double microseconds = 0;
  if (simulated) {
    DITRON_ASSIGN_OR_RETURN(microseconds, simulatedMicroseconds(*this));
    row["simulated_us"] = microseconds;
    if (!options.traceFile.empty())
      DITRON_RETURN_IF_ERROR(world->writeTrace(options.traceFile));
  } else if (options.timedCalls > 0) {
    DITRON_ASSIGN_OR_RETURN(times, timeOverlap(*world, *this, options.timedCalls));
    microseconds = times.best();
    row["single_us"] = times.single;
    row["graph_us"] = times.asGraph;
    row["in_a_row_us"] = times.inARow;
  }
  const double flops = 2.0 * double(tokens) * shape.topK * double(innerOfRank) * double(shape.hidden);
  const auto shown = [](double value) { return value > 0 ? fmt::format("{:.1f}", value) : "-"; };
  const double teraflops = microseconds > 0 ? flops / microseconds * 1e-6 : 0;
  row["teraflops_of_rank"] = teraflops;
  table += fmt::format("{:>10}  {:<12}{:>12}{:>12}{:>12}{:>10}{:>10}\n", tokens, toString(schedule),
                       shown(simulated ? microseconds : times.single), shown(times.asGraph), shown(times.inARow),
                       shown(teraflops), errorText);
  reportRows.push_back(std::move(row));
  return Status::ok();
}

} // namespace

void addMoeBenchCommands(CLI::App &bench, CommandContext &context) {
  struct Entry {
    MoeOperator op;
    const char *name, *help;
  };
  for (const Entry &entry : {Entry{MoeOperator::AllGather, "ag_moe",
                                   "Mixture of experts: tokens of all ranks times the weights of their experts"},
                             Entry{MoeOperator::ReduceScatter, "moe_rs",
                                   "Mixture of experts: rows times weights, added by token, to the token's rank"},
                             Entry{MoeOperator::AllReduce, "moe_ar",
                                   "Mixture of experts: rows times weights, added by token, to all ranks"}}) {
    CLI::App *command = bench.add_subcommand(entry.name, entry.help);
    auto arguments = std::make_shared<MoeBenchOptions>();
    MoeBenchOptions &options = *arguments;
    options.op = entry.op;
    options.name = entry.name;
    addRankOptions(*command, options);
    command->add_option("--tokens", options.tokens, "Tokens of all ranks together, like 1024,8192")
        ->delimiter(',')
        ->check(integerBetween(1, INT32_MAX))
        ->capture_default_str();
    command->add_option("--hidden", options.shape.hidden, "Elements of a token")
        ->check(integerBetween(1, INT32_MAX))
        ->capture_default_str();
    command
        ->add_option("--inner", options.shape.inner,
                     "Columns of an expert's first weights on all ranks together, rounded up to multiples of 8 on each")
        ->check(integerBetween(1, INT32_MAX))
        ->capture_default_str();
    command->add_option("--experts", options.shape.experts, "Number of experts")
        ->check(integerBetween(1, ops::mostExperts))
        ->capture_default_str();
    command->add_option("--top-k", options.shape.topK, "Experts of a token")
        ->check(integerBetween(1, ops::mostTopK))
        ->capture_default_str();
    command
        ->add_option("--shape", options.shapes,
                     "HIDDENxINNERxEXPERTSxTOPK instead of these four, several with commas between")
        ->delimiter(',')
        ->type_name("SHAPE");
    command->add_option("--dtype", options.dtype, "Of tokens and weights: bf16, fp16 or fp32")->capture_default_str();
    command->add_option("--weights", options.weights, "Those of an expert are [N, K] (nk) or [K, N] (kn)")
        ->check(CLI::IsMember({"nk", "kn"}))
        ->capture_default_str();
    if (entry.op == MoeOperator::AllGather) {
      command->add_option("--activation", options.activation, "none or swiglu")
          ->check(CLI::IsMember({"none", "swiglu"}))
          ->capture_default_str();
      command->add_option("--chunks", options.chunks, "Signals of a rank's tokens")
          ->check(integerBetween(1, 64))
          ->capture_default_str();
    }
    if (entry.op != MoeOperator::AllGather)
      command
          ->add_option(
              "--sum-multiprocessors", options.sumMultiprocessors,
              "Overlapped: multiprocessors that the product leaves to the sums; 0: as they need, at most one of eight")
          ->check(integerBetween(0, 1024))
          ->capture_default_str();
    command->add_option(
        "--plan", options.plan,
        "Of the product, like 'pointers 128x128x64 warps 8 stages 4' or 'descriptors ...'; else the library's choice");
    addLongCallOptions(*command, options, 1);
    command->add_option("--slow-rank", options.slowRanks, "R:FACTOR, may be given several times");
    command->add_flag("--unfused", options.unfused, "Also with one step after the other, to compare with");
    addPlantOption(command, options.fault);
    command->add_flag("--check", options.check, "Compare with plain sums; a wrong result is an error");
    addJsonOption(*command, options);
    command
        ->add_option("--trace", options.traceFile,
                     "Simulated GPUs: write the last call's timeline for Perfetto to this file")
        ->type_name("FILE");
    command->add_flag("--quiet", options.quiet, "Print errors only");
    command->callback([&context, arguments] { context.finish(MoeBench(*arguments).run(context.knobs)); });
  }
}

} // namespace ditron::tool
