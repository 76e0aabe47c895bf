//===- GemmAllReduceOperands.h - Problems of GEMM+AllReduce, and their plain reference --------------------------*- C++ -*-===//
#ifndef DITRON_TESTS_E2E_TENSOR_PARALLEL_GEMMALLREDUCEOPERANDS_H
#define DITRON_TESTS_E2E_TENSOR_PARALLEL_GEMMALLREDUCEOPERANDS_H

#include "KernelTest.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/tensor_parallel/GemmAllReduce.h"

#include <fmt/format.h>

namespace ditron::e2e {

inline const ops::TileConfig smallTile = {
    .blockM = 32, .blockN = 32, .blockK = 32, .groupM = 4, .numWarps = 4, .numStages = 3};
inline const ops::TileConfig wideTile = {
    .blockM = 64, .blockN = 64, .blockK = 32, .groupM = 2, .numWarps = 4, .numStages = 2};

/// A call of GEMM+AllReduce, of tiles that make small shapes many of them.
struct GemmAllReduceProblem {
  const char *name;
  ops::AllReduceForm form = ops::AllReduceForm::OneShot;
  DataType dtype = DataType::BF16;
  uint32_t ranks = 4;
  int64_t m = 33, n = 80, k = 96; ///< k: of each rank.
  uint32_t chunks = 0;
  std::optional<DataType> partialType = std::nullopt;
  ops::MatrixOrder order = ops::MatrixOrder::Plain;
  ops::MultiplyPrecision precision = ops::MultiplyPrecision::Tf32;
  ops::TileConfig tile = smallTile;
  std::optional<ops::OneLaunchTile> oneLaunchTile = std::nullopt;
  uint32_t tailSplits = 0;    ///< Of two-shot calls; 0: as the library chooses.
  bool unequalDepths = false; ///< Rank r has k + 7 * r.
  uint64_t seed = 1;
  std::optional<uint32_t> slowRank = std::nullopt;
  int calls = 1;

  int64_t depthOf(uint32_t rank) const { return unequalDepths ? k + 7 * rank : k; }
  ops::GemmAllReduceOptions options(int64_t maxRows) const {
    ops::GemmAllReduceOptions options;
    options.dtype = dtype;
    options.partialType = partialType;
    options.maxRows = maxRows;
    options.columns = n;
    options.weightOrder = order;
    options.precision = precision;
    options.form = form;
    options.tile = tile;
    options.chunks = chunks;
    options.oneLaunchTile = oneLaunchTile;
    if (tailSplits)
      options.plan = ops::TensorParallelPlan{.form = ops::TensorParallelForm::TwoShot,
                                             .tile = tile,
                                             .chunks = std::max(chunks, 1u),
                                             .tailSplits = tailSplits};
    return options;
  }
};

inline void PrintTo(const GemmAllReduceProblem &p, std::ostream *stream) { *stream << p.name; }

inline GemmAllReduceProblem onTarget(GemmAllReduceProblem p) {
  p.ranks = ranksOnTarget(p.ranks);
  if (p.slowRank)
    p.slowRank = *p.slowRank % p.ranks;
  return p;
}

/// The operands of all ranks for one shape, with data that changes, and the results.
class GemmAllReduceOperands {
public:
  GemmAllReduceOperands(const GemmAllReduceProblem &p, int64_t m) : p(p), m(m), a(p.ranks), b(p.ranks), out(p.ranks) {}

