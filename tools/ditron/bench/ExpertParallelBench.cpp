//===- ExpertParallelBench.cpp - ditron bench ep_dispatch, ep_combine ----------------------------------------------------===//
//
// Numbers of tokens in turn: what arrives, of many rows some, is compared with a plain reference, and on GPUs calls are timed, twenty of them
// captured in one graph. The bytes of which GB/s are told are those that the slowest rank sends to others, as the form sends them.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "base/Progress.h"
#include "base/VisibleGpus.h"
#include "bench/BenchPage.h"
#include "overlap/OverlapCommands.h"
#include "overlap/OverlapTiming.h"

#include "ditron/jit/Jit.h"
#include "ditron/ops/expert_parallel/ExpertParallel.h"
#include "ditron/runtime/TargetChoice.h"
#include "ditron/support/OutputFile.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

namespace ditron::tool {

namespace {

struct ExpertParallelBenchOptions {
  bool isDispatch = true;
  std::string name;
  std::string target = "sim:sm_80", dtype = "bf16", skew = "even", plan;
  uint32_t ranks = 4, ranksPerNode = 0, experts = 64, topK = 8;
  std::vector<int64_t> tokens = {16};
  int64_t hidden = 512;
  bool fp8 = false, check = false, quiet = false;
  std::string jsonFile;
};

class ExpertParallelBench : ShortCalls {
public:
  ExpertParallelBench(const ExpertParallelBenchOptions &options) : options(options), progress(options.quiet) {}
  Status run(const Knobs &knobs);

private:
  struct Operands {
    std::vector<int32_t> ids;
    std::vector<float> values, weightValues; ///< Of x and of weights.
    runtime::Buffer x, idsOf, weights, rows, scales, offsets, handle, out;
  };
  struct Origin {
    uint32_t rank;
    int64_t slot;
  };

  Status benchOf(int64_t tokens);
  Status allocate(int64_t tokens);
  Status dispatch(runtime::Rank &rank);
  Status combine(runtime::Rank &rank);
  /// Of each rank, the rows that must come.
  std::vector<std::vector<Origin>> expectedRows(int64_t tokens) const;
  Status check(int64_t tokens);
  Status checkRows(uint32_t rank, const std::vector<Origin> &origins) const;
  Status checkSums(uint32_t rank, int64_t tokens) const;
  /// Of a sum's magnitude.
  double allowedOfSums() const;
  uint64_t mostSentBytes(int64_t tokens) const;
  Status enqueueOne(uint32_t id) override;
  int64_t expertsOfRank() const { return options.experts / options.ranks; }

  const ExpertParallelBenchOptions &options;
  Progress progress;
  DataType dtype = DataType::BF16;
  std::unique_ptr<runtime::World> world;
  std::unique_ptr<jit::Jit> jit;
  std::optional<ops::ExpertParallel> op;
  std::vector<Operands> operands;
  int64_t tokensOfCall = 0;
  bool simulated = false;
  std::string table;
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
};

Status ExpertParallelBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkCanWrite("--json", options.jsonFile));
  DITRON_ASSIGN_OR_RETURN(dtype, parseDataTypeOrError(options.dtype));
  seeOnlyGpusOf(options.target, options.ranks);
  DITRON_ASSIGN_OR_RETURN(const TargetName target, runtime::resolveTarget(options.target));
  simulated = target.simulated;
  runtime::WorldOptions nodes;
  nodes.ranksPerNode = options.ranksPerNode;
  DITRON_ASSIGN_OR_RETURN(world, runtime::World::local(options.ranks, target.text, nodes));
  DITRON_ASSIGN_OR_RETURN(jit, jit::Jit::create(world->target(), knobs));
  const std::string gpu = world->rank(0).attributes().name;
  for (int64_t tokens : options.tokens)
    DITRON_RETURN_IF_ERROR(benchOf(tokens).withContext(fmt::format("{} of {} tokens", options.name, tokens)));
  progress.stop();
  if (!options.quiet)
    fmt::print(textStream(options.jsonFile, ""), "{} of {}{}, {} x {}{}, {} elements, top {} of {} experts, {}\n{}",
               options.name, toString(dtype), options.fp8 ? " as fp8" : "", options.ranks, gpu,
               world->numNodes() > 1 ? fmt::format(" on {} nodes", world->numNodes()) : "", options.hidden,
               options.topK, options.experts, op->plan().text(), table);
  const nlohmann::ordered_json page = {{"operator", options.name},
                                       {"target", target.text},
                                       {"gpu", gpu},
                                       {"ranks", options.ranks},
                                       {"dtype", toString(dtype)},
                                       {"fp8", options.fp8},
                                       {"hidden", options.hidden},
                                       {"experts", options.experts},
                                       {"top_k", options.topK},
                                       {"skew", options.skew},
                                       {"rows", report}};
  return writeReport("--json", options.jsonFile, page.dump(1) + "\n");
}

