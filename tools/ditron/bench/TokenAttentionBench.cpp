//===- TokenAttentionBench.cpp - ditron bench ag_attention and ring_attention -------------------------------------------------===//
//
// Attention to the keys of all ranks, gathered or going round, and its backward: overlapped with their way here, and behind it. Some rows of every result are compared
// with the plain reference. Beside the forward stands attention without any exchange, as much as a rank has of it: so many heads of all tokens.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/KernelBench.h"
#include "bench/RankBench.h"
#include "overlap/OverlapCommands.h"

#include "ditron/ops/attention/Attention.h"
#include "ditron/ops/attention/AttentionReference.h"
#include "ditron/ops/collectives/Barrier.h"
#include "ditron/ops/sequence_parallel/AllGatherAttention.h"
#include "ditron/ops/sequence_parallel/RingAttention.h"
#include "ditron/ops/sequence_parallel/RingAttentionBackward.h"

#include <fmt/format.h>
#include <future>

namespace ditron::tool {

namespace {

constexpr std::string_view shapeForm = "BATCHxHEADSxKV_HEADSxTOKENSxHEAD_DIM";
constexpr double allowedError = 3e-2, allowedGradientError = 6e-2;
/// Rows of results that are compared; one of a key's gradients takes as long as a whole head of others.
constexpr int64_t samples = 13, keySamples = 5;

/// Salts of a rank's data.
enum : uint64_t { Q = 1, K, V, Gradient, Salts };

/// What `make` gives for 0 to count - 1, by a thread each: a row of many keys takes seconds.
template <typename Make> auto ofSamples(int64_t count, const Make &make) {
  using Result = decltype(make(int64_t()));
  std::vector<std::future<Result>> running;
  for (int64_t i = 0; i < count; ++i)
    running.push_back(std::async(std::launch::async, [&make, i] { return make(i); }));
  std::vector<Result> results;
  for (std::future<Result> &each : running)
    results.push_back(each.get());
  return results;
}

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
  struct Memory {
    runtime::Buffer q, k, v, out, lse, gradient, dq, dk, dv, offsets;
  };
  /// What all ranks have of a tensor.
  using Downloads = std::vector<std::vector<float>>;

  Status benchShape(const std::string &shape);
  Status makeOperands();
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
  Status poison(std::initializer_list<runtime::Buffer Memory::*> results);
  Expected<Downloads> download(runtime::Buffer Memory::*which) const;
  /// The i-th of `count` heads and tokens, of so many heads of all batches, from the first to the last.
  std::pair<int64_t, int64_t> sample(int64_t i, int64_t count, int64_t heads) const {
    const int64_t index = i * (heads * attention.maxTokens - 1) / (count - 1);
    return {index / attention.maxTokens, index % attention.maxTokens};
  }
  Status checkForward();
  Status checkBackward();

  runtime::Pointer offsetsOf(const Memory &own) const {
    return options.packed ? own.offsets.pointer() : runtime::Pointer();
  }
  int planWidth() const { return options.backward ? 52 : 36; } // of the table's column
  ops::TokenSections sections() const { return {attention.maxTokens, options.ranks, attention.causal}; }
  /// Where a head's token is among a rank's rows of so many heads: the rank, and the row.
  std::pair<uint32_t, int64_t> placeOf(int64_t head, int64_t token) const;
  /// Where a head's token is for the reference, to which packed sequences are batches: batch, and row.
  std::pair<int64_t, int64_t> rowOf(int64_t head, int64_t headsOfBatch, int64_t token) const;
  ops::AttentionElement element(uint64_t salt, int64_t headsOfBatch) const;
  /// A head of all batches, and a token among all, of what the reference calls so.
  std::pair<int64_t, int64_t> headAndToken(int64_t batch, int64_t head, int64_t headsOfBatch, int64_t row) const;
  ops::AttentionReference reference() const;

