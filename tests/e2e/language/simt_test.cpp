//===- simt_test.cpp - Elements of tiles in regions of single threads ---------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

class Simt : public KernelTest, public testing::WithParamInterface<uint32_t> {
protected:
  int threads() const { return int(GetParam()) * 32; }
};
INSTANTIATE_TEST_SUITE_P(Warps, Simt, testing::Values(1, 4), testing::PrintToStringParamName());

TEST_P(Simt, ElementsOfAVector) {
  const char *text = R"(
import triton_dist.language as dl

@triton.jit
def scale(x_ptr, out_ptr, before_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = x
    with dl.simt_exec_region() as (thread, count):
        for k in range(thread, N, count):
            x[k] = x[k] * 2 + k
    tl.store(out_ptr + i, x)
    tl.store(before_ptr + i, y)
)";
  constexpr int n = 256;
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(n, 3, -100, 100)), expected(n);
  for (int i = 0; i < n; ++i)
    expected[i] = x[i] * 2 + i;
  Buffer xb = put(x), out = zeros(DataType::I32, n), before = zeros(DataType::I32, n, "before");
  ASSERT_OK(run(text, "scale", {.numWarps = GetParam()}, {{xb, out, before}, {{"N", n}}}));
  expectSame(get<int32_t>(out), expected);
  expectSame(get<int32_t>(before), x, "another name for the tile keeps its value");
}

/// Threads read what others have written, after a barrier; the tile is transposed in place.
TEST_P(Simt, MatrixWithBarrier) {
  const char *text = R"(
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import __syncthreads

@triton.jit
def transpose(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    place = i[:, None] * N + i[None, :]
    x = tl.load(x_ptr + place)
    t = tl.zeros((N, N), dtype=tl.float16)
    with dl.simt_exec_region() as (thread, count):
        for k in range(thread, N * N, count):
            row = k // N
            column = k % N
            t[column, row] = x[row, column] + 1
        __syncthreads()
        for k in range(thread, N, count):
            t[k, N - 1 - k] = t[k, k]
    tl.store(out_ptr + place, t.to(tl.float32))
    tl.store(out_ptr + N * N, tl.sum(tl.sum(t.to(tl.float32), 1), 0))
)";
  constexpr int n = 16;
  std::vector<float> x = randomFloats(n * n, 7, -4, 4, DataType::F16), expected(n * n + 1);
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c)
      expected[c * n + r] = float(_Float16(x[r * n + c] + 1));
  for (int k = 0; k < n; ++k)
    expected[k * n + n - 1 - k] = expected[k * n + k];
  Buffer xb = put(x), out = zeros(DataType::F32, n * n + 1);
  ASSERT_OK(run(text, "transpose", {.numWarps = GetParam()}, {{xb, out}, {{"N", n}}}));
  std::vector<float> actual = get<float>(out);
  double sum = 0;
  for (int i = 0; i < n * n; ++i)
    sum += expected[i];
  EXPECT_NEAR(actual.back(), sum, 1e-2);
  expected.pop_back();
  actual.pop_back();
  expectSame(actual, expected);
}

/// A region within a loop, another one behind it, and tile operations in between; a tile that is only read.
TEST_P(Simt, SeveralRegionsAndLoops) {
  const char *text = R"(
import triton_dist.language as dl

@triton.jit
def element(t, k):
    return t[k]

@triton.jit
def rounds(x_ptr, table_ptr, out_ptr, steps, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    table = tl.load(table_ptr + i)
    for s in range(0, steps):
        with dl.simt_exec_region() as (thread, count):
            for k in range(thread, N, count):
                if table[k] % 2 == s % 2:
                    x[k] += element(table, k)
        x = x + s
    with dl.simt_exec_region() as (thread, count):
        if thread == 0:
            x[3] = -1
    tl.store(out_ptr + i, x)
)";
  constexpr int n = 128, steps = 5;
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(n, 5, -100, 100));
  std::vector<int32_t> table = convertAll<int32_t>(randomIntegers(n, 6, 0, 50)), expected = x;
  for (int s = 0; s < steps; ++s)
    for (int k = 0; k < n; ++k)
      expected[k] += (table[k] % 2 == s % 2 ? table[k] : 0) + s;
  expected[3] = -1;
  Buffer xb = put(x), tb = put(table, "table"), out = zeros(DataType::I32, n);
  ASSERT_OK(run(text, "rounds", {.numWarps = GetParam()}, {{xb, tb, out, steps}, {{"N", n}}}));
  expectSame(get<int32_t>(out), expected);
}

