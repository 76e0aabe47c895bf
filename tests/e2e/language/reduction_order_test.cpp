//===- reduction_order_test.cpp - What each order of a reduction promises ---------------------------------------------===//
//
// Reductions over random shapes, memory orders, types, axes and numbers of warps against references in double precision;
// the default order repeats its own bits; INNER_TREE has the bits of one tree over the elements, whatever the number of warps
// and the target; and what a reduction takes of shared memory.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <numeric>

namespace ditron::e2e {
namespace {

//===------------------------------------------------------------------------------------------------------------------===//
// Any shape
//===------------------------------------------------------------------------------------------------------------------===//

/// One reduction: the tile's elements lie in memory with the dimensions in any order.
struct Problem {
  std::vector<int> shape, strides;
  int axis; ///< -1 stands for None.
  bool keepsDims;
  uint32_t warps;

  int count() const { return std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>()); }
  int length() const { return axis < 0 ? count() : shape[axis]; }
  int results() const { return count() / length(); }
  bool givesScalar() const { return !keepsDims && (axis < 0 || shape.size() == 1); }

  /// For each result the places in memory of the elements along the axis, in order.
  std::vector<std::vector<int>> lines() const {
    std::vector<std::vector<int>> all(results());
    int inner = 1;
    for (size_t d = axis + 1; axis >= 0 && d < shape.size(); ++d)
      inner *= shape[d];
    for (int element = 0; element < count(); ++element) {
      int place = 0, rest = element;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
        place += rest % shape[d] * strides[d];
      all[axis < 0 ? 0 : element / (inner * length()) * inner + element % inner].push_back(place);
    }
    return all;
  }

  std::string text() const {
    return fmt::format("shape {} strides {} axis {} keep_dims {} warps {}", fmt::join(shape, "x"),
                       fmt::join(strides, ","), axis < 0 ? "None" : std::to_string(axis), keepsDims, warps);
  }

  /// The kernel's first lines: the tile x.
  std::string loadText() const {
    std::string address = "x_ptr";
    for (size_t d = 0; d < shape.size(); ++d) {
      std::vector<std::string> subscript(shape.size(), "None");
      subscript[d] = ":";
      address += fmt::format(" + tl.arange(0, {})[{}] * {}", shape[d], fmt::join(subscript, ", "), strides[d]);
    }
    return fmt::format("    x = tl.load({})\n", address);
  }
  /// Stores what a call with the axis gives; `call` has {} where axis and keep_dims belong.
  std::string storeText(std::string_view pointer, fmt::format_string<std::string &> call) const {
    std::string options =
        fmt::format("axis={}, keep_dims={}", axis < 0 ? "None" : std::to_string(axis), keepsDims ? "True" : "False");
    std::string value = fmt::format(call, options);
    if (givesScalar())
      return fmt::format("    tl.store({}, {})\n", pointer, value);
    return fmt::format("    tl.store({} + tl.arange(0, {}), ({}).reshape([{}]))\n", pointer, results(), value,
                       results());
  }
};

Problem randomProblem(uint64_t seed, int mostBits) {
  auto below = [&seed](int limit) { return static_cast<int>(randomIntegers(1, seed++ * 31 + 7, 0, limit - 1)[0]); };
  Problem problem;
  const int rank = 1 + below(3);
  int bits = below(mostBits + 1);
  for (int d = 0; d < rank; ++d) {
    const int own = d + 1 == rank ? bits : below(bits + 1);
    problem.shape.push_back(1 << own);
    bits -= own;
  }
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  for (int d = rank - 1; d > 0; --d)
    std::swap(order[d], order[below(d + 1)]);
  problem.strides.resize(rank);
  int stride = 1;
  for (int d : order) {
    problem.strides[d] = stride;
    stride *= problem.shape[d];
  }
  problem.axis = below(rank + 1) - 1;
  problem.keepsDims = below(3) == 0;
  problem.warps = 1u << below(5);
  while (problem.count() / (problem.warps * 32) > 128) // what a thread holds decides how long compiling takes
    problem.warps *= 2;
  return problem;
}

class ReductionOrder : public KernelTest {
protected:
  void sumsOfFloats(const Problem &problem, DataType type);
  void integers(const Problem &problem);
  void extremesAndPairs(const Problem &problem);
};

/// Positive numbers, so that the relative tolerance of the language's tests (0.01) means something.
void ReductionOrder::sumsOfFloats(const Problem &problem, DataType type) {
  SCOPED_TRACE(fmt::format("{} {}", problem.text(), toString(type)));
  const std::string text =
      "@triton.jit\ndef sums(x_ptr, out_ptr, tree_ptr):\n" + problem.loadText() +
      problem.storeText("out_ptr", "tl.sum(x, {})") +
      problem.storeText("tree_ptr", "tl.sum(x, {}, reduction_ordering=tl.ReductionOrdering.INNER_TREE)");
  const std::vector<float> x = randomFloats(problem.count(), problem.count(), 0.5f, 1.5f, type);
  std::vector<double> expected;
  for (const std::vector<int> &line : problem.lines())
    expected.push_back(std::accumulate(line.begin(), line.end(), 0.0, [&](double sum, int i) { return sum + x[i]; }));
  Buffer in = putAs(type, x), out = zeros(type, problem.results(), "out"),
         tree = zeros(type, problem.results(), "tree");
  ASSERT_OK(run(text, "sums", {.numWarps = problem.warps}, {{in, out, tree}, {}}));
  expectClose(getFloats(out), expected, 0.01, 0, "default order");
  expectClose(getFloats(tree), expected, 0.01, 0, "inner tree");
}

void ReductionOrder::integers(const Problem &problem) {
  SCOPED_TRACE(problem.text());
  const std::string text = "@triton.jit\ndef whole(x_ptr, sum_ptr, xor_ptr, max_ptr):\n" + problem.loadText() +
                           problem.storeText("sum_ptr", "tl.sum(x, {})") +
                           problem.storeText("xor_ptr", "tl.xor_sum(x, {})") +
                           problem.storeText("max_ptr", "tl.max(x, {})");
  const std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(problem.count(), 3, INT32_MIN, INT32_MAX));
  std::vector<int32_t> sums, xors, highs;
  for (const std::vector<int> &line : problem.lines()) {
    uint32_t sum = 0, bits = 0;
    int32_t high = INT32_MIN;
    for (int i : line)
      sum += uint32_t(x[i]), bits ^= uint32_t(x[i]), high = std::max(high, x[i]);
    sums.push_back(int32_t(sum)), xors.push_back(int32_t(bits)), highs.push_back(high);
  }
  const uint64_t n = problem.results();
  Buffer in = put(x), sum = zeros(DataType::I32, n, "sum"), bits = zeros(DataType::I32, n, "xor"),
         high = zeros(DataType::I32, n, "max");
  ASSERT_OK(run(text, "whole", {.numWarps = problem.warps}, {{in, sum, bits, high}, {}}));
  expectSame(get<int32_t>(sum), sums, "sum");
  expectSame(get<int32_t>(bits), xors, "xor_sum");
  expectSame(get<int32_t>(high), highs, "max");
}

