//===- OverlapOperands.cpp - An overlapped operator with its data ----------------------------------------------------===//
//
// What the operators share, then one class for each.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "overlap/OverlapOperands.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
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
  const int64_t stride = columns + options.padding;
  for (int64_t row = 0; row < rows; ++row)
    if (std::any_of(actual.begin() + row * stride, actual.begin() + row * stride + columns,
                    [](float value) { return std::isnan(value); })) {
      errors.largest = std::numeric_limits<double>::infinity();
      return errors;
    }
  const auto [firstRow, firstColumn] = resultBegin(id);
  const int64_t shift = (options.activation == ops::Activation::SwiGlu ? 2 : 1) * firstColumn;
  uint64_t state = 977 * call + id + 1;
  for (uint32_t sample = 0; sample < samplesPerRank && rows * columns > 0; ++sample) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const int64_t last = rows * columns - 1;
    const int64_t index = sample == 0 ? 0 : sample == 1 ? last : static_cast<int64_t>((state >> 20) % (last + 1));
    const int64_t row = index / columns, column = index % columns;
    const double expected = finished([&](int64_t at) { return sampledSum(call, id, row, at - shift); }, firstRow + row,
                                     firstColumn + column);
    errors.largest = std::max(errors.largest, std::abs(actual[row * stride + column] - expected));
    errors.squares += expected * expected;
    ++errors.samples;
  }
  return errors;
}

Expected<ops::Comparison> OverlapOperands::compareResults(const std::vector<double> &c) {
  ops::Comparison worst;
  for (uint32_t id : world.localRanks()) {
    const auto [rows, columns] = resultShape(id);
    const auto [firstRow, firstColumn] = resultBegin(id);
    if (rows == 0 || columns == 0)
      continue;
    DITRON_ASSIGN_OR_RETURN(const std::vector<float> all, operands[id].result.downloadFloats());
    std::vector<float> actual;
    std::vector<double> expected, usual;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        actual.push_back(all[row * (columns + options.padding) + column]);
        const int64_t whole = firstRow + row;
        const auto sum = [&](int64_t at) { return c[whole * options.n + at]; };
        expected.push_back(finished(sum, whole, firstColumn + column));
        usual.push_back(usualSize(sum, whole, firstColumn + column));
      }
    worst.merge(ops::compare(actual, expected, toleranceOf(options), usual));
  }
  return worst;
}

float OverlapOperands::scaleOf(int64_t index, uint64_t salt) const {
  if (options.scales == ops::Scaling::None)
    return 1;
  const uint64_t seed = options.scales == ops::Scaling::Vector ? static_cast<uint64_t>(index) * 4 + salt : salt;
  const float unit = options.dtype == DataType::I8 ? 1.0f / 64 : 1.0f;
  return (ops::randomValues(DataType::F32, 1, seed)[0] + 1) * unit;
}

float OverlapOperands::biasOf(int64_t column) const {
  return ops::randomValues(options.typeOfResult(), 1, static_cast<uint64_t>(column) * 4 + biasSalt)[0];
}

double OverlapOperands::activated(ops::Activation activation, double value) {
  switch (activation) {
  case ops::Activation::None: return value;
  case ops::Activation::Relu: return std::max(value, 0.0);
  case ops::Activation::Gelu: return 0.5 * value * (1 + std::erf(value / std::sqrt(2.0)));
  default: return value / (1 + std::exp(-value));
  }
}

ops::RowStrides OverlapOperands::strides(int64_t columnsA, int64_t depth, int64_t columns) const {
  return {columnsA + options.padding, (options.weights == ops::MatrixOrder::Plain ? columns : depth) + options.padding,
          resultColumns(columns) + options.padding};
}

