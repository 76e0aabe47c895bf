//===- product_epilogue_test.cpp - Types, strides and epilogues of all products, drawn at random --------------------------===//
//
// The product, AllGather+GEMM, GEMM+ReduceScatter and GEMM+AllReduce in all their forms: operands of 8, 16 and 32 bits, results of another
// type, scales of every kind, bias, activations, padded rows and addresses that are no multiples of 16 bytes, against plain C++ in double
// precision. What lies between rows is poison, and must still be there.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "ditron/ops/Gemm.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmAllReduce.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"

#include <fmt/format.h>
#include <random>

namespace ditron::e2e {
namespace {

using ops::Activation;
using ops::EpilogueOperands;
using ops::GemmEpilogue;
using ops::MatrixOrder;
using ops::RowStrides;
using ops::Scaling;
using testing::AllOf;
using testing::HasSubstr;

enum class Kind { Gemm, AllGather, ReduceScatter, AllReduce };
constexpr std::string_view kindNames[] = {"gemm", "ag_gemm", "gemm_rs", "gemm_ar"};

struct Case {
  Kind kind = Kind::Gemm;
  DataType dtype = DataType::BF16, resultType = DataType::BF16;
  GemmEpilogue epilogue;
  MatrixOrder order = MatrixOrder::Transposed;
  uint32_t ranks = 1;
  uint32_t nodes = 1;          ///< AllGather, ReduceScatter; more than one: only simulated.
  int64_t m = 1, n = 1, k = 1; ///< n and k: of each rank.
  RowStrides gaps;             ///< Elements behind each row.
  bool aligned = true;         ///< False: operands begin an element behind a multiple of 16 bytes.
  ops::GemmMovement movement = ops::GemmMovement::Descriptors;
  int64_t oneLaunchRows = 0; ///< AllGather, ReduceScatter.
  ops::Schedule schedule = ops::Schedule::Overlapped;
  ops::AllReduceForm form = ops::AllReduceForm::Auto;
  uint32_t chunks = 1, splits = 0;
  bool prepares = true;
  uint64_t seed = 1;
  std::optional<uint32_t> slowRank;

  bool gathers() const { return kind == Kind::AllGather; }
  bool reduces() const { return kind == Kind::ReduceScatter || kind == Kind::AllReduce; }
  int64_t resultColumns() const { return epilogue.resultColumns(n); }
  ops::TileConfig tile() const {
    return {.blockM = 32,
            .blockN = 32,
            .blockK = sizeOf(dtype) == 1 ? 64u : 32u,
            .groupM = 4,
            .numWarps = 4,
            .numStages = 3};
  }
  std::string text() const {
    return fmt::format(
        "{} {} -> {} scales {} {} bias {} activation {} {} ranks {} nodes {} {}x{}x{} gaps {} {} {}{} {} rows {} "
        "{} form {} chunks {} splits {} seed {}",
        kindNames[int(kind)], toString(dtype), toString(resultType), toString(epilogue.scalesA),
        toString(epilogue.scalesB), epilogue.bias ? toString(*epilogue.bias) : "none", toString(epilogue.activation),
        order == MatrixOrder::Plain ? "[K, N]" : "[N, K]", ranks, nodes, m, n, k, gaps.a, gaps.b, gaps.c,
        aligned ? "" : " unaligned", toString(movement), oneLaunchRows, toString(schedule), toString(form), chunks,
        splits, seed);
  }
};

/// A matrix with gaps between its rows, in device memory.
struct Matrix {
  int64_t rows = 0, columns = 0, stride = 0, shift = 0;
  Buffer buffer;

