//===- control_flow_test.cpp - Branches, loops, calls, compile-time evaluation ----------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

class ControlFlow : public KernelTest {
protected:
  /// Runs a kernel whose first parameter is `out_ptr` for i32 results; the further arguments are given.
  std::vector<int32_t> results(std::string_view text, std::string_view kernel, size_t count, std::vector<Argument> rest,
                               std::vector<std::pair<std::string, Argument>> keywords = {}, uint32_t warps = 1) {
    Buffer out = zeros(DataType::I32, count);
    std::vector<Argument> arguments = {out};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    EXPECT_OK(run(text, kernel, {.numWarps = warps}, {arguments, keywords}));
    return get<int32_t>(out);
  }
};

TEST_F(ControlFlow, WhileLoops) {
  const char *text = R"(
@triton.jit
def collatz(out_ptr, n):
    steps = 0
    largest = n
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        largest = max(largest, n)
        steps += 1
    tl.store(out_ptr, steps)
    tl.store(out_ptr + 1, largest)
)";
  expectSame(results(text, "collatz", 2, {27}), {111, 9232});
  expectSame(results(text, "collatz", 2, {2}), {1, 2});
}

TEST_F(ControlFlow, NestedLoopsWithRunTimeBounds) {
  const char *text = R"(
@triton.jit
def nested(out_ptr, n, step, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros([N], tl.int32)
    count = 0
    for a in range(n):
        for b in range(a, n, step):
            total += i * a + b
            count += 1
        for c in range(5, 0, -2):
            total -= c
    tl.store(out_ptr + i, total)
    tl.store(out_ptr + N, count)
)";
  for (auto [n, step] : {std::pair(5, 2), std::pair(0, 3), std::pair(7, 16), std::pair(6, 1)}) {
    std::vector<int32_t> expected(33);
    for (int a = 0; a < n; ++a) {
      for (int b = a; b < n; b += step, ++expected[32])
        for (int i = 0; i < 32; ++i)
          expected[i] += i * a + b;
      for (int c = 5; c > 0; c -= 2)
        for (int i = 0; i < 32; ++i)
          expected[i] -= c;
    }
    expectSame(results(text, "nested", 33, {n, step}, {{"N", 32}}), expected, fmt::format("n={} step={}", n, step));
  }
}

TEST_F(ControlFlow, EarlyReturns) {
  const char *text = R"(
@triton.jit
def early(out_ptr, a, b):
    tl.store(out_ptr, 1)
    if a < 0:
        tl.store(out_ptr + 1, 10)
        return
    c = a + b
    if b > 5:
        if c > 20:
            tl.store(out_ptr + 2, c)
            return
        tl.store(out_ptr + 3, c)
    tl.store(out_ptr + 4, c)
)";
  expectSame(results(text, "early", 5, {-3, 2}), {1, 10, 0, 0, 0});
  expectSame(results(text, "early", 5, {3, 2}), {1, 0, 0, 0, 5});
  expectSame(results(text, "early", 5, {30, 7}), {1, 0, 37, 0, 0});
  expectSame(results(text, "early", 5, {3, 7}), {1, 0, 0, 10, 10});
}

TEST_F(ControlFlow, RunTimeBranchesWithBlocks) {
  const char *text = R"(
@triton.jit
def branches(out_ptr, x_ptr, mode, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if mode == 0:
        y = x + 1
        scale = 2
    elif mode == 2:
        y = tl.where(x > 3, x, -x)
        scale = 3
        x = x * 10
    else:
        y = tl.cumsum(x, 0)
        scale = tl.sum(x, 0)
    tl.store(out_ptr + i, y * scale + x)
)";
  std::vector<int32_t> x = {3, 1, 4, 1, 5, 9, 2, 6};
  Buffer xb = put(x);
  std::vector<std::vector<int32_t>> expected(4, std::vector<int32_t>(8));
  int running = 0;
  for (int i = 0; i < 8; ++i) {
    running += x[i];
    expected[0][i] = (x[i] + 1) * 2 + x[i];
    expected[2][i] = (x[i] > 3 ? x[i] : -x[i]) * 3 + x[i] * 10;
    expected[1][i] = expected[3][i] = running * 31 + x[i];
  }
  for (int mode : {0, 1, 2, 3})
    for (uint32_t warps : {1u, 4u})
      expectSame(results(text, "branches", 8, {xb, mode}, {{"N", 8}}, warps), expected[mode],
                 fmt::format("mode {}", mode));
}

