//===- all_reduce_rms_norm_test.cpp - AllReduce, residual and RMSNorm in one launch ---------------------------------------===//
//
// Against the three steps one after the other, in every form.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "ditron/ops/Reference.h"
#include "ditron/ops/collectives/AllReduceRmsNorm.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::CollectiveForm;
using ops::CollectivePlan;
using testing::HasSubstr;

class AllReduceRmsNorms : public KernelTest {};

/// Rounded where three steps one after the other would round, so that only the norm's own arithmetic may differ.
TEST_F(AllReduceRmsNorms, AreRight) {
  struct Case {
    DataType dtype;
    int64_t columns;
    CollectivePlan plan;
  };
  const uint32_t ranks = ranksOnTarget(3);
  start(ranks, seeded(8, ranks - 1, 3));
  constexpr CollectivePlan oneShot = {CollectiveForm::Lamport, 3, 1, 0},
                           twoShots = {CollectiveForm::TwoShotLamport, 3, 1, 0},
                           chunks = {CollectiveForm::Chunks, 3, 2, 512};
  for (const Case &c :
       {Case{DataType::BF16, 64, oneShot}, Case{DataType::BF16, 1000, oneShot}, Case{DataType::F32, 300, oneShot},
        Case{DataType::BF16, 64, twoShots}, Case{DataType::F16, 1000, twoShots}, Case{DataType::F32, 4, twoShots},
        Case{DataType::BF16, 64, chunks}, Case{DataType::F16, 1000, chunks}, Case{DataType::F32, 300, chunks}}) {
    constexpr int64_t maxRows = 20;
    auto op = ops::AllReduceRmsNorm::create(
        world(), sharedJit(), {.dtype = c.dtype, .columns = c.columns, .maxRows = maxRows, .plan = c.plan});
    ASSERT_OK(op);
    std::vector<Buffer> x, residual, weight, out;
    for (uint32_t r = 0; r < ranks; ++r) {
      for (std::vector<Buffer> *buffers : {&x, &residual, &out})
        buffers->push_back(zeros(c.dtype, maxRows * c.columns, "x", r));
      weight.push_back(putAs(c.dtype, randomFloats(c.columns, 7, 0.5f, 1.5f, c.dtype), "weight", r));
    }
    uint64_t seed = 0;
    for (int64_t rows : {1, 7, 20, 3}) {
      ++seed;
      const std::vector<float> old = randomFloats(rows * c.columns, 100 + seed, -1, 1, c.dtype),
                               weights = getFloats(weight[0]);
      std::vector<std::vector<float>> given;
      for (uint32_t r = 0; r < ranks; ++r)
        given.push_back(randomFloats(rows * c.columns, 10 * seed + r, -1, 1, c.dtype));
      ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
        const uint32_t r = me.id();
        const auto whole = [&](std::vector<float> values) { return values.resize(maxRows * c.columns), values; };
        DITRON_RETURN_IF_ERROR(x[r].uploadFloats(whole(given[r])));
        DITRON_RETURN_IF_ERROR(residual[r].uploadFloats(whole(old)));
        DITRON_RETURN_IF_ERROR(op->enqueue(me, me.stream(), {x[r], residual[r], weight[r], out[r], residual[r]}, rows));
        return me.stream().synchronize();
      }));
      std::vector<double> expectedResidual, expected;
      for (int64_t row = 0; row < rows; ++row) {
        double square = 0;
        for (int64_t column = 0; column < c.columns; ++column) {
          const int64_t i = row * c.columns + column;
          float sum = 0;
          for (uint32_t r = 0; r < ranks; ++r)
            sum += given[r][i];
          expectedResidual.push_back(
              ops::roundedTo(c.dtype, static_cast<float>(ops::roundedTo(c.dtype, sum)) + old[i]));
          square += expectedResidual.back() * expectedResidual.back();
        }
        for (int64_t column = 0; column < c.columns; ++column)
          expected.push_back(expectedResidual[row * c.columns + column] /
                             std::sqrt(square / static_cast<double>(c.columns) + 1e-6) * weights[column]);
      }
      std::vector<float> first;
      for (uint32_t r = 0; r < ranks; ++r) {
        std::vector<float> newResidual = getFloats(residual[r]), result = getFloats(out[r]);
        newResidual.resize(rows * c.columns);
        result.resize(rows * c.columns);
        const std::string what =
            fmt::format("{} x {} of {} by {}, rank {}", rows, c.columns, toString(c.dtype), toString(c.plan.form), r);
        expectSame(convertAll<double>(newResidual), expectedResidual, what);
        expectClose(result, expected, c.dtype == DataType::F32 ? 1e-5 : 8e-3, 1e-5, what);
        if (r == 0)
          first = result;
        expectSame(result, first, what + " beside rank 0");
      }
      if (HasFailure())
        return;
    }
  }
}

TEST_F(AllReduceRmsNorms, Refusals) {
  start(ranksOnTarget(2));
  auto made = ops::AllReduceRmsNorm::create(world(), sharedJit(), {.columns = 12, .maxRows = 4});
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("12 columns of bf16"));
}

} // namespace
} // namespace ditron::e2e
