//===- plans_test.cpp - Ranks whose plans differ ------------------------------------------------------------------------===//
//
// Each rank's host code has an operator of its own here, as processes have. A plan that is not the others' must be an error on all ranks
// that names them and the plans, before anything can wait for it.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "ditron/ops/collectives/Collective.h"
#include "ditron/ops/tensor_parallel/AllGatherGemm.h"
#include "ditron/ops/tensor_parallel/GemmAllReduce.h"
#include "ditron/ops/tensor_parallel/GemmReduceScatter.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

using ops::Collective;
using ops::CollectiveForm;
using ops::CollectivePlan;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
class Plans : public KernelTest {
protected:
  /// What prepare() says on each rank when rank r does as `plan(r)` says and asks for `elements(r)`.
  std::vector<Status> prepareCollective(const std::function<CollectivePlan(uint32_t)> &plan,
                                        const std::function<int64_t(uint32_t)> &elements) {
    std::vector<Status> got(world().numRanks());
    collectives.resize(world().numRanks());
    ended = world().runRanks([&](Rank &me) -> Status {
      DITRON_ASSIGN_OR_RETURN(collectives[me.id()],
                              Collective::create(world(), sharedJit(), {.maxElements = 100, .plan = plan(me.id())}));
      got[me.id()] = collectives[me.id()].prepare(me, elements(me.id()));
      return Status::ok();
    });
    return got;
  }
  template <typename Operator, typename Options>
  std::vector<Status> prepareProduct(const std::function<Options(uint32_t)> &options, int64_t rows, int64_t size) {
    std::vector<Status> got(world().numRanks());
    std::vector<Operator> operators(world().numRanks());
    ended = world().runRanks([&](Rank &me) -> Status {
      DITRON_ASSIGN_OR_RETURN(operators[me.id()], Operator::create(world(), sharedJit(), options(me.id())));
      got[me.id()] = operators[me.id()].prepare(me, rows, size);
      return Status::ok();
    });
    return got;
  }

  std::vector<Collective> collectives;
  Status ended;
};

constexpr CollectivePlan twoWarps = {CollectiveForm::Chunks, 3, 2, 512},
                         fourWarps = {CollectiveForm::Chunks, 3, 4, 512};

TEST_F(Plans, OneOtherPlanIsAnErrorOnAllRanks) {
  for (const uint32_t ranks : {2u, 3u, 8u})
    for (const uint32_t odd : {0u, ranks - 1}) {
      REQUIRE_RANKS(ranks); // two first
      start(ranks, seeded(ranks));
      const std::vector<Status> got = prepareCollective(
          [&](uint32_t rank) { return rank == odd ? fourWarps : twoWarps; }, [](uint32_t) { return 100; });
      EXPECT_OK(ended);
      for (const Status &status : got) {
        EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
        EXPECT_EQ(status.message(), got[0].message());
      }
      EXPECT_THAT(got[0].message(),
                  AllOf(StartsWith("all_reduce: the plans of the ranks: the ranks differ: "),
                        HasSubstr(fmt::format("rank {}: a call of 100 bf16 by 'chunks 3 4 512' (plan ", odd)),
                        HasSubstr("a call of 100 bf16 by 'chunks 3 2 512' (plan ")));
    }
}

TEST_F(Plans, ASizeThatOneRankCannotPrepareIsAnErrorOnAllRanks) {
  REQUIRE_RANKS(3u);
  start(3, seeded(5));
  const std::vector<Status> got =
      prepareCollective([](uint32_t) { return twoWarps; }, [](uint32_t rank) { return rank == 1 ? 101 : 100; });
  EXPECT_OK(ended);
  EXPECT_THAT(got[1].message(), StartsWith("all_reduce: 101 elements; 0 to 100 (maxElements) are accepted"));
  for (const uint32_t other : {0, 2})
    EXPECT_THAT(got[other].message(), AllOf(HasSubstr("ranks 0, 2: a call of 100 bf16"),
                                            HasSubstr("rank 1: nothing: all_reduce: 101 elements")));
}

TEST_F(Plans, ARankThatIsGoneEndsTheOthers) {
  REQUIRE_RANKS(3u);
  start(3, seeded(6));
  const Status status = world().runRanks([&](Rank &me) -> Status {
    if (me.id() == 2)
      return invalidArgument("rank 2 has no table");
    DITRON_ASSIGN_OR_RETURN(Collective collective,
                            Collective::create(world(), sharedJit(), {.maxElements = 100, .plan = twoWarps}));
    return collective.prepare(me, 100);
  });
  EXPECT_FALSE(status.isOk());
  EXPECT_THAT(status.message(), HasSubstr("the plans of the ranks: 2 of 3 are there"));
}

TEST_F(Plans, EqualPlansGiveResultsCallAfterCall) {
  REQUIRE_RANKS(2u);
  const uint32_t ranks = ranksOnTarget(4);
  start(ranks, seeded(7, 1));
  const std::vector<Status> got = prepareCollective([](uint32_t) { return twoWarps; }, [](uint32_t) { return 100; });
  ASSERT_OK(ended);
  std::vector<Buffer> in, out;
  for (uint32_t r = 0; r < ranks; ++r) {
    EXPECT_OK(got[r]);
    in.push_back(zeros(DataType::BF16, 100, "in", r));
    out.push_back(zeros(DataType::BF16, 100, "out", r));
  }
  for (int call = 0; call < 5; ++call) {
    ASSERT_OK(world().runRanks([&](Rank &me) -> Status {
      std::vector<float> values(100);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>((i + call + me.id()) % 5);
      DITRON_RETURN_IF_ERROR(in[me.id()].uploadFloats(values));
      // Prepared once more, between calls: nothing changes.
      DITRON_RETURN_IF_ERROR(collectives[me.id()].prepare(me, 100));
      DITRON_RETURN_IF_ERROR(collectives[me.id()].enqueue(me, me.stream(), in[me.id()], out[me.id()], 100));
      return me.stream().synchronize();
    }));
    std::vector<float> expected(100);
    for (size_t i = 0; i < expected.size(); ++i)
      for (uint32_t r = 0; r < ranks; ++r)
        expected[i] += static_cast<float>((i + call + r) % 5);
    for (uint32_t r = 0; r < ranks; ++r)
      expectSame(getFloats(out[r]), expected, fmt::format("call {}, rank {}", call, r));
  }
}