  Pointer pointer() const { return buffer.pointer() + shift; }
  int64_t place(int64_t row, int64_t column) const { return shift + row * stride + column; }
  float poison() const { return isInteger(buffer.type()) ? 101 : std::numeric_limits<float>::quiet_NaN(); }
  Status upload(const std::vector<float> &values) {
    std::vector<float> all(buffer.count(), poison());
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(values.begin() + row * columns, columns, all.begin() + place(row, 0));
    return buffer.uploadFloats(all);
  }
  /// Without the gaps, which must be what they were.
  std::vector<float> download(const std::string &what) const {
    auto all = buffer.downloadFloats();
    EXPECT_OK(all);
    if (!all.isOk())
      return {};
    std::vector<float> values;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        values.push_back((*all)[place(row, column)]);
    size_t poisoned = 0;
    for (const float value : *all)
      poisoned += std::isnan(value);
    const size_t inside = std::ranges::count_if(values, [](float value) { return std::isnan(value); });
    EXPECT_EQ(poisoned - inside, all->size() - values.size()) << what << ": written between the rows";
    return values;
  }
};

std::vector<float> transposed(const std::vector<float> &values, int64_t rows, int64_t columns) {
  std::vector<float> turned(values.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      turned[j * rows + i] = values[i * columns + j];
  return turned;
}

double activate(Activation activation, double x) {
  switch (activation) {
  case Activation::None: return x;
  case Activation::Relu: return std::max(x, 0.0);
  case Activation::Gelu: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  default: return x / (1 + std::exp(-x));
  }
}

/// What the result's rounding loses, or the operands': tf32 that of fp32, fp8 what the tensor cores drop between two promotions; int8 sums
/// are exact. SwiGlu multiplies two sums.
ops::Tolerance toleranceOf(const Case &c) {
  const bool isFp8 = c.dtype == DataType::F8E4NV || c.dtype == DataType::F8E5;
  const double operands = c.dtype == DataType::F32 ? 5e-3 : isFp8 ? 1e-3 : 2e-5;
  const double result =
      c.resultType == DataType::F32 ? 0 : ops::toleranceFor(c.resultType, ops::MultiplyPrecision::Tf32).relative;
  return {std::max(operands, result) * (c.epilogue.activation == Activation::SwiGlu ? 2 : 1)};
}

/// One rank's operands.
struct Operands {
  std::vector<float> a, b, scalesA, scalesB;
  Matrix aMatrix, bMatrix, result;
  Buffer scalesABuffer, scalesBBuffer, biasBuffer;
};

class ProductEpilogue : public KernelTest {
protected:
  void run(Case c);
  void runCalls(const Case &c, const std::function<Status(Rank &, runtime::Stream &)> &enqueue);

  Matrix matrix(DataType type, int64_t rows, int64_t columns, int64_t gap, bool aligned, std::string_view name,
                uint32_t id) {
    Matrix made = {rows, columns, columns + gap, aligned ? 0 : 1, {}};
    made.buffer = zeros(type, std::max<int64_t>(1, rows * made.stride) + 1, name, id);
    return made;
  }
  void makeOperands(const Case &c) {
    ranks.clear();
    for (uint32_t r = 0; r < c.ranks; ++r) {
      Operands &own = ranks.emplace_back();
      const ops::RowShards shards(c.m, c.ranks);
      own.aMatrix = matrix(c.dtype, c.gathers() ? shards.rowsOf(r) : c.m, c.k, c.gaps.a, c.aligned, "a", r);
      const bool plain = c.order == MatrixOrder::Plain;
      own.bMatrix = matrix(c.dtype, plain ? c.k : c.n, plain ? c.n : c.k, c.gaps.b, c.aligned, "b", r);
      own.result = matrix(c.resultType, c.kind == Kind::ReduceScatter ? shards.rowsOf(r) : c.m, c.resultColumns(),
                          c.gaps.c, c.aligned, "result", r);
      own.scalesABuffer = zeros(DataType::F32, std::max<int64_t>(1, own.aMatrix.rows), "scales a", r);
      own.scalesBBuffer = zeros(DataType::F32, c.n, "scales b", r);
      if (c.epilogue.bias)
        own.biasBuffer = zeros(*c.epilogue.bias, c.n, "bias", r);
    }
  }
  EpilogueOperands extras(const Case &c, uint32_t r) const {
    const Operands &own = ranks[r];
    auto given = [](bool isThere, const Buffer &buffer) { return isThere ? buffer.pointer() : Pointer(); };
    return {given(c.epilogue.scalesA != Scaling::None, own.scalesABuffer),
            given(c.epilogue.scalesB != Scaling::None, own.scalesBBuffer),
            given(c.epilogue.bias.has_value(), own.biasBuffer)};
  }
  RowStrides strides(const Case &c, uint32_t r) const {
    return {ranks[r].aMatrix.stride, ranks[r].bMatrix.stride, ranks[r].result.stride};
  }
  void upload(const Case &c, uint64_t set) {
    auto scales = [&](Scaling kind, int64_t count, uint64_t seed) {
      std::vector<float> values = ops::randomValues(DataType::F32, kind == Scaling::Vector ? count : 1, seed);
      for (float &value : values)
        value = (value + 1) / (c.dtype == DataType::I8 ? 64 : 1);
      return kind == Scaling::None ? std::vector<float>{1} : values;
    };
    bias.assign(c.n, 0);
    if (c.epilogue.bias)
      bias = ops::randomValues(*c.epilogue.bias, c.n, 77 + set);
    for (uint32_t r = 0; r < c.ranks; ++r) {
      Operands &own = ranks[r];
      const uint64_t seed = 1000 * set + 10 * r;
      own.a = ops::randomValues(c.dtype, own.aMatrix.rows * c.k, seed);
      own.b = ops::randomValues(c.dtype, c.k * c.n, seed + 1);
      own.scalesA = scales(c.epilogue.scalesA, own.aMatrix.rows, seed + 2);
      own.scalesB = scales(c.epilogue.scalesB, c.n, seed + 3);
      ASSERT_OK(own.aMatrix.upload(own.a));
      ASSERT_OK(own.bMatrix.upload(c.order == MatrixOrder::Plain ? own.b : transposed(own.b, c.k, c.n)));
      ASSERT_OK(own.result.upload(
          std::vector<float>(own.result.rows * own.result.columns, std::numeric_limits<float>::quiet_NaN())));
      auto put = [](Buffer &buffer, std::vector<float> values) {
        values.resize(buffer.count());
        return buffer.uploadFloats(values);
      };
      ASSERT_OK(put(own.scalesABuffer, own.scalesA));
      ASSERT_OK(put(own.scalesBBuffer, own.scalesB));
      if (c.epilogue.bias)
        ASSERT_OK(put(own.biasBuffer, bias));
    }
  }
  /// The part of a rank: its rows of A, or the gathered ones, times its B, scaled.
  std::vector<double> scaledProduct(const Case &c, uint32_t r) {
    std::vector<double> sum;
    for (uint32_t owner = c.gathers() ? 0 : r; owner < (c.gathers() ? c.ranks : r + 1); ++owner) {
      const Operands &from = ranks[owner], &own = ranks[r];
      std::vector<double> part = ops::referenceProduct(from.a, own.b, from.aMatrix.rows, c.n, c.k);
      for (size_t i = 0; i < part.size(); ++i)
        part[i] *= double(from.scalesA[c.epilogue.scalesA == Scaling::Vector ? i / c.n : 0]) *
                   own.scalesB[c.epilogue.scalesB == Scaling::Vector ? i % c.n : 0];
      sum.insert(sum.end(), part.begin(), part.end());
    }
    return sum;
  }
  std::vector<double> expected(const Case &c, uint32_t r) {
    std::vector<double> value = scaledProduct(c, c.reduces() ? 0 : r);
    for (uint32_t other = 1; c.reduces() && other < c.ranks; ++other) {
      const std::vector<double> part = scaledProduct(c, other);
      for (size_t i = 0; i < value.size(); ++i)
        value[i] += part[i];
    }
    for (size_t i = 0; i < value.size(); ++i)
      value[i] += bias[i % c.n];
    std::vector<double> result;
    if (c.epilogue.activation == Activation::SwiGlu)
      for (size_t i = 0; i < value.size(); i += 2)
        result.push_back(activate(Activation::Silu, value[i]) * value[i + 1]);
    else
      for (const double each : value)
        result.push_back(activate(c.epilogue.activation, each));
    if (c.kind != Kind::ReduceScatter)
      return result;
    const ops::RowShards shards(c.m, c.ranks);
    return {result.begin() + shards.firstRowOf(r) * c.n,
            result.begin() + (shards.firstRowOf(r) + shards.rowsOf(r)) * c.n};
  }
  void check(const Case &c, const std::string &what) {
    std::vector<float> first;
    for (uint32_t r = 0; r < c.ranks; ++r) {
      const std::string where = fmt::format("{}, {}, rank {}", c.text(), what, r);
      const std::vector<float> actual = ranks[r].result.download(where);
      const std::vector<double> wanted = expected(c, r);
      ASSERT_EQ(actual.size(), wanted.size()) << where;
      const ops::Comparison comparison = ops::compare(actual, wanted, toleranceOf(c));
      EXPECT_TRUE(comparison.passed()) << where << ": error " << comparison.maxError << ", element "
                                       << comparison.worstIndex << " is " << actual[comparison.worstIndex]
                                       << ", expected " << wanted[comparison.worstIndex] << ", allowed "
                                       << comparison.allowed;
      if (c.kind == Kind::AllReduce && r == 0)
        first = actual;
      if (c.kind == Kind::AllReduce)
        EXPECT_EQ(actual, first) << where;
    }
  }

  std::vector<Operands> ranks;
  std::vector<float> bias;
};

void ProductEpilogue::runCalls(const Case &c, const std::function<Status(Rank &, runtime::Stream &)> &enqueue) {
  for (int call = 0; call < 2 && !HasFailure(); ++call) {
    upload(c, c.seed + call);
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      DITRON_RETURN_IF_ERROR(enqueue(me, me.stream()));
      return me.stream().synchronize();
    }));
    check(c, fmt::format("call {}", call));
  }
}

