//===- AttentionLayerBench.cpp - ditron bench attention_layer -----------------------------------------------------------------===//
//
// TensorParallelAttention in a step of decoding or a prefill: the whole layer, and what of it are attention and the rank's two products by
// themselves; the rest is norm, rotation, exchange and launches. Rows of the result are compared with sums in double precision over the keys that the layer has put into
// its cache, and those with the projection.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/KernelBench.h"
#include "bench/RankBench.h"
#include "overlap/OverlapCommands.h"

#include "ditron/ops/Gemm.h"
#include "ditron/ops/layers/TensorParallelAttention.h"

#include <cmath>
#include <fmt/format.h>

namespace ditron::tool {

namespace {

constexpr std::string_view shapeForm = "SEQUENCESxTOKENSxHIDDENxHEADSxKV_HEADSxHEAD";
constexpr double allowedError = 2e-2, epsilon = 1e-6;

struct AttentionLayerBenchOptions : RankBenchOptions {
  bool prefill = false, dealt = false;
  std::vector<std::string> shapes = {"2x40x64x8x4x16"};
};

class AttentionLayerBench : RankBench {
public:
  explicit AttentionLayerBench(const AttentionLayerBenchOptions &options) : RankBench(options), options(options) {}
  Status run(const Knobs &knobs);

private:
  /// A rank's memory.
  struct PerRank {
    runtime::Buffer qkv, out, qNorm, kNorm, rotary, x, y, keys, values, lengths, offsets;
  };
  struct Times {
    double layer = 0, attention = 0, products = 0;
  };
  /// Where operands begin in the table of numbers.
  enum Salt : uint64_t { OfX = 1, OfQkv = 100, OfOut = 200, OfNorm = 300 };

  Status benchShape(const std::string &shape);
  Status allocate(const ops::TensorParallelAttention &layer);
  Expected<ops::TensorParallelAttention> makeLayer();
  Expected<Times> measure(ops::TensorParallelAttention &layer);
  Expected<double> attentionAlone(const ops::TensorParallelAttention &layer);
  Expected<double> productsAlone();
  Status check(const ops::TensorParallelAttention &layer);
  Status checkToken(const ops::TensorParallelAttention &layer, int64_t sequence, RelativeError &error);
  /// Values of a tensor's part, from an element on.
  Expected<std::vector<float>> partOf(uint32_t id, runtime::Pointer first, int64_t count);

  int64_t tokensOfCall() const { return options.prefill ? sequences * tokens : sequences; }
  ops::RowShards shards() const { return {tokensOfCall(), options.ranks}; }
  int64_t ownHeads() const { return heads / options.ranks; }
  int64_t ownKvHeads() const { return std::max<int64_t>(kvHeads / options.ranks, 1); }
  double xAt(int64_t token, int64_t column) const;
  /// A head of a rank's projection of a token, as it goes on: head counts those of Q, of K, of V.
  std::vector<double> headOf(uint32_t id, int64_t head, int64_t token, int64_t position) const;

  const AttentionLayerBenchOptions &options;
  int64_t sequences = 0, tokens = 0, hidden = 0, heads = 0, kvHeads = 0, depth = 0;
  std::vector<PerRank> memory;
  std::vector<float> angles;
};

Status AttentionLayerBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkOptions());
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(parseShape(shape, 6, shapeForm).status());
  DITRON_RETURN_IF_ERROR(chooseTarget());
  DITRON_RETURN_IF_ERROR(start(knobs));
  table = fmt::format("{} of TensorParallelAttention, {}, tokens {}, {} x {}\n{:<34}{:>12}{:>14}{:>13}{:>10}\n",
                      options.prefill ? "prefill" : "a step of decoding", toString(dtype),
                      options.dealt ? "dealt out" : "replicated", options.ranks, gpu(),
                      "sequences tokens hidden heads kv d", "layer us", "attention us", "products us", "rest us");
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(benchShape(shape).withContext(shape));
  nlohmann::ordered_json report = reportOf("attention_layer");
  report["dtype"] = toString(dtype);
  report["prefill"] = options.prefill;
  report["dealt"] = options.dealt;
  return finish(std::move(report));
}