  Status allocate(World &world) {
    for (uint32_t r = 0; r < p.ranks; ++r) {
      DITRON_ASSIGN_OR_RETURN(a[r], world.rank(r).allocate(p.dtype, m * p.depthOf(r), "a"));
      DITRON_ASSIGN_OR_RETURN(b[r], world.rank(r).allocate(p.dtype, p.depthOf(r) * p.n, "b"));
      DITRON_ASSIGN_OR_RETURN(out[r], world.rank(r).allocate(p.dtype, m * p.n, "out"));
    }
    return Status::ok();
  }
  /// New data for the next call; what its result must be.
  Status upload(uint64_t set) {
    expected.assign(m * p.n, 0);
    for (uint32_t r = 0; r < p.ranks; ++r) {
      const int64_t k = p.depthOf(r);
      const std::vector<float> left = ops::randomValues(p.dtype, m * k, 1000 * set + 2 * r);
      std::vector<float> right = ops::randomValues(p.dtype, k * p.n, 1000 * set + 2 * r + 1);
      const std::vector<double> part = ops::referenceProduct(left, right, m, p.n, k);
      for (size_t i = 0; i < part.size(); ++i)
        expected[i] += part[i];
      if (p.order == ops::MatrixOrder::Transposed) {
        std::vector<float> turned(right.size());
        for (int64_t i = 0; i < k; ++i)
          for (int64_t j = 0; j < p.n; ++j)
            turned[j * k + i] = right[i * p.n + j];
        right = turned;
      }
      DITRON_RETURN_IF_ERROR(a[r].uploadFloats(left));
      DITRON_RETURN_IF_ERROR(b[r].uploadFloats(right));
    }
    return Status::ok();
  }
  Status enqueue(ops::GemmAllReduce &op, Rank &rank, runtime::Stream &stream) {
    const uint32_t r = rank.id();
    return op.enqueue(rank, stream, a[r], b[r], out[r], m, p.depthOf(r));
  }
  /// Right on rank 0, and the same bits on all others.
  std::vector<std::byte> check(const std::string &what) {
    std::vector<std::byte> first;
    for (uint32_t r = 0; r < p.ranks; ++r) {
      std::vector<std::byte> bits(out[r].bytes());
      EXPECT_OK(out[r].download(bits.data(), bits.size()));
      if (r > 0) {
        EXPECT_TRUE(bits == first) << what << ": ranks 0 and " << r << " differ";
        continue;
      }
      first = bits;
      auto actual = out[r].downloadFloats();
      EXPECT_OK(actual);
      if (!actual.isOk())
        return {};
      const ops::Comparison comparison = ops::compare(*actual, expected, ops::toleranceFor(p.dtype, p.precision));
      EXPECT_TRUE(comparison.passed()) << what << ": error " << comparison.maxError << ", element "
                                       << comparison.worstIndex << " is " << (*actual)[comparison.worstIndex]
                                       << ", expected " << expected[comparison.worstIndex] << ", allowed "
                                       << comparison.allowed;
    }
    return first;
  }

private:
  GemmAllReduceProblem p;
  int64_t m;
  std::vector<Buffer> a, b, out;
  std::vector<double> expected;
};

class GemmAllReduceOperator : public KernelTest {
protected:
  void startFor(const GemmAllReduceProblem &p) {
    WorldOptions options = seeded(p.seed, p.slowRank, 5);
    options.trace = true;
    start(p.ranks, options);
  }
  std::vector<std::byte> run(const GemmAllReduceProblem &wanted) {
    const GemmAllReduceProblem p = onTarget(wanted);
    startFor(p);
    auto op = ops::GemmAllReduce::create(world(), sharedJit(), p.options(p.m));
    EXPECT_OK(op);
    GemmAllReduceOperands operands(p, p.m);
    EXPECT_OK(operands.allocate(world()));
    if (HasFailure())
      return {};
    for (uint32_t r = 0; r < p.ranks; ++r)
      EXPECT_OK(op->prepare(rank(r), p.m, p.depthOf(r)));
    std::vector<std::byte> bits;
    for (int call = 0; call < p.calls && !HasFailure(); ++call) {
      EXPECT_OK(operands.upload(call));
      EXPECT_OK(world().runRanks([&](Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(operands.enqueue(*op, me, me.stream()));
        return me.stream().synchronize();
      }));
      if (!HasFailure())
        bits = operands.check(fmt::format("{}, call {}", p.name, call));
    }
    return bits;
  }
};

} // namespace ditron::e2e
#endif // DITRON_TESTS_E2E_TENSOR_PARALLEL_GEMMALLREDUCEOPERANDS_H