template <typename Options> Options optionsOf(const Case &c) {
  Options options;
  options.dtype = c.dtype;
  options.resultType = c.resultType;
  options.epilogue = c.epilogue;
  options.maxRows = c.m;
  options.weightOrder = c.order;
  options.tile = c.tile();
  if (c.splits)
    options.oneLaunchTile = ops::OneLaunchTile{{.blockM = 32,
                                                .blockN = 64,
                                                .blockK = sizeOf(c.dtype) == 1 ? 64u : 32u,
                                                .groupM = 1,
                                                .numWarps = 4,
                                                .numStages = 2},
                                               c.splits};
  return options;
}

void ProductEpilogue::run(Case c) {
  c.ranks = ranksOnTarget(c.ranks);
  if (c.slowRank)
    c.slowRank = *c.slowRank % c.ranks;
  runtime::WorldOptions options = seeded(c.seed, c.slowRank, 5);
  if (c.nodes > 1)
    options.ranksPerNode = c.ranks / c.nodes;
  start(c.ranks, options);
  makeOperands(c);
  SCOPED_TRACE(c.text());
  if (c.kind == Kind::Gemm) {
    const ops::GemmProblem problem = {.m = c.m,
                                      .n = c.n,
                                      .k = c.k,
                                      .dtype = c.dtype,
                                      .resultType = c.resultType,
                                      .order = c.order,
                                      .strides = strides(c, 0),
                                      .precision = ops::MultiplyPrecision::Tf32,
                                      .epilogue = c.epilogue};
    ops::GemmPlan plan = {c.movement, c.tile()};
    if (!ops::allowsDescriptors(problem) || !c.aligned)
      plan.movement = ops::GemmMovement::Pointers;
    auto call = ops::prepareGemm(sharedJit(), rank(), problem, ranks[0].aMatrix.pointer(), ranks[0].bMatrix.pointer(),
                                 ranks[0].result.pointer(), plan, extras(c, 0));
    ASSERT_OK(call);
    return runCalls(c, [&](Rank &, runtime::Stream &stream) { return call->enqueue(stream); });
  }
  auto runPlanned = [&](auto created, int64_t size) {
    ASSERT_OK(created);
    ops::PlannedProduct &op = *created;
    if (c.prepares)
      for (uint32_t r = 0; r < c.ranks; ++r)
        ASSERT_OK(op.prepare(rank(r), c.m, size, strides(c, r)));
    runCalls(c, [&](Rank &me, runtime::Stream &stream) {
      const Operands &own = ranks[me.id()];
      return op.enqueue(me, stream, own.aMatrix.pointer(), own.bMatrix.pointer(), own.result.pointer(), c.m, size,
                        extras(c, me.id()), strides(c, me.id()));
    });
  };
  if (c.kind == Kind::AllGather) {
    auto options = optionsOf<ops::AllGatherGemmOptions>(c);
    options.depth = c.k;
    options.chunksPerRank = c.chunks;
    options.schedule = c.schedule;
    options.oneLaunchRows = c.oneLaunchRows;
    runPlanned(ops::AllGatherGemm::create(world(), sharedJit(), options), c.n);
  } else if (c.kind == Kind::ReduceScatter) {
    auto options = optionsOf<ops::GemmReduceScatterOptions>(c);
    options.columns = c.n;
    options.schedule = c.schedule;
    options.oneLaunchRows = c.oneLaunchRows;
    runPlanned(ops::GemmReduceScatter::create(world(), sharedJit(), options), c.k);
  } else {
    auto options = optionsOf<ops::GemmAllReduceOptions>(c);
    options.columns = c.n;
    options.form = c.form;
    options.chunks = c.chunks;
    runPlanned(ops::GemmAllReduce::create(world(), sharedJit(), options), c.k);
  }
}

