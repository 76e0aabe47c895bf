//===- ContractOperators.cpp - The operators that the contract tests go over --------------------------------------===//
//
// One adapter per operator, which says how it is called and what must come out, and the table with an entry for each of its forms.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "contracts/ContractAdapters.h"
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/collectives/AllReduceRmsNorm.h"
#include "ditron/ops/collectives/Collective.h"
#include "ditron/ops/expert_parallel/ExpertParallel.h"
#include "ditron/ops/layers/ExpertParallelMoe.h"
#include "ditron/ops/moe/AllGatherMoe.h"
#include "ditron/ops/moe/MoeReduction.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmAllReduce.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"
#include "moe/MoeModel.h"

#include <fmt/format.h>

namespace ditron::e2e {

namespace {

using ops::AllReduceForm;
using ops::CollectiveForm;
using ops::CollectiveKind;
using ops::CollectivePlan;
using ops::MatrixOrder;
using ops::Reduction;
using runtime::Stream;

/// What so many bits keep of an integer.
double wrapped(double value, int bits, bool isSigned) {
  const double range = std::exp2(bits);
  value -= range * std::floor(value / range);
  return isSigned && value >= range / 2 ? value - range : value;
}

//===--------------------------------------------------------------------------------------------------------------------===//
// Collectives
//===--------------------------------------------------------------------------------------------------------------------===//

class CollectiveUnderContract final : public OperatorUnderContract {
public:
  CollectiveUnderContract(ops::Collective made, uint32_t ranks, bool inPlace)
      : op(std::move(made)), ranks(ranks), inPlace(inPlace) {}

  std::vector<ContractOperand> operands(const CallSizes &sizes, uint32_t rank) const override {
    const CollectiveKind kind = op.options().kind;
    const int64_t n = sizes.m;
    const bool scatters = kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll;
    const bool lays = kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll;
    ContractOperand in = {.name = "in", .type = op.options().dtype, .elements = scatters ? n * ranks : n};
    ContractOperand out = {
        .name = "out", .type = op.options().dtype, .elements = lays ? n * ranks : n, .isResult = true};
    if (inPlace && kind == CollectiveKind::AllGather)
      in.inside = {1, rank * n};
    else if (inPlace)
      out.inside = {0, kind == CollectiveKind::ReduceScatter ? rank * n : 0};
    return {in, out};
  }
  Status prepare(Rank &rank, const CallSizes &sizes) override { return op.prepare(rank, sizes.m); }
  Status enqueue(Rank &rank, Stream &stream, const std::vector<Pointer> &operands, const CallSizes &sizes) override {
    return op.enqueue(rank, stream, operands[0], operands[1], sizes.m);
  }
  void compute(const CallSizes &sizes, std::vector<RankValues> &values) const override {
    const int64_t n = sizes.m;
    for (uint32_t r = 0; r < ranks; ++r) {
      std::vector<double> &out = values[r][1];
      switch (op.options().kind) {
      case CollectiveKind::AllReduce:
        for (int64_t i = 0; i < n; ++i)
          out.push_back(combined(values, i));
        break;
      case CollectiveKind::ReduceScatter:
        for (int64_t i = 0; i < n; ++i)
          out.push_back(combined(values, r * n + i));
        break;
      case CollectiveKind::AllGather:
        for (uint32_t source = 0; source < ranks; ++source)
          out.insert(out.end(), values[source][0].begin(), values[source][0].end());
        break;
      case CollectiveKind::AllToAll:
        for (uint32_t source = 0; source < ranks; ++source)
          out.insert(out.end(), values[source][0].begin() + r * n, values[source][0].begin() + (r + 1) * n);
        break;
      case CollectiveKind::Broadcast: out = values[op.options().root][0]; break;
      }
    }
  }
  double fractionTolerance() const override { return 0; }
  std::string describe() const override {
    const ops::CollectiveOptions &options = op.options();
    return fmt::format("{} of {}, {}, scale {}, root {}{}, plan {}", toString(options.kind), toString(options.dtype),
                       toString(options.reduction), options.scale.value_or(1), options.root,
                       inPlace ? ", in place" : "", options.plan ? options.plan->text() : "of the table");
  }

private:
  /// In fp32 (fp64: in fp64) in ascending order of the ranks, rounded once; integers in 32 or 64 bits, which may overflow.
  double combined(const std::vector<RankValues> &values, int64_t at) const {
    const ops::CollectiveOptions &options = op.options();
    const bool isFraction = isFloat(options.dtype), isWide = sizeOf(options.dtype) == 8;
    const auto sum = [&](double value) { return isFraction && !isWide ? static_cast<float>(value) : value; };
    double result = 0;
    for (uint32_t r = 0; r < ranks; ++r) {
      double value = values[r][0][at];
      if (options.scale)
        value = ops::roundedTo(options.dtype, sum(sum(value) * *options.scale));
      if (r == 0)
        result = value;
      else if (options.reduction == Reduction::Max)
        result = std::max(result, value);
      else if (options.reduction == Reduction::Min)
        result = std::min(result, value);
      else
        result = sum(sum(result) + sum(value));
    }
    if (!isFraction && !isWide)
      result = wrapped(result, 32, isSignedInteger(options.dtype));
    if (options.reduction == Reduction::Average)
      result = isFraction ? sum(sum(result) / ranks) : std::trunc(result / ranks);
    if (!isFraction && !isWide)
      result = wrapped(result, static_cast<int>(8 * sizeOf(options.dtype)), isSignedInteger(options.dtype));
    return ops::roundedTo(options.dtype, result);
  }