Status ExpertParallelBench::allocate(int64_t tokens) {
  operands = std::vector<Operands>(options.ranks);
  std::mt19937 random(1);
  std::vector<int32_t> all(options.experts);
  std::iota(all.begin(), all.end(), 0);
  for (uint32_t id = 0; id < options.ranks; ++id) {
    Operands &own = operands[id];
    runtime::Rank &rank = world->rank(id);
    for (int64_t token = 0; token < tokens; ++token) {
      std::ranges::shuffle(all, random);
      if (options.skew == "one_expert")
        std::swap(*std::ranges::find(all, 0), all[0]);
      own.ids.insert(own.ids.end(), all.begin(), all.begin() + options.topK);
    }
    const int64_t slots = tokens * options.topK, elements = tokens * options.hidden;
    // Small integers and quarters: every sum is exact in fp32.
    for (int64_t i = 0; i < elements; ++i)
      own.values.push_back(static_cast<float>(static_cast<int>(random() % 17) - 8));
    for (int64_t i = 0; i < slots; ++i)
      own.weightValues.push_back(static_cast<float>(random() % 8) / 4);
    DITRON_ASSIGN_OR_RETURN(own.x, rank.allocate(dtype, elements, "x"));
    DITRON_ASSIGN_OR_RETURN(own.out, rank.allocate(dtype, elements, "out"));
    DITRON_ASSIGN_OR_RETURN(own.idsOf, rank.allocate(DataType::I32, slots, "ids"));
    DITRON_ASSIGN_OR_RETURN(own.weights, rank.allocate(DataType::F32, slots, "weights"));
    DITRON_ASSIGN_OR_RETURN(own.offsets, rank.allocate(DataType::I32, expertsOfRank() + 1, "offsets"));
    DITRON_ASSIGN_OR_RETURN(own.handle, rank.allocate(DataType::I32, op->handleElements(), "handle"));
    const DataType rowType = options.fp8 ? DataType::F8E4NV : dtype;
    DITRON_ASSIGN_OR_RETURN(own.rows, rank.allocate(rowType, op->maxRows() * options.hidden, "rows"));
    DITRON_ASSIGN_OR_RETURN(
        own.scales, rank.allocate(DataType::F32, std::max<int64_t>(op->maxRows() * op->scalesOfRow(), 1), "scales"));
    DITRON_RETURN_IF_ERROR(own.x.uploadFloats(own.values));
    DITRON_RETURN_IF_ERROR(own.weights.uploadFloats(own.weightValues));
    DITRON_RETURN_IF_ERROR(own.idsOf.upload(own.ids.data(), own.idsOf.bytes()));
  }
  return Status::ok();
}