/// A case of this kind, the same for the same seed.
Case draw(Kind kind, uint64_t seed) {
  std::mt19937_64 random(1000 * seed + static_cast<uint64_t>(kind));
  auto below = [&](uint64_t limit) { return random() % limit; };
  auto chance = [&](uint64_t in) { return below(in) == 0; };
  auto pick = [&](const auto &values) { return values[below(std::size(values))]; };
  constexpr DataType dtypes[] = {DataType::F8E4NV, DataType::F8E4NV, DataType::I8,  DataType::I8,
                                 DataType::F8E5,   DataType::BF16,   DataType::F16, DataType::F32};
  constexpr DataType floats[] = {DataType::BF16, DataType::F16, DataType::F32};
  constexpr Scaling scalings[] = {Scaling::None, Scaling::Tensor, Scaling::Vector, Scaling::Vector};
  constexpr Activation activations[] = {Activation::None, Activation::SwiGlu, Activation::SwiGlu,
                                        Activation::Relu, Activation::Gelu,   Activation::Silu};
  constexpr uint32_t rankCounts[] = {1, 2, 3, 4, 8};
  Case c;
  c.kind = kind;
  c.seed = seed;
  c.dtype = pick(dtypes);
  c.resultType = pick(floats);
  c.epilogue.scalesA = pick(scalings);
  c.epilogue.scalesB = pick(scalings);
  if (c.dtype == DataType::I8 && c.resultType == DataType::F16) // which has no room for unscaled sums
    c.epilogue.scalesA = c.epilogue.scalesB = Scaling::Vector;
  if (chance(2))
    c.epilogue.bias = pick(floats);
  c.order = chance(2) ? MatrixOrder::Plain : MatrixOrder::Transposed;
  c.ranks = kind == Kind::Gemm ? 1 : pick(rankCounts);
  const bool fewRows = kind != Kind::Gemm && chance(2);
  c.m = 1 + int64_t(below(fewRows ? 128 : 300));
  c.n = 1 + int64_t(below(300));
  c.k = 1 + int64_t(below(300));
  // Half of all shapes take the way of tensor copies.
  if (chance(2))
    c.n = (c.n + 15) / 16 * 16, c.k = (c.k + 15) / 16 * 16;
  if (kind == Kind::Gemm || kind == Kind::AllGather)
    c.epilogue.activation = pick(activations);
  if (c.epilogue.activation == Activation::SwiGlu)
    c.n += c.n % 2;
  if (chance(2))
    c.gaps = {int64_t(below(40)), int64_t(below(40)), int64_t(below(40))};
  else if (chance(2))
    c.gaps = {16 * int64_t(below(3)), 16 * int64_t(below(3)), 16 * int64_t(below(3))};
  c.aligned = !chance(6);
  c.movement = chance(2) ? ops::GemmMovement::Pointers : ops::GemmMovement::Descriptors;
  c.prepares = chance(2);
  if (chance(2))
    c.slowRank = uint32_t(below(c.ranks));
  c.chunks = 1 + uint32_t(below(3));
  if (kind == Kind::AllGather || kind == Kind::ReduceScatter) {
    c.oneLaunchRows = c.m <= 128 && fewRows ? 128 : 0;
    c.schedule = chance(4) ? ops::Schedule::Unfused : ops::Schedule::Overlapped;
  }
  if (kind == Kind::AllReduce) {
    constexpr ops::AllReduceForm few[] = {ops::AllReduceForm::OneShot, ops::AllReduceForm::FusedTwoShot},
                                 many[] = {ops::AllReduceForm::TwoShot, ops::AllReduceForm::Unfused};
    c.form = fewRows ? pick(few) : pick(many);
  }
  // Blocks that share a tile need a place each, and a rank's rows are a part of one tile.
  if (fewRows && chance(3) && (c.m + 31) / 32 * ((c.n + 63) / 64) * 2 <= 8 &&
      (kind != Kind::ReduceScatter || c.m <= 32))
    c.splits = 2;
  return c;
}