  ops::Collective op;
  uint32_t ranks;
  bool inPlace;
};

CollectivePlan drawPlan(CollectiveForm form, Draws &draws) {
  CollectivePlan plan = {.form = form, .blocks = draws.of({3u, 1u, 2u, 5u, 8u}), .numWarps = draws.of({1u, 2u, 4u})};
  plan.chunkBytes = form == CollectiveForm::Chunks ? draws.of({512u, 1024u, 2048u}) : 0;
  return plan;
}

/// By a form, or by what the table says.
ContractEntry collective(CollectiveKind kind, std::optional<CollectiveForm> form) {
  ContractEntry entry;
  entry.name = fmt::format("{}_{}", toString(kind), form ? toString(*form) : "by_table");
  entry.dtypes = {DataType::BF16, DataType::F16, DataType::F32, DataType::F64, DataType::F8E5, DataType::F8E4NV,
                  DataType::I8,   DataType::U8,  DataType::I16, DataType::I32, DataType::U32,  DataType::I64};
  entry.most = {.m = 4097, .n = 1, .k = 1};
  // Of the table: a size for each form, all of which keep several blocks busy.
  entry.typical = form ? std::array<CallSizes, 3>{{{.m = 5}, {.m = 100}, {.m = 700}}}
                       : std::array<CallSizes, 3>{
                             {{.m = 600}, {.m = 8500}, {.m = kind == CollectiveKind::AllReduce ? 33000 : 9000}}};
  entry.make = [=](World &world, const ContractChoice &choice) {
    Draws draws(choice.draw);
    ops::CollectiveOptions options = {.kind = kind, .dtype = choice.dtype, .maxElements = choice.most.m};
    options.concurrentCalls = choice.concurrentCalls;
    if (form)
      options.plan = drawPlan(*form, draws);
    if (kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter) {
      options.reduction =
          draws.of({Reduction::Sum, Reduction::Sum, Reduction::Max, Reduction::Min, Reduction::Average});
      if (isFloat(choice.dtype) && draws.of({false, false, true}))
        options.scale = 0.5f;
    }
    if (kind == CollectiveKind::Broadcast)
      options.root = draws.upTo(0, world.numRanks() - 1);
    const bool inPlace = draws.of({false, true});
    return adapt<CollectiveUnderContract>(ops::Collective::create(world, sharedJit(), options), world.numRanks(),
                                          inPlace);
  };
  return entry;
}

//===--------------------------------------------------------------------------------------------------------------------===//
// AllReduce, residual, RMSNorm
//===--------------------------------------------------------------------------------------------------------------------===//

class RmsNormUnderContract final : public OperatorUnderContract {
public:
  RmsNormUnderContract(ops::AllReduceRmsNorm made, bool inPlace) : op(std::move(made)), inPlace(inPlace) {}

  std::vector<ContractOperand> operands(const CallSizes &sizes, uint32_t) const override {
    const DataType type = op.options().dtype;
    const int64_t columns = op.options().columns, all = sizes.m * columns;
    std::vector<ContractOperand> operands = {
        {.name = "x", .type = type, .elements = all},
        {.name = "residual", .type = type, .elements = all},
        {.name = "weight", .type = type, .elements = columns},
        {.name = "out",
         .type = type,
         .elements = all,
         .isResult = true,
         .tolerance = ops::toleranceFor(type, ops::MultiplyPrecision::Ieee).relative},
        {.name = "residual_out", .type = type, .elements = all, .isResult = true}};
    if (inPlace) {
      operands[3].inside = {0, 0};
      operands[4].inside = {1, 0};
    }
    return operands;
  }
  Status prepare(Rank &rank, const CallSizes &sizes) override { return op.prepare(rank, sizes.m); }
  Status enqueue(Rank &rank, Stream &stream, const std::vector<Pointer> &o, const CallSizes &sizes) override {
    return op.enqueue(rank, stream, {o[0], o[1], o[2], o[3], o[4]}, sizes.m);
  }
  void compute(const CallSizes &sizes, std::vector<RankValues> &values) const override {
    const DataType type = op.options().dtype;
    const int64_t columns = op.options().columns;
    for (RankValues &own : values) {
      for (int64_t row = 0; row < sizes.m; ++row) {
        double squares = 0;
        for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
          float sum = 0;
          for (const RankValues &each : values)
            sum += static_cast<float>(each[0][i]);
          own[4].push_back(ops::roundedTo(type, static_cast<float>(ops::roundedTo(type, sum)) + static_cast<float>(own[1][i])));
          squares += own[4].back() * own[4].back();
        }
        const double factor = 1 / std::sqrt(squares / static_cast<double>(columns) + op.options().epsilon);
        for (int64_t column = 0; column < columns; ++column)
          own[3].push_back(own[4][row * columns + column] * factor * own[2][column]);
      }
    }
  }
  double fractionTolerance() const override { return 0; }
  std::string describe() const override {
    return fmt::format("AllReduceRmsNorm of {}{}, plan {}", toString(op.options().dtype), inPlace ? ", in place" : "",
                       op.options().plan ? op.options().plan->text() : "of the table");
  }

private:
  ops::AllReduceRmsNorm op;
  bool inPlace;
};

ContractEntry rmsNorm(std::optional<CollectiveForm> form) {
  ContractEntry entry;
  entry.name = fmt::format("all_reduce_rms_norm_{}", form ? toString(*form) : "by_table");
  entry.dtypes = {DataType::BF16, DataType::F16, DataType::F32};
  entry.most = {.m = 4097, .n = 4097, .k = 1};
  entry.typical = {{{.m = 1, .n = 72}, {.m = 5, .n = 72}, {.m = 17, .n = 72}}};
  entry.anyAlignment = false;
  entry.rowBytes = 16;
  entry.fixedColumns = true;
  entry.make = [=](World &world, const ContractChoice &choice) {
    Draws draws(choice.draw);
    ops::AllReduceRmsNormOptions options = {.dtype = choice.dtype, .columns = choice.most.n, .maxRows = choice.most.m};
    options.concurrentCalls = choice.concurrentCalls;
    if (form)
      options.plan = drawPlan(*form, draws);
    const bool inPlace = draws.of({false, true});
    return adapt<RmsNormUnderContract>(ops::AllReduceRmsNorm::create(world, sharedJit(), options), inPlace);
  };
  return entry;
}

//===--------------------------------------------------------------------------------------------------------------------===//
// Products
//===--------------------------------------------------------------------------------------------------------------------===//

/// What the operators with a product have in common: operands a, b and out of one type.
struct ProductChoice {
  DataType dtype = DataType::BF16;
  std::optional<DataType> partialType = std::nullopt;
  MatrixOrder order = MatrixOrder::Plain;
  ops::TileConfig tile = {};
  int64_t unequal = 0; ///< The size in which ranks may differ grows by so much from rank to rank.

