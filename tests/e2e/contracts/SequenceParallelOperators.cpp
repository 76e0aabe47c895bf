//===- SequenceParallelOperators.cpp - Attention over ranks under the contracts -----------------------------------===//
//
// Both products of Ulysses one behind the other; attention to keys that are gathered; attention to keys that go round, and its backward behind it, on one node
// and on several.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "attention/TokenAttentionModel.h"
#include "contracts/ContractAdapters.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/sequence_parallel/AllGatherAttention.h"
#include "ditron/ops/sequence_parallel/AllToAllGemm.h"
#include "ditron/ops/sequence_parallel/GemmAllToAll.h"
#include "ditron/ops/sequence_parallel/RingAttention.h"
#include "ditron/ops/sequence_parallel/RingAttentionBackward.h"

#include <fmt/format.h>

namespace ditron::e2e {

namespace {

using ops::Schedule;
using runtime::Stream;

//===--------------------------------------------------------------------------------------------------------------------===//
// Products around attention
//===--------------------------------------------------------------------------------------------------------------------===//

/// y = (x B) C: GEMM + all-to-all, the attention between which is a copy, and all-to-all + GEMM. Tokens are m, columns of a rank between the two n, of x and y k.
class UlyssesUnderContract final : public OperatorUnderContract {
public:
  static Expected<std::unique_ptr<OperatorUnderContract>> create(World &world, const ContractChoice &choice) {
    Draws draws(choice.draw);
    ops::SequenceProductOptions options;
    options.dtype = choice.dtype;
    options.batch = draws.of({1, 2});
    options.maxRows = choice.most.m;
    options.weightOrder = draws.of({ops::MatrixOrder::Plain, ops::MatrixOrder::Transposed});
    options.schedule = draws.of({Schedule::Overlapped, Schedule::Overlapped, Schedule::Unfused});
    options.tile = {.blockM = 16, .blockN = 16, .blockK = 16, .groupM = 2, .numWarps = 2, .numStages = 2};
    const int64_t between = choice.most.n * world.numRanks();
    DITRON_ASSIGN_OR_RETURN(ops::GemmAllToAll before,
                            ops::GemmAllToAll::create(world, sharedJit(), options, choice.most.k, between));
    DITRON_ASSIGN_OR_RETURN(ops::AllToAllGemm behind,
                            ops::AllToAllGemm::create(world, sharedJit(), options, between, draws.upTo(1, 3)));
    return std::unique_ptr<OperatorUnderContract>(
        std::make_unique<UlyssesUnderContract>(std::move(before), std::move(behind), world.numRanks(), choice.most.n));
  }
  UlyssesUnderContract(ops::GemmAllToAll before, ops::AllToAllGemm behind, uint32_t ranks, int64_t columns)
      : before(std::move(before)), behind(std::move(behind)), ranks(ranks), columns(columns) {}

