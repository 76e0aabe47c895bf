//===- gemm_all_reduce_values_test.cpp - Every value arrives, of products whose elements say that they have come -------===//
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"
#include "tensor_parallel/GemmAllReduceOperands.h"

#include <limits>

namespace ditron::e2e {
namespace {

using ops::AllReduceForm;
using ops::GemmAllReduce;
using Problem = GemmAllReduceProblem;

/// Zeros of both signs, what underflows to them, infinities and NaN: no value of a partial result is taken for one that has not come. Call after call, in the slots of the calls before.
class GemmAllReduceOperatorValues : public GemmAllReduceOperator {
protected:
  /// One product of all ranks; `rowsOf` says where a rank's rows of the result begin, and how many they are.
  using Enqueue = std::function<Status(Rank &, const Buffer &a, const Buffer &b, const Buffer &out)>;
  void expectToArrive(const Problem &p, const std::string &what, const Enqueue &enqueue,
                      const std::function<std::pair<int64_t, int64_t>(uint32_t)> &rowsOf) {
    const auto count = static_cast<int64_t>(values.size());
    std::vector<Buffer> a, b, out;
    for (uint32_t r = 0; r < p.ranks; ++r) {
      a.push_back(zeros(p.dtype, p.m, "a", r));
      b.push_back(zeros(p.dtype, p.n, "b", r));
      out.push_back(zeros(p.dtype, rowsOf(r).second * p.n, "out", r));
    }
    for (int call = 0; call < 4; ++call) {
      std::vector<float> expected(p.m * p.n, 0.0f);
      for (uint32_t r = 0; r < p.ranks; ++r) {
        std::vector<float> left, right;
        for (int64_t i = 0; i < p.m; ++i) // only one rank's are special: else nearly every sum would be NaN
          left.push_back(int(r) == call % int(p.ranks) ? values[i] : 1.0f);
        for (int64_t j = 0; j < p.n; ++j)
          right.push_back(int(r) == call % int(p.ranks) ? values[(j + call) % count] : j < count ? 0.0f : -0.0f);
        ASSERT_OK(a[r].uploadFloats(left));
        ASSERT_OK(b[r].uploadFloats(right));
        const std::vector<float> storedLeft = getFloats(a[r]), storedRight = getFloats(b[r]);
        for (int64_t i = 0; i < p.m * p.n; ++i)
          expected[i] += static_cast<float>(ops::roundedTo(p.dtype, storedLeft[i / p.n] * storedRight[i % p.n]));
      }
      ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
        DITRON_RETURN_IF_ERROR(enqueue(me, a[me.id()], b[me.id()], out[me.id()]));
        return me.stream().synchronize();
      }));
      for (uint32_t r = 0; r < p.ranks; ++r) {
        const std::vector<float> found = getFloats(out[r]);
        for (size_t i = 0; i < found.size(); ++i) {
          const float wanted = expected[rowsOf(r).first * p.n + i];
          EXPECT_TRUE(std::isnan(wanted) ? std::isnan(found[i]) : found[i] == wanted)
              << what << " of " << toString(p.dtype) << ", call " << call << ", rank " << r << ", element " << i << ": "
              << found[i] << ", expected " << wanted;
        }
      }
      if (HasFailure())
        return;
    }
  }
  Problem problem(DataType dtype) const {
    const auto count = static_cast<int64_t>(values.size());
    return onTarget({.name = "values", .dtype = dtype, .m = count, .n = 2 * count, .k = 1});
  }

  static constexpr float infinity = std::numeric_limits<float>::infinity(),
                         nan = std::numeric_limits<float>::quiet_NaN();
  static constexpr std::array values = {0.0f,      -0.0f,      1.0f,     -1.0f,     0x1p-14f, -0x1p-14f,
                                        0x1p-126f, -0x1p-126f, infinity, -infinity, nan,      3.0f};
};

TEST_F(GemmAllReduceOperatorValues, ArriveEverywhere) {
  for (const DataType dtype : {DataType::F16, DataType::BF16, DataType::F32})
    for (const AllReduceForm form : {AllReduceForm::OneShot, AllReduceForm::FusedTwoShot}) {
      Problem p = problem(dtype);
      p.form = form;
      startFor(p);
      auto op = GemmAllReduce::create(world(), sharedJit(), p.options(p.m));
      ASSERT_OK(op);
      for (uint32_t r = 0; r < p.ranks; ++r)
        ASSERT_OK(op->prepare(rank(r), p.m, 1));
      expectToArrive(
          p, std::string(toString(form)),
          [&](Rank &me, const Buffer &a, const Buffer &b, const Buffer &out) {
            return op->enqueue(me, me.stream(), a, b, out, p.m, 1);
          },
          [&](uint32_t) { return std::pair(int64_t(0), p.m); });
      if (HasFailure())
        return;
    }
}

TEST_F(GemmAllReduceOperatorValues, ArriveAtTheirOwners) {
  for (const DataType dtype : {DataType::F16, DataType::BF16, DataType::F32}) {
    const Problem p = problem(dtype);
    startFor(p);
    auto op = ops::GemmReduceScatter::create(
        world(), sharedJit(),
        {.dtype = dtype, .maxRows = p.m, .columns = p.n, .tile = smallTile, .oneLaunchRows = p.m});
    ASSERT_OK(op);
    for (uint32_t r = 0; r < p.ranks; ++r)
      ASSERT_OK(op->prepare(rank(r), p.m, 1));
    expectToArrive(
        p, "GEMM+ReduceScatter",
        [&](Rank &me, const Buffer &a, const Buffer &b, const Buffer &out) {
          return op->enqueue(me, me.stream(), a, b, out, p.m, 1);
        },
        [&](uint32_t r) {
          const ops::RowShards shards(p.m, p.ranks);
          return std::pair(shards.firstRowOf(r), shards.rowsOf(r));
        });
    if (HasFailure())
      return;
  }
}

} // namespace
} // namespace ditron::e2e
