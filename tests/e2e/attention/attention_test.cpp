//===- attention_test.cpp - Attention against a plain reference ------------------------------------------------------------===//
//
// Forward and backward, by pointers and by descriptors: shapes that no tile divides, masks, grouped heads, every option, packed rows, pages;
// what is refused.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "AttentionChecks.h"
#include "LibraryMachine.h"

namespace ditron::e2e {
namespace {

using ops::AttentionLayout;
using ops::AttentionMovement;
using testing::HasSubstr;

class LibraryAttention : public testing::TestWithParam<AttentionCase> {};

TEST_P(LibraryAttention, Forward) { EXPECT_EQ(checkForward(GetParam()), std::nullopt); }

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

INSTANTIATE_TEST_SUITE_P(
    Options, LibraryAttention,
    testing::Values(
        AttentionCase{"window_cap_sinks_slopes",
                      nullptr,
                      {.heads = 4,
                       .kvHeads = 2,
                       .queries = 90,
                       .keys = 101,
                       .headDim = 32,
                       .causal = true,
                       .window = 37,
                       .softCap = 3.0},
                      {.blockM = 32, .blockN = 16, .numWarps = 4},
                      {.sinks = true, .slopes = true}},
        AttentionCase{"window_that_ends_nowhere",
                      nullptr,
                      {.queries = 70, .keys = 70, .headDim = 16, .window = 20},
                      {.blockM = 32, .blockN = 16, .numWarps = 4}},
        AttentionCase{
            "rows_first_head_of_96",
            nullptr,
            {.batch = 2, .heads = 3, .queries = 33, .keys = 40, .headDim = 96, .layout = AttentionLayout::RowsFirst},
            {.blockM = 16, .blockN = 16, .numWarps = 4}},
        AttentionCase{
            "wide_products_narrow_values",
            nullptr,
            {.queries = 20, .keys = 50, .headDim = 192, .causal = true, .dtype = DataType::F16, .valueDim = 128},
            {.blockM = 16, .blockN = 32, .numWarps = 4}},
        AttentionCase{"packed",
                      nullptr,
                      {.batch = 3,
                       .heads = 2,
                       .kvHeads = 1,
                       .queries = 60,
                       .keys = 60,
                       .headDim = 32,
                       .causal = true,
                       .layout = AttentionLayout::RowsFirst,
                       .packedQueries = 0,
                       .packedKeys = 0},
                      {.blockM = 32, .blockN = 32, .numWarps = 4},
                      {.queries = {17, 60, 1}, .keys = {30, 60, 5}}},
        AttentionCase{"pages",
                      nullptr,
                      {.batch = 2,
                       .heads = 4,
                       .kvHeads = 2,
                       .queries = 5,
                       .keys = 90,
                       .headDim = 64,
                       .causal = true,
                       .layout = AttentionLayout::RowsFirst,
                       .pages = ops::AttentionPages{.size = 16}},
                      {.blockM = 16, .blockN = 32, .numWarps = 4},
                      {.keys = {90, 41}}},
        AttentionCase{"eight_bits",
                      "sim:sm_90a",
                      {.queries = 64, .keys = 80, .headDim = 64, .causal = true, .dtype = DataType::F8E4NV},
                      {.blockM = 64, .blockN = 64, .numWarps = 4}},
        AttentionCase{"fetched_window_cap_sinks_slopes",
                      "sim:sm_90a",
                      {.heads = 4,
                       .kvHeads = 2,
                       .queries = 200,
                       .keys = 220,
                       .headDim = 64,
                       .causal = true,
                       .window = 70,
                       .softCap = 3.0},
                      {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors},
                      {.sinks = true, .slopes = true}},
        AttentionCase{
            "fetched_rows_first_head_of_96",
            "sim:sm_90a",
            {.batch = 2, .heads = 3, .queries = 133, .keys = 140, .headDim = 96, .layout = AttentionLayout::RowsFirst},
            {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors}},
        AttentionCase{"fetched_wide_products_narrow_values",
                      "sim:sm_90a",
                      {.queries = 130, .keys = 130, .headDim = 192, .causal = true, .valueDim = 128},
                      {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors}},
        AttentionCase{"fetched_head_of_256",
                      "sim:sm_90a",
                      {.queries = 130, .keys = 130, .headDim = 256, .causal = true},
                      {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors}},
        AttentionCase{"fetched_packed",
                      "sim:sm_90a",
                      {.batch = 3,
                       .heads = 2,
                       .kvHeads = 1,
                       .queries = 200,
                       .keys = 200,
                       .headDim = 64,
                       .causal = true,
                       .layout = AttentionLayout::RowsFirst,
                       .packedQueries = 0,
                       .packedKeys = 0},
                      {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors},
                      {.queries = {17, 200, 1}, .keys = {30, 200, 5}}},
        AttentionCase{"fetched_pages",
                      "sim:sm_90a",
                      {.batch = 2,
                       .heads = 2,
                       .queries = 70,
                       .keys = 190,
                       .headDim = 64,
                       .causal = true,
                       .layout = AttentionLayout::RowsFirst,
                       .pages = ops::AttentionPages{.size = 64}},
                      {.blockM = 64, .blockN = 64, .numWarps = 4, .movement = AttentionMovement::Descriptors},
                      {.keys = {190, 71}}},
        AttentionCase{"fetched_eight_bits",
                      "sim:sm_90a",
                      {.heads = 2,
                       .kvHeads = 2,
                       .queries = 128,
                       .keys = 160,
                       .headDim = 64,
                       .dtype = DataType::F8E4NV,
                       .valuesTransposed = true},
                      {.blockM = 128, .blockN = 64, .movement = AttentionMovement::Descriptors}}),
    [](const auto &info) { return info.param.name; });

//===--------------------------------------------------------------------------------------------------------------===//
// Backward
//===--------------------------------------------------------------------------------------------------------------===//

class LibraryAttentionBackward : public testing::TestWithParam<BackwardCase> {};

TEST_P(LibraryAttentionBackward, Gradients) { EXPECT_EQ(checkBackward(GetParam()), std::nullopt); }

constexpr ops::AttentionPlan fetched(uint32_t blockM, uint32_t blockN, uint32_t numWarps = 8) {
  return {.blockM = blockM, .blockN = blockN, .numWarps = numWarps, .movement = AttentionMovement::Descriptors};
}

INSTANTIATE_TEST_SUITE_P(
    All, LibraryAttentionBackward,
    testing::Values(
        BackwardCase{"causal_grouped",
                     nullptr,
                     {.batch = 2,
                      .heads = 4,
                      .kvHeads = 2,
                      .queries = 50,
                      .keys = 61,
                      .headDim = 32,
                      .causal = true,
                      .dtype = DataType::F16},
                     {{.blockM = 16, .blockN = 32, .numWarps = 4}, {.blockM = 32, .blockN = 16, .numWarps = 4}}},
        BackwardCase{"queries_without_keys",
                     nullptr,
                     {.queries = 60, .keys = 25, .headDim = 16, .causal = true},
                     {{.blockM = 32, .blockN = 16, .numWarps = 4}, {.blockM = 32, .blockN = 16, .numWarps = 4}}},
        BackwardCase{"packed_window_cap_slopes",
                     nullptr,
                     {.batch = 3,
                      .heads = 2,
                      .queries = 60,
                      .keys = 60,
                      .headDim = 32,
                      .causal = true,
                      .layout = AttentionLayout::RowsFirst,
                      .window = 21,
                      .softCap = 4.0,
                      .packedQueries = 0,
                      .packedKeys = 0},
                     {{.blockM = 16, .blockN = 16, .numWarps = 4}, {.blockM = 16, .blockN = 16, .numWarps = 4}},
                     {.sinks = true, .slopes = true, .queries = {17, 60, 1}, .keys = {30, 60, 5}}},
        BackwardCase{"head_of_96",
                     nullptr,
                     {.queries = 33, .keys = 20, .headDim = 96, .layout = AttentionLayout::RowsFirst},
                     {{.blockM = 16, .blockN = 16, .numWarps = 4}, {.blockM = 16, .blockN = 16, .numWarps = 4}}},
        BackwardCase{"fetched_causal_grouped",
                     "sim:sm_90a",
                     {.batch = 2,
                      .heads = 4,
                      .kvHeads = 2,
                      .queries = 150,
                      .keys = 161,
                      .headDim = 64,
                      .causal = true,
                      .dtype = DataType::F16},
                     {fetched(128, 128), fetched(128, 128)}},
        BackwardCase{"fetched_whole_wide",
                     "sim:sm_90a",
                     {.queries = 200, .keys = 130, .headDim = 128},
                     {fetched(64, 128), fetched(128, 64)}},
        BackwardCase{"fetched_packed_window_cap_slopes",
                     "sim:sm_90a",
                     {.batch = 3,
                      .heads = 2,
                      .queries = 150,
                      .keys = 150,
                      .headDim = 64,
                      .causal = true,
                      .layout = AttentionLayout::RowsFirst,
                      .window = 50,
                      .softCap = 4.0,
                      .packedQueries = 0,
                      .packedKeys = 0},
                     {fetched(64, 64, 4), fetched(64, 64, 4)},
                     {.slopes = true, .queries = {17, 150, 1}, .keys = {30, 150, 5}}}),
    [](const auto &info) { return info.param.name; });

TEST(LibraryAttentionPlans, RefuseWhatCannotBe) {
  Machine machine(targetUnderTest());
  Buffer x = machine.put(DataType::BF16, std::vector<float>(64));
  auto message = [&](const ops::AttentionProblem &problem) {
    return statusOf(ops::prepareAttention(*machine.jit, machine.rank(), problem, {x, x, x, x})).message();
  };
  const ops::AttentionBackwardOperands all = {x, x, x, x, x.pointer().as(DataType::F32), x, x, x, x};
  auto backward = [&](const ops::AttentionProblem &problem, const ops::AttentionBackwardPlan &plan = {}) {
    return statusOf(ops::prepareAttentionBackward(*machine.jit, machine.rank(), problem, all, plan)).message();
  };
  EXPECT_THAT(backward({.queries = 1, .keys = 1, .headDim = 256}), HasSubstr("heads of 256"));
  EXPECT_THAT(backward({.queries = 1, .keys = 1, .valueDim = 64}), HasSubstr("of V 64"));
  EXPECT_THAT(backward({.queries = 1, .keys = 1, .pages = ops::AttentionPages{.count = 1}}), HasSubstr("in pages"));
  EXPECT_THAT(backward({.queries = 1, .keys = 1}, {.keys = {.blockM = 256}}), HasSubstr("tiles of 256 queries"));
  EXPECT_THAT(statusOf(ops::parseAttentionBackwardPlan("64x64 warps 4 stages 2")).message(), HasSubstr("written like"));
  EXPECT_THAT(message({.heads = 3, .kvHeads = 2, .queries = 1, .keys = 1}), HasSubstr("must divide"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .headDim = 80}), HasSubstr("heads of 80"));
  EXPECT_THAT(message({.queries = 0, .keys = 1}), HasSubstr("queries is 0; 1 to 2147483647 are accepted"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .dtype = DataType::F32}), HasSubstr("bf16, fp16 and fp8e4nv"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .scale = -1.0}), HasSubstr("the scale -1"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .window = -1}), HasSubstr("a window of -1"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .softCap = 0.0}), HasSubstr("capped at 0"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .softCap = std::numeric_limits<double>::infinity()}),
              HasSubstr("capped at inf"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .packedQueries = 1}), HasSubstr("RowsFirst is accepted"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .layout = AttentionLayout::RowsFirst, .packedQueries = 1}),
              HasSubstr("queryOffsets"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .pages = ops::AttentionPages{.count = 1, .size = 24}}),
              HasSubstr("of 24 rows"));
  EXPECT_THAT(message({.queries = 1, .keys = 1, .pages = ops::AttentionPages{.count = 1}}), HasSubstr("blockTable"));
}

} // namespace
} // namespace ditron::e2e