  std::vector<ContractOperand> operands(const CallSizes &sizes, uint32_t rank) const override {
    const DataType type = before.options().dtype;
    const int64_t own = ops::ownTokens(ops::RowShards(sizes.m, ranks), rank, before.options().batch),
                  hidden = before.depth(), between = columns * ranks;
    return {{.name = "x", .type = type, .elements = own * hidden},
            {.name = "b", .type = type, .elements = hidden * between},
            {.name = "c", .type = type, .elements = between * hidden},
            {.name = "y", .type = type, .elements = own * hidden, .isResult = true}};
  }
  Status prepare(Rank &rank, const CallSizes &sizes) override {
    DITRON_RETURN_IF_ERROR(before.prepare(rank, sizes.m));
    return behind.prepare(rank, sizes.m, before.depth());
  }
  Status enqueue(Rank &rank, Stream &stream, const std::vector<Pointer> &o, const CallSizes &sizes) override {
    const DataType type = before.options().dtype;
    // Of two operations: what the second would refuse must keep the first from being enqueued.
    DITRON_RETURN_IF_ERROR(ops::verifyAlignedPointer("ulysses", "c", o[2], type));
    DITRON_RETURN_IF_ERROR(ops::verifyAlignedPointer("ulysses", "y", o[3], type));
    DITRON_RETURN_IF_ERROR(before.enqueue(rank, stream, o[0], o[1], sizes.m));
    DITRON_RETURN_IF_ERROR(
        stream.copy(behind.operand(rank.id()), before.result(rank.id()), before.options().batch * sizes.m * columns));
    return behind.enqueue(rank, stream, o[2], o[3], sizes.m, before.depth());
  }
  /// What goes between the products is rounded.
  void compute(const CallSizes &sizes, std::vector<RankValues> &values) const override {
    const ops::SequenceProductOptions &options = before.options();
    const int64_t hidden = before.depth(), between = columns * ranks;
    for (RankValues &own : values) {
      const auto tokens = static_cast<int64_t>(own[0].size()) / hidden;
      std::vector<float> middle = convertAll<float>(
          ops::referenceProduct(convertAll<float>(own[0]), plain(own[1], hidden, between), tokens, between, hidden));
      for (float &value : middle)
        value = static_cast<float>(ops::roundedTo(options.dtype, value));
      // Every rank's own second weight: of the columns of rank p its rows there.
      for (double value : ops::referenceProduct(middle, plain(own[2], between, hidden), tokens, hidden, between))
        own[3].push_back(ops::roundedTo(options.dtype, value));
    }
  }
  double fractionTolerance() const override {
    return 3 * ops::toleranceFor(before.options().dtype, ops::MultiplyPrecision::Tf32).relative;
  }
  std::string describe() const override {
    return fmt::format("gemm_a2a and a2a_gemm of {}, {}, {} sequences", toString(before.options().dtype),
                       toString(before.options().schedule), before.options().batch);
  }

private:
  /// A weight [k, n] as it is multiplied.
  std::vector<float> plain(const std::vector<double> &weight, int64_t k, int64_t n) const {
    std::vector<float> result = convertAll<float>(weight);
    if (before.options().weightOrder == ops::MatrixOrder::Transposed)
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j)
          result[i * n + j] = static_cast<float>(weight[j * k + i]);
    return result;
  }

  ops::GemmAllToAll before;
  ops::AllToAllGemm behind;
  uint32_t ranks;
  int64_t columns;
};

ContractEntry ulysses() {
  ContractEntry entry;
  entry.name = "ulysses_products";
  entry.dtypes = {DataType::BF16, DataType::F16};
  entry.most = {.m = 300, .n = 64, .k = 100};
  entry.typical = {{{.m = 1, .n = 16, .k = 24}, {.m = 7, .n = 16, .k = 24}, {.m = 22, .n = 16, .k = 24}}};
  entry.anyAlignment = false;
  entry.rowBytes = 32;
  entry.fixedColumns = entry.fixedDepth = true;
  entry.make = [](World &world, const ContractChoice &choice) { return UlyssesUnderContract::create(world, choice); };
  return entry;
}

//===--------------------------------------------------------------------------------------------------------------------===//
// Attention
//===--------------------------------------------------------------------------------------------------------------------===//

constexpr ops::HeadAttentionTile smallTile = {.blockM = 16, .blockN = 16, .numWarps = 1, .numStages = 2};

/// What all options of attention over ranks have.
template <typename Options> Options drawOptions(const ContractChoice &choice, Draws &draws) {
  Options options;
  options.batch = draws.of({1, 2});
  options.heads = 2;
  options.kvHeads = draws.of({1, 2});
  options.headDim = 16;
  options.dtype = choice.dtype;
  options.causal = draws.of({true, true, false});
  options.maxTokens = choice.most.m;
  options.schedule = draws.of({Schedule::Overlapped, Schedule::Overlapped, Schedule::Unfused});
  options.tile = smallTile;
  return options;
}

/// An adapter's knowledge of its tensors: operands are q, k, v, then what the operator adds; tokens are m.
template <typename Operator> class AttentionUnderContract : public OperatorUnderContract {
public:
  explicit AttentionUnderContract(Operator made) : op(std::move(made)) {}

  double fractionTolerance() const override { return op.options().dtype == DataType::BF16 ? 1.6e-2 : 4e-3; }
  std::string describe() const override {
    const auto &options = op.options();
    return fmt::format("{}, {}, {}, {} sequences, {} heads on {}", toString(options.dtype),
                       options.causal ? "causal" : "whole", toString(options.schedule), options.batch, options.heads,
                       options.kvHeads);
  }

protected:
  enum { Q, K, V };
  ContractOperand tensor(const char *name, const CallSizes &sizes, uint32_t rank, bool isOfKeys,
                         bool isResult = false) const {
    const auto &options = op.options();
    const int64_t heads = options.batch * (isOfKeys ? options.kvHeads : options.heads);
    return {.name = name,
            .type = options.dtype,
            .elements = heads * op.sections(sizes.m).tokensOf(rank) * options.headDim,
            .isResult = isResult,
            .tolerance = isResult ? fractionTolerance() : 0};
  }
  /// Of all ranks' tokens, with what `addOperands` puts in besides; results are computed.
  TokenAttentionModel model(const CallSizes &sizes, const std::vector<RankValues> &values,
                            std::optional<size_t> gradient = std::nullopt) const {
    const auto &options = op.options();
    TokenAttentionModel model({.batch = options.batch,
                               .heads = options.heads,
                               .kvHeads = options.kvHeads,
                               .queries = sizes.m,
                               .keys = sizes.m,
                               .headDim = options.headDim,
                               .causal = options.causal,
                               .dtype = options.dtype},
                              op.sections(sizes.m));
    const auto gather = [&](std::vector<float> &all, int64_t heads, size_t operand) {
      all.resize(heads * sizes.m * options.headDim);
      for (uint32_t r = 0; r < values.size(); ++r)
        model.place(all, options.headDim, r, values[r][operand]);
    };
    gather(model.q, model.heads(), Q);
    gather(model.k, model.keyHeads(), K);
    gather(model.v, model.keyHeads(), V);
    if (gradient)
      gather(model.gradient, model.heads(), *gradient);
    model.computeResults();
    return model;
  }

  Operator op;
};

class AllGatherAttentionUnderContract final : public AttentionUnderContract<ops::AllGatherAttention> {
public:
  using AttentionUnderContract::AttentionUnderContract;