/// Several values at once: places of extremes, with many ties, and a function of the user's.
void ReductionOrder::extremesAndPairs(const Problem &problem) {
  if (problem.axis < 0)
    return;
  SCOPED_TRACE(problem.text());
  const std::string text = "@triton.jit\ndef last(a, i, b, j):\n    return b, j\n\n"
                           "@triton.jit\ndef pairs(x_ptr, high_ptr, low_ptr, last_ptr):\n" +
                           problem.loadText() + problem.storeText("high_ptr", "tl.argmax(x, {})") +
                           problem.storeText("low_ptr", "tl.argmin(x, {})") +
                           problem.storeText("last_ptr", "tl.reduce((x, x + 1.0), {}, combine_fn=last)[1]");
  const std::vector<float> x = convertAll<float>(randomIntegers(problem.count(), 5, 0, 9));
  std::vector<int32_t> highs, lows;
  std::vector<float> lasts;
  for (const std::vector<int> &line : problem.lines()) {
    auto less = [&](int a, int b) { return x[a] < x[b]; };
    highs.push_back(int32_t(std::max_element(line.begin(), line.end(), less) - line.begin()));
    lows.push_back(int32_t(std::min_element(line.begin(), line.end(), less) - line.begin()));
    lasts.push_back(x[line.back()] + 1); // does not commute: the order of the elements is kept
  }
  const uint64_t n = problem.results();
  Buffer in = put(x), high = zeros(DataType::I32, n, "argmax"), low = zeros(DataType::I32, n, "argmin"),
         last = zeros(DataType::F32, n, "last");
  ASSERT_OK(run(text, "pairs", {.numWarps = problem.warps}, {{in, high, low, last}, {}}));
  expectSame(get<int32_t>(high), highs, "argmax");
  expectSame(get<int32_t>(low), lows, "argmin");
  expectSame(get<float>(last), lasts, "last element");
}

TEST_F(ReductionOrder, SumsOfRandomTiles) {
  const DataType types[] = {DataType::F32, DataType::F16, DataType::F64, DataType::BF16};
  for (uint64_t seed = 0; seed < 32; ++seed)
    sumsOfFloats(randomProblem(seed, 13), types[seed % 4]);
}