/// The same ways between nodes, where nothing is one launch.
Case drawBetweenNodes(Kind kind, uint64_t seed) {
  constexpr std::pair<uint32_t, uint32_t> worlds[] = {{2, 2}, {4, 2}, {6, 2}, {6, 3}};
  Case c = draw(kind, seed);
  std::tie(c.ranks, c.nodes) = worlds[seed % std::size(worlds)];
  c.oneLaunchRows = c.splits = 0;
  return c;
}

class ProductEpilogueOperator : public ProductEpilogue, public testing::WithParamInterface<int> {};
TEST_P(ProductEpilogueOperator, Gemm) { run(draw(Kind::Gemm, GetParam())); }
TEST_P(ProductEpilogueOperator, AllGatherGemm) { run(draw(Kind::AllGather, GetParam())); }
TEST_P(ProductEpilogueOperator, GemmReduceScatter) { run(draw(Kind::ReduceScatter, GetParam())); }
TEST_P(ProductEpilogueOperator, GemmAllReduce) { run(draw(Kind::AllReduce, GetParam())); }
INSTANTIATE_TEST_SUITE_P(Drawn, ProductEpilogueOperator, testing::Range(0, 18));

class ProductEpilogueBetweenNodes : public ProductEpilogue, public testing::WithParamInterface<int> {
protected:
  void SetUp() override {
    if (!isSimulated())
      GTEST_SKIP() << "GPUs of one machine are one node";
  }
};
TEST_P(ProductEpilogueBetweenNodes, AllGatherGemm) { run(drawBetweenNodes(Kind::AllGather, GetParam())); }
TEST_P(ProductEpilogueBetweenNodes, GemmReduceScatter) { run(drawBetweenNodes(Kind::ReduceScatter, GetParam())); }
INSTANTIATE_TEST_SUITE_P(Drawn, ProductEpilogueBetweenNodes, testing::Range(100, 116));

