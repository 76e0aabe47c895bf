//===- attention_test.cpp - Attention against a plain reference ------------------------------------------------------------===//
//
// Forward by pointers and by descriptors: shapes that no tile divides, masks, grouped heads; what is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "LibraryMachine.h"
#include "ditron/ops/attention/AttentionReference.h"

namespace ditron::e2e {
namespace {

using testing::HasSubstr;

struct AttentionCase {
  const char *name;
  const char *target;
  ops::AttentionProblem problem;
  ops::AttentionPlan plan;
};
void PrintTo(const AttentionCase &p, std::ostream *stream) { *stream << p.name; }

class LibraryAttention : public testing::TestWithParam<AttentionCase> {};

TEST_P(LibraryAttention, Forward) {
  const auto &[name, target, problem, plan] = GetParam();
  Machine machine(target ? target : targetUnderTest());
  const int64_t queries = problem.queries, keys = problem.keys, depth = problem.headDim;
  const int64_t heads = problem.batch * problem.heads, group = problem.heads / problem.kvHeads;
  const std::vector<float> q = randomFloats(heads * queries * depth, 31, -2, 2, problem.dtype);
  const std::vector<float> k = randomFloats(heads / group * keys * depth, 32, -2, 2, problem.dtype);
  const std::vector<float> v = randomFloats(heads / group * keys * depth, 33, -2, 2, problem.dtype);
  Buffer qBuffer = machine.put(problem.dtype, q), kBuffer = machine.put(problem.dtype, k),
         vBuffer = machine.put(problem.dtype, v);
  Buffer out = machine.unwritten(problem.dtype, q.size()), lse = machine.unwritten(DataType::F32, heads * queries);
  const std::vector<float> actual = machine.run(
      ops::prepareAttention(*machine.jit, machine.rank(), problem, {qBuffer, kBuffer, vBuffer, out, lse}, plan), out);
  auto actualLse = lse.downloadFloats();
  ASSERT_OK(actualLse);
  const auto operand = [depth](const std::vector<float> &values, int64_t headsOf, int64_t rows) {
    return [&values, depth, headsOf, rows](int64_t batch, int64_t head, int64_t row, int64_t column) -> double {
      return values[((batch * headsOf + head) * rows + row) * depth + column];
    };
  };
  const ops::AttentionReference plain(problem, operand(q, problem.heads, queries), operand(k, problem.kvHeads, keys),
                                      operand(v, problem.kvHeads, keys));
  std::vector<double> expected;
  for (int64_t row = 0; row < heads * queries; ++row) {
    const int64_t head = row / queries;
    const auto [values, logarithm] = plain.row(head / problem.heads, head % problem.heads, row % queries);
    expected.insert(expected.end(), values.begin(), values.end());
    if (std::isinf(logarithm))
      EXPECT_EQ((*actualLse)[row], logarithm) << "row " << row;
    else
      EXPECT_NEAR((*actualLse)[row], logarithm, 2e-3) << "row " << row;
  }
  expectWithin(actual, expected, problem.dtype == DataType::BF16 ? 1.6e-2 : 3e-3, name);
}

INSTANTIATE_TEST_SUITE_P(
    All, LibraryAttention,
    testing::Values(
        AttentionCase{"causal",
                      nullptr,
                      {.heads = 2, .kvHeads = 2, .queries = 70, .keys = 70, .headDim = 64, .causal = true},
                      {.blockM = 32, .blockN = 32, .numWarps = 4}},
        AttentionCase{
            "grouped",
            nullptr,
            {.batch = 2, .heads = 4, .kvHeads = 2, .queries = 33, .keys = 50, .headDim = 32, .dtype = DataType::F16},
            {.blockM = 16, .blockN = 16, .numWarps = 4}},
        AttentionCase{"more_keys_than_queries",
                      nullptr,
                      {.queries = 20, .keys = 100, .headDim = 32, .causal = true},
                      {.blockM = 16, .blockN = 32, .numWarps = 4}},
        AttentionCase{"queries_without_keys",
                      nullptr,
                      {.queries = 60, .keys = 25, .headDim = 32, .causal = true},
                      {.blockM = 32, .blockN = 32, .numWarps = 4}},
        AttentionCase{"wide_head",
                      nullptr,
                      {.queries = 64, .keys = 130, .headDim = 128, .causal = true, .scale = 0.2},
                      {.blockM = 64, .blockN = 64, .numWarps = 4}},
        AttentionCase{"hopper",
                      "sim:sm_90a",
                      {.heads = 2, .queries = 150, .keys = 150, .headDim = 64, .causal = true},
                      {.blockM = 128, .blockN = 64, .numWarps = 8}},
        AttentionCase{"fetched_causal",
                      "sim:sm_90a",
                      {.heads = 2, .queries = 390, .keys = 390, .headDim = 64, .causal = true},
                      {.blockM = 128, .blockN = 64, .numWarps = 8, .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"fetched_whole",
                      "sim:sm_90a",
                      {.heads = 2, .queries = 256, .keys = 384, .headDim = 128},
                      {.blockM = 128, .blockN = 128, .numWarps = 8, .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{
            "fetched_grouped",
            "sim:sm_90a",
            {.batch = 2, .heads = 4, .kvHeads = 2, .queries = 130, .keys = 201, .headDim = 64, .dtype = DataType::F16},
            {.blockM = 128, .blockN = 128, .numWarps = 8, .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"fetched_more_keys",
                      "sim:sm_90a",
                      {.queries = 70, .keys = 451, .headDim = 128, .causal = true, .scale = 0.2},
                      {.blockM = 128,
                       .blockN = 64,
                       .numWarps = 8,
                       .numStages = 3,
                       .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"fetched_queries_without_keys",
                      "sim:sm_90a",
                      {.queries = 300, .keys = 100, .headDim = 64, .causal = true},
                      {.blockM = 64, .blockN = 64, .numWarps = 4, .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"fetched_one_slot",
                      "sim:sm_90a",
                      {.queries = 128, .keys = 300, .headDim = 64},
                      {.blockM = 128,
                       .blockN = 64,
                       .numWarps = 8,
                       .numStages = 1,
                       .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{
            "fetched_more_tiles_than_programs",
            "sim:sm_90a",
            {.batch = 3, .heads = 15, .kvHeads = 5, .queries = 290, .keys = 290, .headDim = 64, .causal = true},
            {.blockM = 64, .blockN = 64, .numWarps = 4, .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"fetched_by_four_warpgroups",
                      "sim:sm_90a",
                      {.heads = 3, .queries = 500, .keys = 500, .headDim = 64, .causal = true},
                      {.blockM = 256,
                       .blockN = 64,
                       .numWarps = 16,
                       .numStages = 3,
                       .movement = ops::AttentionMovement::Descriptors}},
        AttentionCase{"descriptors_without_copies",
                      "sim:sm_80",
                      {.queries = 70, .keys = 90, .headDim = 32, .causal = true},
                      {.blockM = 64, .blockN = 32, .numWarps = 4, .movement = ops::AttentionMovement::Descriptors}}),
    [](const auto &info) { return info.param.name; });

TEST(LibraryAttentionPlans, RefuseWhatCannotBe) {
  Machine machine(targetUnderTest());
  Buffer x = machine.put(DataType::BF16, std::vector<float>(64));
  auto message = [&](const ops::AttentionProblem &problem) {
    return statusOf(ops::prepareAttention(*machine.jit, machine.rank(), problem, {x, x, x, x})).message();
  };
  EXPECT_THAT(message({.heads = 3, .kvHeads = 2, .queries = 1, .keys = 1}), HasSubstr("must divide"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .headDim = 80}), HasSubstr("heads of 80"));
  EXPECT_THAT(message({.queries = 0, .keys = 1}), HasSubstr("queries 0"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .dtype = DataType::F32}), HasSubstr("bf16 and fp16"));
}

} // namespace
} // namespace ditron::e2e