Expected<ops::TensorParallelAttention> AttentionLayerBench::makeLayer() {
  ops::TensorParallelAttentionOptions o;
  o.dtype = dtype;
  o.hidden = hidden;
  o.heads = heads;
  o.kvHeads = kvHeads;
  o.headDim = depth;
  o.rotary = {.dim = depth};
  o.normEpsilon = epsilon;
  o.tokens = options.dealt ? ops::AttentionTokens::Dealt : ops::AttentionTokens::Replicated;
  o.maxTokens = tokensOfCall();
  o.maxBatch = sequences;
  o.maxKeys = tokens;
  angles.clear();
  for (int64_t position = 0; position < tokens; ++position)
    for (bool isSine : {false, true})
      for (int64_t j = 0; j < depth / 2; ++j) {
        const double angle =
            static_cast<double>(position) * std::pow(1e4, -2.0 * static_cast<double>(j) / static_cast<double>(depth));
        angles.push_back(static_cast<float>(isSine ? std::sin(angle) : std::cos(angle)));
      }
  memory = std::vector<PerRank>(options.ranks);
  std::vector<ops::TensorParallelAttentionWeights> weights;
  for (uint32_t id = 0; id < options.ranks; ++id) {
    runtime::Rank &rank = world->rank(id);
    PerRank &own = memory[id];
    const int64_t rows = (ownHeads() + 2 * ownKvHeads()) * depth;
    DITRON_ASSIGN_OR_RETURN(own.qkv, rank.allocate(dtype, rows * hidden, "qkv"));
    DITRON_ASSIGN_OR_RETURN(own.out, rank.allocate(dtype, hidden * ownHeads() * depth, "out"));
    DITRON_ASSIGN_OR_RETURN(own.qNorm, rank.allocate(dtype, depth, "q_norm"));
    DITRON_ASSIGN_OR_RETURN(own.kNorm, rank.allocate(dtype, depth, "k_norm"));
    DITRON_ASSIGN_OR_RETURN(own.rotary, rank.allocate(DataType::F32, angles.size(), "rotary"));
    DITRON_RETURN_IF_ERROR(data->fill(own.qkv, OfQkv + id));
    DITRON_RETURN_IF_ERROR(data->fill(own.out, OfOut + id));
    DITRON_RETURN_IF_ERROR(data->fill(own.qNorm, OfNorm));
    DITRON_RETURN_IF_ERROR(data->fill(own.kNorm, OfNorm));
    DITRON_RETURN_IF_ERROR(own.rotary.uploadFloats(angles));
    weights.push_back({.qkv = own.qkv, .out = own.out, .qNorm = own.qNorm, .kNorm = own.kNorm, .rotary = own.rotary});
  }
  return ops::TensorParallelAttention::create(*world, *jit, o, weights);
}

Status AttentionLayerBench::allocate(const ops::TensorParallelAttention &layer) {
  std::vector<int32_t> offsets;
  for (int64_t sequence = 0; sequence <= sequences; ++sequence)
    offsets.push_back(static_cast<int32_t>(sequence * tokens));
  const std::vector<int32_t> lengths(sequences, static_cast<int32_t>(tokens));
  for (uint32_t id = 0; id < options.ranks; ++id) {
    runtime::Rank &rank = world->rank(id);
    PerRank &own = memory[id];
    const int64_t rows = options.dealt ? shards().rowsPerRank : tokensOfCall();
    DITRON_ASSIGN_OR_RETURN(own.x, rank.allocate(dtype, rows * hidden, "x"));
    DITRON_ASSIGN_OR_RETURN(own.y, rank.allocate(dtype, rows * hidden, "y"));
    DITRON_ASSIGN_OR_RETURN(own.keys, rank.allocate(dtype, layer.cacheElements(), "keys"));
    DITRON_ASSIGN_OR_RETURN(own.values, rank.allocate(dtype, layer.cacheElements(), "values"));
    DITRON_ASSIGN_OR_RETURN(own.lengths, rank.allocate(DataType::I32, lengths.size(), "lengths"));
    DITRON_ASSIGN_OR_RETURN(own.offsets, rank.allocate(DataType::I32, offsets.size(), "offsets"));
    DITRON_RETURN_IF_ERROR(data->fill(own.x, OfX + (options.dealt ? id : 0)));
    DITRON_RETURN_IF_ERROR(data->fill(own.keys, 2 * OfNorm + id));
    DITRON_RETURN_IF_ERROR(data->fill(own.values, 3 * OfNorm + id));
    DITRON_RETURN_IF_ERROR(own.lengths.upload(lengths.data(), lengths.size() * sizeof(int32_t)));
    DITRON_RETURN_IF_ERROR(own.offsets.upload(offsets.data(), offsets.size() * sizeof(int32_t)));
  }
  return Status::ok();
}

