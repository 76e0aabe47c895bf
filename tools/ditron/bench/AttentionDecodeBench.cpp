//===- AttentionDecodeBench.cpp - ditron bench attention_decode --------------------------------------------------------------===//
//
// Attention of few queries reads K and V once: a copy of as many bytes is the limit, and is timed beside it on all ranks at once. On one rank
// ops::prepareAttentionDecode, on several ops::ShardedAttentionDecode with the tokens dealt out evenly. Some rows of every result are compared with
// the plain reference, and all ranks' results with each other.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/KernelBench.h"
#include "bench/RankBench.h"
#include "overlap/OverlapCommands.h"

#include "ditron/ops/attention/AttentionReference.h"
#include "ditron/ops/attention_decode/AttentionDecode.h"
#include "ditron/ops/attention_decode/ShardedAttentionDecode.h"

#include <cmath>
#include <fmt/format.h>
#include <random>

namespace ditron::tool {

namespace {

constexpr std::string_view shapeForm = "BATCHxHEADSxKV_HEADSxTOKENSxHEAD_DIM";
/// The powers are rounded to the operands' type before they multiply V.
constexpr double allowedError = 3e-2;

struct DecodeBenchOptions : RankBenchOptions {
  DecodeBenchOptions() { ranks = 1; }
  std::string order = "keys";
  int64_t queries = 1, pageSize = 0;
  std::optional<int64_t> valueDim, window;
  std::optional<double> softCap;
  bool sinks = false, latent = false;
  std::vector<std::string> shapes = {"2x8x2x300x64"}, plans;
};

class AttentionDecodeBench : RankBench {
public:
  explicit AttentionDecodeBench(const DecodeBenchOptions &options) : RankBench(options), options(options) {}
  Status run(const Knobs &knobs);

private:
  struct OfRank {
    runtime::Buffer q, k, v, copy, out, lengths, table, sinks;
    std::vector<int32_t> pages;
    int64_t tokens = 0;
  };
  Status benchShape(const std::string &shape);
  Status makeOperands(const std::vector<int64_t> &sizes);
  Status benchPlan(const std::string &shape, const std::optional<ops::DecodePlan> &plan, double copyMicroseconds);
  Expected<Call> prepare(const ops::DecodePlan &plan);
  Expected<double> error();
  /// Of the keys of all ranks together.
  ops::AttentionReference reference() const;
  /// Of so many keys, those in the window.
  int64_t seenOf(int64_t tokens) const { return options.window ? std::min(tokens, *options.window + 1) : tokens; }
  ops::DecodeOperands operands(uint32_t id) const {
    const OfRank &own = ranks[id];
    return {.q = own.q,
            .k = own.k,
            .v = own.v,
            .out = own.out,
            .lse = {},
            .lengths = own.lengths,
            .table = own.table.isValid() ? own.table.pointer() : runtime::Pointer(),
            .sinks = own.sinks.isValid() ? own.sinks.pointer() : runtime::Pointer()};
  }

  const DecodeBenchOptions &options;
  ops::DecodeProblem problem;
  std::vector<OfRank> ranks;
  std::vector<float> sinks;
  std::optional<ops::ShardedAttentionDecode> sharded;
  std::vector<ops::PreparedCall> calls;
};

Status AttentionDecodeBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkOptions());
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(parseShape(shape, 5, shapeForm).status());
  for (const std::string &plan : options.plans)
    DITRON_RETURN_IF_ERROR(ops::parseDecodePlan(plan).status().withContext("--plan"));
  DITRON_RETURN_IF_ERROR(chooseTarget());
  DITRON_RETURN_IF_ERROR(start(knobs));
  table = fmt::format(
      "attention_decode of {}, {} x {}, {}, {} queries\n{:<26}{:<36}{:>10}{:>9}{:>11}{:>9}  {}\n", toString(dtype),
      options.ranks, gpu(),
      options.pageSize ? fmt::format("pages of {} keys", options.pageSize) : fmt::format("{} first", options.order),
      options.queries, "batch heads kv tokens dim", "plan", "us", "GB/s", "copy GB/s", "of copy", "error");
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(benchShape(shape).withContext(shape));
  nlohmann::ordered_json report = reportOf("attention_decode");
  report["dtype"] = toString(dtype);
  report["queries"] = options.queries;
  report["page_size"] = options.pageSize;
  report["latent"] = options.latent;
  report["window"] = options.window ? nlohmann::ordered_json(*options.window) : nlohmann::ordered_json();
  report["soft_cap"] = options.softCap ? nlohmann::ordered_json(*options.softCap) : nlohmann::ordered_json();
  report["sinks"] = options.sinks;
  return finish(std::move(report));
}

