//===- gemm_forms_test.cpp - Forms of the matrix product that cut tiles otherwise --------------------------------------------===//
//
// A split tail and tiles of two widths against the plain form: products of small integers are exact, so that their bits must agree
// whatever is added up first. A split tail besides must give the same bits of any data in every run, whichever block comes last, leave nothing
// behind for the next call, and not mix up calls on several streams.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"
#include "ditron/ops/Gemm.h"
#include "ditron/ops/Reference.h"

#include <algorithm>
#include <fmt/format.h>
#include <random>

namespace ditron::e2e {
namespace {

using ops::GemmPlan;
using ops::GemmProblem;
using ops::MatrixOrder;
using testing::HasSubstr;

int casesWanted(int byDefault) {
  const char *number = std::getenv("GEMM_FORMS");
  return number ? std::atoi(number) : byDefault;
}

/// A simulated Hopper, or the GPU under test, and operands of one product.
struct Product {
  GemmProblem problem;
  std::unique_ptr<World> world;
  jit::Jit *jit = nullptr;
  Buffer a, b, c, scalesA, scalesB, bias;

  Product(const GemmProblem &problem, uint32_t multiprocessors, uint64_t seed) : problem(problem) {
    WorldOptions options;
    options.sms = multiprocessors;
    options.seed = seed;
    auto made = World::local(1, isSimulated() ? "sim:sm_90a" : targetUnderTest(), options);
    EXPECT_OK(made);
    world = std::move(made).value();
    jit = &jitFor(world->target());
    a = memory(problem.m * strideOf(problem.strides.a, problem.k));
    b = memory(isTransposed() ? problem.n * strideOf(problem.strides.b, problem.k)
                              : problem.k * strideOf(problem.strides.b, problem.n));
    c = memory(problem.m * strideOf(problem.strides.c, problem.epilogue.resultColumns(problem.n)),
               problem.typeOfResult());
    auto scales = [&](ops::Scaling scaling, int64_t count) {
      return memory(scaling == ops::Scaling::Vector ? count : 1, DataType::F32);
    };
    scalesA = scales(problem.epilogue.scalesA, problem.m);
    scalesB = scales(problem.epilogue.scalesB, problem.n);
    bias = memory(problem.n, problem.epilogue.bias.value_or(DataType::F32));
  }
  bool isTransposed() const { return problem.order == MatrixOrder::Transposed; }
  static int64_t strideOf(int64_t given, int64_t columns) { return given ? given : columns; }
  Rank &rank() { return world->rank(0); }
  Buffer memory(int64_t count) { return memory(count, problem.dtype); }
  Buffer memory(int64_t count, DataType type) {
    auto buffer = rank().allocate(type, count, "matrix");
    EXPECT_OK(buffer);
    return std::move(buffer).value();
  }

  /// Integers from -2 to 2, or fractions.
  void fill(uint64_t seed, bool integers) {
    for (Buffer *matrix : {&a, &b}) {
      const size_t count = matrix->count();
      EXPECT_OK(matrix->uploadFloats(integers ? convertAll<float>(randomIntegers(count, ++seed, -2, 2))
                                              : randomFloats(count, ++seed, -1, 1, problem.dtype)));
    }
    for (Buffer *vector : {&scalesA, &scalesB, &bias})
      EXPECT_OK(vector->uploadFloats(randomFloats(vector->count(), ++seed, 0.5, 1.5, vector->type())));
    poison();
  }
  void poison() { EXPECT_OK(c.uploadFloats(std::vector<float>(c.count(), NAN))); }