  const TokenAttentionBenchOptions &options;
  ops::RingAttentionOptions attention;
  std::vector<int64_t> offsets; ///< Of packed sequences: the i-th has a part of the tokens that grows with i.
  std::vector<Memory> memory;
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

Status TokenAttentionBench::makeOperands() {
  memory.clear();
  for (uint32_t id = 0; id < options.ranks; ++id) {
    runtime::Rank &rank = world->rank(id);
    const int64_t rows = std::max<int64_t>(sections().tokensOf(id), 1) * attention.batch;
    Memory each;
    const auto make = [&](runtime::Buffer &buffer, int64_t heads, std::string_view name,
                          std::optional<uint64_t> salt = std::nullopt) -> Status {
      DITRON_ASSIGN_OR_RETURN(buffer, rank.allocate(dtype, rows * heads * attention.headDim, name));
      return salt ? data->fill(buffer, *salt + Salts * id) : Status::ok();
    };
    DITRON_RETURN_IF_ERROR(make(each.q, attention.heads, "q", Q));
    DITRON_RETURN_IF_ERROR(make(each.k, attention.kvHeads, "k", K));
    DITRON_RETURN_IF_ERROR(make(each.v, attention.kvHeads, "v", V));
    DITRON_RETURN_IF_ERROR(make(each.out, attention.heads, "out"));
    if (options.backward) {
      DITRON_ASSIGN_OR_RETURN(each.lse, rank.allocate(DataType::F32, rows * attention.heads, "lse"));
      DITRON_RETURN_IF_ERROR(make(each.gradient, attention.heads, "gradient", Gradient));
      DITRON_RETURN_IF_ERROR(make(each.dq, attention.heads, "dq"));
      DITRON_RETURN_IF_ERROR(make(each.dk, attention.kvHeads, "dk"));
      DITRON_RETURN_IF_ERROR(make(each.dv, attention.kvHeads, "dv"));
    }
    if (options.packed) {
      const std::vector<int32_t> values(offsets.begin(), offsets.end());
      DITRON_ASSIGN_OR_RETURN(each.offsets, rank.allocate(DataType::I32, values.size(), "offsets"));
      DITRON_RETURN_IF_ERROR(each.offsets.upload(values.data(), values.size() * sizeof(int32_t)));
    }
    memory.push_back(std::move(each));
  }
  return world->synchronize();
}

std::pair<uint32_t, int64_t> TokenAttentionBench::placeOf(int64_t head, int64_t token) const {
  const ops::TokenSections dealt = sections();
  const int64_t number = token / dealt.sectionTokens();
  const auto ranks = static_cast<int64_t>(dealt.ranks);
  const auto rank = static_cast<uint32_t>(number < ranks ? number : 2 * ranks - 1 - number);
  const int64_t before = number < ranks ? 0 : dealt.tokensOf(rank, 0);
  return {rank, head * dealt.tokensOf(rank) + before + token - dealt.firstToken(rank, number < ranks ? 0 : 1)};
}

std::pair<int64_t, int64_t> TokenAttentionBench::rowOf(int64_t head, int64_t headsOfBatch, int64_t token) const {
  if (!options.packed)
    return {head / headsOfBatch, token};
  const int64_t sequence = std::ranges::upper_bound(offsets, token) - offsets.begin() - 1;
  return {sequence, token - offsets[sequence]};
}

std::pair<int64_t, int64_t> TokenAttentionBench::headAndToken(int64_t batch, int64_t head, int64_t headsOfBatch,
                                                              int64_t row) const {
  if (options.packed)
    return {head, offsets[batch] + row};
  return {batch * headsOfBatch + head, row};
}

ops::AttentionElement TokenAttentionBench::element(uint64_t salt, int64_t headsOfBatch) const {
  return [this, salt, headsOfBatch](int64_t batch, int64_t head, int64_t token, int64_t column) -> double {
    const auto [allHead, place] = headAndToken(batch, head, headsOfBatch, token);
    const auto [rank, row] = placeOf(allHead, place);
    return data->at(salt + Salts * rank, row * attention.headDim + column);
  };
}

ops::AttentionReference TokenAttentionBench::reference() const {
  ops::AttentionReference plain({.batch = attention.batch,
                                 .heads = attention.heads,
                                 .kvHeads = attention.kvHeads,
                                 .queries = attention.maxTokens,
                                 .keys = attention.maxTokens,
                                 .headDim = attention.headDim,
                                 .causal = attention.causal},
                                element(Q, attention.heads), element(K, attention.kvHeads),
                                element(V, attention.kvHeads));
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    plain.queries.push_back(offsets[i + 1] - offsets[i]);
    plain.keys.push_back(plain.queries.back());
  }
  return plain;
}

Status TokenAttentionBench::poison(std::initializer_list<runtime::Buffer Memory::*> results) {
  for (uint32_t id = 0; id < options.ranks; ++id)
    for (runtime::Buffer Memory::*result : results) {
      runtime::Buffer &buffer = memory[id].*result;
      if (buffer.isValid())
        DITRON_RETURN_IF_ERROR(world->rank(id).stream().fill(buffer, 0xff, buffer.count()));
    }
  return Status::ok();
}

Expected<TokenAttentionBench::Downloads> TokenAttentionBench::download(runtime::Buffer Memory::*which) const {
  Downloads all;
  for (const Memory &each : memory) {
    DITRON_ASSIGN_OR_RETURN(std::vector<float> values, (each.*which).downloadFloats());
    all.push_back(std::move(values));
  }
  return all;
}

Status TokenAttentionBench::checkForward() {
  const int64_t heads = attention.batch * attention.heads;
  DITRON_ASSIGN_OR_RETURN(const Downloads out, download(&Memory::out));
  const ops::AttentionReference plain = reference();
  const auto expected = ofSamples(samples, [&](int64_t i) {
    const auto [head, query] = sample(i, samples, heads);
    const auto [batch, own] = rowOf(head, attention.heads, query);
    return plain.row(batch, head % attention.heads, own).out;
  });
  RelativeError error(dtype);
  for (int64_t i = 0; i < samples; ++i) {
    const auto [head, query] = sample(i, samples, heads);
    const auto [rank, row] = placeOf(head, query);
    for (int64_t d = 0; d < attention.headDim; ++d)
      error.add(out[rank][row * attention.headDim + d], expected[i][d]);
  }
  worst = std::max(worst, error.value());
  return verifyError(error.value(), allowedError);
}

Status TokenAttentionBench::checkBackward() {
  const int64_t depth = attention.headDim;
  const ops::AttentionReference plain = reference();
  const ops::AttentionElement gradient = element(Gradient, attention.heads);
  DITRON_ASSIGN_OR_RETURN(const Downloads out, download(&Memory::out));
  DITRON_ASSIGN_OR_RETURN(const Downloads lse, download(&Memory::lse));
  DITRON_ASSIGN_OR_RETURN(const Downloads dq, download(&Memory::dq));
  DITRON_ASSIGN_OR_RETURN(const Downloads dk, download(&Memory::dk));
  DITRON_ASSIGN_OR_RETURN(const Downloads dv, download(&Memory::dv));
  RelativeError ofQueries(dtype), ofKeys(dtype), ofValues(dtype);
  const int64_t heads = attention.batch * attention.heads, keyHeads = attention.batch * attention.kvHeads;
  const auto ofQuery = ofSamples(samples, [&](int64_t i) {
    const auto [head, query] = sample(i, samples, heads);
    const auto [batch, own] = rowOf(head, attention.heads, query);
    return plain.queryGradient(gradient, batch, head % attention.heads, own);
  });
  for (int64_t i = 0; i < samples; ++i) {
    const auto [head, query] = sample(i, samples, heads);
    const auto [rank, row] = placeOf(head, query);
    for (int64_t d = 0; d < depth; ++d)
      ofQueries.add(dq[rank][row * depth + d], ofQuery[i][d]);
  }
  const auto ofKey = ofSamples(keySamples, [&](int64_t i) {
    const auto [head, key] = sample(i, keySamples, keyHeads);
    const auto [batch, ownKey] = rowOf(head, attention.kvHeads, key);
    // The forward call's rows, which have been compared themselves.
    const auto queryPlace = [&, inBatch = batch](int64_t queryHead, int64_t query) {
      const auto [allHead, token] = headAndToken(inBatch, queryHead, attention.heads, query);
      return placeOf(allHead, token);
    };
    const auto lseOf = [&](int64_t queryHead, int64_t query) -> double {
      const auto [rank, row] = queryPlace(queryHead, query);
      return lse[rank][row];
    };
    const auto deltaOf = [&, inBatch = batch](int64_t queryHead, int64_t query) {
      const auto [rank, row] = queryPlace(queryHead, query);
      double sum = 0;
      for (int64_t d = 0; d < depth; ++d)
        sum += out[rank][row * depth + d] * gradient(inBatch, queryHead, query, d);
      return sum;
    };
    return plain.keyGradients(gradient, batch, head % attention.kvHeads, ownKey, lseOf, deltaOf);
  });
  for (int64_t i = 0; i < keySamples; ++i) {
    const auto [head, key] = sample(i, keySamples, keyHeads);
    const auto [rank, row] = placeOf(head, key);
    for (int64_t d = 0; d < depth; ++d) {
      ofKeys.add(dk[rank][row * depth + d], ofKey[i].k[d]);
      ofValues.add(dv[rank][row * depth + d], ofKey[i].v[d]);
    }
  }
  const double error = std::max({ofQueries.value(), ofKeys.value(), ofValues.value()});
  worst = std::max(worst, error);
  return verifyError(error, allowedGradientError);
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
    const Memory &own = memory[id];
    return op->enqueue(world->rank(id), world->rank(id).stream(),
                       {.q = own.q,
                        .k = own.k,
                        .v = own.v,
                        .out = own.out,
                        .lse = options.backward ? own.lse.pointer() : runtime::Pointer(),
                        .offsets = offsetsOf(own)},
                       attention.maxTokens);
  };
  DITRON_RETURN_IF_ERROR(poison({&Memory::out, &Memory::lse}));
  DITRON_RETURN_IF_ERROR(callOnce(call));
  DITRON_RETURN_IF_ERROR(checkForward());
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
    const Memory &own = memory[id];
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
                        .offsets = offsetsOf(own)},
                       attention.maxTokens);
  };
  DITRON_RETURN_IF_ERROR(poison({&Memory::dq, &Memory::dk, &Memory::dv}));
  DITRON_RETURN_IF_ERROR(callOnce(call));
  DITRON_RETURN_IF_ERROR(checkBackward());
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
    std::vector<Memory> own;
    std::vector<ops::PreparedCall> calls;
  };
  const auto alone = std::make_shared<Alone>();
  alone->own.resize(options.ranks);
  alone->calls.resize(options.ranks);
  std::vector<Memory> &own = alone->own;
  for (uint32_t id = 0; id < options.ranks; ++id) {
    runtime::Rank &rank = world->rank(id);
    const auto make = [&](runtime::Buffer &buffer, int64_t heads, std::string_view name, uint64_t salt) -> Status {
      DITRON_ASSIGN_OR_RETURN(
          buffer, rank.allocate(dtype, problem.batch * heads * attention.maxTokens * attention.headDim, name));
      return data->fill(buffer, salt + Salts * id);
    };
    DITRON_RETURN_IF_ERROR(make(own[id].q, problem.heads, "own q", Q));
    DITRON_RETURN_IF_ERROR(make(own[id].k, problem.kvHeads, "own k", K));
    DITRON_RETURN_IF_ERROR(make(own[id].v, problem.kvHeads, "own v", V));
    DITRON_RETURN_IF_ERROR(make(own[id].out, problem.heads, "own out", Q));
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
  offsets.clear();
  if (options.packed) {
    attention.packedSequences = options.packed;
    for (int64_t i = 0; i <= options.packed; ++i)
      offsets.push_back(attention.maxTokens * i * (i + 1) / (options.packed * (options.packed + 1)));
  }
  worst = 0;
  DITRON_RETURN_IF_ERROR(makeOperands());
  DITRON_ASSIGN_OR_RETURN(const Times measured, times());
  const auto [overlapped, unfused, computing, alone] = measured;
  // How much of what the exchange takes has been hidden: (computing + exchange - overlapped) / exchange, after paper 002, figure 10.
  const double hidden = computing > 0 && unfused > computing ? (unfused - overlapped) / (unfused - computing) : 0;
  const auto squared = [](int64_t tokens) { return static_cast<double>(tokens) * static_cast<double>(tokens); };
  double pairs = options.packed ? 0 : squared(attention.maxTokens);
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    pairs += squared(offsets[i + 1] - offsets[i]);
  pairs /= (attention.causal ? 2 : 1) * options.ranks;
  // Two products a pair of tokens; of the backward five are necessary.
  const double products = options.backward ? 5 : 2;
  const double flops =
      2.0 * products * static_cast<double>(attention.batch * attention.heads * attention.headDim) * pairs;
  table += fmt::format("{:<26}{:<{}}{:>14}{:>12}{:>13}{:>15}{:>9}{:>13}{:>8}  {:.1e}\n", shape, plan, planWidth(),
                       shown(overlapped, 1), shown(unfused, 1), shown(computing, 1),
                       shown(overlapped > 0 ? flops / overlapped * 1e-6 : 0, 1),
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