TEST_F(ControlFlow, StaticRangesAndTuples) {
  const char *text = R"(
OFFSETS = tl.constexpr((5, 7, 11))
SCALE = tl.constexpr(3)

@triton.jit
def pick(values, INDEX: tl.constexpr):
    return values[INDEX]

@triton.jit
def unrolled(out_ptr, n, COUNT: tl.constexpr):
    for i in tl.static_range(COUNT):
        if i % 2 == 0:
            tl.store(out_ptr + i, n + i * SCALE)
        else:
            tl.store(out_ptr + i, pick((n, n * 2, n * 3), i % 3))
    for i in tl.static_range(2, -1, -1):
        tl.store(out_ptr + COUNT + i, OFFSETS[i])
    a, b = n, n + 1
    a, b = b, a
    tl.store(out_ptr + COUNT + 3, a * 100 + b)
)";
  expectSame(results(text, "unrolled", 9, {50}, {{"COUNT", 5}}), {50, 100, 56, 50, 62, 5, 7, 11, 5150});
}

TEST_F(ControlFlow, ConstexprBranchesAreNeverVisited) {
  const char *text = R"(
@triton.jit
def static_branches(out_ptr, bias_ptr, MODE: tl.constexpr, WIDTH: tl.constexpr):
    if MODE == "add":
        value = 1
    elif MODE == "never":
        value = undefined_function(out_ptr)
    else:
        value = 2
    if bias_ptr is not None:
        value += tl.load(bias_ptr)
    HALF: tl.constexpr = WIDTH // 2 if WIDTH > 1 else 1
    tl.static_assert(HALF == 8 or MODE != "add")
    tl.store(out_ptr + tl.arange(0, HALF), value + tl.arange(0, HALF))
)";
  std::vector<int32_t> bias = {40};
  Buffer biasBuffer = put(bias, "bias");
  expectSame(results(text, "static_branches", 8, {runtime::None()}, {{"MODE", "add"}, {"WIDTH", 16}}),
             {1, 2, 3, 4, 5, 6, 7, 8});
  expectSame(results(text, "static_branches", 4, {biasBuffer}, {{"MODE", "other"}, {"WIDTH", 8}}), {42, 43, 44, 45});
}

TEST_F(ControlFlow, CallsWithDefaultsKeywordsAndSeveralResults) {
  const char *text = R"(
@triton.jit
def divmod_of(a, b=10, *, offset: tl.constexpr = 0):
    if offset > 0:
        return a // b + offset, a % b
    else:
        return a // b, a % b

@triton.jit
def factorial(n: tl.constexpr):
    if n <= 1:
        return 1
    else:
        return n * factorial(n - 1)

@triton.jit
def apply(fn: tl.constexpr, x):
    return fn(x)

@triton.jit
def square(x):
    return x * x

@triton.jit
def calls(out_ptr, n):
    q, r = divmod_of(n)
    tl.store(out_ptr, q)
    tl.store(out_ptr + 1, r)
    q, r = divmod_of(n, b=7, offset=100)
    tl.store(out_ptr + 2, q)
    tl.store(out_ptr + 3, r)
    tl.store(out_ptr + 4, factorial(5))
    tl.store(out_ptr + 5, apply(square, n))
    tl.store(out_ptr + 6, n if n > 40 else -n)
    big = n > 40 and n < 50
    tl.store(out_ptr + 7, tl.where(big or n == 0, 1, 0))
    tl.store(out_ptr + 8, tl.where(not big, 1, 0))
)";
  expectSame(results(text, "calls", 9, {43}), {4, 3, 106, 1, 120, 43 * 43, 43, 1, 0});
}

