//===- AllGatherAttentionBench.cpp - ditron bench ag_attention ---------------------------------------------------------------===//
//
// Attention to the keys of all ranks: overlapped with their way here, and behind it. Some rows of every result are compared with the plain reference.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "bench/KernelBench.h"
#include "bench/RankBench.h"
#include "overlap/OverlapCommands.h"

#include "ditron/ops/attention/AttentionReference.h"
#include "ditron/ops/sequence_parallel/AllGatherAttention.h"

#include <fmt/format.h>

namespace ditron::tool {

namespace {

constexpr std::string_view shapeForm = "BATCHxHEADSxKV_HEADSxTOKENSxHEAD_DIM";
constexpr double allowedError = 3e-2;

struct AllGatherAttentionBenchOptions : RankBenchOptions {
  uint32_t pieces = 1;
  ops::HeadAttentionTile tile;
  bool causal = true;
  std::vector<std::string> shapes = {"1x2x1x200x64"};
};

class AllGatherAttentionBench : RankBench {
public:
  explicit AllGatherAttentionBench(const AllGatherAttentionBenchOptions &options)
      : RankBench(options), options(options) {}
  Status run(const Knobs &knobs);

private:
  Status benchShape(const std::string &shape);
  Expected<double> timeOf(ops::Schedule schedule);
  Status check(const ops::AllGatherAttention &op, runtime::World &in);
  Status makeOperands(runtime::World &in);
  /// Where a head's token is among a rank's rows of so many heads: the rank, and the row.
  std::pair<uint32_t, int64_t> placeOf(const ops::TokenSections &sections, int64_t head, int64_t token) const;

