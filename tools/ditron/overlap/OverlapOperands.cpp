//===- OverlapOperands.cpp - An overlapped operator with its data ----------------------------------------------------===//
//
// What the operators share, then one class for each.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "overlap/OverlapOperands.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ditron::tool {

Status OverlapOperands::uploadSamples(uint32_t call) {
  for (uint32_t id : world.localRanks()) {
    DITRON_RETURN_IF_ERROR(data->fill(operands[id].a, saltOf(call, id, 0)));
    DITRON_RETURN_IF_ERROR(data->fill(operands[id].b, saltOf(call, id, 1)));
    DITRON_RETURN_IF_ERROR(world.rank(id).stream().fill(operands[id].result, 0xFF, operands[id].result.count()));
  }
  return Status::ok();
}

Expected<double> OverlapOperands::verifySamples(uint32_t call) {
  std::vector<SampledErrors> errors(world.numRanks());
  DITRON_RETURN_IF_ERROR(world.runRanks([&](runtime::Rank &rank) -> Status {
    DITRON_ASSIGN_OR_RETURN(errors[rank.id()], sampledErrors(call, rank.id()));
    return Status::ok();
  }));
  SampledErrors all;
  for (const SampledErrors &each : errors) {
    all.largest = std::max(all.largest, each.largest);
    all.squares += each.squares;
    all.samples += each.samples;
  }
  return all.samples ? all.largest / std::sqrt(all.squares / static_cast<double>(all.samples)) : 0;
}

Expected<OverlapOperands::SampledErrors> OverlapOperands::sampledErrors(uint32_t call, uint32_t id) {
  SampledErrors errors;
  DITRON_ASSIGN_OR_RETURN(const std::vector<float> actual, operands[id].result.downloadFloats());
  const auto [rows, columns] = resultShape(id);
  if (std::any_of(actual.begin(), actual.begin() + rows * columns, [](float value) { return std::isnan(value); })) {
    errors.largest = std::numeric_limits<double>::infinity();
    return errors;
  }
  uint64_t state = 977 * call + id + 1;
  for (uint32_t sample = 0; sample < samplesPerRank && rows * columns > 0; ++sample) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const int64_t last = rows * columns - 1;
    const int64_t index = sample == 0 ? 0 : sample == 1 ? last : static_cast<int64_t>((state >> 20) % (last + 1));
    const double expected = sampledSum(call, id, index / columns, index % columns);
    errors.largest = std::max(errors.largest, std::abs(actual[index] - expected));
    errors.squares += expected * expected;
    ++errors.samples;
  }
  return errors;
}

Expected<ops::Comparison> OverlapOperands::compareBlock(const std::vector<double> &c, int64_t row, int64_t rows,
                                                        OverlapSlice slice, const runtime::Buffer &result) {
  if (rows == 0 || slice.size == 0)
    return ops::Comparison();
  DITRON_ASSIGN_OR_RETURN(std::vector<float> actual, result.downloadFloats());
  actual.resize(rows * slice.size);
  std::vector<double> expected;
  expected.reserve(actual.size());
  for (int64_t i = 0; i < rows; ++i) {
    auto begin = c.begin() + (row + i) * options.n + slice.begin;
    expected.insert(expected.end(), begin, begin + slice.size);
  }
  return ops::compare(actual, expected, ops::toleranceFor(options.dtype, options.precision));
}

namespace {

/// Columns [begin, begin + size) of a row-major [rows, columns] matrix.
std::vector<float> sliceColumns(const std::vector<float> &matrix, int64_t rows, int64_t columns, OverlapSlice slice) {
  std::vector<float> result(rows * slice.size);
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(matrix.begin() + row * columns + slice.begin, slice.size, result.begin() + row * slice.size);
  return result;
}

class AllGatherRun : public OverlapOperands {
public:
  using OverlapOperands::OverlapOperands;

  Status create() override {
    ops::AllGatherGemmOptions config{.dtype = options.dtype,
                                     .maxRows = options.m,
                                     .depth = options.k,
                                     .chunksPerRank = options.chunks,
                                     .numNodes = options.nodes,
                                     .precision = options.precision,
                                     .schedule = options.schedule,
                                     .tile = options.tile,
                                     .oneLaunchRows = options.oneLaunchRows,
                                     .concurrentCalls = options.concurrentCalls};
    DITRON_ASSIGN_OR_RETURN(op, ops::AllGatherGemm::create(world, kernels, config));
    for (uint32_t id : world.localRanks()) {
      runtime::Rank &rank = world.rank(id);
      Operands &own = operands[id];
      DITRON_ASSIGN_OR_RETURN(own.a, allocate(rank, shards.rowsOf(id) * options.k, "a"));
      DITRON_ASSIGN_OR_RETURN(own.b, allocate(rank, options.k * columnsOf(id).size, "b"));
      DITRON_ASSIGN_OR_RETURN(own.result, allocate(rank, options.m * columnsOf(id).size, "c"));
      DITRON_RETURN_IF_ERROR(op.prepare(rank, options.m, columnsOf(id).size));
    }
    return Status::ok();
  }