/// Graphs of calls with scales and a bias, replayed with new data and with eager calls between.
TEST_F(ProductEpilogue, ReplaysOfGraphsTakeNewScalesAndBiases) {
  for (Kind kind : {Kind::AllGather, Kind::ReduceScatter, Kind::AllReduce})
    for (int64_t oneLaunchRows : {0, 128}) {
      Case c = {.kind = kind,
                .dtype = DataType::F8E4NV,
                .resultType = DataType::F16,
                .epilogue = {Scaling::Vector, Scaling::Vector, DataType::BF16, Activation::None},
                .ranks = ranksOnTarget(2),
                .m = 70,
                .n = 40,
                .k = 96,
                .gaps = {16, 0, 16},
                .oneLaunchRows = oneLaunchRows,
                .form = oneLaunchRows ? ops::AllReduceForm::OneShot : ops::AllReduceForm::Unfused,
                .seed = 3,
                .slowRank = ranksOnTarget(2) - 1};
      SCOPED_TRACE(c.text());
      start(c.ranks, seeded(c.seed, c.slowRank, 3));
      makeOperands(c);
      std::unique_ptr<ops::PlannedProduct> op;
      auto make = [&](auto created) {
        ASSERT_OK(created);
        using Made = std::remove_reference_t<decltype(*created)>;
        op = std::make_unique<Made>(std::move(created).value());
      };
      if (kind == Kind::AllGather) {
        auto options = optionsOf<ops::AllGatherGemmOptions>(c);
        options.depth = c.k;
        options.oneLaunchRows = oneLaunchRows;
        make(ops::AllGatherGemm::create(world(), sharedJit(), options));
      } else if (kind == Kind::ReduceScatter) {
        auto options = optionsOf<ops::GemmReduceScatterOptions>(c);
        options.columns = c.n;
        options.oneLaunchRows = oneLaunchRows;
        make(ops::GemmReduceScatter::create(world(), sharedJit(), options));
      } else {
        auto options = optionsOf<ops::GemmAllReduceOptions>(c);
        options.columns = c.n;
        options.form = c.form;
        make(ops::GemmAllReduce::create(world(), sharedJit(), options));
      }
      ASSERT_TRUE(op);
      const int64_t size = c.gathers() ? c.n : c.k;
      auto enqueue = [&](uint32_t r) {
        const Operands &own = ranks[r];
        return op->enqueue(rank(r), rank(r).stream(), own.aMatrix.pointer(), own.bMatrix.pointer(),
                           own.result.pointer(), c.m, size, extras(c, r), strides(c, r));
      };
      std::vector<runtime::Graph> graphs;
      for (uint32_t r = 0; r < c.ranks; ++r) {
        ASSERT_OK(rank(r).stream().beginCapture());
        EXPECT_THAT(enqueue(r).message(), AllOf(HasSubstr("was not prepared"), HasSubstr("112, ")));
        ASSERT_OK(rank(r).stream().endCapture());
        ASSERT_OK(op->prepare(rank(r), c.m, size, strides(c, r)));
        ASSERT_OK(rank(r).stream().beginCapture());
        ASSERT_OK(enqueue(r));
        auto graph = rank(r).stream().endCapture();
        ASSERT_OK(graph);
        graphs.push_back(*graph);
      }
      for (int replay = 0; replay < 4 && !HasFailure(); ++replay) {
        upload(c, 10 * replay);
        for (uint32_t r = 0; r < c.ranks; ++r)
          ASSERT_OK(replay == 2 ? enqueue(r) : rank(r).stream().launch(graphs[r]));
        ASSERT_OK(world().synchronize());
        check(c, fmt::format("replay {}", replay));
      }
    }
}