  ProductChoice(const ContractChoice &choice, Draws &draws, bool hasPartials) : dtype(choice.dtype) {
    order = draws.of({MatrixOrder::Plain, MatrixOrder::Transposed});
    if (hasPartials && draws.of({false, false, true}))
      partialType = DataType::F32;
    tile = draws.of<ops::TileConfig>(
        {{.blockM = 32, .blockN = 32, .blockK = 32, .groupM = 4, .numWarps = 4, .numStages = 3},
         {.blockM = 64, .blockN = 64, .blockK = 32, .groupM = 2, .numWarps = 4, .numStages = 2},
         {.blockM = 16, .blockN = 64, .blockK = 64, .groupM = 8, .numWarps = 2, .numStages = 2}});
    unequal = draws.of({0, 0, 7});
  }
  std::string text() const {
    return fmt::format("{}, partials {}, B {}, tile {}x{}x{}, ranks differ by {}", toString(dtype),
                       toString(partialType.value_or(dtype)), order == MatrixOrder::Plain ? "plain" : "transposed",
                       tile.blockM, tile.blockN, tile.blockK, unequal);
  }
  double tolerance() const { return ops::toleranceFor(dtype, ops::MultiplyPrecision::Tf32).relative; }
  /// A [m, k] times B as it lies in memory, not rounded.
  std::vector<double> product(const std::vector<double> &a, const std::vector<double> &b, int64_t m, int64_t n,
                              int64_t k) const {
    std::vector<float> right = convertAll<float>(b);
    if (order == MatrixOrder::Transposed)
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j)
          right[i * n + j] = static_cast<float>(b[j * k + i]);
    return ops::referenceProduct(convertAll<float>(a), right, m, n, k);
  }
};

class AllGatherGemmUnderContract final : public OperatorUnderContract {
public:
  AllGatherGemmUnderContract(ops::AllGatherGemm made, ProductChoice choice, uint32_t ranks)
      : op(std::move(made)), choice(choice), ranks(ranks) {}

  std::vector<ContractOperand> operands(const CallSizes &sizes, uint32_t rank) const override {
    const int64_t k = op.options().depth, n = columns(sizes, rank);
    return {{.name = "a", .type = choice.dtype, .elements = ops::RowShards(sizes.m, ranks).rowsOf(rank) * k},
            {.name = "b", .type = choice.dtype, .elements = k * n},
            {.name = "c", .type = choice.dtype, .elements = sizes.m * n, .isResult = true}};
  }
  Status prepare(Rank &rank, const CallSizes &sizes) override {
    return op.prepare(rank, sizes.m, columns(sizes, rank.id()));
  }
  Status enqueue(Rank &rank, Stream &stream, const std::vector<Pointer> &o, const CallSizes &sizes) override {
    return op.enqueue(rank, stream, o[0], o[1], o[2], sizes.m, columns(sizes, rank.id()));
  }
  void compute(const CallSizes &sizes, std::vector<RankValues> &values) const override {
    std::vector<double> gathered;
    for (const RankValues &each : values)
      gathered.insert(gathered.end(), each[0].begin(), each[0].end());
    for (uint32_t r = 0; r < ranks; ++r)
      for (double value : choice.product(gathered, values[r][1], sizes.m, columns(sizes, r), op.options().depth))
        values[r][2].push_back(ops::roundedTo(choice.dtype, value));
  }
  double fractionTolerance() const override { return choice.tolerance(); }
  std::string describe() const override {
    return fmt::format("AllGatherGemm of {}, {} chunks, {} nodes, one launch up to {} rows", choice.text(),
                       op.options().chunksPerRank, op.options().numNodes, *op.options().oneLaunchRows);
  }

private:
  int64_t columns(const CallSizes &sizes, uint32_t rank) const { return sizes.n + choice.unequal * rank; }

  ops::AllGatherGemm op;
  ProductChoice choice;
  uint32_t ranks;
};

/// Splits of the depth need a multiprocessor for each block of a tile.
std::optional<ops::OneLaunchTile> drawOneLaunchTile(World &world, const CallSizes &most, Draws &draws) {
  const ops::OneLaunchTile split = {
      .tile = {.blockM = 16, .blockN = 64, .blockK = 32, .groupM = 1, .numWarps = 4, .numStages = 3}, .splits = 3};
  const ops::OneLaunchTile whole = {
      .tile = {.blockM = 32, .blockN = 64, .blockK = 64, .groupM = 1, .numWarps = 4, .numStages = 2}, .splits = 1};
  const int choice = draws.of({0, 0, 1, 2});
  if (choice == 0)
    return std::nullopt;
  const int64_t blocks = ops::ceilDivide(most.m, split.tile.blockM) * ops::ceilDivide(most.n, split.tile.blockN) * 3;
  return choice == 1 && 2 * blocks <= world.rank(0).attributes().multiprocessors ? split : whole;
}

ContractEntry allGatherGemm(std::string_view form) {
  const bool oneLaunch = form == "one_launch";
  ContractEntry entry;
  entry.name = fmt::format("all_gather_gemm_{}", form);
  entry.dtypes = {DataType::BF16, DataType::F16, DataType::F32};
  if (oneLaunch)
    entry.most.m = 128;
  entry.typical = {{{.m = 3, .n = 40, .k = 48}, {.m = 50, .n = 72, .k = 48}, {.m = 110, .n = 33, .k = 48}}};
  entry.fixedDepth = true;
  entry.make = [=](World &world, const ContractChoice &choice) {
    Draws draws(choice.draw);
    const ProductChoice product(choice, draws, /*hasPartials=*/false);
    ops::AllGatherGemmOptions options;
    options.dtype = choice.dtype;
    options.maxRows = choice.most.m;
    options.depth = choice.most.k;
    options.chunksPerRank = draws.of({1u, 2u, 3u});
    options.numNodes = world.numRanks() % 2 == 0 ? draws.of({0u, 2u}) : 0;
    options.weightOrder = product.order;
    options.tile = product.tile;
    options.concurrentCalls = choice.concurrentCalls;
    if (form == "unfused")
      options.schedule = ops::Schedule::Unfused;
    if (oneLaunch) {
      options.oneLaunchRows = 128;
      options.oneLaunchTile = drawOneLaunchTile(world, choice.most, draws);
    }
    return adapt<AllGatherGemmUnderContract>(ops::AllGatherGemm::create(world, sharedJit(), options), product,
                                             world.numRanks());
  };
  return entry;
}