Status OverlapOperands::allocate(runtime::Rank &rank, int64_t rowsA, int64_t depth, int64_t columns, int64_t beginA,
                                 int64_t beginB) {
  Operands &own = operands[rank.id()];
  const auto [resultRows, resultWidth] = resultShape(rank.id());
  auto matrix = [&](DataType type, int64_t rows, int64_t width, std::string_view name) {
    return rank.allocate(type, std::max<int64_t>(rows * (width + options.padding), 1), name);
  };
  const bool plain = options.weights == ops::MatrixOrder::Plain;
  DITRON_ASSIGN_OR_RETURN(own.a, matrix(options.dtype, rowsA, depth, "a"));
  DITRON_ASSIGN_OR_RETURN(own.b, matrix(options.dtype, plain ? depth : columns, plain ? columns : depth, "b"));
  DITRON_ASSIGN_OR_RETURN(own.result, matrix(options.typeOfResult(), resultRows, resultWidth, "result"));
  auto vector = [&](DataType type, int64_t count, std::string_view name, const auto &at) -> Expected<runtime::Buffer> {
    DITRON_ASSIGN_OR_RETURN(runtime::Buffer buffer, rank.allocate(type, std::max<int64_t>(count, 1), name));
    std::vector<float> values(buffer.count());
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = at(static_cast<int64_t>(i));
    DITRON_RETURN_IF_ERROR(buffer.uploadFloats(values));
    return buffer;
  };
  if (options.scales != ops::Scaling::None) {
    DITRON_ASSIGN_OR_RETURN(own.scalesA, vector(DataType::F32, rowsA, "scales of a",
                                                [&](int64_t i) { return scaleOf(beginA + i, rowSalt); }));
    DITRON_ASSIGN_OR_RETURN(own.scalesB, vector(DataType::F32, columns, "scales of b",
                                                [&](int64_t i) { return scaleOf(beginB + i, columnSalt); }));
  }
  if (options.bias) {
    DITRON_ASSIGN_OR_RETURN(
        own.bias, vector(options.typeOfResult(), columns, "bias", [&](int64_t i) { return biasOf(beginB + i); }));
  }
  return Status::ok();
}

ops::EpilogueOperands OverlapOperands::extras(uint32_t id) const {
  const Operands &own = operands[id];
  auto given = [](bool isThere, const runtime::Buffer &buffer) {
    return isThere ? buffer.pointer() : runtime::Pointer();
  };
  const bool scaled = options.scales != ops::Scaling::None;
  return {given(scaled, own.scalesA), given(scaled, own.scalesB), given(options.bias, own.bias)};
}

Status OverlapOperands::fill(runtime::Buffer &buffer, std::span<const float> values, int64_t rows,
                             int64_t columns) const {
  if (values.empty())
    return Status::ok();
  if (options.padding == 0)
    return buffer.uploadFloats(values);
  std::vector<float> padded(buffer.count());
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(values.begin() + row * columns, columns, padded.begin() + row * (columns + options.padding));
  return buffer.uploadFloats(padded);
}

Status OverlapOperands::fillWeights(runtime::Buffer &buffer, std::span<const float> values, int64_t depth,
                                    int64_t columns) const {
  if (options.weights == ops::MatrixOrder::Plain)
    return fill(buffer, values, depth, columns);
  std::vector<float> turned(values.size());
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t column = 0; column < columns; ++column)
      turned[column * depth + k] = values[k * columns + column];
  return fill(buffer, turned, columns, depth);
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
    auto config = commonOptions<ops::AllGatherGemmOptions>();
    config.depth = options.k;
    config.columns = options.n % world.numRanks() == 0 ? options.n / world.numRanks() : 0;
    config.chunksPerRank = options.chunks;
    config.numNodes = options.nodes;
    config.schedule = options.schedule;
    config.oneLaunchRows = options.oneLaunchRows;
    DITRON_ASSIGN_OR_RETURN(op, ops::AllGatherGemm::create(world, kernels, config));
    for (uint32_t id : world.localRanks()) {
      runtime::Rank &rank = world.rank(id);
      const OverlapSlice columns = columnsOf(id);
      DITRON_RETURN_IF_ERROR(
          allocate(rank, shards.rowsOf(id), options.k, columns.size, shards.firstRowOf(id), columns.begin));
      DITRON_RETURN_IF_ERROR(blamed(op.prepare(rank, options.m, columns.size, stridesOf(id))));
    }
    return Status::ok();
  }

  Status upload(const std::vector<float> &a, const std::vector<float> &b) override {
    for (uint32_t id : world.localRanks()) {
      auto shard = std::span(a).subspan(shards.firstRowOf(id) * options.k, shards.rowsOf(id) * options.k);
      DITRON_RETURN_IF_ERROR(fill(operands[id].a, shard, shards.rowsOf(id), options.k));
      DITRON_RETURN_IF_ERROR(fillWeights(operands[id].b, sliceColumns(b, options.k, options.n, columnsOf(id)),
                                         options.k, columnsOf(id).size));
    }
    return Status::ok();
  }

  Status enqueue(uint32_t id) override {
    runtime::Rank &rank = world.rank(id);
    const Operands &own = operands[id];
    return op.enqueue(rank, rank.stream(), own.a, own.b, own.result, options.m, columnsOf(id).size, extras(id),
                      stridesOf(id));
  }

  Expected<ops::Comparison> verify(const std::vector<double> &c) override { return compareResults(c); }

  std::string plan() const override { return op.planText(options.m, columnsOf(world.localRanks().front()).size); }