double AttentionLayerBench::xAt(int64_t token, int64_t column) const {
  if (!options.dealt)
    return data->at(OfX, token * hidden + column);
  const auto id = static_cast<uint32_t>(token / shards().rowsPerRank);
  return data->at(OfX + id, (token - shards().firstRowOf(id)) * hidden + column);
}

std::vector<double> AttentionLayerBench::headOf(uint32_t id, int64_t head, int64_t token, int64_t position) const {
  std::vector<double> values(depth);
  double squares = 0;
  for (int64_t d = 0; d < depth; ++d) {
    for (int64_t column = 0; column < hidden; ++column)
      values[d] += xAt(token, column) * data->at(OfQkv + id, (head * depth + d) * hidden + column);
    squares += values[d] * values[d];
  }
  if (head >= ownHeads() + ownKvHeads()) // of V
    return values;
  for (int64_t d = 0; d < depth; ++d)
    values[d] *= data->at(OfNorm, d) / std::sqrt(squares / static_cast<double>(depth) + epsilon);
  const int64_t half = depth / 2;
  for (int64_t j = 0; j < half; ++j) {
    const double cosine = angles[position * depth + j], sine = angles[position * depth + half + j];
    const double first = values[j], second = values[j + half];
    values[j] = first * cosine - second * sine;
    values[j + half] = second * cosine + first * sine;
  }
  return values;
}

Expected<std::vector<float>> AttentionLayerBench::partOf(uint32_t id, runtime::Pointer first, int64_t count) {
  DITRON_ASSIGN_OR_RETURN(runtime::Buffer copy, world->rank(id).allocate(first.type, count, "copy"));
  DITRON_RETURN_IF_ERROR(world->rank(id).stream().copy(copy, first, count));
  DITRON_RETURN_IF_ERROR(world->synchronize());
  return copy.downloadFloats();
}

/// The last token of a sequence.
Status AttentionLayerBench::checkToken(const ops::TensorParallelAttention &layer, int64_t sequence,
                                       RelativeError &error) {
  const int64_t token = options.prefill ? (sequence + 1) * tokens - 1 : sequence, position = tokens - 1;
  constexpr int64_t samples = 29;
  std::vector<double> expected(samples, 0.0);
  const auto column = [&](int64_t sample) { return sample * (hidden - 1) / (samples - 1); };
  RelativeError ofKeys(dtype);
  for (uint32_t id = 0; id < options.ranks; ++id) {
    const int64_t own = ownKvHeads(), stride = layer.keyLayout().pageStride;
    DITRON_ASSIGN_OR_RETURN(const std::vector<float> keys,
                            partOf(id, memory[id].keys.pointer() + sequence * stride, stride));
    DITRON_ASSIGN_OR_RETURN(const std::vector<float> values,
                            partOf(id, memory[id].values.pointer() + sequence * stride, stride));
    const auto element = [&](const std::vector<float> &cache, int64_t key, int64_t head, int64_t d) -> double {
      return cache[(key * own + head) * depth + d];
    };
    for (int64_t head = 0; head < own; ++head)
      for (int64_t at : {options.prefill ? position / 3 : position, position}) {
        const std::vector<double> key = headOf(id, ownHeads() + head, token - position + at, at),
                                  value = headOf(id, ownHeads() + own + head, token - position + at, at);
        for (int64_t d = 0; d < depth; ++d) {
          ofKeys.add(element(keys, at, head, d), key[d]);
          ofKeys.add(element(values, at, head, d), value[d]);
        }
      }
    for (int64_t head = 0; head < ownHeads(); ++head) {
      const std::vector<double> q = headOf(id, head, token, position);
      const int64_t kvHead = head / (ownHeads() / own);
      std::vector<double> scores(tokens), attended(depth, 0.0);
      double largest = -INFINITY, sum = 0;
      for (int64_t key = 0; key < tokens; ++key) {
        for (int64_t d = 0; d < depth; ++d)
          scores[key] += q[d] * element(keys, key, kvHead, d);
        scores[key] /= std::sqrt(static_cast<double>(depth));
        largest = std::max(largest, scores[key]);
      }
      for (double &score : scores)
        sum += score = std::exp(score - largest);
      for (int64_t key = 0; key < tokens; ++key)
        for (int64_t d = 0; d < depth; ++d)
          attended[d] += scores[key] / sum * element(values, key, kvHead, d);
      for (int64_t sample = 0; sample < samples; ++sample)
        for (int64_t d = 0; d < depth; ++d)
          expected[sample] += attended[d] * data->at(OfOut + id, (column(sample) * ownHeads() + head) * depth + d);
    }
  }
  DITRON_RETURN_IF_ERROR(verifyError(ofKeys.value(), allowedError).withContext("keys and values in the cache"));
  for (uint32_t id = 0; id < options.ranks; ++id) {
    const int64_t row = token - (options.dealt ? shards().firstRowOf(id) : 0);
    if (row < 0 || row >= (options.dealt ? shards().rowsOf(id) : tokensOfCall()))
      continue;
    DITRON_ASSIGN_OR_RETURN(const std::vector<float> y, partOf(id, memory[id].y.pointer() + row * hidden, hidden));
    for (int64_t sample = 0; sample < samples; ++sample)
      error.add(y[column(sample)], expected[sample]);
  }
  return Status::ok();
}