/// GEMM+ReduceScatter and GEMM+AllReduce: out is a part, or the whole, of the sum over the ranks of A_r B_r.
template <typename Operator, bool scatters> class SummedProductUnderContract final : public OperatorUnderContract {
public:
  SummedProductUnderContract(Operator made, ProductChoice choice, uint32_t ranks)
      : op(std::move(made)), choice(choice), ranks(ranks) {}

  std::vector<ContractOperand> operands(const CallSizes &sizes, uint32_t rank) const override {
    const int64_t k = depth(sizes, rank), n = op.options().columns;
    const int64_t rows = scatters ? ops::RowShards(sizes.m, ranks).rowsOf(rank) : sizes.m;
    return {{.name = "a", .type = choice.dtype, .elements = sizes.m * k},
            {.name = "b", .type = choice.dtype, .elements = k * n},
            {.name = "out", .type = choice.dtype, .elements = rows * n, .isResult = true}};
  }
  Status prepare(Rank &rank, const CallSizes &sizes) override {
    return op.prepare(rank, sizes.m, depth(sizes, rank.id()));
  }
  Status enqueue(Rank &rank, Stream &stream, const std::vector<Pointer> &o, const CallSizes &sizes) override {
    return op.enqueue(rank, stream, o[0], o[1], o[2], sizes.m, depth(sizes, rank.id()));
  }
  /// Partial results are rounded before they travel; the sum is made in fp32 in ascending order.
  void compute(const CallSizes &sizes, std::vector<RankValues> &values) const override {
    const int64_t n = op.options().columns;
    std::vector<float> sum(sizes.m * n);
    for (uint32_t r = 0; r < ranks; ++r) {
      const std::vector<double> part = choice.product(values[r][0], values[r][1], sizes.m, n, depth(sizes, r));
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] += static_cast<float>(ops::roundedTo(choice.partialType.value_or(choice.dtype), part[i]));
    }
    const ops::RowShards shards(sizes.m, ranks);
    for (uint32_t r = 0; r < ranks; ++r) {
      const int64_t first = scatters ? shards.firstRowOf(r) : 0, rows = scatters ? shards.rowsOf(r) : sizes.m;
      for (int64_t i = first * n; i < (first + rows) * n; ++i)
        values[r][2].push_back(ops::roundedTo(choice.dtype, sum[i]));
    }
  }
  double fractionTolerance() const override { return choice.tolerance(); }
  bool givesAllRanksTheSame() const override { return !scatters; }
  std::string describe() const override {
    std::string text = fmt::format("{} of {}", scatters ? "GemmReduceScatter" : "GemmAllReduce", choice.text());
    if constexpr (scatters)
      text += fmt::format(", one launch up to {} rows", *op.options().oneLaunchRows);
    else
      text += fmt::format(", {}", toString(op.options().form));
    return text;
  }

private:
  int64_t depth(const CallSizes &sizes, uint32_t rank) const { return sizes.k + choice.unequal * rank; }

  Operator op;
  ProductChoice choice;
  uint32_t ranks;
};

ContractEntry gemmReduceScatter(std::string_view form) {
  const bool oneLaunch = form == "one_launch";
  ContractEntry entry;
  entry.name = fmt::format("gemm_reduce_scatter_{}", form);
  entry.dtypes = {DataType::BF16, DataType::F16, DataType::F32};
  if (oneLaunch)
    entry.most.m = 128;
  entry.typical = {{{.m = 3, .n = 72, .k = 48}, {.m = 50, .n = 72, .k = 17}, {.m = 110, .n = 72, .k = 64}}};
  entry.fixedColumns = true;
  entry.make = [=](World &world, const ContractChoice &choice) {
    Draws draws(choice.draw);
    const ProductChoice product(choice, draws, /*hasPartials=*/true);
    ops::GemmReduceScatterOptions options;
    options.dtype = choice.dtype;
    options.partialType = product.partialType;
    options.maxRows = choice.most.m;
    options.columns = choice.most.n;
    options.numNodes = world.numRanks() % 2 == 0 ? draws.of({0u, 2u}) : 0;
    options.weightOrder = product.order;
    options.tile = product.tile;
    options.concurrentCalls = choice.concurrentCalls;
    if (form == "unfused")
      options.schedule = ops::Schedule::Unfused;
    if (form == "pushed")
      options.plan =
          ops::TensorParallelPlan{.form = ops::TensorParallelForm::Pushed, .chunks = draws.of({2u, 1u, 3u, 5u})};
    if (oneLaunch) {
      options.oneLaunchRows = 128;
      options.oneLaunchTile = drawOneLaunchTile(world, choice.most, draws);
    }
    return adapt<SummedProductUnderContract<ops::GemmReduceScatter, true>>(
        ops::GemmReduceScatter::create(world, sharedJit(), options), product, world.numRanks());
  };
  return entry;
}