  Expected<ops::PreparedCall> prepare(std::string_view plan) {
    auto parsed = ops::parseGemmPlan(plan, {});
    EXPECT_OK(parsed);
    auto given = [](bool is, Buffer &buffer) { return is ? runtime::Pointer(buffer) : runtime::Pointer(); };
    const ops::GemmEpilogue &epilogue = problem.epilogue;
    return ops::prepareGemm(*jit, rank(), problem, a, b, c, *parsed,
                            {given(epilogue.scalesA != ops::Scaling::None, scalesA),
                             given(epilogue.scalesB != ops::Scaling::None, scalesB),
                             given(epilogue.bias.has_value(), bias)});
  }
  std::vector<float> result() {
    EXPECT_OK(world->synchronize());
    auto values = c.downloadFloats();
    EXPECT_OK(values);
    return *values;
  }
  std::vector<float> run(const Expected<ops::PreparedCall> &call) {
    EXPECT_OK(call);
    if (!call.isOk())
      return {};
    poison();
    EXPECT_OK(call->enqueue(rank().stream()));
    return result();
  }
};

//===--------------------------------------------------------------------------------------------------------------===//
// Random products
//===--------------------------------------------------------------------------------------------------------------===//

struct Form {
  std::string tile, rest;
  GemmProblem problem;
  uint32_t multiprocessors;
};

ops::GemmEpilogue randomEpilogue(std::mt19937_64 &random) {
  using ops::Activation, ops::Scaling;
  constexpr Scaling scalings[] = {Scaling::None, Scaling::Tensor, Scaling::Vector};
  constexpr Activation activations[] = {Activation::None, Activation::Relu, Activation::Gelu, Activation::Silu,
                                        Activation::SwiGlu};
  constexpr std::optional<DataType> biases[] = {std::nullopt, DataType::BF16, DataType::F32};
  return {scalings[random() % 3], scalings[random() % 3], biases[random() % 3], activations[random() % 5]};
}

Form randomForm(uint64_t seed, bool splitTail) {
  std::mt19937_64 random(seed * 7919 + 3);
  auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  Form form;
  const int64_t blockM = below(2) ? 64 : 128,
                blockN = splitTail ? 32 << below(3) : std::initializer_list<int64_t>{96, 192, 48}.begin()[below(3)],
                blockK = 32 << below(2);
  form.tile = fmt::format("descriptors {}x{}x{}", blockM, blockN, blockK);
  form.rest =
      fmt::format(" warps {} stages {} group {}{}", blockM == 128 && below(2) ? 8 : 4, 2 + below(3), 2 * (1 + below(2)),
                  std::initializer_list<const char *>{"", "", " a-first", " b-last", " a-last b-first", " cluster 2"}
                      .begin()[below(6)]);
  form.multiprocessors = static_cast<uint32_t>(1 + below(11));
  GemmProblem &p = form.problem;
  p.dtype =
      std::initializer_list<DataType>{DataType::BF16, DataType::F16, DataType::F8E4NV, DataType::F8E5, DataType::I8}
          .begin()[below(5)];
  const bool isNarrow = sizeOf(p.dtype) == 1;
  p.order = isNarrow || below(3) ? MatrixOrder::Transposed : MatrixOrder::Plain;
  p.m = 1 + below(5 * blockM);
  // The compiler knows of sizes whether they are multiples of 16; a producer warp fetches tiles where they are.
  const int64_t unit = isNarrow || below(4) ? 16 : 8;
  p.n = unit * (1 + below(4 * blockN / unit));
  p.k = below(6) ? unit * (1 + below(8 * blockK / unit)) : unit;
  if (below(2))
    p.epilogue = randomEpilogue(random);
  const int64_t columns = p.epilogue.resultColumns(p.n);
  if (below(2) || columns % 8 != 0) {
    p.strides.a = p.k + unit * below(3);
    p.strides.c = ops::ceilDivide(columns, unit) * unit + unit * below(3);
  }
  return form;
}

class GemmForms : public testing::TestWithParam<int> {};

void expectSameBits(const Form &form, const std::string &plan, uint64_t seed) {
  const GemmProblem &p = form.problem;
  SCOPED_TRACE(fmt::format("{}: {}x{}x{} of {}, strides {} {}, order {}, scales {} {}, {}, {}, {} multiprocessors",
                           plan, p.m, p.n, p.k, toString(p.dtype), p.strides.a, p.strides.c,
                           p.order == MatrixOrder::Plain ? "kn" : "nk", toString(p.epilogue.scalesA),
                           toString(p.epilogue.scalesB), p.epilogue.bias ? "bias" : "no bias",
                           toString(p.epilogue.activation), form.multiprocessors));
  Product product(p, form.multiprocessors, seed);
  const auto call = product.prepare(plan), plain = product.prepare("descriptors 64x64x32 warps 4 stages 2 group 3");
  for (uint64_t round = 0; round < 2; ++round) {
    product.fill(seed * 10 + round * 2, /*integers=*/true);
    const std::vector<float> actual = product.run(call);
    expectSame(actual, product.run(plain), fmt::format("round {}", round));
  }
}

TEST_P(GemmForms, SplitTailIsExactOfSmallIntegers) {
  const Form form = randomForm(GetParam(), true);
  expectSameBits(form, fmt::format("{}{} tail-splits {}", form.tile, form.rest, 2 + GetParam() % 5), GetParam());
}

TEST_P(GemmForms, TwoWidthsAreExactOfSmallIntegers) {
  const Form form = randomForm(GetParam(), false);
  expectSameBits(form, form.tile + form.rest, GetParam());
}

TEST_P(GemmForms, CacheHintsChangeNothing) {
  Form form = randomForm(GetParam(), true);
  expectSameBits(form, form.tile + " warps 4 stages 2 b-last", GetParam());
}

TEST_P(GemmForms, ClustersAreExactOfSmallIntegers) {
  const Form form = randomForm(GetParam(), true);
  expectSameBits(form, form.tile + " warps 4 stages 3 group 4 cluster 2", GetParam());
}
INSTANTIATE_TEST_SUITE_P(Seeds, GemmForms, testing::Range(0, casesWanted(12)));

//===--------------------------------------------------------------------------------------------------------------===//
// What a split tail promises besides
//===--------------------------------------------------------------------------------------------------------------===//

constexpr const char *splitTailPlan = "descriptors 64x64x32 warps 4 stages 3 group 2 tail-splits 4";
/// 3 x 3 tiles of 41 steps on 4 multiprocessors: two whole waves, and a tile in parts.
const GemmProblem ragged = {.m = 180, .n = 144, .k = 1296, .dtype = DataType::F16};

TEST(SplitTail, GivesTheSameBitsInEveryRun) {
  std::vector<float> first;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Product product(ragged, 4, seed);
    product.fill(77, /*integers=*/false);
    const auto call = product.prepare(splitTailPlan);
    for (int round = 0; round < 3; ++round) {
      const std::vector<float> values = product.run(call);
      if (first.empty()) {
        first = values;
        auto a = product.a.downloadFloats(), b = product.b.downloadFloats();
        std::vector<float> plainB(b->size());
        for (int64_t n = 0; n < ragged.n; ++n)
          for (int64_t k = 0; k < ragged.k; ++k)
            plainB[k * ragged.n + n] = (*b)[n * ragged.k + k];
        const ops::Comparison comparison =
            ops::compare(values, ops::referenceProduct(*a, plainB, ragged.m, ragged.n, ragged.k),
                         {ops::toleranceFor(ragged.dtype, ragged.precision).relative});
        EXPECT_TRUE(comparison.passed()) << "element " << comparison.worstIndex;
      }
      expectSame(values, first, fmt::format("seed {}, round {}", seed, round));
    }
  }
}

TEST(SplitTail, IsReplayedWithNewDataBetweenEagerCalls) {
  Product product(ragged, 4, 1);
  const auto call = product.prepare(splitTailPlan), plain = product.prepare("descriptors 64x64x32 warps 4 stages 2");
  ASSERT_OK(call);
  ASSERT_OK(product.rank().stream().beginCapture());
  ASSERT_OK(call->enqueue(product.rank().stream()));
  auto graph = product.rank().stream().endCapture();
  ASSERT_OK(graph);
  for (int replay = 0; replay < 6; ++replay) {
    product.fill(100 + replay, /*integers=*/true);
    if (replay % 3 == 2) {
      ASSERT_OK(call->enqueue(product.rank().stream()));
    } else {
      ASSERT_OK(product.rank().stream().launch(*graph));
    }
    const std::vector<float> actual = product.result();
    expectSame(actual, product.run(plain), fmt::format("replay {}", replay));
  }
}

/// Each leaves the memory as the next one wants it, which may be cut into other parts.
TEST(SplitTail, CallsOfOtherPartsShareMemory) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    Product product(ragged, 4, seed);
    ops::GemmWorkspace workspace;
    std::vector<ops::PreparedCall> calls;
    for (const int parts : {5, 3, 2, 4}) {
      const std::string plan = fmt::format("descriptors 64x64x32 warps 4 stages 3 group 2 tail-splits {}", parts);
      auto call = ops::prepareGemm(*product.jit, product.rank(), ragged, product.a, product.b, product.c,
                                   *ops::parseGemmPlan(plan, {}), {}, &workspace);
      ASSERT_OK(call);
      calls.push_back(*call);
    }
    const auto plain = product.prepare("descriptors 64x64x32 warps 4 stages 2");
    for (int round = 0; round < 8; ++round) {
      product.fill(300 + round, /*integers=*/true);
      ASSERT_OK(calls[round % calls.size()].enqueue(product.rank().stream()));
      const std::vector<float> actual = product.result();
      expectSame(actual, product.run(plain), fmt::format("seed {}, round {}", seed, round));
    }
  }
}