Status AttentionLayerBench::check(const ops::TensorParallelAttention &layer) {
  RelativeError error(dtype);
  DITRON_RETURN_IF_ERROR(checkToken(layer, 0, error));
  if (sequences > 1)
    DITRON_RETURN_IF_ERROR(checkToken(layer, sequences - 1, error));
  return verifyError(error.value(), allowedError);
}

Expected<double> AttentionLayerBench::attentionAlone(const ops::TensorParallelAttention &layer) {
  std::vector<runtime::Buffer> buffers;
  std::vector<ops::PreparedCall> calls;
  for (uint32_t id = 0; id < options.ranks; ++id) {
    runtime::Rank &rank = world->rank(id);
    const PerRank &own = memory[id];
    const int64_t elements = tokensOfCall() * ownHeads() * depth;
    std::array<runtime::Pointer, 2> given;
    for (runtime::Pointer &each : given) {
      DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer, rank.allocate(dtype, elements, "q"));
      DITRON_RETURN_IF_ERROR(data->fill(buffer, OfX));
      each = buffer;
      buffers.push_back(std::move(buffer));
    }
    if (options.prefill) {
      ops::AttentionProblem problem{.batch = sequences, .heads = ownHeads(), .kvHeads = ownKvHeads()};
      problem.queries = problem.keys = tokens;
      problem.headDim = depth;
      problem.causal = true;
      problem.dtype = dtype;
      problem.layout = ops::AttentionLayout::RowsFirst;
      problem.packedQueries = tokensOfCall();
      ops::AttentionOperands operands{.q = given[0], .k = own.keys, .v = own.values, .out = given[1]};
      operands.queryOffsets = own.offsets;
      operands.keyLengths = own.lengths;
      DITRON_ASSIGN_OR_RETURN(ops::PreparedCall call, ops::prepareAttention(*jit, rank, problem, operands));
      calls.push_back(std::move(call));
    } else {
      ops::DecodeProblem problem{.batch = sequences, .heads = ownHeads(), .kvHeads = ownKvHeads()};
      problem.headDim = depth;
      problem.dtype = dtype;
      problem.keys = layer.keyLayout();
      DITRON_ASSIGN_OR_RETURN(ops::PreparedCall call, ops::prepareAttentionDecode(*jit, rank, problem,
                                                                                  {.q = given[0],
                                                                                   .k = own.keys,
                                                                                   .v = own.values,
                                                                                   .out = given[1],
                                                                                   .lse = {},
                                                                                   .lengths = own.lengths,
                                                                                   .table = {}}));
      calls.push_back(std::move(call));
    }
  }
  return microsecondsOf([&](uint32_t id) { return calls[id].enqueue(world->rank(id).stream()); });
}