  Status upload(const std::vector<float> &a, const std::vector<float> &b) override {
    for (uint32_t id : world.localRanks()) {
      auto shard = std::span(a).subspan(shards.firstRowOf(id) * options.k, shards.rowsOf(id) * options.k);
      DITRON_RETURN_IF_ERROR(fill(operands[id].a, shard));
      DITRON_RETURN_IF_ERROR(fill(operands[id].b, sliceColumns(b, options.k, options.n, columnsOf(id))));
    }
    return Status::ok();
  }

  Status enqueue(uint32_t id) override {
    runtime::Rank &rank = world.rank(id);
    const Operands &own = operands[id];
    return op.enqueue(rank, rank.stream(), own.a, own.b, own.result, options.m, columnsOf(id).size);
  }

  Expected<ops::Comparison> verify(const std::vector<double> &c) override {
    ops::Comparison worst;
    for (uint32_t id : world.localRanks()) {
      DITRON_ASSIGN_OR_RETURN(auto comparison, compareBlock(c, 0, options.m, columnsOf(id), operands[id].result));
      worst.merge(comparison);
    }
    return worst;
  }

private:
  std::pair<int64_t, int64_t> resultShape(uint32_t id) const override { return {options.m, columnsOf(id).size}; }
  double sampledSum(uint32_t call, uint32_t id, int64_t row, int64_t column) const override {
    const auto owner = static_cast<uint32_t>(row / shards.rowsPerRank);
    const int64_t first = (row - shards.firstRowOf(owner)) * options.k, columns = columnsOf(id).size;
    double sum = 0;
    for (int64_t k = 0; k < options.k; ++k)
      sum += double(data->at(saltOf(call, owner, 0), first + k)) * data->at(saltOf(call, id, 1), k * columns + column);
    return sum;
  }
  OverlapSlice columnsOf(uint32_t id) const { return OverlapSlice(options.n, id, world.numRanks()); }

  ops::AllGatherGemm op;
  ops::RowShards shards{options.m, world.numRanks()};
};

class ReduceScatterRun : public OverlapOperands {
public:
  using OverlapOperands::OverlapOperands;

  Status create() override {
    ops::GemmReduceScatterOptions config{.dtype = options.dtype,
                                         .partialType = {},
                                         .maxRows = options.m,
                                         .columns = options.n,
                                         .numNodes = options.nodes,
                                         .precision = options.precision,
                                         .schedule = options.schedule,
                                         .tile = options.tile,
                                         .oneLaunchRows = options.oneLaunchRows,
                                         .concurrentCalls = options.concurrentCalls};
    DITRON_ASSIGN_OR_RETURN(op, ops::GemmReduceScatter::create(world, kernels, config));
    for (uint32_t id : world.localRanks()) {
      runtime::Rank &rank = world.rank(id);
      Operands &own = operands[id];
      DITRON_ASSIGN_OR_RETURN(own.a, allocate(rank, options.m * depthOf(id).size, "a"));
      DITRON_ASSIGN_OR_RETURN(own.b, allocate(rank, depthOf(id).size * options.n, "b"));
      DITRON_ASSIGN_OR_RETURN(own.result, allocate(rank, shards.rowsOf(id) * options.n, "out"));
      DITRON_RETURN_IF_ERROR(op.prepare(rank, options.m, depthOf(id).size));
    }
    return Status::ok();
  }

  Status upload(const std::vector<float> &a, const std::vector<float> &b) override {
    for (uint32_t id : world.localRanks()) {
      OverlapSlice depth = depthOf(id);
      DITRON_RETURN_IF_ERROR(fill(operands[id].a, sliceColumns(a, options.m, options.k, depth)));
      auto rows = std::span(b).subspan(depth.begin * options.n, depth.size * options.n);
      DITRON_RETURN_IF_ERROR(fill(operands[id].b, rows));
    }
    return Status::ok();
  }

  Status enqueue(uint32_t id) override {
    runtime::Rank &rank = world.rank(id);
    const Operands &own = operands[id];
    return op.enqueue(rank, rank.stream(), own.a, own.b, own.result, options.m, depthOf(id).size);
  }

