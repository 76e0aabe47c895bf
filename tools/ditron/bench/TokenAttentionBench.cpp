//===- TokenAttentionBench.cpp - ditron bench ag_attention and ring_attention -------------------------------------------------===//
//
// Attention to the keys of all ranks, gathered or going round, and its backward: overlapped with their way here, and behind it. Beside the forward stands attention without any exchange, as much as a rank has of it: so many heads of all tokens.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/KernelBench.h"
#include "bench/RankBench.h"
#include "bench/TokenAttentionOperands.h"
#include "overlap/OverlapCommands.h"

#include "ditron/ops/attention/Attention.h"
#include "ditron/ops/collectives/Barrier.h"
#include "ditron/ops/sequence_parallel/AllGatherAttention.h"
#include "ditron/ops/sequence_parallel/RingAttention.h"
#include "ditron/ops/sequence_parallel/RingAttentionBackward.h"

#include <fmt/format.h>

namespace ditron::tool {

namespace {

constexpr std::string_view shapeForm = "BATCHxHEADSxKV_HEADSxTOKENSxHEAD_DIM";
constexpr double allowedError = 3e-2, allowedGradientError = 6e-2;
struct TokenAttentionBenchOptions : RankBenchOptions {
  bool isRing = false, backward = false;
  std::string form = "auto";             ///< Of the ring's forward.
  uint32_t pieces = 0, ranksPerNode = 0; ///< Of a node; 0: all.
  int64_t packed = 0;                    ///< Sequences; 0: none are packed.
  ops::HeadAttentionTile tile;
  bool causal = true;
  std::vector<std::string> shapes = {"1x2x1x200x64"};
};

class TokenAttentionBench : RankBench {
public:
  explicit TokenAttentionBench(const TokenAttentionBenchOptions &options) : RankBench(options), options(options) {}
  Status run(const Knobs &knobs);

private:
  Status benchShape(const std::string &shape);
  /// Microseconds of one call of each; 0 where they are not measured. `computing`: the kernels of an overlapped call, with nothing to wait for but a meeting
  /// of the ranks in front, since what they do together takes as long as the slowest of them each time; `alone`: attention
  /// of as much, where that is a number of heads.
  struct Times {
    double overlapped = 0, unfused = 0, computing = 0, alone = 0;
  };
  /// By turns: cards change their clocks, and an exchange may be a hundredth of a call.
  Expected<Times> times();
  /// A call that has been made once, and whose result has been compared; also without its exchange.
  struct Contender {
    Call whole, computing;
  };
  Expected<Contender> contender(ops::Schedule schedule);
  Expected<Contender> forward();
  Expected<Contender> backward();
  /// Attention alone; none where a rank's part of it is no number of heads.
  Expected<Call> attentionAlone();
  template <typename Operator> Expected<Contender> forward(Operator made);
  template <typename Operator> Expected<Call> withoutExchange(std::shared_ptr<Operator> op) const;
  /// Refuses a result whose error is more than is allowed.
  Status check(Expected<double> error, double allowed);

  int planWidth() const { return options.backward ? 52 : 36; } // of the table's column

  const TokenAttentionBenchOptions &options;
  ops::RingAttentionOptions attention;
  std::optional<TokenAttentionOperands> operands;
  double worst = 0;
  std::string plan;
};

Status TokenAttentionBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkOptions());
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(parseShape(shape, 5, shapeForm).status());
  DITRON_RETURN_IF_ERROR(chooseTarget());
  runtime::WorldOptions nodes;
  nodes.ranksPerNode = options.ranksPerNode;
  DITRON_RETURN_IF_ERROR(start(knobs, nodes));
  const std::string_view name = options.isRing ? "ring_attention" : "ag_attention";
  const std::string onNodes = world->numNodes() > 1 ? fmt::format(" on {} nodes", world->numNodes()) : "";
  table = fmt::format("{}{}, {}, {}, {} x {}{}\n{:<26}{:<{}}{:>14}{:>12}{:>13}{:>15}{:>9}{:>13}{:>8}  {}\n", name,
                      options.backward ? " backward" : "", options.causal ? "causal" : "whole", toString(dtype),
                      options.ranks, gpu(), onNodes, "batch heads kv tokens dim", "plan", planWidth(), "overlapped us",
                      "unfused us", "computing us", "TFLOP/s a GPU", "unf./o.", "attention us", "hidden", "error");
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(benchShape(shape).withContext(shape));
  nlohmann::ordered_json report = reportOf(name);
  report["nodes"] = world->numNodes();
  report["backward"] = options.backward;
  report["causal"] = options.causal;
  report["packed"] = options.packed;
  report["dtype"] = toString(dtype);
  return finish(std::move(report));
}