ContractEntry gemmAllReduce(AllReduceForm form) {
  ContractEntry entry;
  entry.name = fmt::format("gemm_all_reduce_{}", toString(form));
  entry.dtypes = {DataType::BF16, DataType::F16, DataType::F32};
  if (ops::isOneLaunch(form))
    entry.most.m = 512;
  // Auto takes another form for each. Simulated packets, which the unfused form sends, are slow.
  const int64_t columns = form == AllReduceForm::Unfused ? 24 : 72;
  entry.typical = {
      {{.m = 5, .n = columns, .k = 48}, {.m = 60, .n = columns, .k = 17}, {.m = 150, .n = columns, .k = 64}}};
  entry.fixedColumns = true;
  entry.make = [=](World &world, const ContractChoice &choice) {
    Draws draws(choice.draw);
    const ProductChoice product(choice, draws, /*hasPartials=*/true);
    ops::GemmAllReduceOptions options;
    options.dtype = choice.dtype;
    options.partialType = product.partialType;
    options.maxRows = choice.most.m;
    options.columns = choice.most.n;
    options.weightOrder = product.order;
    options.form = form;
    options.tile = product.tile;
    options.chunks = draws.of({2u, 1u, 3u, 4u, 0u});
    options.concurrentCalls = choice.concurrentCalls;
    if (ops::isOneLaunch(form))
      options.oneLaunchTile = drawOneLaunchTile(world, choice.most, draws);
    return adapt<SummedProductUnderContract<ops::GemmAllReduce, false>>(
        ops::GemmAllReduce::create(world, sharedJit(), options), product, world.numRanks());
  };
  return entry;
}

//===--------------------------------------------------------------------------------------------------------------------===//
// Mixtures of experts
//===--------------------------------------------------------------------------------------------------------------------===//

/// AllGatherMoe and behind it a MoeReduction, with sizes.m tokens of each rank, sizes.k elements of a token and sizes.n of a result. Which
/// experts tokens have is a part of the data: other rows with every set.
class MoeUnderContract final : public OperatorUnderContract {
public:
  static constexpr uint32_t experts = 3, topK = 2;
  static constexpr int64_t inner = 24; ///< Columns of a rank's slice.

  static Expected<std::unique_ptr<OperatorUnderContract>> create(World &world, const ContractChoice &choice,
                                                                 ops::MoeResult result, ops::Schedule schedule) {
    Draws draws(choice.draw);
    ops::AllGatherMoeOptions up;
    up.dtype = up.resultType = choice.dtype;
    up.hidden = choice.most.k;
    up.columns = inner;
    up.experts = experts;
    up.topK = topK;
    up.maxTokensPerRank = choice.most.m;
    up.weightOrder = draws.of({MatrixOrder::Transposed, MatrixOrder::Plain});
    up.schedule = schedule;
    up.chunksPerRank = draws.of({1u, 2u, 3u});
    up.plan = ops::GemmPlan();
    up.plan->movement = ops::GemmMovement::Pointers;
    if (sizeOf(choice.dtype) == 2 && up.hidden % 16 == 0 && up.weightOrder == MatrixOrder::Transposed)
      up.plan->movement = draws.of({ops::GemmMovement::Descriptors, ops::GemmMovement::Pointers});
    up.plan->tile = draws.of<ops::TileConfig>(
        {{.blockM = 64, .blockN = 64, .blockK = 32, .groupM = 4, .numWarps = 4, .numStages = 2},
         {.blockM = 64, .blockN = 32, .blockK = 64, .groupM = 2, .numWarps = 4, .numStages = 3}});
    auto made = std::make_unique<MoeUnderContract>();
    made->world = &world;
    made->ranks = world.numRanks();
    DITRON_ASSIGN_OR_RETURN(made->gather, ops::AllGatherMoe::create(world, sharedJit(), up));
    ops::MoeReductionOptions down;
    down.result = result;
    down.dtype = down.resultType = choice.dtype;
    if (draws.of({false, false, true}))
      down.partialType = DataType::F32;
    down.depth = inner;
    down.hidden = choice.most.n;
    down.maxTokens = choice.most.m * world.numRanks();
    down.weightOrder = draws.of({MatrixOrder::Transposed, MatrixOrder::Plain});
    down.schedule = schedule;
    std::vector<ops::MoeRows> rows;
    for (uint32_t id = 0; id < world.numRanks(); ++id) {
      rows.push_back(made->gather->rows(id));
      DITRON_ASSIGN_OR_RETURN(
          Buffer buffer, world.rank(id).allocate(choice.dtype, made->gather->mostRows(choice.most.m) * inner, "inner"));
      made->innerRows.push_back(std::move(buffer));
    }
    DITRON_ASSIGN_OR_RETURN(made->reduction, ops::MoeReduction::create(world, sharedJit(), down, rows));
    return std::unique_ptr<OperatorUnderContract>(std::move(made));
  }