/// A value that a loop carries changes its layout inside; the conversions must meet at the loop's edge.
TEST_F(ControlFlow, LoopCarriedBlocksOfTwoShapes) {
  const char *text = R"(
@triton.jit
def carried(out_ptr, x_ptr, steps, S: tl.constexpr):
    i = tl.arange(0, S)
    at = i[:, None] * S + i[None, :]
    x = tl.load(x_ptr + at)
    norm = tl.zeros([S], tl.int32)
    while steps > 0:
        x = tl.trans(x) + i[None, :]
        norm = norm + tl.sum(x, axis=1)
        steps -= 1
    tl.store(out_ptr + at, x)
    tl.store(out_ptr + S * S + i, norm)
)";
  const int s = 16;
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(s * s, 71, -50, 50)), state = x, norm(s);
  for (int step = 0; step < 3; ++step) {
    std::vector<int32_t> next(s * s);
    for (int r = 0; r < s; ++r)
      for (int c = 0; c < s; ++c) {
        next[r * s + c] = state[c * s + r] + c;
        norm[r] += next[r * s + c];
      }
    state = next;
  }
  state.insert(state.end(), norm.begin(), norm.end());
  for (uint32_t warps : {1u, 4u, 8u})
    expectSame(results(text, "carried", s * s + s, {put(x), 3}, {{"S", s}}, warps), state);
}

TEST_F(ControlFlow, HintsDoNotChangeResults) {
  const char *text = R"(
@triton.jit
def hints(out_ptr, x_ptr, n, stride, B: tl.constexpr):
    tl.assume(stride >= 0)
    i = tl.program_id(0) * B + tl.arange(0, B)
    i = tl.max_contiguous(tl.multiple_of(i, B), B)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + tl.multiple_of(stride, 4) * 0 + i, x * 2, mask=i < n)
)";
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(64, 72, -9, 9)), expected(x);
  for (int32_t &each : expected)
    each *= 2;
  Buffer xb = put(x);
  expectSame(results(text, "hints", 64, {xb, 64, 8}, {{"B", 64}}), expected);
}