TEST(SplitTail, CallsOnSeveralStreamsDoNotMeet) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    Product product(ragged, 4, seed);
    product.fill(5, /*integers=*/true);
    const std::vector<float> expected = product.run(product.prepare("descriptors 64x64x32 warps 4 stages 2"));
    std::vector<Buffer> results;
    std::vector<ops::PreparedCall> calls;
    std::vector<runtime::Stream> streams;
    for (int i = 0; i < 3; ++i) {
      results.push_back(product.memory(ragged.m * ragged.n));
      auto call = ops::prepareGemm(*product.jit, product.rank(), ragged, product.a, product.b, results.back(),
                                   *ops::parseGemmPlan(splitTailPlan, {}));
      ASSERT_OK(call);
      calls.push_back(*call);
      auto stream = product.rank().createStream(fmt::format("stream {}", i));
      ASSERT_OK(stream);
      streams.push_back(std::move(*stream));
    }
    for (int round = 0; round < 2; ++round)
      for (int i = 0; i < 3; ++i)
        ASSERT_OK(calls[i].enqueue(streams[i]));
    ASSERT_OK(product.world->synchronize());
    for (const Buffer &result : results) {
      auto values = result.downloadFloats();
      ASSERT_OK(values);
      expectSame(*values, expected, fmt::format("seed {}", seed));
    }
  }
}