  std::vector<ContractOperand> operands(const CallSizes &sizes, uint32_t) const override {
    const DataType type = gather->options().dtype;
    const int64_t k = gather->options().hidden, n = reduction->options().hidden;
    return {{.name = "tokens", .type = type, .elements = sizes.m * k},
            {.name = "ids", .type = DataType::I32, .elements = sizes.m * topK},
            {.name = "slot weights", .type = DataType::F32, .elements = sizes.m * topK},
            {.name = "up", .type = type, .elements = experts * inner * k},
            {.name = "down", .type = type, .elements = experts * n * inner},
            {.name = "out", .type = type, .elements = (isScattered() ? 1 : ranks) * sizes.m * n, .isResult = true}};
  }
  Status prepare(Rank &rank, const CallSizes &sizes) override {
    DITRON_RETURN_IF_ERROR(gather->prepare(rank, sizes.m));
    return reduction->prepare(rank, sizes.m * ranks);
  }
  Status enqueue(Rank &rank, Stream &stream, const std::vector<Pointer> &o, const CallSizes &sizes) override {
    DITRON_RETURN_IF_ERROR(ops::verifyRank("MoeUnderContract", *world, rank));
    const Buffer &rows = innerRows[rank.id()];
    const ops::MoeReductionOperands down = {rows, o[4], o[5], {}, {}};
    // What is wrong with the second call's operands is found before the first is enqueued.
    DITRON_RETURN_IF_ERROR(reduction->verify(down));
    DITRON_RETURN_IF_ERROR(gather->enqueue(rank, stream, {o[0], o[1], o[2], o[3], rows, {}, {}}, sizes.m));
    return reduction->enqueue(rank, stream, down, sizes.m * ranks);
  }
  /// Inner rows, rows and each rank's sums are rounded; sums are made in fp32, a token's in the order of its slots, the ranks' in theirs.
  void compute(const CallSizes &sizes, std::vector<RankValues> &values) const override {
    const DataType type = gather->options().dtype, partialType = reduction->options().partialType.value_or(type);
    const int64_t k = gather->options().hidden, n = reduction->options().hidden, tokens = sizes.m * ranks;
    std::vector<float> sums(tokens * n);
    for (uint32_t r = 0; r < ranks; ++r) {
      const std::vector<double> &up = values[r][3], &down = values[r][4];
      for (int64_t token = 0; token < tokens; ++token) {
        const RankValues &source = values[token / sizes.m];
        const int64_t local = token % sizes.m;
        std::vector<float> partial(n);
        for (int64_t slot = local * topK; slot < (local + 1) * topK; ++slot) {
          const double id = source[1][slot];
          if (id < 0 || id >= experts)
            continue;
          const auto expert = static_cast<int64_t>(id);
          std::vector<double> row(inner);
          for (int64_t i = 0; i < inner; ++i) {
            double sum = 0;
            for (int64_t depth = 0; depth < k; ++depth)
              sum += source[0][local * k + depth] *
                     up[expert * inner * k + place(gather->options().weightOrder, i, depth, inner, k)];
            row[i] = ops::roundedTo(type, sum);
          }
          for (int64_t column = 0; column < n; ++column) {
            double sum = 0;
            for (int64_t i = 0; i < inner; ++i)
              sum += row[i] * down[expert * n * inner + place(reduction->options().weightOrder, column, i, n, inner)];
            partial[column] += static_cast<float>(ops::roundedTo(type, sum)) * static_cast<float>(source[2][slot]);
          }
        }
        for (int64_t column = 0; column < n; ++column)
          sums[token * n + column] += static_cast<float>(ops::roundedTo(partialType, partial[column]));
      }
    }
    for (uint32_t r = 0; r < ranks; ++r) {
      const int64_t first = isScattered() ? r * sizes.m : 0, count = isScattered() ? sizes.m : tokens;
      for (int64_t i = first * n; i < (first + count) * n; ++i)
        values[r][5].push_back(ops::roundedTo(type, sums[i]));
    }
  }
  double fractionTolerance() const override {
    return 3 * ops::toleranceFor(gather->options().dtype, ops::MultiplyPrecision::Tf32).relative;
  }
  bool givesAllRanksTheSame() const override { return !isScattered(); }
  std::string describe() const override {
    return fmt::format("ag_moe and {} of {}, {}, {} chunks", toString(reduction->options().result),
                       toString(gather->options().dtype), toString(gather->options().schedule),
                       gather->options().chunksPerRank);
  }

private:
  bool isScattered() const { return reduction->options().result == ops::MoeResult::Scattered; }
  static int64_t place(MatrixOrder order, int64_t column, int64_t depth, int64_t n, int64_t k) {
    return order == MatrixOrder::Transposed ? column * k + depth : depth * n + column;
  }

  World *world = nullptr;
  std::optional<ops::AllGatherMoe> gather;
  std::optional<ops::MoeReduction> reduction;
  std::vector<Buffer> innerRows;
  uint32_t ranks = 0;
};

ContractEntry mixtureOfExperts(ops::MoeResult result, ops::Schedule schedule) {
  ContractEntry entry;
  entry.name = fmt::format("ag_moe_{}_{}", toString(result), toString(schedule));
  entry.dtypes = {DataType::BF16, DataType::F16, DataType::F32};
  entry.most = {.m = 300, .n = 600, .k = 600};
  entry.typical = {{{.m = 1, .n = 40, .k = 48}, {.m = 11, .n = 40, .k = 48}, {.m = 30, .n = 40, .k = 48}}};
  entry.anyAlignment = false;
  entry.fixedColumns = entry.fixedDepth = true;
  entry.make = [=](World &world, const ContractChoice &choice) {
    return MoeUnderContract::create(world, choice, result, schedule);
  };
  return entry;
}

//===--------------------------------------------------------------------------------------------------------------------===//
// Expert parallelism
//===--------------------------------------------------------------------------------------------------------------------===//

/// A dispatch and the combine of what it brought: each token times the sum of the weights of its slots that have an expert.
class ExpertParallelUnderContract final : public OperatorUnderContract {
public:
  ExpertParallelUnderContract(ops::ExpertParallel made, World *world) : op(std::move(made)) {
    const ops::ExpertParallelOptions &options = op.options();
    for (uint32_t r = 0; r < world->numRanks(); ++r) {
      const auto allocate = [&](DataType type, int64_t count) {
        auto buffer = world->rank(r).allocate(type, count, "between dispatch and combine");
        EXPECT_OK(buffer);
        return std::move(buffer).value();
      };
      rows.push_back(allocate(options.dtype, op.maxRows() * options.hidden));
      offsets.push_back(allocate(DataType::I32, options.experts / world->numRanks() + 1));
      handles.push_back(allocate(DataType::I32, op.handleElements()));
    }
  }