Status AttentionDecodeBench::makeOperands(const std::vector<int64_t> &sizes) {
  ranks.clear();
  ranks.resize(options.ranks);
  const int64_t tokens = sizes[3];
  problem = {.batch = sizes[0],
             .heads = sizes[1],
             .kvHeads = sizes[2],
             .queries = options.queries,
             .headDim = sizes[4],
             .dtype = dtype,
             .valueDim = options.valueDim,
             .valuesInKeys = options.latent,
             .window = options.window,
             .softCap = options.softCap};
  const int64_t most = (tokens + options.ranks - 1) / options.ranks;
  const int64_t pages = options.pageSize ? (most + options.pageSize - 1) / options.pageSize : 0;
  const auto layoutOf = [&](int64_t dim) {
    if (options.pageSize)
      return ops::KeyLayout::paged(options.pageSize, pages, problem.kvHeads, dim);
    return options.order == "keys" ? ops::KeyLayout::keysFirst(problem.kvHeads, most, dim)
                                   : ops::KeyLayout::headsFirst(problem.kvHeads, most, dim);
  };
  problem.keys = layoutOf(problem.headDim);
  if (options.valueDim)
    problem.values = layoutOf(*options.valueDim);
  const uint64_t memoryPages = problem.batch * std::max<int64_t>(pages, 1);
  const uint64_t count = problem.keys.pageStride * memoryPages;
  const uint64_t valueCount = problem.values.value_or(problem.keys).pageStride * memoryPages;
  sinks.clear();
  for (int64_t head = 0; options.sinks && head < problem.heads; ++head)
    sinks.push_back(static_cast<float>(head % 5) - 1.0f);
  for (uint32_t id = 0; id < options.ranks; ++id) {
    runtime::Rank &rank = world->rank(id);
    OfRank &own = ranks[id];
    own.tokens = std::clamp<int64_t>(tokens - id * most, 0, most);
    for (auto [buffer, name] : {std::pair(&own.k, "k"), std::pair(&own.copy, "copy")}) {
      DITRON_ASSIGN_OR_RETURN(*buffer, rank.allocate(dtype, count, name));
    }
    if (!problem.valuesInKeys) {
      DITRON_ASSIGN_OR_RETURN(own.v, rank.allocate(dtype, valueCount, "v"));
      DITRON_RETURN_IF_ERROR(data->fill(own.v, 3 + 2 * id));
    }
    if (!sinks.empty()) {
      DITRON_ASSIGN_OR_RETURN(own.sinks, rank.allocate(DataType::F32, sinks.size(), "sinks"));
      DITRON_RETURN_IF_ERROR(own.sinks.uploadFloats(sinks));
    }
    DITRON_ASSIGN_OR_RETURN(own.q, rank.allocate(dtype, problem.rows() * problem.headDim, "q"));
    DITRON_ASSIGN_OR_RETURN(own.out, rank.allocate(dtype, problem.rows() * problem.dimOfValues(), "out"));
    DITRON_ASSIGN_OR_RETURN(own.lengths, rank.allocate(DataType::I32, problem.batch * problem.queries, "lengths"));
    DITRON_RETURN_IF_ERROR(data->fill(own.q, 1));
    DITRON_RETURN_IF_ERROR(data->fill(own.k, 2 + 2 * id));
    const std::vector<int32_t> lengths(problem.batch * problem.queries, static_cast<int32_t>(own.tokens));
    DITRON_RETURN_IF_ERROR(own.lengths.upload(lengths.data(), lengths.size() * sizeof(int32_t)));
    if (pages == 0)
      continue;
    own.pages.resize(problem.batch * pages);
    for (size_t page = 0; page < own.pages.size(); ++page)
      own.pages[page] = static_cast<int32_t>(page);
    std::mt19937_64 random(options.seed + id);
    std::ranges::shuffle(own.pages, random);
    DITRON_ASSIGN_OR_RETURN(own.table, rank.allocate(DataType::I32, own.pages.size(), "table"));
    DITRON_RETURN_IF_ERROR(own.table.upload(own.pages.data(), own.pages.size() * sizeof(int32_t)));
  }
  return Status::ok();
}

Status AttentionDecodeBench::benchShape(const std::string &shape) {
  progress.activity(shape + ": operands");
  DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(shape, 5, shapeForm));
  DITRON_RETURN_IF_ERROR(makeOperands(sizes));
  // K is read and as much is written, which is as many bytes as attention reads where V is as large; else the rates are compared.
  DITRON_ASSIGN_OR_RETURN(const double copy, microsecondsOf([&](uint32_t id) {
                            return world->rank(id).stream().copy(ranks[id].copy, ranks[id].k, ranks[id].k.count());
                          }));
  std::vector<std::optional<ops::DecodePlan>> plans;
  for (const std::string &text : options.plans) {
    DITRON_ASSIGN_OR_RETURN(const ops::DecodePlan plan, ops::parseDecodePlan(text));
    plans.push_back(plan);
  }
  if (plans.empty())
    plans.push_back(std::nullopt);
  for (const auto &plan : plans)
    DITRON_RETURN_IF_ERROR(benchPlan(&plan == &plans.front() ? shape : "", plan, copy));
  return Status::ok();
}