Status ExpertParallelBench::benchOf(int64_t tokens) {
  progress.activity(fmt::format("{} tokens", tokens));
  ops::ExpertParallelOptions made{.hidden = options.hidden,
                                  .experts = options.experts,
                                  .topK = options.topK,
                                  .maxTokens = tokens,
                                  .dtype = dtype,
                                  .fp8 = options.fp8};
  if (!options.plan.empty()) {
    DITRON_ASSIGN_OR_RETURN(made.plan, ops::parseExpertParallelPlan(options.plan));
  }
  if (options.topK > options.experts)
    return invalidArgument(fmt::format("--top-k {}: there are {} experts", options.topK, options.experts));
  op.reset();
  DITRON_ASSIGN_OR_RETURN(op, ops::ExpertParallel::create(*world, *jit, made));
  tokensOfCall = tokens;
  DITRON_RETURN_IF_ERROR(allocate(tokens));
  for (uint32_t id : world->localRanks())
    DITRON_RETURN_IF_ERROR(op->prepare(world->rank(id)));
  if (options.check)
    DITRON_RETURN_IF_ERROR(check(tokens));
  OverlapTimes times;
  if (!simulated) {
    if (!options.isDispatch) // whose rows are combined again and again
      DITRON_RETURN_IF_ERROR(world->runRanks([&](runtime::Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(dispatch(me));
        return me.stream().synchronize();
      }));
    DITRON_ASSIGN_OR_RETURN(times, timeShortCalls(*world, *this));
  }
  const double graph = times.asGraph, alone = times.inARow;
  const uint64_t bytes = mostSentBytes(tokens);
  if (table.empty())
    table = fmt::format("{:>10}{:>12}{:>12}{:>12}{:>10}\n", "tokens", "bytes sent", "graph us", "in a row us", "GB/s");
  const auto shown = [](double value) { return value > 0 ? fmt::format("{:.2f}", value) : "-"; };
  table += fmt::format("{:>10}{:>12}{:>12}{:>12}{:>10}{}\n", tokens, bytes, shown(graph), shown(alone),
                       shown(graph > 0 ? static_cast<double>(bytes) / graph * 1e-3 : 0), options.check ? "  ok" : "");
  const auto orNull = [](double value) { return value > 0 ? nlohmann::json(value) : nlohmann::json(); };
  report.push_back({{"tokens", tokens},
                    {"plan", op->plan().text()},
                    {"bytes_sent", bytes},
                    {"passed", options.check ? nlohmann::json(true) : nlohmann::json()},
                    {"graph_us", orNull(graph)},
                    {"in_a_row_us", orNull(alone)}});
  return Status::ok();
}

Status ExpertParallelBench::dispatch(runtime::Rank &rank) {
  const Operands &own = operands[rank.id()];
  return op->dispatch(rank, rank.stream(),
                      {own.x, tokensOfCall, own.idsOf, own.weights, own.rows,
                       options.fp8 ? own.scales.pointer() : runtime::Pointer(), own.offsets, own.handle});
}

/// The tokens' own rows, where they are of the right type, stand for results.
Status ExpertParallelBench::combine(runtime::Rank &rank) {
  const Operands &own = operands[rank.id()];
  return op->combine(rank, rank.stream(), {own.rows, own.out, tokensOfCall, own.handle});
}

Status ExpertParallelBench::enqueueOne(uint32_t id) {
  return options.isDispatch ? dispatch(world->rank(id)) : combine(world->rank(id));
}

uint64_t ExpertParallelBench::mostSentBytes(int64_t tokens) const {
  const int64_t local = expertsOfRank();
  uint64_t most = 0;
  std::vector<uint64_t> sent(options.ranks, 0), returned(options.ranks, 0);
  const ops::ExpertParallelForm form = op->plan().form;
  /// Whether an earlier slot of the token has brought it, or its result, on the way of this one.
  const auto isThere = [&](uint32_t source, uint32_t earlier, uint32_t target) {
    if (form == ops::ExpertParallelForm::TwoLevel && world->nodeOf(target) != world->nodeOf(source))
      return world->nodeOf(earlier) == world->nodeOf(target);
    return (options.isDispatch || form == ops::ExpertParallelForm::HighThroughput) && earlier == target;
  };
  for (uint32_t r = 0; r < options.ranks; ++r)
    for (int64_t slot = 0; slot < tokens * options.topK; ++slot) {
      const auto rankOf = [&](int64_t other) { return static_cast<uint32_t>(operands[r].ids[other] / local); };
      bool isSent = rankOf(slot) != r;
      for (int64_t other = slot / options.topK * options.topK; other < slot; ++other)
        isSent = isSent && !isThere(r, rankOf(other), rankOf(slot));
      sent[r] += isSent;
      returned[rankOf(slot)] += isSent;
    }
  const uint64_t row = options.isDispatch && options.fp8 ? options.hidden + op->scalesOfRow() * sizeof(float)
                                                         : options.hidden * sizeOf(dtype);
  for (uint64_t rows : options.isDispatch ? sent : returned)
    most = std::max(most, rows * row);
  return most;
}