TEST(SplitTail, SplitsWhatIsRaggedAndNothingElse) {
  const GemmPlan plan = *ops::parseGemmPlan("descriptors 128x128x64 tail-splits 5", {});
  // 704 tiles on 132 multiprocessors: five whole waves, and 44 tiles.
  const auto tail = ops::splitTailOf({.m = 8192, .n = 1376, .k = 4096}, plan, 132);
  ASSERT_TRUE(tail.has_value());
  EXPECT_EQ(tail->wholeTiles, 5 * 132);
  EXPECT_EQ(tail->splitTiles, 44);
  EXPECT_EQ(tail->parts, 5);
  EXPECT_FALSE(ops::splitTailOf({.m = 128 * 11, .n = 128 * 12, .k = 4096}, plan, 132)); // one full wave
  EXPECT_FALSE(ops::splitTailOf({.m = 8192, .n = 1376, .k = 4096}, *ops::parseGemmPlan("128x128x64", plan), 132));
  // No part without a step; no steps that 32 bits cannot number.
  EXPECT_FALSE(ops::splitTailOf({.m = 1, .n = 1, .k = 1}, plan, 132));
  EXPECT_EQ(ops::splitTailOf({.m = 1, .n = 1, .k = 130}, plan, 132)->parts, 3);
  EXPECT_EQ(
      ops::splitTailOf({.m = 1, .n = 1, .k = 2147483647}, *ops::parseGemmPlan("64x64x16 tail-splits 64", plan), 132)
          ->parts,
      15);
}

