//===- attention_random_test.cpp - Attention with plans and shapes at random -----------------------------------------------===//
//
// Tiles, warps, stages, heads and options of every kind, also such as fill shared memory to the brim: the rings that a plan gets decide whether
// producer and consumer wait for each other, and a table's plan for one size of heads says nothing of the next one. What the library refuses for
// its registers or its shared memory is drawn again.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "AttentionChecks.h"
#include "KernelTest.h"

namespace ditron::e2e {
namespace {

using ops::AttentionLayout;
using ops::AttentionMovement;
using testing::AnyOf;
using testing::HasSubstr;

class Draw {
public:
  explicit Draw(uint64_t seed) : random(seed) {}

  template <typename T> T oneOf(std::initializer_list<T> values) { return values.begin()[random() % values.size()]; }
  int64_t upTo(int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); }
  bool oneIn(uint64_t count) { return random() % count == 0; }

private:
  std::mt19937_64 random;
};

/// Null: the one under test. On CPUs a simulated Hopper by turns with it, whose programs have producers and rings.
const char *drawTarget(Draw &draw) {
  return targetUnderTest().starts_with("cuda") || draw.oneIn(2) ? nullptr : "sim:sm_90a";
}

/// Of one key alone the gradient of the scores is a difference that rounding decides.
constexpr int64_t fewestKeys = 16;

ops::AttentionProblem drawProblem(Draw &draw, AttentionExtras &extras, int64_t widestHead) {
  ops::AttentionProblem problem;
  problem.kvHeads = draw.upTo(2);
  problem.heads = problem.kvHeads * draw.upTo(2);
  problem.queries = draw.upTo(300);
  problem.keys = draw.oneIn(2) ? std::max<int64_t>(problem.queries, fewestKeys) : fewestKeys + draw.upTo(400);
  do
    problem.headDim = draw.oneOf<int64_t>({16, 32, 64, 64, 96, 128, 128, 192, 256});
  while (problem.headDim > widestHead);
  problem.causal = draw.oneIn(2);
  problem.dtype = draw.oneOf({DataType::BF16, DataType::F16});
  problem.layout = draw.oneOf({AttentionLayout::HeadsFirst, AttentionLayout::RowsFirst});
  if (draw.oneIn(4))
    problem.window = fewestKeys + draw.upTo(150);
  if (draw.oneIn(4))
    problem.softCap = 3.0;
  extras.sinks = draw.oneIn(4);
  extras.slopes = draw.oneIn(4);
  if (problem.layout == AttentionLayout::RowsFirst && draw.oneIn(3)) {
    problem.batch = 3;
    problem.packedQueries = problem.packedKeys = 0;
    extras.queries = {draw.upTo(problem.queries), problem.queries, draw.upTo(problem.queries)};
    extras.keys = {fewestKeys, draw.upTo(problem.keys - fewestKeys + 1) + fewestKeys - 1, problem.keys};
  }
  return problem;
}

ops::AttentionPlan drawPlan(Draw &draw) {
  ops::AttentionPlan plan;
  plan.numWarps = draw.oneOf<uint32_t>({4, 8, 8, 16});
  plan.blockM = draw.oneOf<uint32_t>({16 * plan.numWarps, 16 * plan.numWarps, 64, 128});
  plan.blockN = draw.oneOf<uint32_t>({16, 32, 64, 64, 128});
  plan.numStages = static_cast<uint32_t>(draw.upTo(4));
  plan.movement = draw.oneIn(4) ? AttentionMovement::Pointers : AttentionMovement::Descriptors;
  return plan;
}

/// What waits for each other or reads another tile is off by the size of a result; sums of few terms of different sizes are rounded by more than those
/// of the cases that attention_test.cpp names.
constexpr double slackAtRandom = 4;

/// What a plan may be refused for.
const auto isTooLarge = AnyOf(HasSubstr("shared memory"), HasSubstr("registers"), HasSubstr("tiles of"));

/// ATTENTION_CASES=1000 runs so many, from the seed ATTENTION_FIRST on.
constexpr int casesByDefault = 12;

/// `complete` draws the problem and the plan of a case.
template <typename Case, typename Complete>
void runAtRandom(std::optional<std::string> (*check)(const Case &), Complete complete) {
  const int cases = casesWanted("ATTENTION_CASES", casesByDefault), first = casesWanted("ATTENTION_FIRST", 1);
  int refused = 0;
  for (int seed = first; seed < first + cases && !testing::Test::HasFailure(); ++seed) {
    Draw draw(static_cast<uint64_t>(seed));
    Case p;
    p.target = drawTarget(draw);
    complete(p, draw);
    p.name = fmt::format("seed {}: {} queries, {} keys, heads {} of {} and {}, plan {}", seed, p.problem.queries,
                         p.problem.keys, p.problem.heads, p.problem.headDim, p.problem.dimOfValues(), p.plan.text());
    p.slack = slackAtRandom;
    SCOPED_TRACE(p.name);
    if (const std::optional<std::string> message = check(p)) {
      EXPECT_THAT(*message, isTooLarge);
      ++refused;
    }
  }
  EXPECT_LT(refused, cases);
}

TEST(LibraryAttentionAtRandom, Forward) {
  runAtRandom<AttentionCase>(checkForward, [](AttentionCase &p, Draw &draw) {
    p.problem = drawProblem(draw, p.extras, /*widestHead=*/256);
    if (p.problem.headDim == 192 && draw.oneIn(2))
      p.problem.valueDim = 128;
    p.plan = drawPlan(draw);
  });
}

TEST(LibraryAttentionAtRandom, Gradients) {
  runAtRandom<BackwardCase>(checkBackward, [](BackwardCase &p, Draw &draw) {
    p.problem = drawProblem(draw, p.extras, /*widestHead=*/128);
    p.plan = {.keys = drawPlan(draw), .queries = drawPlan(draw)};
  });
}

} // namespace
} // namespace ditron::e2e