std::vector<std::vector<ExpertParallelBench::Origin>> ExpertParallelBench::expectedRows(int64_t tokens) const {
  std::vector<std::vector<Origin>> rows(options.ranks);
  for (uint32_t expert = 0; expert < options.experts; ++expert)
    for (uint32_t source = 0; source < options.ranks; ++source)
      for (int64_t slot = 0; slot < tokens * options.topK; ++slot)
        if (operands[source].ids[slot] == static_cast<int32_t>(expert))
          rows[expert / expertsOfRank()].push_back({source, slot});
  return rows;
}

/// Every one of few, else some that lie evenly among them, the first and the last of them too.
static std::vector<size_t> sampled(size_t count, int64_t elementsOfEach) {
  constexpr int64_t mostElements = int64_t(1) << 22;
  const size_t samples = std::min<size_t>(count, std::max<int64_t>(mostElements / elementsOfEach, 2));
  std::vector<size_t> chosen(samples);
  for (size_t i = 0; i < samples; ++i)
    chosen[i] = samples == count ? i : i * (count - 1) / (samples - 1);
  return chosen;
}

static Expected<std::vector<float>> downloadRow(const runtime::Buffer &rows, size_t row, int64_t elements) {
  std::vector<std::byte> bytes(elements * sizeOf(rows.type()));
  DITRON_RETURN_IF_ERROR(rows.download(bytes.data(), bytes.size(), row * bytes.size()));
  return toFloats(rows.type(), bytes.data(), elements);
}

Status ExpertParallelBench::checkRows(uint32_t rank, const std::vector<Origin> &origins) const {
  const Operands &own = operands[rank];
  std::vector<int32_t> offsets(own.offsets.count());
  DITRON_RETURN_IF_ERROR(own.offsets.download(offsets.data(), own.offsets.bytes()));
  if (offsets.back() != static_cast<int32_t>(origins.size()))
    return internalError(fmt::format("rank {} has {} rows, expected {}", rank, offsets.back(), origins.size()));
  for (size_t row : sampled(origins.size(), options.hidden)) {
    const auto &[source, slot] = origins[row];
    const float *wanted = &operands[source].values[slot / options.topK * options.hidden];
    DITRON_ASSIGN_OR_RETURN(std::vector<float> values, downloadRow(own.rows, row, options.hidden));
    if (options.fp8) {
      DITRON_ASSIGN_OR_RETURN(const std::vector<float> scales, downloadRow(own.scales, row, op->scalesOfRow()));
      for (int64_t column = 0; column < options.hidden; ++column)
        values[column] *= scales[column / 128];
    }
    for (int64_t column = 0; column < options.hidden; ++column)
      // fp8 e4m3 has three bits behind the first.
      if (!(std::fabs(values[column] - wanted[column]) <= (options.fp8 ? std::fabs(wanted[column]) / 16 : 0)))
        return internalError(fmt::format("rank {}: row {}, column {} is {}, expected {}", rank, row, column,
                                         values[column], wanted[column]));
  }
  return Status::ok();
}

double ExpertParallelBench::allowedOfSums() const {
  // Forms other than low_latency round each rank's part of a sum to the type of the results, and all parts of one have the same sign.
  const double spacing = dtype == DataType::F32 ? 0x1p-23 : dtype == DataType::F16 ? 0x1p-10 : 0x1p-7;
  return op->plan().form == ops::ExpertParallelForm::LowLatency ? 0 : spacing;
}