/// A row of a table serves sizes up to an eighth away, of which another row may be nearer.
TEST(LibraryPlans, RowsDoNotTakeTheShapesOfTheirNeighbours) {
  Product product(ragged, 4, 0);
  auto planOf = [&](int64_t n, int64_t k) {
    const GemmProblem problem = {.m = 8192, .n = n, .k = k};
    auto plan = ops::libraryGemmPlan(problem, *product.world, "NVIDIA H200");
    return plan.isOk() ? plan->text() : plan.status().message();
  };
  EXPECT_EQ(planOf(3584, 8192), "descriptors 128x128x64 warps 8 stages 5 group 8");
  EXPECT_EQ(planOf(3696, 8192), "descriptors 128x128x64 warps 8 stages 5 group 8 tail-splits 9");
  EXPECT_EQ(planOf(8192, 3584), "descriptors 128x128x64 warps 8 stages 5 group 8");
  EXPECT_EQ(planOf(8192, 3696), "descriptors 128x256x64 warps 8 stages 3 group 8 cluster 2");
}

TEST(SplitTail, ChosenPartsFillTheGpu) {
  const GemmPlan plan = *ops::parseGemmPlan("descriptors 128x128x64", {});
  EXPECT_EQ(ops::chooseTailSplits({.m = 8192, .n = 1376, .k = 4096}, plan, 132), 3u);         // 44 tiles on 132
  EXPECT_EQ(ops::chooseTailSplits({.m = 128 * 11, .n = 128 * 11, .k = 4096}, plan, 132), 1u); // 121 of 132 have work
  EXPECT_EQ(ops::chooseTailSplits({.m = 128 * 11, .n = 128 * 12, .k = 4096}, plan, 132), 1u);
  EXPECT_GE(ops::chooseTailSplits({.m = 256, .n = 384, .k = 8192}, plan, 132), 8u); // six tiles
  EXPECT_EQ(ops::chooseTailSplits({.m = 256, .n = 384, .k = 64}, plan, 132), 1u);
}

TEST(GemmFormPlans, TailsAreSplitWhereItPromisesMuch) {
  for (const auto &[n, splits] : {std::pair{1376, 3u}, {3584, 1u}, {3696, 9u}}) {
    const GemmProblem problem = {.m = 8192, .n = n, .k = n == 1376 ? 4096 : 8192};
    EXPECT_EQ(ops::chooseGemmPlan(problem, "cuda:sm_90a", 132).tailSplits, splits) << n;
    const std::vector<GemmPlan> plans = ops::rankGemmPlans(problem, "cuda:sm_90a", 132);
    const auto cut = std::ranges::find_if(plans, [](const GemmPlan &plan) { return plan.tailSplits > 1; });
    ASSERT_NE(cut, plans.end());
    EXPECT_EQ(ops::parseGemmPlan(cut->text(), {})->text(), cut->text());
  }
  // As measured: parts in three turns lose.
  for (const auto &[m, n, k, isSplit] : {std::tuple(512, 7168, 8192, false),
                                         {1024, 7168, 8192, true},
                                         {512, 13312, 16384, true},
                                         {1024, 13312, 16384, true}})
    EXPECT_EQ(ops::chooseGemmPlan({.m = m, .n = n, .k = k}, "cuda:sm_90a", 132).tailSplits > 1, isSplit)
        << m << " " << n;
  // Nor do those of few tiles that are not deep; without parts 64x128 tiles are better.
  for (const auto &[m, n, k] : {std::tuple(256, 2752, 4096),
                                {512, 2752, 4096},
                                {256, 3584, 4096},
                                {128, 4096, 2752},
                                {128, 4096, 3584},
                                {256, 4096, 3584}})
    EXPECT_EQ(ops::chooseGemmPlan({.m = m, .n = n, .k = k}, "cuda:sm_90a", 132).tailSplits, 1u) << m << " " << n;
  EXPECT_EQ(ops::chooseGemmPlan({.m = 1024, .n = 2752, .k = 4096}, "cuda:sm_90a", 132).tailSplits,
            3u); // a whole wave first
  // Beside copies more must be promised.
  const GemmPlan wide = *ops::parseGemmPlan("descriptors 128x256x64", {}),
                 small = *ops::parseGemmPlan("descriptors 128x128x64", {});
  EXPECT_EQ(ops::chooseTailSplitsBesideCopies({.m = 4096, .n = 7392, .k = 8192}, wide, 132), 9u);
  EXPECT_EQ(ops::chooseTailSplitsBesideCopies({.m = 8192, .n = 7392, .k = 8192}, wide, 132), 9u);
  EXPECT_EQ(ops::chooseTailSplitsBesideCopies({.m = 16384, .n = 7392, .k = 8192}, wide, 132), 1u);
  EXPECT_EQ(ops::chooseTailSplitsBesideCopies({.m = 4096, .n = 2752, .k = 4096}, small, 132), 1u);
  // Few tiles: all of them.
  EXPECT_GT(ops::chooseGemmPlan({.m = 32, .n = 4096, .k = 8192}, "cuda:sm_90a", 132).tailSplits, 2u);
  // Operators that overlap get a tile, and the plan it comes from is no more than that.
  const ops::TileConfig tile = ops::chooseTile({.m = 8192, .n = 1376, .k = 4096}, "cuda:sm_90a", 132);
  EXPECT_EQ(tile.blockM * tile.blockN, 128u * 128);
}

