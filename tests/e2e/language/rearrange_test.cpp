//===- rearrange_test.cpp - Functions that move elements around, sorting, functions of the user on elements ---------------===//
//
// Everything here is exact. Sizes from fewer elements than threads to more than registers like; 1 to 8 warps.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace ditron::e2e {
namespace {

/// (elements, warps)
using Extent = std::tuple<int, int>;

std::string extentName(const testing::TestParamInfo<Extent> &info) {
  return fmt::format("{}_warps{}", std::get<0>(info.param), std::get<1>(info.param));
}

class Rearrange : public KernelTest, public testing::WithParamInterface<Extent> {
protected:
  int size() const { return std::get<0>(GetParam()); }
  LaunchShape shape() const { return {.numWarps = uint32_t(std::get<1>(GetParam()))}; }
};
INSTANTIATE_TEST_SUITE_P(Extents, Rearrange,
                         testing::Combine(testing::Values(2, 4, 32, 256), testing::Values(1, 2, 4, 8)), extentName);
INSTANTIATE_TEST_SUITE_P(Large, Rearrange, testing::Combine(testing::Values(4096), testing::Values(8)), extentName);

TEST_P(Rearrange, JoinSplitInterleaveCat) {
  const char *text = R"(
@triton.jit
def pairs(x_ptr, y_ptr, joined_ptr, split_ptr, woven_ptr, cat_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    two = tl.arange(0, 2)
    j = tl.join(x, y)
    tl.static_assert(j.shape[0] == N and j.shape[1] == 2)
    tl.store(joined_ptr + i[:, None] * 2 + two[None, :], j)
    a, b = tl.split(tl.join(y, x))
    tl.store(split_ptr + i, a * 3 + b)
    both = tl.arange(0, 2 * N)
    tl.store(woven_ptr + both, tl.interleave(x, y))
    tl.store(cat_ptr + both, tl.cat(x, y))
    # The halves of what one thread loads, without join.
    even, odd = tl.load(x_ptr + i).reshape(N // 2, 2).split()
    h = tl.arange(0, N // 2)
    tl.store(cat_ptr + 2 * N + h, odd - even)
)";
  const int n = size();
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(n, 1, -1000, 1000)),
                       y = convertAll<int32_t>(randomIntegers(n, 2, -1000, 1000));
  std::vector<int32_t> woven, combined(n), cat(x);
  cat.insert(cat.end(), y.begin(), y.end());
  for (int i = 0; i < n; ++i) {
    woven.insert(woven.end(), {x[i], y[i]});
    combined[i] = y[i] * 3 + x[i];
  }
  for (int i = 0; i < n; i += 2)
    cat.push_back(x[i + 1] - x[i]);
  Buffer xb = put(x), yb = put(y), joined = zeros(DataType::I32, 2 * n), halves = zeros(DataType::I32, n),
         wovenBuffer = zeros(DataType::I32, 2 * n), catBuffer = zeros(DataType::I32, 2 * n + n / 2);
  ASSERT_OK(run(text, "pairs", shape(), {{xb, yb, joined, halves, wovenBuffer, catBuffer}, {{"N", n}}}));
  expectSame(get<int32_t>(joined), woven, "join");
  expectSame(get<int32_t>(halves), combined, "split of join");
  expectSame(get<int32_t>(wovenBuffer), woven, "interleave");
  expectSame(get<int32_t>(catBuffer), cat, "cat, and split of a loaded block");
}

TEST_P(Rearrange, FlipAndGather) {
  const char *text = R"(
@triton.jit
def moves(x_ptr, index_ptr, half_ptr, flipped_ptr, gathered_ptr, few_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    h = tl.load(half_ptr + i)
    at = tl.load(index_ptr + i)
    tl.store(flipped_ptr + i, tl.flip(x, 0) + tl.flip(h).to(tl.float32))
    tl.store(gathered_ptr + i, tl.gather(x, at, 0))
    # Another size of the index, and flags.
    few = tl.arange(0, 2)
    tl.store(few_ptr + few, tl.gather(x > 0, N - 1 - few, 0).to(tl.int8))
    tl.store(few_ptr + 2 + tl.arange(0, 2 * N), h.gather(tl.arange(0, 2 * N) // 2, axis=-1).to(tl.int8))
)";
  const int n = size();
  std::vector<float> x = randomFloats(n, 3), half(n), flipped(n), gathered(n);
  std::vector<int64_t> index = randomIntegers(n, 4, 0, n - 1);
  for (int i = 0; i < n; ++i)
    half[i] = i % 64;
  std::vector<int8_t> few = {x[n - 1] > 0, x[n - 2] > 0};
  for (int i = 0; i < n; ++i) {
    flipped[i] = x[n - 1 - i] + half[n - 1 - i];
    gathered[i] = x[index[i]];
  }
  for (int i = 0; i < 2 * n; ++i)
    few.push_back(half[i / 2]);
  Buffer xb = put(x), ib = put(convertAll<int32_t>(index), "index"), hb = putAs(DataType::F16, half),
         fb = zeros(DataType::F32, n), gb = zeros(DataType::F32, n), few8 = zeros(DataType::I8, 2 + 2 * n);
  ASSERT_OK(run(text, "moves", shape(), {{xb, ib, hb, fb, gb, few8}, {{"N", n}}}));
  expectSame(get<float>(fb), flipped, "flip");
  expectSame(get<float>(gb), gathered, "gather");
  expectSame(get<int8_t>(few8), few, "gather of flags and halves");
}

TEST_P(Rearrange, SortTopkHistogram) {
  const char *text = R"(
@triton.jit
def sorting(x_ptr, k_ptr, up_ptr, down_ptr, top_ptr, low_ptr, counts_ptr, N: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    k = tl.load(k_ptr + i)
    tl.store(up_ptr + i, tl.sort(x))
    tl.store(down_ptr + i, k.sort(descending=True))
    tl.store(top_ptr + tl.arange(0, K), tl.topk(x, K))
    low = tl.topk(k, K, descending=False)
    tl.static_assert(low.dtype == tl.int32 or K == N)
    tl.store(low_ptr + tl.arange(0, K), low.to(tl.int32))
    counts = tl.histogram(k.to(tl.int32), 16)
    masked = tl.histogram(k, 16, mask=x > 0)
    tl.store(counts_ptr + tl.arange(0, 16), counts)
    tl.store(counts_ptr + 16 + tl.arange(0, 16), masked)
)";
  const int n = size(), best = std::max(1, n / 4);
  std::vector<float> x = randomFloats(n, 5), up(x);
  std::vector<int8_t> k = convertAll<int8_t>(randomIntegers(n, 6, -20, 20)), down(k);
  std::vector<int32_t> counts(32);
  for (int i = 0; i < n; ++i)
    if (k[i] >= 0 && k[i] < 16)
      ++counts[k[i]], counts[16 + k[i]] += x[i] > 0;
  std::sort(up.begin(), up.end());
  std::sort(down.rbegin(), down.rend());
  std::vector<float> top(up.rbegin(), up.rbegin() + best);
  std::vector<int32_t> low(down.rbegin(), down.rbegin() + best);
  Buffer xb = put(x), kb = put(k), ub = zeros(DataType::F32, n), db = zeros(DataType::I8, n),
         tb = zeros(DataType::F32, best), lb = zeros(DataType::I32, best), cb = zeros(DataType::I32, 32);
  ASSERT_OK(run(text, "sorting", shape(), {{xb, kb, ub, db, tb, lb, cb}, {{"N", n}, {"K", best}}}));
  expectSame(get<float>(ub), up, "sort");
  expectSame(get<int8_t>(db), down, "sort descending");
  expectSame(get<float>(tb), top, "topk");
  expectSame(get<int32_t>(lb), low, "topk ascending");
  expectSame(get<int32_t>(cb), counts, "histogram");
}

TEST_P(Rearrange, MapElementwise) {
  const char *text = R"(
@triton.jit
def collatz(x, limit):
    steps = 0
    while x != 1 and steps < limit:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps, x

@triton.jit
def sign(x):
    if x < 0:
        return -1
    elif x == 0:
        return 0
    else:
        return 1

@triton.jit
def halves(a0, a1, b0, b1):
    return a0 // b0, a1 // b1, a0 % b0, a1 % b1

@triton.jit
def maps(x_ptr, steps_ptr, last_ptr, sign_ptr, div_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    steps, last = tl.map_elementwise(collatz, tl.abs(x) + 1, 20)
    tl.store(steps_ptr + i, steps)
    tl.store(last_ptr + i, last)
    tl.store(sign_ptr + i, tl.map_elementwise(sign, x))
    div, rem = tl.map_elementwise(halves, tl.abs(x), i + 3, pack=2)
    tl.store(div_ptr + i, div * 1000 + rem)
)";
  const int n = size();
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(n, 7, -5, 900)), steps(n), last(n), signs(n), div(n);
  for (int i = 0; i < n; ++i) {
    int32_t value = std::abs(x[i]) + 1;
    while (value != 1 && steps[i] < 20)
      value = value % 2 ? 3 * value + 1 : value / 2, ++steps[i];
    last[i] = value;
    signs[i] = x[i] < 0 ? -1 : x[i] > 0;
    div[i] = std::abs(x[i]) / (i + 3) * 1000 + std::abs(x[i]) % (i + 3);
  }
  Buffer xb = put(x), sb = zeros(DataType::I32, n), lb = zeros(DataType::I32, n), gb = zeros(DataType::I32, n),
         db = zeros(DataType::I32, n);
  ASSERT_OK(run(text, "maps", shape(), {{xb, sb, lb, gb, db}, {{"N", n}}}));
  expectSame(get<int32_t>(sb), steps, "steps");
  expectSame(get<int32_t>(lb), last, "last");
  expectSame(get<int32_t>(gb), signs, "sign");
  expectSame(get<int32_t>(db), div, "quotients and remainders");
}

TEST_P(Rearrange, CombinesWithSideEffects) {
  const char *text = R"(
@triton.jit
def counted(a, p, b, q):
    tl.atomic_add(p, 1)
    return a + b, p

@triton.jit
def numbered(p, x):
    if x > 0:
        place = tl.atomic_add(p, 1, sem="relaxed")
        tl.store(p + 1 + place, x)
    else:
        place = -1
    return place

@triton.jit
def looping(a, b):
    r = a
    for _ in range(3):
        r = r + b if r < b else r
    while r > 1000:
        r -= 7
    return tl.maximum(a, b)

@triton.jit
def effects(x_ptr, out_ptr, count_ptr, taken_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    counters = count_ptr + tl.zeros((N,), tl.int32)
    tl.store(out_ptr, tl.reduce(x, 0, looping))
    tl.store(out_ptr + 1 + i, tl.associative_scan(x, 0, looping))
    total, _ = tl.reduce((x, counters), 0, counted)
    tl.store(out_ptr + 1 + N, total)
    total, _ = tl.associative_scan((x, counters + 1 + i), 0, counted)
    tl.store(out_ptr + 2 + N + i, total)
    place = tl.map_elementwise(numbered, taken_ptr + i * 0, x)
    tl.store(out_ptr + 2 + 2 * N + i, place)
)";
  const int n = size();
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(n, 8, -500, 500)), extremes = {0}, sums(n);
  std::partial_sum(x.begin(), x.end(), sums.begin());
  for (int i = 0; i < n; ++i)
    extremes.push_back(i ? std::max(extremes.back(), x[i]) : x[i]);
  extremes[0] = extremes.back();
  Buffer xb = put(x), out = zeros(DataType::I32, 2 + 3 * n), counts = zeros(DataType::I32, 1 + n, "counts"),
         taken = zeros(DataType::I32, 1 + n, "taken");
  ASSERT_OK(run(text, "effects", shape(), {{xb, out, counts, taken}, {{"N", n}}}));
  std::vector<int32_t> results = get<int32_t>(out);
  expectSame({results.begin(), results.begin() + 1 + n}, extremes, "loops in a combine function");
  EXPECT_EQ(results[1 + n], sums.back());
  expectSame({results.begin() + 2 + n, results.begin() + 2 + 2 * n}, sums, "scan");
  // Each combine happens once: n - 1 of them in a reduction. The scan counts at the left operand of each.
  std::vector<int32_t> counted = get<int32_t>(counts);
  EXPECT_EQ(counted[0], n - 1);
  int levels = 0;
  while (1 << levels < n)
    ++levels;
  EXPECT_EQ(std::accumulate(counted.begin() + 1, counted.end(), 0), levels * n / 2);
  // Every positive element has taken one place, and knows which.
  std::vector<int32_t> places = get<int32_t>(taken);
  int32_t positive = std::count_if(x.begin(), x.end(), [](int32_t value) { return value > 0; });
  EXPECT_EQ(places[0], positive);
  for (int i = 0; i < n; ++i) {
    int32_t place = results[2 + 2 * n + i];
    if (x[i] <= 0)
      EXPECT_EQ(place, -1);
    else if (place >= 0 && place < positive)
      EXPECT_EQ(places[1 + place], x[i]);
    else
      ADD_FAILURE() << "element " << i << " says that it took place " << place << " of " << positive;
  }
}

class RearrangeShapes : public KernelTest {};

TEST_F(RearrangeShapes, AlongOtherDimensions) {
  const char *text = R"(
@triton.jit
def dims(x_ptr, cat0_ptr, cat1_ptr, flip_ptr, gather_ptr, sort_ptr, A: tl.constexpr, B: tl.constexpr):
    a = tl.arange(0, A)
    b = tl.arange(0, B)
    at = a[:, None] * B + b[None, :]
    x = tl.load(x_ptr + at)
    y = x * 2
    a2 = tl.arange(0, 2 * A)
    b2 = tl.arange(0, 2 * B)
    tl.store(cat0_ptr + a2[:, None] * B + b[None, :], tl.cat(x, y, dim=0))
    tl.store(cat1_ptr + a[:, None] * 2 * B + b2[None, :], tl.cat(x, y, dim=-1))
    tl.store(flip_ptr + at, tl.flip(x, 0) * 100 + tl.flip(x, dim=1))
    rows = tl.gather(x, (a[:, None] * 7 + b[None, :]) % A, 0)
    columns = tl.gather(x, (a[:, None] + b[None, :] * 5) % B, 1)
    tl.store(gather_ptr + at, rows * 1000 + columns)
    tl.store(sort_ptr + at, tl.sort(x, dim=1) + tl.sort(x.trans(), descending=True).trans() * 1000)
)";
  for (auto [A, B] : {std::pair(4, 8), {16, 64}, {128, 2}, {64, 64}})
    for (uint32_t warps : {1u, 4u, 8u}) {
      const int n = A * B;
      std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(n, n, 0, 900)), cat0(x), cat1, flip(n), gather(n), sort(n);
      for (int i = 0; i < n; ++i)
        cat0.push_back(x[i] * 2);
      for (int r = 0; r < A; ++r) {
        cat1.insert(cat1.end(), x.begin() + r * B, x.begin() + (r + 1) * B);
        for (int c = 0; c < B; ++c)
          cat1.push_back(x[r * B + c] * 2);
        std::vector<int32_t> row(x.begin() + r * B, x.begin() + (r + 1) * B);
        std::sort(row.begin(), row.end());
        for (int c = 0; c < B; ++c)
          sort[r * B + c] += row[c];
      }
      for (int c = 0; c < B; ++c) {
        std::vector<int32_t> column;
        for (int r = 0; r < A; ++r)
          column.push_back(x[r * B + c]);
        std::sort(column.rbegin(), column.rend());
        for (int r = 0; r < A; ++r)
          sort[r * B + c] += column[r] * 1000;
      }
      for (int r = 0; r < A; ++r)
        for (int c = 0; c < B; ++c) {
          flip[r * B + c] = x[(A - 1 - r) * B + c] * 100 + x[r * B + B - 1 - c];
          gather[r * B + c] = x[(r * 7 + c) % A * B + c] * 1000 + x[r * B + (r + c * 5) % B];
        }
      Buffer xb = put(x), c0 = zeros(DataType::I32, 2 * n), c1 = zeros(DataType::I32, 2 * n), f = zeros(DataType::I32, n),
             g = zeros(DataType::I32, n), s = zeros(DataType::I32, n);
      ASSERT_OK(run(text, "dims", {.numWarps = warps}, {{xb, c0, c1, f, g, s}, {{"A", A}, {"B", B}}}));
      std::string what = fmt::format("{}x{}, {} warps", A, B, warps);
      expectSame(get<int32_t>(c0), cat0, "cat 0 " + what);
      expectSame(get<int32_t>(c1), cat1, "cat 1 " + what);
      expectSame(get<int32_t>(f), flip, "flip " + what);
      expectSame(get<int32_t>(g), gather, "gather " + what);
      expectSame(get<int32_t>(s), sort, "sort " + what);
    }
}