private:
  std::pair<int64_t, int64_t> resultShape(uint32_t id) const override {
    return {options.m, resultColumns(columnsOf(id).size)};
  }
  std::pair<int64_t, int64_t> resultBegin(uint32_t id) const override {
    return {0, resultColumns(columnsOf(id).begin)};
  }
  double sampledSum(uint32_t call, uint32_t id, int64_t row, int64_t column) const override {
    const auto owner = static_cast<uint32_t>(row / shards.rowsPerRank);
    const int64_t own = row - shards.firstRowOf(owner), columns = columnsOf(id).size;
    double sum = 0;
    for (int64_t k = 0; k < options.k; ++k)
      sum += double(data->at(saltOf(call, owner, 0), placeA(own, k, options.k))) *
             data->at(saltOf(call, id, 1), placeB(k, column, options.k, columns));
    return sum;
  }
  ops::RowStrides stridesOf(uint32_t id) const { return strides(options.k, options.k, columnsOf(id).size); }
  /// Pairs of columns where the activation takes pairs.
  OverlapSlice columnsOf(uint32_t id) const {
    if (options.activation != ops::Activation::SwiGlu)
      return OverlapSlice(options.n, id, world.numRanks());
    OverlapSlice slice(options.n / 2, id, world.numRanks());
    slice.begin *= 2, slice.size *= 2;
    return slice;
  }

  ops::AllGatherGemm op;
  ops::RowShards shards{options.m, world.numRanks()};
};

/// Products whose depth is dealt out.
class DepthRun : public OverlapOperands {
public:
  using OverlapOperands::OverlapOperands;

  Status upload(const std::vector<float> &a, const std::vector<float> &b) override {
    for (uint32_t id : world.localRanks()) {
      const OverlapSlice depth = depthOf(id);
      DITRON_RETURN_IF_ERROR(fill(operands[id].a, sliceColumns(a, options.m, options.k, depth), options.m, depth.size));
      auto rows = std::span(b).subspan(depth.begin * options.n, depth.size * options.n);
      DITRON_RETURN_IF_ERROR(fillWeights(operands[id].b, rows, depth.size, options.n));
    }
    return Status::ok();
  }

  Status enqueue(uint32_t id) override {
    runtime::Rank &rank = world.rank(id);
    const Operands &own = operands[id];
    return product().enqueue(rank, rank.stream(), own.a, own.b, own.result, options.m, depthOf(id).size, extras(id),
                             stridesOf(id));
  }

  Expected<ops::Comparison> verify(const std::vector<double> &c) override { return compareResults(c); }

protected:
  virtual ops::PlannedProduct &product() = 0;
  OverlapSlice depthOf(uint32_t id) const { return OverlapSlice(options.k, id, world.numRanks()); }
  /// The operands of all ranks, and the plans.
  Status prepare() {
    for (uint32_t id : world.localRanks()) {
      runtime::Rank &rank = world.rank(id);
      DITRON_RETURN_IF_ERROR(allocate(rank, options.m, depthOf(id).size, options.n, 0, 0));
      DITRON_RETURN_IF_ERROR(blamed(product().prepare(rank, options.m, depthOf(id).size, stridesOf(id))));
    }
    return Status::ok();
  }

private:
  double sampledSum(uint32_t call, uint32_t id, int64_t row, int64_t column) const override {
    double sum = 0;
    for (uint32_t each = 0; each < world.numRanks(); ++each) {
      const int64_t depth = depthOf(each).size, whole = resultBegin(id).first + row;
      for (int64_t k = 0; k < depth; ++k)
        sum += double(data->at(saltOf(call, each, 0), placeA(whole, k, depth))) *
               data->at(saltOf(call, each, 1), placeB(k, column, depth, options.n));
    }
    return sum;
  }
  ops::RowStrides stridesOf(uint32_t id) const { return strides(depthOf(id).size, depthOf(id).size, options.n); }
};