Status TokenAttentionBench::check(Expected<double> error, double allowed) {
  DITRON_RETURN_IF_ERROR(error.status());
  worst = std::max(worst, *error);
  return verifyError(*error, allowed);
}

template <typename Operator>
Expected<RankBench::Call> TokenAttentionBench::withoutExchange(std::shared_ptr<Operator> op) const {
  if (simulated) // which has no times, and perhaps several nodes
    return Call();
  DITRON_ASSIGN_OR_RETURN(ops::Barrier made, ops::Barrier::create(*world, *jit));
  const auto meeting = std::make_shared<ops::Barrier>(std::move(made));
  return Call([this, op, meeting](uint32_t id) -> Status {
    runtime::Rank &rank = world->rank(id);
    DITRON_RETURN_IF_ERROR(meeting->enqueue(rank, rank.stream()));
    return op->enqueueWithoutExchange(rank, rank.stream(), attention.maxTokens);
  });
}

template <typename Operator> Expected<TokenAttentionBench::Contender> TokenAttentionBench::forward(Operator made) {
  const auto op = std::make_shared<Operator>(std::move(made));
  plan = op->planText();
  for (uint32_t id = 0; id < options.ranks; ++id)
    DITRON_RETURN_IF_ERROR(op->prepare(world->rank(id), attention.maxTokens, options.backward));
  const Call call = [this, op](uint32_t id) {
    const TokenAttentionOperands::Memory &own = operands->of(id);
    return op->enqueue(world->rank(id), world->rank(id).stream(),
                       {.q = own.q,
                        .k = own.k,
                        .v = own.v,
                        .out = own.out,
                        .lse = options.backward ? own.lse.pointer() : runtime::Pointer(),
                        .offsets = operands->offsetsOf(id)},
                       attention.maxTokens);
  };
  DITRON_RETURN_IF_ERROR(operands->poisonForward());
  DITRON_RETURN_IF_ERROR(callOnce(call));
  DITRON_RETURN_IF_ERROR(check(operands->forwardError(), allowedError));
  DITRON_ASSIGN_OR_RETURN(Call computing, withoutExchange(op));
  return Contender{call, std::move(computing)};
}

Expected<TokenAttentionBench::Contender> TokenAttentionBench::forward() {
  if (options.isRing) {
    DITRON_ASSIGN_OR_RETURN(ops::RingAttention op, ops::RingAttention::create(*world, *jit, attention));
    return forward(std::move(op));
  }
  DITRON_ASSIGN_OR_RETURN(ops::AllGatherAttention op,
                          ops::AllGatherAttention::create(*world, *jit,
                                                          {.batch = attention.batch,
                                                           .heads = attention.heads,
                                                           .kvHeads = attention.kvHeads,
                                                           .headDim = attention.headDim,
                                                           .dtype = attention.dtype,
                                                           .causal = attention.causal,
                                                           .maxTokens = attention.maxTokens,
                                                           .packedSequences = attention.packedSequences,
                                                           .pieces = options.pieces,
                                                           .schedule = attention.schedule,
                                                           .tile = attention.tile}));
  return forward(std::move(op));
}

Expected<TokenAttentionBench::Contender> TokenAttentionBench::backward() {
  DITRON_ASSIGN_OR_RETURN(ops::RingAttentionBackward made, ops::RingAttentionBackward::create(*world, *jit, attention));
  const auto op = std::make_shared<ops::RingAttentionBackward>(std::move(made));
  plan = op->planText();
  for (uint32_t id = 0; id < options.ranks; ++id)
    DITRON_RETURN_IF_ERROR(op->prepare(world->rank(id), attention.maxTokens));
  const Call call = [this, op](uint32_t id) {
    const TokenAttentionOperands::Memory &own = operands->of(id);
    return op->enqueue(world->rank(id), world->rank(id).stream(),
                       {.q = own.q,
                        .k = own.k,
                        .v = own.v,
                        .out = own.out,
                        .lse = own.lse,
                        .gradient = own.gradient,
                        .dq = own.dq,
                        .dk = own.dk,
                        .dv = own.dv,
                        .offsets = operands->offsetsOf(id)},
                       attention.maxTokens);
  };
  DITRON_RETURN_IF_ERROR(operands->poisonBackward());
  DITRON_RETURN_IF_ERROR(callOnce(call));
  DITRON_RETURN_IF_ERROR(check(operands->backwardError(), allowedGradientError));
  DITRON_ASSIGN_OR_RETURN(Call computing, withoutExchange(op));
  return Contender{call, std::move(computing)};
}