Expected<double> AttentionLayerBench::productsAlone() {
  const int64_t width = ownHeads() * depth, columns = width + 2 * ownKvHeads() * depth;
  std::vector<runtime::Buffer> buffers;
  std::vector<ops::PreparedCall> calls;
  for (uint32_t id = 0; id < options.ranks; ++id) {
    runtime::Rank &rank = world->rank(id);
    const auto allocated = [&](int64_t count) -> Expected<runtime::Pointer> {
      DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer, rank.allocate(dtype, tokensOfCall() * count, "product"));
      DITRON_RETURN_IF_ERROR(data->fill(buffer, OfX));
      buffers.push_back(std::move(buffer));
      return buffers.back().pointer();
    };
    DITRON_ASSIGN_OR_RETURN(const runtime::Pointer x, allocated(hidden));
    DITRON_ASSIGN_OR_RETURN(const runtime::Pointer rows, allocated(columns));
    DITRON_ASSIGN_OR_RETURN(const runtime::Pointer y, allocated(hidden));
    ops::GemmProblem problem = {.m = tokensOfCall(), .n = columns, .k = hidden, .dtype = dtype};
    DITRON_ASSIGN_OR_RETURN(ops::PreparedCall first, ops::prepareGemm(*jit, rank, problem, x, memory[id].qkv, rows));
    problem.n = hidden, problem.k = width;
    DITRON_ASSIGN_OR_RETURN(ops::PreparedCall second, ops::prepareGemm(*jit, rank, problem, rows, memory[id].out, y));
    calls.push_back(std::move(first));
    calls.push_back(std::move(second));
  }
  return microsecondsOf([&](uint32_t id) -> Status {
    DITRON_RETURN_IF_ERROR(calls[2 * id].enqueue(world->rank(id).stream()));
    return calls[2 * id + 1].enqueue(world->rank(id).stream());
  });
}

Expected<AttentionLayerBench::Times> AttentionLayerBench::measure(ops::TensorParallelAttention &layer) {
  for (uint32_t id = 0; id < options.ranks; ++id)
    DITRON_RETURN_IF_ERROR(options.prefill ? layer.preparePrefill(world->rank(id), tokensOfCall(), sequences, tokens)
                                           : layer.prepareDecode(world->rank(id), sequences));
  const Call call = [&](uint32_t id) {
    const PerRank &own = memory[id];
    const ops::TensorParallelAttentionOperands operands = {
        .x = own.x, .y = own.y, .keys = own.keys, .values = own.values, .lengths = own.lengths, .offsets = own.offsets};
    runtime::Rank &rank = world->rank(id);
    return options.prefill ? layer.prefill(rank, rank.stream(), operands, tokensOfCall(), sequences, tokens)
                           : layer.decode(rank, rank.stream(), operands, sequences);
  };
  DITRON_RETURN_IF_ERROR(callOnce(call));
  DITRON_RETURN_IF_ERROR(check(layer));
  Times times;
  DITRON_ASSIGN_OR_RETURN(times.layer, microsecondsOf(call));
  if (simulated)
    return times;
  DITRON_ASSIGN_OR_RETURN(times.attention, attentionAlone(layer));
  DITRON_ASSIGN_OR_RETURN(times.products, productsAlone());
  return times;
}

Status AttentionLayerBench::benchShape(const std::string &shape) {
  progress.activity(shape);
  DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(shape, 6, shapeForm));
  sequences = sizes[0], tokens = sizes[1], hidden = sizes[2];
  heads = sizes[3], kvHeads = sizes[4], depth = sizes[5];
  DITRON_ASSIGN_OR_RETURN(ops::TensorParallelAttention layer, makeLayer());
  DITRON_RETURN_IF_ERROR(allocate(layer));
  DITRON_ASSIGN_OR_RETURN(const Times times, measure(layer));
  const double rest = times.layer > 0 ? times.layer - times.attention - times.products : 0;
  table += fmt::format("{:<34}{:>12}{:>14}{:>13}{:>10}\n", shape, shown(times.layer, 1), shown(times.attention, 1),
                       shown(times.products, 1), shown(rest, 1));
  reportRows.push_back({{"shape", shape},
                        {"layer_microseconds", orNull(times.layer)},
                        {"attention_microseconds", orNull(times.attention)},
                        {"products_microseconds", orNull(times.products)}});
  return Status::ok();
}

} // namespace

void addAttentionLayerBenchCommand(CLI::App &bench, CommandContext &context) {
  CLI::App *command =
      bench.add_subcommand("attention_layer", "Layer of attention whose heads are dealt out to the ranks");
  auto arguments = std::make_shared<AttentionLayerBenchOptions>();
  AttentionLayerBenchOptions &options = *arguments;
  addRankOptions(*command, options);
  command->add_option("--dtype", options.dtype, "bf16 or fp16")->capture_default_str();
  command->add_flag("--prefill", options.prefill, "All tokens of all sequences, instead of the last one of each");
  command->add_flag("--dealt", options.dealt, "Tokens are dealt out to the ranks, instead of all having all of them");
  command->add_option("--shape", options.shapes, std::string(shapeForm) + "; may be given several times")
      ->type_name("SHAPE");
  addReportOptions(*command, options);
  command->callback([&context, arguments] { context.finish(AttentionLayerBench(*arguments).run(context.knobs)); });
}

} // namespace ditron::tool