TEST_P(Simt, VectorsOfEachThread) {
  const char *text = R"(
import triton_dist.language as dl
from triton_dist.language.extra.language_extra import ld_vector, pack, st_vector, tid, unpack

@triton.jit
def vectors(x_ptr, out_ptr, half_ptr, rounds):
    thread = tid(0)
    total = dl.zeros_vector(4, tl.float32)
    for r in range(0, rounds):
        v = ld_vector(x_ptr + 4 * thread, 4)
        total = total + v * r - dl.make_vector([v[3], v[2], v[1], v[0]])
    sum = 0.0
    for element in total:
        sum += element
    st_vector(out_ptr + 4 * thread, dl.make_vector([total[0], total[-1], sum, len(total[1:]) * 1.0]))
    # Two halves in one word and back.
    word = pack(total[0:2].to(tl.float16), tl.uint32)
    halves = unpack(word, tl.float16)
    st_vector(half_ptr + 2 * thread, halves.recast(tl.uint16))
)";
  const int n = threads(), rounds = 3;
  std::vector<float> x = randomFloats(4 * n, 11, -2, 2), expected;
  std::vector<uint16_t> halves;
  for (int t = 0; t < n; ++t) {
    const float *v = &x[4 * t];
    float total[4] = {0, 0, 0, 0}, sum = 0;
    for (int r = 0; r < rounds; ++r)
      for (int e = 0; e < 4; ++e)
        total[e] = total[e] + v[e] * float(r) - v[3 - e];
    for (float element : total)
      sum += element;
    expected.insert(expected.end(), {total[0], total[3], sum, 3});
    for (int e = 0; e < 2; ++e)
      halves.push_back(std::bit_cast<uint16_t>(_Float16(total[e])));
  }
  Buffer xb = put(x), out = zeros(DataType::F32, 4 * n), half = zeros(DataType::U16, 2 * n, "half");
  ASSERT_OK(run(text, "vectors", {.numWarps = GetParam()}, {{xb, out, half, rounds}, {}}));
  expectClose(get<float>(out), convertAll<double>(expected), 1e-5, 1e-5);
  expectSame(get<uint16_t>(half), halves);
}

TEST_P(Simt, WideAccesses) {
  const char *text = R"(
from triton_dist.language.extra.cuda.language_extra import (load_v2_b64, load_v4_s32, load_v4_u32, pack_b32_v2, st_v2_u32,
                                                            st_v4_b32, tid)

@triton.jit
def wide(x_ptr, out_ptr):
    thread = tid(0)
    a, b, c, d = load_v4_u32(x_ptr + 4 * thread)
    e, f = load_v2_b64(x_ptr + 4 * thread)
    st_v4_b32(out_ptr + 8 * thread, d, c, b, a)
    st_v2_u32(out_ptr + 8 * thread + 4, (e >> 32).to(tl.uint32), f.to(tl.uint32))
    packed = pack_b32_v2(a, b)
    st_v2_u32(out_ptr + 8 * thread + 6, packed.to(tl.uint32), (packed >> 32).to(tl.uint32))
)";
  const int n = threads();
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(4 * n, 13, INT32_MIN, INT32_MAX)), expected;
  for (int t = 0; t < n; ++t) {
    const int32_t *v = &x[4 * t];
    expected.insert(expected.end(), {v[3], v[2], v[1], v[0], v[1], v[2], v[0], v[1]});
  }
  Buffer xb = put(x), out = zeros(DataType::I32, 8 * n);
  ASSERT_OK(run(text, "wide", {.numWarps = GetParam()}, {{xb, out}, {}}));
  expectSame(get<int32_t>(out), expected);
}

TEST_F(KernelTest, SimtRegionsRefuseWholeTilesAndOthersVariables) {
  const char *text = R"(
import triton_dist.language as dl

@triton.jit
def whole(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 64))
    with dl.simt_exec_region() as (thread, count):
        x[thread] = 1
        tl.store(x_ptr + tl.arange(0, 64), x)

@triton.jit
def change(t):
    t[0] = 1

@triton.jit
def callee(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 64))
    with dl.simt_exec_region() as (thread, count):
        change(x)

@triton.jit
def bounds(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 64))
    with dl.simt_exec_region() as (thread, count):
        x[64] = 1
)";
  Buffer x = zeros(DataType::I32, 64);
  for (auto [kernel, message] : {std::pair{"whole", "'x' is used as a whole in the simt_exec_region that assigns its elements"},
                                 std::pair{"callee", "elements can be assigned in the function that opened the simt_exec_region only"},
                                 std::pair{"bounds", "index 64 is outside of an extent of 64"}}) {
    Status status = run(text, kernel, {}, {{x}, {}});
    EXPECT_THAT(status.message(), testing::HasSubstr(message));
  }
}

} // namespace
} // namespace ditron::e2e