TEST_F(RearrangeShapes, AfterADotInALoopAndOfScalars) {
  const char *text = R"(
@triton.jit
def mixed(x_ptr, out_ptr, scalars_ptr, p_ptr, n, M: tl.constexpr):
    i = tl.arange(0, M)
    at = i[:, None] * M + i[None, :]
    x = tl.load(x_ptr + at).to(tl.float16)
    acc = tl.zeros((M, M), tl.float32)
    for _ in range(n):
        acc = tl.dot(x, x, acc)
        low, high = tl.split(acc.reshape(M, M // 2, 2))
        acc = tl.join(high, low).reshape(M, M)
    product = tl.dot(x, x)
    left, right = tl.split(tl.join(product, acc))
    tl.store(out_ptr + at, left + right)
    a, b = tl.split(tl.join(n, n + 5))
    pair = tl.interleave(a, b)
    tl.static_assert(pair.shape[0] == 2)
    c, d = pair.split()
    tl.store(scalars_ptr, a)
    tl.store(scalars_ptr + 1, b + c * 100 + d * 10000)
    one = tl.full((1,), 7, tl.int32)
    two = tl.cat(one, one + 1)
    tl.store(scalars_ptr + 2 + tl.arange(0, 2), tl.flip(two))
    tl.store(scalars_ptr + 4, one.item())
    # Pointers and flags.
    p, q = tl.split(tl.join(p_ptr + i, p_ptr + M + i))
    tl.store(q, tl.where(tl.split(tl.join(i > 3, i < 2))[1], 1, 2))
    tl.store(p, i)
)";
  const int m = 32, n = 2;
  std::vector<float> x = convertAll<float>(randomIntegers(m * m, 11, -2, 2)), acc(m * m), product(m * m), expected(m * m);
  auto multiply = [&](std::vector<float> &c) {
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < m; ++j)
        for (int k = 0; k < m; ++k)
          c[i * m + j] += x[i * m + k] * x[k * m + j];
  };
  multiply(product);
  for (int turn = 0; turn < n; ++turn) {
    multiply(acc);
    for (int i = 0; i < m * m; i += 2)
      std::swap(acc[i], acc[i + 1]);
  }
  for (int i = 0; i < m * m; ++i)
    expected[i] = product[i] + acc[i];
  std::vector<int32_t> pointed(2 * m);
  for (int i = 0; i < m; ++i)
    pointed[i] = i, pointed[m + i] = i < 2 ? 1 : 2;
  for (uint32_t warps : {1u, 2u, 4u, 8u}) {
    Buffer xb = put(x), out = zeros(DataType::F32, m * m), scalars = zeros(DataType::I32, 5), p = zeros(DataType::I32, 2 * m);
    ASSERT_OK(run(text, "mixed", {.numWarps = warps}, {{xb, out, scalars, p, n}, {{"M", m}}}));
    expectSame(get<float>(out), expected, fmt::format("{} warps", warps));
    expectSame(get<int32_t>(scalars), {2, 7 + 200 + 70000, 8, 7, 7});
    expectSame(get<int32_t>(p), pointed);
  }
}

} // namespace
} // namespace ditron::e2e