TEST(GemmFormPlans, OfEightBitsAreConsidered) {
  const GemmProblem problem = {.m = 8192, .n = 1376, .k = 4096, .dtype = DataType::F8E4NV};
  const std::vector<GemmPlan> plans = ops::rankGemmPlans(problem, "cuda:sm_90a", 132);
  for (const char *form : {"tail-splits", "cluster 2", "128x192x128"})
    EXPECT_TRUE(std::ranges::any_of(plans, [&](const GemmPlan &plan) {
      return plan.text().find(form) != std::string::npos;
    })) << form;
  for (const GemmPlan &plan : plans) {
    EXPECT_OK(ops::verifyGemm(problem, plan));
    EXPECT_EQ(ops::parseGemmPlan(plan.text(), {})->text(), plan.text());
  }
  // Tensor cores read them along K only.
  GemmProblem plain = problem;
  plain.order = MatrixOrder::Plain;
  for (const char *form : {"128x192x128", "128x128x128 tail-splits 3", "128x128x128 cluster 2", "128x128x128 a-first"})
    EXPECT_THAT(ops::verifyGemm(plain, *ops::parseGemmPlan(fmt::format("descriptors {}", form), {})).message(),
                HasSubstr("operands of fp8e4nv and B as [K, N]; 8-bit operands are accepted with B as [N, K]"));
}

TEST(GemmFormPlans, SayWhatIsAccepted) {
  const auto wide = ops::parseGemmPlan("descriptors 128x192x64 warps 8 stages 4", {});
  ASSERT_OK(wide);
  EXPECT_EQ(wide->tile.blockN, 128u);
  EXPECT_EQ(wide->moreN, 64u);
  EXPECT_THAT(wide->text(), HasSubstr("128x192x64"));
  auto message = [](std::string_view text) { return statusOf(ops::parseGemmPlan(text, {})).message(); };
  EXPECT_THAT(message("descriptors 128x200x64"), HasSubstr("a power of two"));
  EXPECT_THAT(message("descriptors 128x136x64"), HasSubstr("tiles of 128 and 8 columns"));
  EXPECT_THAT(message("descriptors 128x384x64"), HasSubstr("at most 256"));
  EXPECT_THAT(message("pointers 128x192x64"), HasSubstr("need descriptors"));
  EXPECT_THAT(message("pointers 128x128x64 tail-splits 2"), HasSubstr("need descriptors"));
  EXPECT_THAT(message("pointers 128x128x64 b-last"), HasSubstr("need descriptors"));
  EXPECT_THAT(message("pointers 128x128x64 cluster 2"), HasSubstr("need descriptors"));
  EXPECT_THAT(message("descriptors 128x128x64 cluster 3"), HasSubstr("clusters of 3 blocks; accepted are 1 and 2"));
  EXPECT_THAT(message("descriptors 128x128x64 tail-splits 65"), HasSubstr("65 tail-splits; accepted are 1 to 64"));
  EXPECT_THAT(message("descriptors 128x128x64 c-last"), HasSubstr("'c-last' is not understood"));
  EXPECT_EQ(ops::parseGemmPlan("descriptors 128x192x64 a-first b-last", {})->text().substr(12),
            "128x192x64 warps 4 stages 3 group 8 a-first b-last");
  EXPECT_THAT(message("descriptors 128x192x64 tail-splits 2"), HasSubstr("tail-splits with tiles of 192 columns"));
}

} // namespace
} // namespace ditron::e2e