ops::TensorParallelPlan planOf(const char *op, const char *text) {
  auto plan = ops::parseTensorParallelPlan(op, text);
  EXPECT_OK(plan);
  return plan.isOk() ? *plan : ops::TensorParallelPlan();
}

TEST_F(Plans, OfProductsWhatAllRanksMustHaveIsCompared) {
  REQUIRE_RANKS(2u);
  start(2, seeded(8));
  // Tiles of other heights cut the rows of a two-shot GEMM+AllReduce into other chunks.
  std::vector<Status> got = prepareProduct<ops::GemmAllReduce, ops::GemmAllReduceOptions>(
      [](uint32_t rank) {
        ops::GemmAllReduceOptions options;
        options.maxRows = 200;
        options.columns = 64;
        options.plan = planOf("gemm_ar", rank == 1 ? "two_shot 64x32x32 chunks 2" : "two_shot 32x32x32 chunks 2");
        return options;
      },
      200, 64);
  EXPECT_OK(ended);
  for (const Status &status : got)
    EXPECT_THAT(status.message(), AllOf(HasSubstr("GemmAllReduce: the plans of the ranks: the ranks differ"),
                                        HasSubstr("rank 0: a call of 200 rows by 'two_shot 32x32x32 "),
                                        HasSubstr("rank 1: a call of 200 rows by 'two_shot 64x32x32 ")));
  // Those of one launch are numbered alike.
  got = prepareProduct<ops::GemmReduceScatter, ops::GemmReduceScatterOptions>(
      [](uint32_t rank) {
        ops::GemmReduceScatterOptions options;
        options.maxRows = 16;
        options.columns = 64;
        options.plan = planOf("gemm_rs", rank == 1 ? "one_launch 16x32x32" : "one_launch 16x64x32");
        return options;
      },
      16, 64);
  EXPECT_OK(ended);
  for (const Status &status : got)
    EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 0: a call of 16 rows by 'one_launch 16x64x32 "),
                                        HasSubstr("rank 1: a call of 16 rows by 'one_launch 16x32x32 ")));
  // Each rank may cut its own columns as it likes.
  got = prepareProduct<ops::AllGatherGemm, ops::AllGatherGemmOptions>(
      [](uint32_t rank) {
        ops::AllGatherGemmOptions options;
        options.maxRows = 64;
        options.depth = 64;
        options.plan = planOf("ag_gemm", rank == 1 ? "overlapped 64x32x32" : "overlapped 32x64x32");
        return options;
      },
      64, 64);
  EXPECT_OK(ended);
  for (const Status &status : got)
    EXPECT_OK(status);
}

TEST_F(Plans, AnOperatorOfAllRanksHasNobodyToAsk) {
  REQUIRE_RANKS(2u);
  start(2, seeded(9));
  auto collective = Collective::create(world(), sharedJit(), {.maxElements = 100, .plan = twoWarps});
  ASSERT_OK(collective);
  // One rank alone, and inside its host code: nobody waits.
  EXPECT_OK(collective->prepare(rank(1), 100));
  EXPECT_OK(world().runRanks([&](Rank &me) { return me.id() == 0 ? collective->prepare(me, 50) : Status::ok(); }));
}

TEST_F(Plans, APlanThatIsGivenIsTakenOrRefused) {
  REQUIRE_RANKS(2u);
  start(2, seeded(10));
  const auto created = [&](const char *text, int64_t rows) {
    ops::GemmReduceScatterOptions options;
    options.maxRows = rows;
    options.columns = 64;
    options.plan = planOf("gemm_rs", text);
    auto op = ops::GemmReduceScatter::create(world(), sharedJit(), options);
    return op.isOk() ? op->planText(rows, 64) : op.status().message();
  };
  EXPECT_EQ(created("overlapped 32x64x32 warps 4 stages 2 group 4", 100),
            "overlapped 32x64x32 warps 4 stages 2 group 4");
  // With the plan of the ReduceScatter behind the product; but where the ranks get different numbers of rows.
  EXPECT_THAT(created("unfused 32x64x32 warps 4 stages 2 group 4", 100),
              StartsWith("unfused 32x64x32 warps 4 stages 2 group 4, then "));
  EXPECT_EQ(created("unfused 32x64x32 warps 4 stages 2 group 4", 99), "unfused 32x64x32 warps 4 stages 2 group 4");
  EXPECT_EQ(created("one_launch 32x64x32 warps 4 stages 2", 30), "one_launch 32x64x32 warps 4 stages 2 splits 1");
  EXPECT_THAT(created("one_launch 16x64x32", 30), HasSubstr("takes at most 16 rows here; maxRows is 30"));
  if (isSimulated())
    EXPECT_THAT(created("one_launch 32x64x32 warps 4 stages 2 splits 64", 30),
                HasSubstr("1 tiles of 32x64, whose 64 blocks must all find a place at once on "));
  EXPECT_THAT(created("one_launch", 129), HasSubstr("takes at most 128 rows here; maxRows is 129"));
}

} // namespace
} // namespace ditron::e2e