  std::vector<ContractOperand> operands(const CallSizes &sizes, uint32_t rank) const override {
    return {tensor("q", sizes, rank, false), tensor("k", sizes, rank, true), tensor("v", sizes, rank, true),
            tensor("out", sizes, rank, false, /*isResult=*/true)};
  }
  Status prepare(Rank &rank, const CallSizes &sizes) override { return op.prepare(rank, sizes.m); }
  Status enqueue(Rank &rank, Stream &stream, const std::vector<Pointer> &o, const CallSizes &sizes) override {
    return op.enqueue(rank, stream, {.q = o[Q], .k = o[K], .v = o[V], .out = o[3]}, sizes.m);
  }
  void compute(const CallSizes &sizes, std::vector<RankValues> &values) const override {
    const TokenAttentionModel expected = model(sizes, values);
    for (uint32_t r = 0; r < values.size(); ++r)
      values[r][3] = expected.of(expected.out, op.options().headDim, r);
  }
};

/// What every entry of attention says.
ContractEntry attentionEntry(std::string_view name) {
  ContractEntry entry;
  entry.name = name;
  entry.dtypes = {DataType::BF16, DataType::F16};
  entry.most = {.m = 130, .n = 1, .k = 1};
  entry.typical = {{{.m = 1}, {.m = 5}, {.m = 13}}};
  entry.anyAlignment = false;
  return entry;
}

ContractEntry allGatherAttention() {
  ContractEntry entry = attentionEntry("ag_attention");
  entry.make = [](World &world, const ContractChoice &choice) {
    Draws draws(choice.draw);
    auto options = drawOptions<ops::AllGatherAttentionOptions>(choice, draws);
    options.pieces = draws.of({0u, 1u, static_cast<uint32_t>(options.batch * options.kvHeads)});
    return adapt<AllGatherAttentionUnderContract>(ops::AllGatherAttention::create(world, sharedJit(), options));
  };
  return entry;
}

/// The forward and, from its result, the backward.
class RingAttentionUnderContract final : public AttentionUnderContract<ops::RingAttention> {
public:
  RingAttentionUnderContract(ops::RingAttention forward, ops::RingAttentionBackward backward)
      : AttentionUnderContract(std::move(forward)), backward(std::move(backward)) {}