Expected<TokenAttentionBench::Contender> TokenAttentionBench::contender(ops::Schedule schedule) {
  attention.schedule = schedule;
  DITRON_ASSIGN_OR_RETURN(Contender made, forward());
  return options.backward ? backward() : std::move(made);
}

Expected<RankBench::Call> TokenAttentionBench::attentionAlone() {
  const auto ranks = static_cast<int64_t>(options.ranks);
  if (simulated || options.backward || options.packed || attention.heads % ranks || attention.kvHeads % ranks)
    return Call();
  const ops::AttentionProblem problem = {.batch = attention.batch,
                                         .heads = attention.heads / ranks,
                                         .kvHeads = attention.kvHeads / ranks,
                                         .queries = attention.maxTokens,
                                         .keys = attention.maxTokens,
                                         .headDim = attention.headDim,
                                         .causal = attention.causal,
                                         .dtype = dtype};
  struct Alone {
    std::vector<TokenAttentionOperands::Memory> own;
    std::vector<ops::PreparedCall> calls;
  };
  const auto alone = std::make_shared<Alone>();
  alone->own.resize(options.ranks);
  alone->calls.resize(options.ranks);
  std::vector<TokenAttentionOperands::Memory> &own = alone->own;
  for (uint32_t id = 0; id < options.ranks; ++id) {
    runtime::Rank &rank = world->rank(id);
    const auto make = [&](runtime::Buffer &buffer, int64_t heads, std::string_view name, uint64_t salt) -> Status {
      DITRON_ASSIGN_OR_RETURN(
          buffer, rank.allocate(dtype, problem.batch * heads * attention.maxTokens * attention.headDim, name));
      return data->fill(buffer, salt + 4 * id);
    };
    DITRON_RETURN_IF_ERROR(make(own[id].q, problem.heads, "own q", 1));
    DITRON_RETURN_IF_ERROR(make(own[id].k, problem.kvHeads, "own k", 2));
    DITRON_RETURN_IF_ERROR(make(own[id].v, problem.kvHeads, "own v", 3));
    DITRON_RETURN_IF_ERROR(make(own[id].out, problem.heads, "own out", 4));
    DITRON_ASSIGN_OR_RETURN(
        alone->calls[id], ops::prepareAttention(*jit, rank, problem,
                                                {.q = own[id].q, .k = own[id].k, .v = own[id].v, .out = own[id].out}));
  }
  return Call([this, alone](uint32_t id) { return alone->calls[id].enqueue(world->rank(id).stream()); });
}

Expected<TokenAttentionBench::Times> TokenAttentionBench::times() {
  DITRON_ASSIGN_OR_RETURN(const Contender overlapped, contender(ops::Schedule::Overlapped));
  DITRON_ASSIGN_OR_RETURN(const Contender unfused, contender(ops::Schedule::Unfused));
  DITRON_ASSIGN_OR_RETURN(const Call alone, attentionAlone());
  Times result;
  const std::array<std::pair<const Call *, double *>, 4> contenders = {{{&overlapped.whole, &result.overlapped},
                                                                        {&unfused.whole, &result.unfused},
                                                                        {&overlapped.computing, &result.computing},
                                                                        {&alone, &result.alone}}};
  constexpr size_t rounds = 3;
  std::array<std::array<double, rounds>, std::size(contenders)> all = {};
  for (size_t round = 0; round < rounds; ++round)
    for (size_t i = 0; i < contenders.size(); ++i)
      if (*contenders[i].first) {
        DITRON_ASSIGN_OR_RETURN(all[i][round], microsecondsOf(*contenders[i].first));
      }
  for (size_t i = 0; i < contenders.size(); ++i) {
    std::ranges::sort(all[i]);
    *contenders[i].second = all[i][rounds / 2];
  }
  return result;
}