TEST_F(ReductionOrder, IntegersOfRandomTilesAreExact) {
  for (uint64_t seed = 100; seed < 124; ++seed)
    integers(randomProblem(seed, 13));
}

TEST_F(ReductionOrder, PairsOfRandomTiles) {
  for (uint64_t seed = 200; seed < 224; ++seed)
    extremesAndPairs(randomProblem(seed, 11));
}

TEST_F(ReductionOrder, LargeTiles) {
  for (uint32_t warps : {4u, 8u, 16u}) {
    sumsOfFloats({{16384}, {1}, 0, false, warps}, DataType::F32);
    integers({{128, 128}, {128, 1}, 0, false, warps});
    sumsOfFloats({{128, 128}, {1, 128}, 0, true, warps}, DataType::F16);
  }
  sumsOfFloats({{32768}, {1}, 0, false, 16}, DataType::F32);
  sumsOfFloats({{64, 512}, {512, 1}, -1, false, 16}, DataType::F32);
}

//===------------------------------------------------------------------------------------------------------------------===//
// Bits
//===------------------------------------------------------------------------------------------------------------------===//

const char *const orders = R"(
@triton.jit
def add(a, b):
    return a + b

@triton.jit
def orders(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr, ORDER: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    tl.store(out_ptr + tl.arange(0, R), tl.sum(x, axis=1, reduction_ordering=ORDER))
    tl.store(out_ptr + R + tl.arange(0, C), tl.reduce(x, 0, add, reduction_ordering=ORDER))
    tl.store(out_ptr + R + C, tl.sum(x, reduction_ordering=ORDER))
)";

/// Neighbours first, in fp32 as the kernel does it.
float treeSum(std::vector<float> values) {
  while (values.size() > 1) {
    for (size_t i = 0; i < values.size(); i += 2)
      values[i / 2] = values[i] + values[i + 1];
    values.resize(values.size() / 2);
  }
  return values[0];
}

/// Row sums, column sums and the sum of all, as the kernel stores them.
std::vector<float> treeSums(const std::vector<float> &x, int rows, int columns) {
  std::vector<float> sums;
  for (int r = 0; r < rows; ++r)
    sums.push_back(treeSum({x.begin() + r * columns, x.begin() + (r + 1) * columns}));
  for (int c = 0; c < columns; ++c) {
    std::vector<float> column;
    for (int r = 0; r < rows; ++r)
      column.push_back(x[r * columns + c]);
    sums.push_back(treeSum(column));
  }
  sums.push_back(treeSum(x));
  return sums;
}

constexpr int rows = 64, columns = 128, sumCount = rows + columns + 1;

/// Numbers of very different size: another order of additions has other bits.
std::vector<float> unevenFloats() {
  std::vector<float> x = randomFloats(rows * columns, 71);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::ldexp(x[i], static_cast<int>(i * 7 % 23));
  return x;
}

TEST_F(ReductionOrder, InnerTreeHasOneResultForAllNumbersOfWarps) {
  const std::vector<float> x = unevenFloats(), expected = treeSums(x, rows, columns);
  for (uint32_t warps : {1u, 2u, 4u, 8u, 16u}) {
    Buffer in = put(x), out = zeros(DataType::F32, sumCount);
    ASSERT_OK(run(orders, "orders", {.numWarps = warps},
                  {{in, out}, {{"R", rows}, {"C", columns}, {"ORDER", Argument("inner_tree")}}}));
    expectSame(get<float>(out), expected, fmt::format("{} warps", warps));
  }
}

/// Compiles and runs the kernel with its own compiler and world.
std::vector<float> sumsOn(std::string_view target, Knobs knobs, const Argument &order, uint32_t warps) {
  auto jit = jit::Jit::create(target, knobs);
  auto world = World::local(1, target);
  EXPECT_OK(jit);
  EXPECT_OK(world);
  if (!jit.isOk() || !world.isOk())
    return {};
  auto function = (*jit)->load({"kernel.py", std::string(kernelPrologue) + orders}, "orders");
  EXPECT_OK(function);
  Rank &rank = (*world)->rank(0);
  const std::vector<float> x = unevenFloats();
  auto in = rank.allocate(DataType::F32, x.size(), "x"), out = rank.allocate(DataType::F32, sumCount, "out");
  EXPECT_OK(in->uploadFloats(x));
  EXPECT_OK((*jit)->launch(rank.stream(), *function, {.grid = {1, 1, 1}},
                           {{*in, *out}, {{"R", rows}, {"C", columns}, {"ORDER", order}}}, {.numWarps = warps, .numStages = 3}));
  EXPECT_OK((*world)->synchronize());
  return *out->downloadFloats();
}