Expected<AttentionDecodeBench::Call> AttentionDecodeBench::prepare(const ops::DecodePlan &plan) {
  calls.clear();
  sharded.reset();
  if (options.ranks == 1) {
    DITRON_ASSIGN_OR_RETURN(ops::PreparedCall call,
                            ops::prepareAttentionDecode(*jit, world->rank(0), problem, operands(0), plan));
    calls.push_back(std::move(call));
    return Call([this](uint32_t id) { return calls[0].enqueue(world->rank(id).stream()); });
  }
  DITRON_ASSIGN_OR_RETURN(ops::ShardedAttentionDecode made,
                          ops::ShardedAttentionDecode::create(*world, *jit, {.problem = problem, .plan = plan}));
  sharded = std::move(made);
  for (uint32_t id = 0; id < options.ranks; ++id)
    DITRON_RETURN_IF_ERROR(sharded->prepare(world->rank(id), problem.batch, false, options.sinks));
  return Call([this](uint32_t id) {
    return sharded->enqueue(world->rank(id), world->rank(id).stream(), operands(id), problem.batch);
  });
}

Status AttentionDecodeBench::benchPlan(const std::string &shape, const std::optional<ops::DecodePlan> &given,
                                       double copy) {
  const ops::DecodePlan plan = given.value_or(ops::chooseDecodePlan(problem, world->rank(0).attributes()));
  progress.activity(fmt::format("{}: {}", shape, plan.text()));
  const auto prepared = prepare(plan);
  if (!prepared.isOk())
    return given ? blamedOnPlan(prepared.status()).withContext(plan.text()) : prepared.status();
  const Call &call = *prepared;
  for (uint32_t id = 0; id < options.ranks; ++id)
    DITRON_RETURN_IF_ERROR(world->rank(id).stream().fill(ranks[id].out, 0xff, ranks[id].out.count()));
  DITRON_RETURN_IF_ERROR(world->synchronize());
  DITRON_RETURN_IF_ERROR(callOnce(call));
  DITRON_ASSIGN_OR_RETURN(const double wrong, error());
  DITRON_RETURN_IF_ERROR(verifyError(wrong, allowedError).withContext(plan.text()));
  DITRON_ASSIGN_OR_RETURN(const double microseconds, microsecondsOf(call));
  const double bytes = problem.bytesOfKeys(static_cast<double>(problem.batch * seenOf(ranks[0].tokens)));
  const double copied = 2.0 * static_cast<double>(ranks[0].k.bytes());
  const auto rate = [](double moved, double time) { return time > 0 ? moved / time * 1e-3 : 0.0; };
  const double share = microseconds > 0 ? rate(bytes, microseconds) / rate(copied, copy) : 0;
  table += fmt::format("{:<26}{:<36}{:>10}{:>9}{:>11}{:>9}  {:.1e}\n", shape, plan.text(), shown(microseconds, 2),
                       shown(rate(bytes, microseconds), 0), shown(rate(copied, copy), 0), shown(share, 3), wrong);
  reportRows.push_back({{"batch", problem.batch},
                        {"heads", problem.heads},
                        {"kv_heads", problem.kvHeads},
                        {"tokens_per_rank", ranks[0].tokens},
                        {"head_dim", problem.headDim},
                        {"plan", plan.text()},
                        {"microseconds", orNull(microseconds)},
                        {"gigabytes_per_second", orNull(rate(bytes, microseconds))},
                        {"copy_gigabytes_per_second", orNull(rate(copied, copy))},
                        {"share_of_copy", orNull(share)},
                        {"error", wrong}});
  return Status::ok();
}