  std::vector<ContractOperand> operands(const CallSizes &sizes, uint32_t) const override {
    const ops::ExpertParallelOptions &options = op.options();
    const int64_t slots = sizes.m * options.topK, elements = sizes.m * options.hidden;
    return {{.name = "x", .type = options.dtype, .elements = elements},
            {.name = "ids", .type = DataType::I32, .elements = slots},
            {.name = "weights", .type = DataType::F32, .elements = slots},
            {.name = "out", .type = options.dtype, .elements = elements, .isResult = true}};
  }
  Status prepare(Rank &rank, const CallSizes &) override { return op.prepare(rank); }
  Status enqueue(Rank &rank, Stream &stream, const std::vector<Pointer> &o, const CallSizes &sizes) override {
    // A rank that is not this operator's is refused before its memory is looked for.
    const uint32_t r = std::min<uint32_t>(rank.id(), static_cast<uint32_t>(rows.size()) - 1);
    // Of two operations: what the second would refuse must keep the first from being enqueued, and weights may be null for it.
    DITRON_RETURN_IF_ERROR(ops::verifyPointerType("expert_parallel", "weights", o[2], DataType::F32));
    DITRON_RETURN_IF_ERROR(ops::verifyPointerType("expert_parallel", "out", o[3], op.options().dtype));
    DITRON_RETURN_IF_ERROR(op.dispatch(rank, stream, {o[0], sizes.m, o[1], o[2], rows[r], {}, offsets[r], handles[r]}));
    return op.combine(rank, stream, {rows[r], o[3], sizes.m, handles[r]});
  }
  void compute(const CallSizes &sizes, std::vector<RankValues> &values) const override {
    const ops::ExpertParallelOptions &options = op.options();
    for (RankValues &own : values)
      for (int64_t i = 0; i < sizes.m * options.hidden; ++i) {
        double sum = 0;
        for (uint32_t j = 0; j < options.topK; ++j) {
          const int64_t slot = i / options.hidden * options.topK + j;
          if (own[1][slot] >= 0 && own[1][slot] < options.experts)
            sum += own[0][i] * own[2][slot];
        }
        own[3].push_back(sum);
      }
  }
  double fractionTolerance() const override {
    return ops::toleranceFor(op.options().dtype, ops::MultiplyPrecision::Ieee).relative;
  }
  std::string describe() const override {
    return fmt::format("ExpertParallel of {}, {} experts, plan {}", toString(op.options().dtype), op.options().experts,
                       op.plan().text());
  }

private:
  ops::ExpertParallel op;
  std::vector<Buffer> rows, offsets, handles;
};

ContractEntry expertParallel(ops::ExpertParallelForm form) {
  ContractEntry entry;
  entry.name = fmt::format("expert_parallel_{}", toString(form));
  entry.isBetweenNodes = form == ops::ExpertParallelForm::TwoLevel;
  entry.dtypes = {DataType::BF16, DataType::F16, DataType::F32};
  entry.most = {.m = 65, .n = 259, .k = 1};
  entry.typical = {{{.m = 1, .n = 40}, {.m = 5, .n = 40}, {.m = 17, .n = 40}}};
  entry.fixedColumns = true;
  entry.sizesMayDiffer = true;
  entry.make = [=](World &world, const ContractChoice &choice) {
    Draws draws(choice.draw);
    ops::ExpertParallelOptions options = {.hidden = choice.most.n,
                                          .experts = world.numRanks() * draws.upTo(1, 3),
                                          .topK = 2,
                                          .maxTokens = choice.most.m,
                                          .dtype = choice.dtype};
    options.capacity = options.maxTokens * options.topK; // an expert may be chosen twice
    options.concurrentCalls = choice.concurrentCalls;
    options.plan = ops::ExpertParallelPlan{
        form, draws.of({4u, 2u}), draws.of({2u, 1u, 4u}), draws.of({2u, 4u}), draws.of({1u, 2u}), draws.upTo(1, 5)};
    return adapt<ExpertParallelUnderContract>(ops::ExpertParallel::create(world, sharedJit(), options), &world);
  };
  return entry;
}

/// The whole layer: router, dispatch, experts, shared experts, combine.
class ExpertParallelMoeUnderContract final : public OperatorUnderContract {
public:
  static Expected<std::unique_ptr<OperatorUnderContract>> create(World &world,
                                                                 const ops::ExpertParallelMoeOptions &options) {
    auto made = std::make_unique<ExpertParallelMoeUnderContract>(options);
    const MoeModel &model = made->model;
    std::vector<ops::ExpertParallelMoeWeights> weights(world.numRanks());
    for (uint32_t r = 0; r < world.numRanks(); ++r) {
      const auto put = [&](const std::vector<float> &all, uint32_t parts) -> Expected<Pointer> {
        const auto count = static_cast<ptrdiff_t>(all.size() / parts), first = parts > 1 ? r * count : 0;
        DITRON_ASSIGN_OR_RETURN(Buffer buffer, world.rank(r).allocate(options.dtype, count, "weights"));
        DITRON_RETURN_IF_ERROR(buffer.uploadFloats({all.begin() + first, all.begin() + first + count}));
        made->kept.push_back(std::move(buffer));
        return made->kept.back().pointer();
      };
      DITRON_ASSIGN_OR_RETURN(weights[r].router, put(model.router, 1));
      DITRON_ASSIGN_OR_RETURN(weights[r].up, put(model.up, world.numRanks()));
      DITRON_ASSIGN_OR_RETURN(weights[r].down, put(model.down, world.numRanks()));
      DITRON_ASSIGN_OR_RETURN(weights[r].sharedUp, put(model.sharedUp, 1));
      DITRON_ASSIGN_OR_RETURN(weights[r].sharedDown, put(model.sharedDown, 1));
    }
    DITRON_ASSIGN_OR_RETURN(made->op, ops::ExpertParallelMoe::create(world, sharedJit(), options, weights));
    return std::unique_ptr<OperatorUnderContract>(std::move(made));
  }
  explicit ExpertParallelMoeUnderContract(const ops::ExpertParallelMoeOptions &options)
      : model({.dtype = options.dtype,
               .hidden = options.hidden,
               .inner = options.inner,
               .sharedInner = options.sharedInner,
               .experts = options.experts,
               .topK = options.topK}) {}

  std::vector<ContractOperand> operands(const CallSizes &sizes, uint32_t) const override {
    const DataType type = op->options().dtype;
    const int64_t elements = sizes.m * op->options().hidden;
    return {{.name = "x", .type = type, .elements = elements},
            {.name = "y",
             .type = type,
             .elements = elements,
             .isResult = true,
             .tolerance = 3 * ops::toleranceFor(type, ops::MultiplyPrecision::Ieee).relative}};
  }
  Status prepare(Rank &rank, const CallSizes &sizes) override { return op->prepare(rank, sizes.m); }
  Status enqueue(Rank &rank, Stream &stream, const std::vector<Pointer> &o, const CallSizes &sizes) override {
    return op->enqueue(rank, stream, o[0], o[1], sizes.m);
  }
  void compute(const CallSizes &sizes, std::vector<RankValues> &values) const override {
    for (RankValues &own : values)
      own[1] = model.applyAll(convertAll<float>(own[0]), 0, sizes.m);
  }
  double fractionTolerance() const override { return 0; }
  std::string describe() const override {
    return fmt::format("ExpertParallelMoe of {}, {} experts, plan {}", toString(op->options().dtype),
                       op->options().experts, op->planText());
  }

private:
  MoeModel model;
  std::vector<Buffer> kept;
  std::optional<ops::ExpertParallelMoe> op;
};