TEST_F(ProductEpilogue, WrongOnesAreRefused) {
  start(ranksOnTarget(2));
  using ops::GemmProblem;
  auto problem = [](auto change) {
    GemmProblem problem = {.m = 32, .n = 32, .k = 64, .dtype = DataType::I8};
    ops::GemmPlan plan = {ops::GemmMovement::Pointers, {}};
    change(problem, plan);
    return ops::verifyGemm(problem, plan).message();
  };
  EXPECT_EQ(problem([](auto &, auto &) {}), "");
  EXPECT_THAT(problem([](auto &p, auto &) { p.k = 131072; }), AllOf(HasSubstr("K=131072"), HasSubstr("131071")));
  EXPECT_EQ(problem([](auto &p, auto &) { p.k = 131071; }), "");
  EXPECT_THAT(problem([](auto &p, auto &) { p.resultType = DataType::I32; }), HasSubstr("a result of type i32"));
  EXPECT_THAT(problem([](auto &p, auto &) { p.epilogue.bias = DataType::F8E5; }), HasSubstr("a bias of type fp8e5"));
  EXPECT_THAT(problem([](auto &p, auto &) { p.n = 31, p.epilogue.activation = Activation::SwiGlu; }),
              HasSubstr("swiglu of 31 columns"));
  EXPECT_THAT(problem([](auto &, auto &plan) { plan.tile.blockK = 16; }),
              AllOf(HasSubstr("blockK is 16"), HasSubstr("32")));
  EXPECT_THAT(problem([](auto &p, auto &) { p.strides.b = 63; }),
              AllOf(HasSubstr("rows of B are 63"), HasSubstr("64 to 2147483647")));
  EXPECT_THAT(problem([](auto &p, auto &) { p.strides.c = 1 << 30; }), HasSubstr("span"));

  ops::GemmReduceScatterOptions options = {.maxRows = 64, .columns = 32};
  options.epilogue.activation = Activation::Relu;
  EXPECT_THAT(ops::GemmReduceScatter::create(world(), sharedJit(), options).status().message(),
              HasSubstr("activation relu; none is accepted"));
  options.epilogue = {Scaling::None, Scaling::Tensor, std::nullopt, Activation::None};
  auto op = ops::GemmReduceScatter::create(world(), sharedJit(), options);
  ASSERT_OK(op);
  Buffer any = zeros(DataType::BF16, 64 * 64, "any"), scales = zeros(DataType::F32, 64, "scales");
  auto enqueue = [&](const EpilogueOperands &extras, const RowStrides &strides = {}) {
    return op->enqueue(rank(), rank().stream(), any, any, any, 64, 32, extras, strides).message();
  };
  EXPECT_THAT(enqueue({}), HasSubstr("operand scales of b is a null pointer"));
  EXPECT_THAT(enqueue({scales, scales, {}}), HasSubstr("operand scales of a is given; the operator was made without"));
  EXPECT_THAT(enqueue({{}, any, {}}), AllOf(HasSubstr("scales of b is of type bf16"), HasSubstr("fp32")));
  EXPECT_THAT(enqueue({{}, scales, {}}, {.a = 31}), HasSubstr("rows of A are 31 elements apart and have 32 columns"));
}

} // namespace
} // namespace ditron::e2e