ops::AttentionReference AttentionDecodeBench::reference() const {
  int64_t tokens = 0;
  for (const OfRank &each : ranks)
    tokens += each.tokens;
  // All queries see as many keys: of a window the reference has no others.
  const int64_t seen = seenOf(tokens), first = tokens - seen;
  const auto keyElement = [this, first](uint64_t salt, const ops::KeyLayout &keys) {
    return [this, keys, salt, first](int64_t batch, int64_t head, int64_t key, int64_t column) -> double {
      key += first;
      const int64_t id = key / ranks[0].tokens, own = key % ranks[0].tokens; // the first has as many as any
      const int64_t page = keys.pageSize ? ranks[id].pages[batch * keys.tableStride + own / keys.pageSize] : batch;
      const int64_t inPage = keys.pageSize ? own % keys.pageSize : own;
      return data->at(salt + 2 * id,
                      page * keys.pageStride + inPage * keys.rowStride + head * keys.headStride + column);
    };
  };
  ops::AttentionProblem plain = {.batch = problem.batch,
                                 .heads = problem.heads,
                                 .kvHeads = problem.kvHeads,
                                 .queries = problem.queries,
                                 .keys = seen,
                                 .headDim = problem.headDim,
                                 .valueDim = problem.dimOfValues(),
                                 .softCap = problem.softCap};
  ops::AttentionReference result(
      plain,
      [this](int64_t batch, int64_t head, int64_t query, int64_t column) -> double {
        return data->at(1, ((batch * problem.heads + head) * problem.queries + query) * problem.headDim + column);
      },
      keyElement(2, problem.keys),
      problem.valuesInKeys ? keyElement(2, problem.keys) : keyElement(3, problem.values.value_or(problem.keys)));
  result.sinks.assign(sinks.begin(), sinks.end());
  return result;
}

Expected<double> AttentionDecodeBench::error() {
  std::vector<std::vector<float>> results;
  for (uint32_t id = 0; id < options.ranks; ++id) {
    DITRON_ASSIGN_OR_RETURN(std::vector<float> values, ranks[id].out.downloadFloats());
    results.push_back(std::move(values));
    if (std::ranges::any_of(results.back(), [](float value) { return std::isnan(value); }))
      return internalError(fmt::format("rank {} has left NaN", id));
    if (results.back() != results.front())
      return internalError(fmt::format("ranks 0 and {} have other results", id));
  }
  constexpr int64_t mostSamples = 6;
  RelativeError error(dtype);
  const int64_t samples = std::min(problem.rows(), mostSamples);
  const ops::AttentionReference plain = reference();
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t row = samples == 1 ? 0 : i * (problem.rows() - 1) / (samples - 1);
    const int64_t head = row / problem.queries;
    const std::vector<double> expected =
        plain.row(head / problem.heads, head % problem.heads, row % problem.queries).out;
    const int64_t width = problem.dimOfValues();
    for (int64_t d = 0; d < width; ++d)
      error.add(results[0][row * width + d], expected[d]);
  }
  return error.value();
}

} // namespace

void addAttentionDecodeBenchCommand(CLI::App &bench, CommandContext &context) {
  CLI::App *command = bench.add_subcommand(
      "attention_decode",
      "Attention of few queries over many keys, beside a copy; over several ranks with keys spread over them");
  auto arguments = std::make_shared<DecodeBenchOptions>();
  DecodeBenchOptions &options = *arguments;
  addRankOptions(*command, options);
  command->add_option("--dtype", options.dtype, "bf16 or fp16")->capture_default_str();
  command->add_option("--queries", options.queries, "Of a sequence")
      ->check(integerBetween(1, 64))
      ->capture_default_str();
  command->add_option("--page", options.pageSize, "Keys of a page, in random order; 0: no pages")
      ->check(integerBetween(0, 65536))
      ->capture_default_str();
  command
      ->add_option("--order", options.order,
                   "Without pages: [batch, keys, heads, dim] (keys) or [batch, heads, keys, dim] (heads)")
      ->check(CLI::IsMember({"keys", "heads"}))
      ->capture_default_str();
  command
      ->add_option("--shape", options.shapes,
                   std::string(shapeForm) + ", tokens of all ranks together; may be given several times")
      ->type_name("SHAPE");
  command
      ->add_option("--plan", options.plans,
                   "How to do it, like '" + ops::DecodePlan().text() + "'; several are compared")
      ->type_name("PLAN");
  CLI::Option *latent = command->add_flag(
      "--latent", options.latent,
      "Multi-head latent attention: V is the first power of two of a row of K, as 512 of 576, and read with it");
  command->add_option("--value-dim", options.valueDim, "Elements of a row of V, where they are not those of K")
      ->check(integerBetween(16, 256))
      ->excludes(latent);
  command->add_option("--window", options.window, "One rank: keys before the last one that a query sees")
      ->check(integerBetween(0, INT32_MAX));
  command->add_option("--soft-cap", options.softCap, "A score s becomes CAP * tanh(s / CAP)")->type_name("CAP");
  command->add_flag("--sinks", options.sinks, "Each head has a score without a key besides");
  addReportOptions(*command, options);
  command->callback([&context, arguments] { context.finish(AttentionDecodeBench(*arguments).run(context.knobs)); });
}

} // namespace ditron::tool