/// Of fused layers.
constexpr ops::TileConfig smallTile = {
    .blockM = 16, .blockN = 32, .blockK = 16, .groupM = 2, .numWarps = 2, .numStages = 2};

/// Without a form: fused.
ContractEntry expertParallelMoe(std::optional<ops::ExpertParallelForm> form) {
  ContractEntry entry;
  entry.name = fmt::format("expert_parallel_moe_{}", form ? toString(*form) : "fused");
  entry.isBetweenNodes = form == ops::ExpertParallelForm::TwoLevel;
  entry.dtypes = {DataType::BF16, DataType::F16, DataType::F32};
  entry.most = {.m = 40, .n = 97, .k = 1};
  entry.typical = {{{.m = 1, .n = 40}, {.m = 5, .n = 40}, {.m = 17, .n = 40}}};
  entry.anyAlignment = false;
  entry.fixedColumns = true;
  entry.sizesMayDiffer = true;
  entry.make = [=](World &world, const ContractChoice &choice) {
    Draws draws(choice.draw);
    ops::ExpertParallelMoeOptions options = {.dtype = choice.dtype,
                                             .hidden = choice.most.n,
                                             .inner = draws.upTo(16, 20),
                                             .sharedInner = 8,
                                             .experts = world.numRanks() * draws.upTo(2, 3),
                                             .topK = 2,
                                             .maxTokens = choice.most.m};
    options.concurrentCalls = choice.concurrentCalls;
    if (form) {
      options.plan = ops::ExpertParallelPlan{*form, draws.of({4u, 2u}), 2, draws.of({2u, 4u}), 2, draws.upTo(1, 5)};
    } else {
      options.inner = draws.of({16, 24});
      options.fused = ops::FusedExpertParallelPlan{.dispatchTile = smallTile,
                                                   .combineTile = smallTile,
                                                   .senders = draws.of({2u, 1u, 3u}),
                                                   .unit = draws.of({4u, 2u}),
                                                   .pace = draws.of({8u, 1u})};
    }
    return ExpertParallelMoeUnderContract::create(world, options);
  };
  if (!form)
    entry.rowBytes = 16;
  return entry;
}

std::vector<ContractEntry> makeTable() {
  constexpr CollectiveForm packets = CollectiveForm::Packets, chunks = CollectiveForm::Chunks;
  std::vector<ContractEntry> table;
  for (CollectiveKind kind : ops::allCollectiveKinds()) {
    table.push_back(collective(kind, std::nullopt));
    if (kind != CollectiveKind::Broadcast)
      for (CollectiveForm form : {packets, CollectiveForm::Lamport})
        table.push_back(collective(kind, form));
    if (kind == CollectiveKind::AllReduce)
      for (CollectiveForm form : {CollectiveForm::TwoShotPackets, CollectiveForm::TwoShotLamport})
        table.push_back(collective(kind, form));
    table.push_back(collective(kind, chunks));
  }
  for (std::optional<CollectiveForm> form : {std::optional<CollectiveForm>(), std::optional(CollectiveForm::Lamport),
                                             std::optional(CollectiveForm::TwoShotLamport), std::optional(chunks)})
    table.push_back(rmsNorm(form));
  for (std::string_view form : {"overlapped", "unfused", "one_launch"}) {
    table.push_back(allGatherGemm(form));
    table.push_back(gemmReduceScatter(form));
  }
  table.push_back(gemmReduceScatter("pushed"));
  for (AllReduceForm form : {AllReduceForm::Auto, AllReduceForm::OneShot, AllReduceForm::FusedTwoShot,
                             AllReduceForm::TwoShot, AllReduceForm::Pushed, AllReduceForm::Unfused})
    table.push_back(gemmAllReduce(form));
  table.push_back(mixtureOfExperts(ops::MoeResult::Scattered, ops::Schedule::Overlapped));
  table.push_back(mixtureOfExperts(ops::MoeResult::Scattered, ops::Schedule::Unfused));
  table.push_back(mixtureOfExperts(ops::MoeResult::Everywhere, ops::Schedule::Overlapped));
  table.push_back(expertParallel(ops::ExpertParallelForm::LowLatency));
  table.push_back(expertParallel(ops::ExpertParallelForm::HighThroughput));
  table.push_back(expertParallelMoe(ops::ExpertParallelForm::LowLatency));
  table.push_back(expertParallelMoe(ops::ExpertParallelForm::HighThroughput));
  table.push_back(expertParallelMoe(std::nullopt));
  table.push_back(expertParallel(ops::ExpertParallelForm::TwoLevel));
  table.push_back(expertParallelMoe(ops::ExpertParallelForm::TwoLevel));
  std::ranges::move(sequenceParallelEntries(), std::back_inserter(table));
  return table;
}

} // namespace

const std::vector<ContractEntry> &operatorsUnderContract() {
  static const std::vector<ContractEntry> table = makeTable();
  return table;
}

const ContractEntry &companionOf(const ContractEntry &entry, size_t distance) {
  std::vector<const ContractEntry *> companions;
  size_t own = 0;
  for (const ContractEntry &each : operatorsUnderContract()) {
    if (each.isBetweenNodes != entry.isBetweenNodes)
      continue;
    if (each.name == entry.name)
      own = companions.size();
    companions.push_back(&each);
  }
  return *companions[(own + distance) % companions.size()];
}

void makeNodes(const ContractEntry &entry, WorldOptions &options, uint32_t ranksPerNode) {
  if (entry.isBetweenNodes)
    options.ranksPerNode = ranksPerNode;
}

} // namespace ditron::e2e