Status ExpertParallelBench::checkSums(uint32_t rank, int64_t tokens) const {
  const Operands &own = operands[rank];
  for (size_t token : sampled(tokens, options.hidden)) {
    const float *weights = &own.weightValues[token * options.topK];
    const float weight = std::accumulate(weights, weights + options.topK, 0.0f);
    std::vector<float> wanted(&own.values[token * options.hidden],
                              &own.values[token * options.hidden] + options.hidden);
    for (float &value : wanted)
      value *= weight;
    wanted = toFloats(dtype, fromFloats(dtype, wanted.data(), wanted.size()).data(), wanted.size());
    DITRON_ASSIGN_OR_RETURN(const std::vector<float> out, downloadRow(own.out, token, options.hidden));
    for (int64_t column = 0; column < options.hidden; ++column)
      if (!(std::abs(out[column] - wanted[column]) <= allowedOfSums() * std::abs(wanted[column])))
        return internalError(fmt::format("rank {}: token {}, column {} is {}, expected {}", rank, token, column,
                                         out[column], wanted[column]));
  }
  return Status::ok();
}

Status ExpertParallelBench::check(int64_t tokens) {
  const std::vector<std::vector<Origin>> rows = expectedRows(tokens);
  for (uint32_t call = 0; call < 2; ++call) {
    DITRON_RETURN_IF_ERROR(world->runRanks([&](runtime::Rank &me) -> Status {
      DITRON_RETURN_IF_ERROR(dispatch(me));
      if (!options.isDispatch)
        DITRON_RETURN_IF_ERROR(combine(me));
      return me.stream().synchronize();
    }));
    for (uint32_t r = 0; r < options.ranks; ++r) {
      DITRON_RETURN_IF_ERROR(op->check(world->rank(r)));
      DITRON_RETURN_IF_ERROR(checkRows(r, rows[r]));
      if (!options.isDispatch)
        DITRON_RETURN_IF_ERROR(checkSums(r, tokens));
    }
  }
  return Status::ok();
}

} // namespace

void addExpertParallelBenchCommands(CLI::App &bench, CommandContext &context) {
  for (bool isDispatch : {true, false}) {
    auto arguments = std::make_shared<ExpertParallelBenchOptions>();
    ExpertParallelBenchOptions &options = *arguments;
    options.isDispatch = isDispatch;
    options.name = isDispatch ? "ep_dispatch" : "ep_combine";
    CLI::App *command = bench.add_subcommand(
        options.name, isDispatch ? "Expert parallelism: tokens to the ranks of their experts"
                                 : "Expert parallelism: results back to their tokens, added with their weights");
    command->add_option("--target", options.target, "What to run on: sim, cuda (this machine's GPUs), or a full name")
        ->capture_default_str();
    command->add_option("--ranks", options.ranks, "Number of ranks")
        ->check(integerBetween(1, 64))
        ->capture_default_str();
    command->add_option("--ranks-per-node", options.ranksPerNode, "Simulated ranks of a node; 0: all of them")
        ->check(integerBetween(0, 64))
        ->capture_default_str();
    command->add_option("--tokens", options.tokens, "Tokens of each rank, several with commas between")
        ->delimiter(',')
        ->check(integerBetween(1, 1 << 20))
        ->capture_default_str();
    command->add_option("--hidden", options.hidden, "Elements of a row")
        ->check(integerBetween(1, 1 << 20))
        ->capture_default_str();
    command->add_option("--experts", options.experts, "Experts of all ranks")
        ->check(integerBetween(1, 1024))
        ->capture_default_str();
    command->add_option("--top-k", options.topK, "Experts of a token")
        ->check(integerBetween(1, 64))
        ->capture_default_str();
    command
        ->add_option("--skew", options.skew,
                     "even: experts drawn at random; one_expert: expert 0 is one of each token's")
        ->check(CLI::IsMember({"even", "one_expert"}))
        ->capture_default_str();
    command->add_option("--dtype", options.dtype, "Of tokens and results")->capture_default_str();
    if (isDispatch)
      command->add_flag("--fp8", options.fp8, "Rows travel as fp8 e4m3 with a scale for each 128 elements");
    command->add_option("--plan", options.plan, "How, instead of what the tables say")->type_name("PLAN");
    command->add_flag("--check", options.check, "Compare with a plain reference; a wrong result is an error");
    command->add_option("--json", options.jsonFile, "Write the result to this file; - is standard output")
        ->type_name("FILE");
    command->add_flag("--quiet", options.quiet, "Print errors only");
    command->callback([&context, arguments] { context.finish(ExpertParallelBench(*arguments).run(context.knobs)); });
  }
}

} // namespace ditron::tool