TEST_F(ControlFlow, BreakAndContinue) {
  const char *text = R"(
@triton.jit
def search(out_ptr, values_ptr, n, wanted):
    found = -1
    steps = 0
    for i in range(n):
        x = tl.load(values_ptr + i)
        if x < 0:
            continue
        steps += 1
        if x == wanted:
            found = i
            break
        doubled = x * 2
        steps += doubled - x - x
    tl.store(out_ptr, found)
    tl.store(out_ptr + 1, steps)
    tl.store(out_ptr + 2, i)

@triton.jit
def nested(out_ptr, n):
    i = 0
    total = 0
    pairs = 0
    while True:
        if i >= n:
            break
        i += 1
        j = 0
        while j < 10:
            j += 1
            if j == 3:
                continue
            if j > i:
                break
            for k in range(j, 0, -1):
                if k % 4 == 0:
                    break
                elif k == 2:
                    continue
                else:
                    total += k
                pairs += 1
            total += j
    tl.store(out_ptr, total)
    tl.store(out_ptr + 1, pairs)

@triton.jit
def unrolled(out_ptr, values_ptr, limit):
    total = 0
    for i in tl.static_range(8):
        if i == 1:
            continue
        x = tl.load(values_ptr + i)
        if x > limit:
            break
        if x == 0:
            continue
        total += x
    tl.store(out_ptr, total)
    tl.store(out_ptr + 1, i)

@triton.jit
def branches(out_ptr, n):
    total = 0
    for i in range(n):
        if i % 2 == 0:
            if i == 6:
                break
            z = 1
        else:
            z = 2
        if i == 3:
            continue
        else:
            w = z + 10
        total += w
    tl.store(out_ptr, total)

@triton.jit
def tiles(out_ptr, values_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros([N], tl.int32)
    state = (acc, 0)
    for block in range(n):
        x = tl.load(values_ptr + block * N + i)
        if tl.max(x) > 100:
            break
        if tl.min(x) < 0:
            continue
        state = (state[0] + x, state[1] + 1)
    tl.store(out_ptr + i, state[0])
    tl.store(out_ptr + N, state[1])
)";
  std::vector<int32_t> values = {5, -1, 8, 0, 3, 9, -4, 7, 2, 1};
  for (int wanted : {3, 7, 100, 5}) {
    int found = -1, steps = 0, last = 0;
    for (int i = 0; i < 10; ++i) {
      last = i;
      if (values[i] < 0)
        continue;
      ++steps;
      if (values[i] == wanted) {
        found = i;
        break;
      }
    }
    expectSame(results(text, "search", 3, {put(values), 10, wanted}), {found, steps, last});
  }
  for (int n : {0, 1, 5, 12}) {
    int total = 0, pairs = 0;
    for (int i = 1; i <= n; ++i)
      for (int j = 1; j <= 10; ++j) {
        if (j == 3)
          continue;
        if (j > i)
          break;
        for (int k = j; k > 0; --k) {
          if (k % 4 == 0)
            break;
          if (k == 2)
            continue;
          total += k;
          ++pairs;
        }
        total += j;
      }
    expectSame(results(text, "nested", 2, {n}), {total, pairs});
  }
  std::vector<int32_t> eight = {4, 50, 0, 6, 20, 3, 1, 2};
  expectSame(results(text, "unrolled", 2, {put(eight), 30}), {36, 7});
  expectSame(results(text, "unrolled", 2, {put(eight), 10}), {10, 4});
  expectSame(results(text, "unrolled", 2, {put(eight), 1}), {0, 0});
  // 11 for even, 12 for odd numbers below the limit, without 3.
  expectSame(results(text, "branches", 1, {100}), {11 + 12 + 11 + 11 + 12});
  expectSame(results(text, "branches", 1, {5}), {11 + 12 + 11 + 11});

  std::vector<int32_t> blocks(5 * 32);
  for (int i = 0; i < 5 * 32; ++i)
    blocks[i] = i % 50;
  blocks[40] = -7;
  blocks[3 * 32 + 9] = 1000;
  std::vector<int32_t> expected(33);
  for (int i = 0; i < 32; ++i)
    expected[i] = blocks[i] + blocks[64 + i];
  expected[32] = 2;
  expectSame(results(text, "tiles", 33, {put(blocks), 5}, {{"N", 32}}), expected);
}

TEST_F(ControlFlow, Aggregates) {
  const char *text = R"(
@triton.aggregate
class State:
    index: tl.tensor
    sums: tl.tensor
    stages: tl.constexpr

    @triton.jit
    def advance(self, x):
        self.index = self.index + 1
        if self.index == self.stages:
            self.index = 0
        self.sums += x * self.index
        return self

    @triton.jit
    def reset_if(self, condition):
        if condition:
            return State(self.index, self.sums * 0, self.stages)
        return self

    @staticmethod
    def create(N: tl.constexpr, stages):
        return State(0, tl.zeros([N], tl.int32), stages)


@triton.jit
def pipeline(out_ptr, n, limit, N: tl.constexpr):
    i = tl.arange(0, N)
    state = State.create(N, 3)
    for k in range(n):
        state = state.advance(i + k)
        state = state.reset_if(k == 4)
        if k == limit:
            break
    tl.store(out_ptr + i, state.sums)
    tl.store(out_ptr + N, state.index)
)";
  for (auto [n, limit] : {std::pair(9, 100), std::pair(9, 6), std::pair(3, 0)}) {
    std::vector<int32_t> expected(33);
    int index = 0;
    for (int k = 0; k < n; ++k) {
      index = (index + 1) % 3;
      for (int i = 0; i < 32; ++i)
        expected[i] = k == 4 ? 0 : expected[i] + (i + k) * index;
      if (k == limit)
        break;
    }
    expected[32] = index;
    expectSame(results(text, "pipeline", 33, {n, limit}, {{"N", 32}}), expected);
  }
}