  Expected<ops::Comparison> verify(const std::vector<double> &c) override {
    ops::Comparison worst;
    for (uint32_t id : world.localRanks()) {
      DITRON_ASSIGN_OR_RETURN(auto comparison, compareBlock(c, shards.firstRowOf(id), shards.rowsOf(id),
                                                            OverlapSlice(options.n, 0, 1), operands[id].result));
      worst.merge(comparison);
    }
    return worst;
  }

private:
  std::pair<int64_t, int64_t> resultShape(uint32_t id) const override { return {shards.rowsOf(id), options.n}; }
  double sampledSum(uint32_t call, uint32_t id, int64_t row, int64_t column) const override {
    double sum = 0;
    for (uint32_t each = 0; each < world.numRanks(); ++each) {
      const int64_t depth = depthOf(each).size, first = (shards.firstRowOf(id) + row) * depth;
      for (int64_t k = 0; k < depth; ++k)
        sum += double(data->at(saltOf(call, each, 0), first + k)) *
               data->at(saltOf(call, each, 1), k * options.n + column);
    }
    return sum;
  }
  OverlapSlice depthOf(uint32_t id) const { return OverlapSlice(options.k, id, world.numRanks()); }

  ops::GemmReduceScatter op;
  ops::RowShards shards{options.m, world.numRanks()};
};

/// Operands as ReduceScatterRun's, and the whole result everywhere.
class AllReduceRun : public OverlapOperands {
public:
  using OverlapOperands::OverlapOperands;

  Status create() override {
    ops::GemmAllReduceOptions config;
    config.dtype = options.dtype;
    config.maxRows = options.m;
    config.columns = options.n;
    config.precision = options.precision;
    config.form = options.schedule == ops::Schedule::Unfused ? ops::AllReduceForm::Unfused : options.form;
    config.tile = options.tile;
    config.chunks = options.rowChunks;
    config.exchangeBlocks = options.exchangeBlocks;
    if (options.splits)
      config.oneLaunchTile = ops::OneLaunchTile{options.tile, options.splits};
    config.concurrentCalls = options.concurrentCalls;
    DITRON_ASSIGN_OR_RETURN(op, ops::GemmAllReduce::create(world, kernels, config));
    for (uint32_t id : world.localRanks()) {
      runtime::Rank &rank = world.rank(id);
      Operands &own = operands[id];
      DITRON_ASSIGN_OR_RETURN(own.a, allocate(rank, options.m * depthOf(id).size, "a"));
      DITRON_ASSIGN_OR_RETURN(own.b, allocate(rank, depthOf(id).size * options.n, "b"));
      DITRON_ASSIGN_OR_RETURN(own.result, allocate(rank, options.m * options.n, "out"));
      DITRON_RETURN_IF_ERROR(op.prepare(rank, options.m, depthOf(id).size));
    }
    return Status::ok();
  }

  Status upload(const std::vector<float> &a, const std::vector<float> &b) override {
    for (uint32_t id : world.localRanks()) {
      OverlapSlice depth = depthOf(id);
      DITRON_RETURN_IF_ERROR(fill(operands[id].a, sliceColumns(a, options.m, options.k, depth)));
      DITRON_RETURN_IF_ERROR(
          fill(operands[id].b, std::span(b).subspan(depth.begin * options.n, depth.size * options.n)));
    }
    return Status::ok();
  }

  Status enqueue(uint32_t id) override {
    runtime::Rank &rank = world.rank(id);
    const Operands &own = operands[id];
    return op.enqueue(rank, rank.stream(), own.a, own.b, own.result, options.m, depthOf(id).size);
  }

  Expected<ops::Comparison> verify(const std::vector<double> &c) override {
    ops::Comparison worst;
    for (uint32_t id : world.localRanks()) {
      DITRON_ASSIGN_OR_RETURN(auto comparison,
                              compareBlock(c, 0, options.m, OverlapSlice(options.n, 0, 1), operands[id].result));
      worst.merge(comparison);
    }
    return worst;
  }

  std::string plan() const override { return op.planText(options.m); }

private:
  std::pair<int64_t, int64_t> resultShape(uint32_t) const override { return {options.m, options.n}; }
  double sampledSum(uint32_t call, uint32_t, int64_t row, int64_t column) const override {
    double sum = 0;
    for (uint32_t each = 0; each < world.numRanks(); ++each) {
      const int64_t depth = depthOf(each).size;
      for (int64_t k = 0; k < depth; ++k)
        sum += double(data->at(saltOf(call, each, 0), row * depth + k)) *
               data->at(saltOf(call, each, 1), k * options.n + column);
    }
    return sum;
  }
  OverlapSlice depthOf(uint32_t id) const { return OverlapSlice(options.k, id, world.numRanks()); }

  ops::GemmAllReduce op;
};

} // namespace

std::unique_ptr<OverlapOperands> makeOverlapOperands(const OverlapRunOptions &options, runtime::World &world,
                                                     runtime::KernelProvider &kernels, const NormalData *data) {
  if (options.op == OverlapOperator::AllGatherGemm)
    return std::make_unique<AllGatherRun>(options, world, kernels, data);
  if (options.op == OverlapOperator::GemmAllReduce)
    return std::make_unique<AllReduceRun>(options, world, kernels, data);
  return std::make_unique<ReduceScatterRun>(options, world, kernels, data);
}

} // namespace ditron::tool