  std::vector<ContractOperand> operands(const CallSizes &sizes, uint32_t rank) const override {
    std::vector<ContractOperand> all = {tensor("q", sizes, rank, false), tensor("k", sizes, rank, true),
                                        tensor("v", sizes, rank, true), tensor("gradient", sizes, rank, false),
                                        tensor("out", sizes, rank, false, true)};
    all.push_back({.name = "lse",
                   .type = DataType::F32,
                   .elements = all[Q].elements / op.options().headDim,
                   .isResult = true,
                   .tolerance = 1e-3});
    for (ContractOperand each : {tensor("dq", sizes, rank, false, true), tensor("dk", sizes, rank, true, true),
                                 tensor("dv", sizes, rank, true, true)}) {
      each.tolerance *= 2;
      // A query that sees few keys may have no gradient but that of out's rounding, times the operands' size.
      each.absoluteTolerance = 4 * fractionTolerance();
      all.push_back(each);
    }
    return all;
  }
  Status prepare(Rank &rank, const CallSizes &sizes) override {
    DITRON_RETURN_IF_ERROR(op.prepare(rank, sizes.m, /*withLse=*/true));
    return backward.prepare(rank, sizes.m);
  }
  Status enqueue(Rank &rank, Stream &stream, const std::vector<Pointer> &o, const CallSizes &sizes) override {
    // Of two operations: what the second would refuse, or the first does without, must keep the first from being enqueued.
    const DataType type = op.options().dtype;
    if (op.sections(sizes.m).tokensOf(std::min(rank.id(), ranks() - 1)) > 0) {
      for (size_t operand : {Gradient, DQ, DK, DV})
        DITRON_RETURN_IF_ERROR(ops::verifyAlignedPointer("ring_attention", "gradient", o[operand], type));
      DITRON_RETURN_IF_ERROR(ops::verifyAlignedPointer("ring_attention", "lse", o[Lse], DataType::F32));
    }
    DITRON_RETURN_IF_ERROR(
        op.enqueue(rank, stream, {.q = o[Q], .k = o[K], .v = o[V], .out = o[Out], .lse = o[Lse]}, sizes.m));
    return backward.enqueue(rank, stream,
                            {.q = o[Q],
                             .k = o[K],
                             .v = o[V],
                             .out = o[Out],
                             .lse = o[Lse],
                             .gradient = o[Gradient],
                             .dq = o[DQ],
                             .dk = o[DK],
                             .dv = o[DV]},
                            sizes.m);
  }
  void compute(const CallSizes &sizes, std::vector<RankValues> &values) const override {
    TokenAttentionModel expected = model(sizes, values, Gradient);
    expected.computeGradients();
    const int64_t depth = op.options().headDim;
    for (uint32_t r = 0; r < values.size(); ++r) {
      values[r][Out] = expected.of(expected.out, depth, r);
      values[r][Lse] = expected.of(expected.lse, 1, r);
      values[r][DQ] = expected.of(expected.dq, depth, r);
      values[r][DK] = expected.of(expected.dk, depth, r);
      values[r][DV] = expected.of(expected.dv, depth, r);
    }
  }

private:
  enum : size_t { Gradient = 3, Out, Lse, DQ, DK, DV };
  uint32_t ranks() const { return op.sections(1).ranks; }

  ops::RingAttentionBackward backward;
};

ContractEntry ringAttention(bool isBetweenNodes) {
  ContractEntry entry = attentionEntry(isBetweenNodes ? "ring_attention_between_nodes" : "ring_attention");
  entry.most.m = 60;
  entry.isBetweenNodes = isBetweenNodes;
  entry.make = [](World &world, const ContractChoice &choice) -> Expected<std::unique_ptr<OperatorUnderContract>> {
    Draws draws(choice.draw);
    auto options = drawOptions<ops::RingAttentionOptions>(choice, draws);
    options.gather = draws.of({std::optional(false), std::optional<bool>()});
    DITRON_ASSIGN_OR_RETURN(ops::RingAttention forward, ops::RingAttention::create(world, sharedJit(), options));
    DITRON_ASSIGN_OR_RETURN(
        ops::RingAttentionBackward backward,
        ops::RingAttentionBackward::create(world, sharedJit(), options, {.keys = smallTile, .queries = smallTile}));
    return std::unique_ptr<OperatorUnderContract>(
        std::make_unique<RingAttentionUnderContract>(std::move(forward), std::move(backward)));
  };
  return entry;
}

} // namespace

std::vector<ContractEntry> sequenceParallelEntries() {
  return {ulysses(), allGatherAttention(), ringAttention(/*isBetweenNodes=*/false),
          ringAttention(/*isBetweenNodes=*/true)};
}

} // namespace ditron::e2e