TEST_F(ControlFlow, EarlyReturnsOfCallees) {
  const char *text = R"(
@triton.jit
def classify(x):
    if x < 0:
        return -1, x
    if x == 0:
        return 0, x
    scaled = x * 10
    if x > 100:
        if x > 1000:
            return 3, scaled + 1
        return 2, scaled
    else:
        scaled += 5
    return 1, scaled

@triton.jit
def kernel(out_ptr, n):
    if n == 12345:
        return
    kind, value = classify(n)
    tl.store(out_ptr, kind)
    tl.store(out_ptr + 1, value)
)";
  expectSame(results(text, "kernel", 2, {-4}), {-1, -4});
  expectSame(results(text, "kernel", 2, {0}), {0, 0});
  expectSame(results(text, "kernel", 2, {7}), {1, 75});
  expectSame(results(text, "kernel", 2, {200}), {2, 2000});
  expectSame(results(text, "kernel", 2, {2000}), {3, 20001});
  expectSame(results(text, "kernel", 2, {12345}), {0, 0});
}

TEST_F(ControlFlow, TupleArguments) {
  const char *text = R"(
from typing import NamedTuple

class View(NamedTuple):
    ptr: tl.tensor
    shape: tuple

    @triton.jit
    def get(self, i):
        return tl.load(self.ptr + i) * self.shape[1]

@triton.jit
def kernel(out_ptr, pair, view: View):
    tl.store(out_ptr, pair[0] + view.get(pair[1]))
    tl.store(out_ptr + 1, view.shape[0])
)";
  // An element that is 1 is a compile-time value, like any argument.
  Buffer values = put<int32_t>({5, 6, 7});
  for (int second : {1, 2})
    expectSame(results(text, "kernel", 2, {},
                       {{"pair.0", 100}, {"pair.1", second}, {"view.ptr", values}, {"view.shape.0", 9}, {"view.shape.1", 10}}),
               {100 + (5 + second) * 10, 9});
}

TEST_F(ControlFlow, BreakCarriesDescriptorsAndAggregates) {
  const char *text = R"(
@triton.aggregate
class Cursor:
    desc: tl.tensor_descriptor
    row: tl.tensor

    @triton.jit
    def next(self, rows):
        self.row += rows
        return self

@triton.jit
def kernel(out_ptr, x_ptr, rows, limit, N: tl.constexpr):
    cursor = Cursor(tl.make_tensor_descriptor(x_ptr, [rows, N], [N, 1], [2, N]), 0)
    total = tl.zeros([2, N], tl.int32)
    while True:
        if cursor.row >= rows:
            break
        tile = cursor.desc.load([cursor.row, 0])
        cursor = cursor.next(2)
        if tl.max(tl.max(tile, 1), 0) > limit:
            continue
        total += tile
    i = tl.arange(0, 2)
    tl.store(out_ptr + i[:, None] * N + tl.arange(0, N)[None, :], total)
    tl.store(out_ptr + 2 * N, cursor.row)
)";
  std::vector<int32_t> values(8 * 16);
  for (int i = 0; i < 8 * 16; ++i)
    values[i] = i % 40;
  values[3 * 16 + 2] = 90;
  for (int limit : {50, 100}) {
    std::vector<int32_t> expected(33);
    for (int row = 0; row < 8; ++row)
      for (int i = 0; i < 16; ++i)
        if (limit == 100 || row / 2 != 1)
          expected[row % 2 * 16 + i] += values[row * 16 + i];
    expected[32] = 8;
    expectSame(results(text, "kernel", 33, {put(values), 8, limit}, {{"N", 16}}), expected);
  }
}

} // namespace
} // namespace ditron::e2e