  const AllGatherAttentionBenchOptions &options;
  ops::AllGatherAttentionOptions attention;
  struct Memory {
    runtime::Buffer q, k, v, out;
  };
  std::vector<Memory> memory;
  double worst = 0;
  std::string plan;
};

Status AllGatherAttentionBench::run(const Knobs &knobs) {
  DITRON_RETURN_IF_ERROR(checkOptions());
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(parseShape(shape, 5, shapeForm).status());
  DITRON_RETURN_IF_ERROR(chooseTarget());
  DITRON_RETURN_IF_ERROR(start(knobs));
  table = fmt::format("ag_attention, {}, {}, {} x {}\n{:<26}{:<28}{:>14}{:>12}{:>15}{:>9}  {}\n",
                      options.causal ? "causal" : "whole", toString(dtype), options.ranks, gpu(),
                      "batch heads kv tokens dim", "plan", "overlapped us", "unfused us", "TFLOP/s a GPU", "unf./o.",
                      "error");
  for (const std::string &shape : options.shapes)
    DITRON_RETURN_IF_ERROR(benchShape(shape).withContext(shape));
  nlohmann::ordered_json report = reportOf("ag_attention");
  report["causal"] = options.causal;
  report["dtype"] = toString(dtype);
  return finish(std::move(report));
}

Status AllGatherAttentionBench::makeOperands(runtime::World &in) {
  memory.clear();
  const ops::TokenSections sections = {attention.maxTokens, in.numRanks(), attention.causal};
  for (uint32_t id = 0; id < in.numRanks(); ++id) {
    runtime::Rank &rank = in.rank(id);
    const int64_t own = std::max<int64_t>(sections.tokensOf(id), 1) * attention.headDim * attention.batch;
    Memory each;
    DITRON_ASSIGN_OR_RETURN(each.q, rank.allocate(dtype, own * attention.heads, "q"));
    DITRON_ASSIGN_OR_RETURN(each.out, rank.allocate(dtype, own * attention.heads, "out"));
    DITRON_ASSIGN_OR_RETURN(each.k, rank.allocate(dtype, own * attention.kvHeads, "k"));
    DITRON_ASSIGN_OR_RETURN(each.v, rank.allocate(dtype, own * attention.kvHeads, "v"));
    DITRON_RETURN_IF_ERROR(data->fill(each.q, 1 + 3 * id));
    DITRON_RETURN_IF_ERROR(data->fill(each.k, 2 + 3 * id));
    DITRON_RETURN_IF_ERROR(data->fill(each.v, 3 + 3 * id));
    memory.push_back(std::move(each));
  }
  return in.synchronize();
}

std::pair<uint32_t, int64_t> AllGatherAttentionBench::placeOf(const ops::TokenSections &sections, int64_t head,
                                                              int64_t token) const {
  const int64_t number = token / sections.sectionTokens();
  const auto ranks = static_cast<int64_t>(sections.ranks);
  const auto rank = static_cast<uint32_t>(number < ranks ? number : 2 * ranks - 1 - number);
  const int64_t before = number < ranks ? 0 : sections.tokensOf(rank, 0);
  return {rank, head * sections.tokensOf(rank) + before + token - sections.firstToken(rank, number < ranks ? 0 : 1)};
}

Status AllGatherAttentionBench::check(const ops::AllGatherAttention &op, runtime::World &in) {
  const ops::TokenSections sections = op.sections(attention.maxTokens);
  const int64_t depth = attention.headDim, tokens = attention.maxTokens, heads = attention.batch * attention.heads;
  std::vector<std::vector<float>> results;
  for (uint32_t id = 0; id < in.numRanks(); ++id) {
    DITRON_ASSIGN_OR_RETURN(std::vector<float> values, memory[id].out.downloadFloats());
    results.push_back(std::move(values));
  }
  const auto element = [&](uint64_t salt, int64_t headsOfBatch) {
    return [&, salt, headsOfBatch](int64_t batch, int64_t head, int64_t token, int64_t column) -> double {
      const auto [rank, row] = placeOf(sections, batch * headsOfBatch + head, token);
      return data->at(salt + 3 * rank, row * depth + column);
    };
  };
  const ops::AttentionReference plain({.batch = attention.batch,
                                       .heads = attention.heads,
                                       .kvHeads = attention.kvHeads,
                                       .queries = tokens,
                                       .keys = tokens,
                                       .headDim = depth,
                                       .causal = attention.causal},
                                      element(1, attention.heads), element(2, attention.kvHeads),
                                      element(3, attention.kvHeads));
  RelativeError error(dtype);
  constexpr int64_t samples = 13;
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t index = i * (heads * tokens - 1) / (samples - 1), head = index / tokens, query = index % tokens;
    const auto [rank, row] = placeOf(sections, head, query);
    const std::vector<double> expected = plain.row(head / attention.heads, head % attention.heads, query).out;
    for (int64_t d = 0; d < depth; ++d)
      error.add(results[rank][row * depth + d], expected[d]);
  }
  worst = std::max(worst, error.value());
  return verifyError(error.value(), allowedError);
}

Expected<double> AllGatherAttentionBench::timeOf(ops::Schedule schedule) {
  runtime::World &in = *world;
  attention.schedule = schedule;
  DITRON_ASSIGN_OR_RETURN(ops::AllGatherAttention op, ops::AllGatherAttention::create(in, *jit, attention));
  plan = op.planText();
  for (uint32_t id = 0; id < options.ranks; ++id)
    DITRON_RETURN_IF_ERROR(op.prepare(in.rank(id), attention.maxTokens));
  const Call call = [&](uint32_t id) {
    const Memory &own = memory[id];
    return op.enqueue(in.rank(id), in.rank(id).stream(), {.q = own.q, .k = own.k, .v = own.v, .out = own.out},
                      attention.maxTokens);
  };
  for (uint32_t id = 0; id < options.ranks; ++id)
    DITRON_RETURN_IF_ERROR(in.rank(id).stream().fill(memory[id].out, 0xff, memory[id].out.count()));
  DITRON_RETURN_IF_ERROR(callOnce(call));
  DITRON_RETURN_IF_ERROR(check(op, in));
  return microsecondsOf(call);
}

Status AllGatherAttentionBench::benchShape(const std::string &shape) {
  progress.activity(shape);
  DITRON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, parseShape(shape, 5, shapeForm));
  attention = {.batch = sizes[0],
               .heads = sizes[1],
               .kvHeads = sizes[2],
               .headDim = sizes[4],
               .dtype = dtype,
               .causal = options.causal};
  attention.maxTokens = sizes[3];
  attention.pieces = options.pieces;
  attention.tile = options.tile;
  worst = 0;
  DITRON_RETURN_IF_ERROR(makeOperands(*world));
  DITRON_ASSIGN_OR_RETURN(const double overlapped, timeOf(ops::Schedule::Overlapped));
  DITRON_ASSIGN_OR_RETURN(const double unfused, timeOf(ops::Schedule::Unfused));
  const auto tokens = static_cast<double>(attention.maxTokens);
  const double pairs = tokens * tokens / (attention.causal ? 2 : 1) / options.ranks;
  const double flops = 4.0 * static_cast<double>(attention.batch * attention.heads * attention.headDim) * pairs;
  table += fmt::format("{:<26}{:<28}{:>14}{:>12}{:>15}{:>9}  {:.1e}\n", shape, plan, shown(overlapped, 1),
                       shown(unfused, 1), shown(overlapped > 0 ? flops / overlapped * 1e-6 : 0, 1),
                       shown(overlapped > 0 ? unfused / overlapped : 0, 3), worst);
  reportRows.push_back({{"shape", shape},
                        {"plan", plan},
                        {"pieces", attention.pieces},
                        {"overlapped_microseconds", orNull(overlapped)},
                        {"unfused_microseconds", orNull(unfused)},
                        {"error", worst}});
  return Status::ok();
}

} // namespace

void addAllGatherAttentionBenchCommand(CLI::App &bench, CommandContext &context) {
  CLI::App *command = bench.add_subcommand("ag_attention", "Attention to the keys of all ranks, which come meanwhile");
  auto arguments = std::make_shared<AllGatherAttentionBenchOptions>();
  AllGatherAttentionBenchOptions &options = *arguments;
  addRankOptions(*command, options, "Number of ranks; 1: attention alone");
  command->add_option("--dtype", options.dtype, "bf16 or fp16")->capture_default_str();
  command->add_flag("!--no-causal", options.causal, "Every query sees every key");
  command->add_option("--pieces", options.pieces, "Signals for a rank's heads of K and V")
      ->check(integerBetween(1, 1024))
      ->capture_default_str();
  for (auto [name, value] :
       {std::pair("--block-m", &options.tile.blockM), std::pair("--block-n", &options.tile.blockN),
        std::pair("--num-warps", &options.tile.numWarps), std::pair("--num-stages", &options.tile.numStages)})
    command->add_option(name, *value, "0: the library's choice")->check(integerBetween(0, 256))->capture_default_str();
  command
      ->add_option("--shape", options.shapes,
                   std::string(shapeForm) + ", tokens of all ranks together; may be given several times")
      ->type_name("SHAPE");
  addReportOptions(*command, options);
  command->callback([&context, arguments] { context.finish(AllGatherAttentionBench(*arguments).run(context.knobs)); });
}

} // namespace ditron::tool