Status TokenAttentionBench::benchShape(const std::string &shape) {
  progress.activity(shape);
  DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(shape, 5, shapeForm));
  attention = {.batch = sizes[0],
               .heads = sizes[1],
               .kvHeads = sizes[2],
               .headDim = sizes[4],
               .dtype = dtype,
               .causal = options.causal,
               .maxTokens = sizes[3],
               .tile = options.tile};
  if (options.form != "auto")
    attention.gather = options.form == "gathered";
  if (options.packed)
    attention.packedSequences = options.packed;
  worst = 0;
  operands.reset(); // before those of this shape are allocated
  DITRON_ASSIGN_OR_RETURN(operands, TokenAttentionOperands::create(*world, *data, attention, options.backward));
  DITRON_ASSIGN_OR_RETURN(const Times measured, times());
  const auto [overlapped, unfused, computing, alone] = measured;
  // How much of what the exchange takes has been hidden: (computing + exchange - overlapped) / exchange, after paper 002, figure 10.
  const double hidden = computing > 0 && unfused > computing ? (unfused - overlapped) / (unfused - computing) : 0;
  table += fmt::format("{:<26}{:<{}}{:>14}{:>12}{:>13}{:>15}{:>9}{:>13}{:>8}  {:.1e}\n", shape, plan, planWidth(),
                       shown(overlapped, 1), shown(unfused, 1), shown(computing, 1),
                       shown(overlapped > 0 ? operands->flops() / overlapped * 1e-6 : 0, 1),
                       shown(overlapped > 0 ? unfused / overlapped : 0, 3), shown(alone, 1), shown(hidden, 2), worst);
  nlohmann::ordered_json row = {{"shape", shape}, {"plan", plan}};
  if (!options.isRing)
    row["pieces"] = options.pieces;
  row["overlapped_microseconds"] = orNull(overlapped);
  row["unfused_microseconds"] = orNull(unfused);
  row["computing_microseconds"] = orNull(computing);
  row["attention_microseconds"] = orNull(alone);
  row["hidden"] = orNull(hidden);
  row["error"] = worst;
  reportRows.push_back(std::move(row));
  return Status::ok();
}

void addCommand(CLI::App &bench, CommandContext &context, bool isRing) {
  CLI::App *command =
      isRing ? bench.add_subcommand("ring_attention", "Attention to the keys of all ranks, which go round them or, "
                                                      "where that takes no more memory, are gathered")
             : bench.add_subcommand("ag_attention", "Attention to the keys of all ranks, which come meanwhile");
  auto arguments = std::make_shared<TokenAttentionBenchOptions>();
  TokenAttentionBenchOptions &options = *arguments;
  options.isRing = isRing;
  addRankOptions(*command, options, "Number of ranks; 1: attention alone");
  command->add_option("--dtype", options.dtype, "bf16 or fp16")->capture_default_str();
  command->add_flag("!--no-causal", options.causal, "Every query sees every key");
  command->add_flag("--backward", options.backward,
                    "Gradients of Q, K and V, behind one forward call; keys and queries go round the ranks");
  command
      ->add_option("--packed", options.packed,
                   "Tokens are those of so many sequences one behind the other, of growing lengths; 0: of one")
      ->check(integerBetween(0, 4096))
      ->capture_default_str();
  if (isRing)
    command
        ->add_option("--form", options.form,
                     "Of the forward: auto, gathered (all shards, one launch) or ring (shards go round)")
        ->check(CLI::IsMember({"auto", "gathered", "ring"}))
        ->capture_default_str();
  if (isRing)
    command
        ->add_option("--ranks-per-node", options.ranksPerNode,
                     "Simulated nodes of so many ranks, between which shards go by puts; 0: all ranks on one")
        ->check(integerBetween(0, 64))
        ->capture_default_str();
  if (!isRing)
    command->add_option("--pieces", options.pieces, "Signals for a rank's heads of K and V; 0: the library's choice")
        ->check(integerBetween(0, 1024))
        ->capture_default_str();
  for (auto [name, value] :
       {std::pair("--block-m", &options.tile.blockM), std::pair("--block-n", &options.tile.blockN),
        std::pair("--num-warps", &options.tile.numWarps), std::pair("--num-stages", &options.tile.numStages)})
    command->add_option(name, *value, "Of the forward; 0: the library's choice")
        ->check(integerBetween(0, 256))
        ->capture_default_str();
  command
      ->add_option("--shape", options.shapes,
                   std::string(shapeForm) + ", tokens of all ranks together; may be given several times")
      ->type_name("SHAPE");
  addReportOptions(*command, options);
  command->callback([&context, arguments] { context.finish(TokenAttentionBench(*arguments).run(context.knobs)); });
}

} // namespace

void addTokenAttentionBenchCommands(CLI::App &bench, CommandContext &context) {
  for (bool isRing : {false, true})
    addCommand(bench, context, isRing);
}

} // namespace ditron::tool