class ReduceScatterRun : public DepthRun {
public:
  using DepthRun::DepthRun;

  Status create() override {
    auto config = commonOptions<ops::GemmReduceScatterOptions>();
    config.columns = options.n;
    config.depth = ops::ceilDivide(options.k, world.numRanks());
    config.numNodes = options.nodes;
    config.schedule = options.schedule;
    config.oneLaunchRows = options.oneLaunchRows;
    DITRON_ASSIGN_OR_RETURN(op, ops::GemmReduceScatter::create(world, kernels, config));
    return prepare();
  }

  std::string plan() const override { return op.planText(options.m, depthOf(world.localRanks().front()).size); }

private:
  ops::PlannedProduct &product() override { return op; }
  std::pair<int64_t, int64_t> resultShape(uint32_t id) const override { return {shards.rowsOf(id), options.n}; }
  std::pair<int64_t, int64_t> resultBegin(uint32_t id) const override { return {shards.firstRowOf(id), 0}; }

  ops::GemmReduceScatter op;
  ops::RowShards shards{options.m, world.numRanks()};
};

class AllReduceRun : public DepthRun {
public:
  using DepthRun::DepthRun;

  Status create() override {
    auto config = commonOptions<ops::GemmAllReduceOptions>();
    config.columns = options.n;
    config.form = options.schedule == ops::Schedule::Unfused ? ops::AllReduceForm::Unfused : options.form;
    config.depth = ops::ceilDivide(options.k, world.numRanks());
    config.chunks = options.rowChunks;
    config.exchangeBlocks = options.exchangeBlocks;
    if (options.splits)
      config.oneLaunchTile =
          ops::OneLaunchTile{options.tile == ops::libraryTile ? ops::TileConfig() : options.tile, options.splits};
    if (options.splits)
      DITRON_RETURN_IF_ERROR(verifySplits(*config.oneLaunchTile));
    DITRON_ASSIGN_OR_RETURN(op, ops::GemmAllReduce::create(world, kernels, config));
    if (const ops::AllReduceForm form = op.choiceFor(options.m).form; options.splits && !isOneLaunch(form))
      return invalidArgument(fmt::format("--splits {}: calls of {} rows have form {}, whose tiles are not split; "
                                         "--form one_shot or fused_two_shot is accepted with it",
                                         options.splits, options.m, toString(form)));
    return prepare();
  }

  std::string plan() const override { return op.planText(options.m); }

private:
  /// The operator would take another tile or form.
  Status verifySplits(const ops::OneLaunchTile &given) const {
    DITRON_RETURN_IF_ERROR(given.verify().withContext("--splits"));
    const int64_t depth = ops::ceilDivide(options.k, world.numRanks());
    const int64_t steps = ops::ceilDivide(depth, given.tile.blockK);
    if (steps < options.splits)
      return invalidArgument(
          fmt::format("--splits {}: the depth of a rank, {}, has {} steps of {} (--block-k); 1 to {} are accepted",
                      options.splits, depth, steps, given.tile.blockK, steps));
    return given.verifyPlaces(options.m, options.n, world.rank(world.localRanks().front()).attributes().multiprocessors)
        .withContext(fmt::format("--splits {}", options.splits));
  }

  ops::PlannedProduct &product() override { return op; }
  std::pair<int64_t, int64_t> resultShape(uint32_t) const override { return {options.m, options.n}; }
  std::pair<int64_t, int64_t> resultBegin(uint32_t) const override { return {0, 0}; }

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