TEST_F(ReductionOrder, InnerTreeHasOneResultForAllTargets) {
  const std::vector<float> expected = treeSums(unevenFloats(), rows, columns);
  for (const char *target : {"sim:sm_80", "sim:sm_90a"})
    expectSame(sumsOn(target, {}, Argument("inner_tree"), 4), expected, target);
}

TEST_F(ReductionOrder, TheKnobIsForReductionsThatNameNoOrder) {
  Knobs strict;
  strict.strictReductionOrdering = true;
  const std::vector<float> expected = treeSums(unevenFloats(), rows, columns);
  expectSame(sumsOn("sim:sm_80", strict, runtime::None(), 8), expected, "no order");
  EXPECT_NE(sumsOn("sim:sm_80", strict, Argument("unordered"), 8), expected);
  EXPECT_NE(sumsOn("sim:sm_80", {}, runtime::None(), 8), expected) << "the data do not tell one order from another";
}

TEST_F(ReductionOrder, TheDefaultRepeatsItsBits) {
  std::vector<float> first;
  for (uint64_t seed : {1, 2, 3}) {
    start(1, seeded(seed));
    Buffer in = put(unevenFloats()), out = zeros(DataType::F32, sumCount);
    ASSERT_OK(run(orders, "orders", {.numWarps = 8},
                  {{in, out}, {{"R", rows}, {"C", columns}, {"ORDER", Argument(runtime::None())}}}));
    if (first.empty())
      first = get<float>(out);
    expectSame(get<float>(out), first, fmt::format("seed {}", seed));
  }
}

//===------------------------------------------------------------------------------------------------------------------===//
// Shared memory
//===------------------------------------------------------------------------------------------------------------------===//

/// Bytes of shared memory for `expression` of the tile x.
uint64_t sharedBytesOf(std::string_view expression, const char *type, int tileRows, int tileColumns, uint32_t warps) {
  const std::string text =
      fmt::format("{}\n@triton.jit\ndef kernel(x_ptr, out_ptr):\n"
                  "    x = tl.load(x_ptr + tl.arange(0, {})[:, None] * {} + tl.arange(0, {})[None, :])\n"
                  "    r = {}\n    tl.store(out_ptr + tl.arange(0, r.numel), r.reshape([r.numel]))\n",
                  kernelPrologue, tileRows, tileColumns, tileColumns, expression);
  auto function = sharedJit().load({"kernel.py", text}, "kernel");
  EXPECT_OK(function);
  auto kernel = sharedJit().compile(*function, fmt::format("*{}:16, *{}:16", type, type),
                                     {.numWarps = warps, .numStages = 3});
  EXPECT_OK(kernel);
  return kernel.isOk() ? kernel->artifact().sharedBytes : UINT64_MAX;
}

TEST_F(ReductionOrder, OneValuePerWarpAndResultThroughSharedMemory) {
  const char *all = "tl.sum(x, keep_dims=True)";
  EXPECT_EQ(sharedBytesOf(all, "fp32", 1, 16384, 4), 4u * 4);
  EXPECT_EQ(sharedBytesOf(all, "fp32", 1, 16384, 16), 16u * 4);
  EXPECT_EQ(sharedBytesOf(all, "fp32", 128, 128, 16), 16u * 4);
  EXPECT_EQ(sharedBytesOf(all, "fp32", 1, 16384, 1), 0u);
  // Four warps lie behind each other along the columns.
  EXPECT_EQ(sharedBytesOf("tl.sum(x, axis=0, keep_dims=True)", "fp32", 128, 128, 4), 128u * 4 * 4);
  EXPECT_EQ(sharedBytesOf("tl.sum(x, axis=1, keep_dims=True)", "fp32", 128, 128, 4), 0u);
  EXPECT_EQ(sharedBytesOf("tl.argmax(x, axis=1, keep_dims=True)", "fp32", 1, 16384, 16), 2u * 16 * 4);
}

TEST_F(ReductionOrder, OrderedReductionsAndScansStageTheirTotalsOnly) {
  const char *tree = "tl.sum(x, keep_dims=True, reduction_ordering=tl.ReductionOrdering.INNER_TREE)";
  EXPECT_LE(sharedBytesOf(tree, "fp32", 1, 16384, 16), 1024u);
  EXPECT_LE(sharedBytesOf(tree, "fp32", 1, 16384, 4), 1024u);
  EXPECT_LE(sharedBytesOf("tl.cumsum(x, axis=1)", "fp32", 1, 16384, 16), 1024u);
  EXPECT_LE(sharedBytesOf("tl.cumsum(x, axis=1, reverse=True)", "fp32", 1, 16384, 16), 1024u);
}

} // namespace
} // namespace ditron::e2e
