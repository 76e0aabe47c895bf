//===- shape_test.cpp - Transposing, reshaping, broadcasting ----------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

#include <numeric>

namespace ditron::e2e {
namespace {

/// (type, rows, columns, warps)
using Case = std::tuple<DataType, int, int, int>;

std::string caseName(const testing::TestParamInfo<Case> &info) {
  auto [type, rows, columns, warps] = info.param;
  return fmt::format("{}_{}x{}_warps{}", toString(type), rows, columns, warps);
}

std::vector<float> counting(int count) {
  std::vector<float> values(count);
  for (int i = 0; i < count; ++i)
    values[i] = static_cast<float>(i % 251); // exact in every type of the tests
  return values;
}

class Shapes : public KernelTest, public testing::WithParamInterface<Case> {};

TEST_P(Shapes, TransposeReshapeAndBack) {
  const char *text = R"(
@triton.jit
def shapes(x_ptr, t_ptr, flat_ptr, wide_ptr, R: tl.constexpr, C: tl.constexpr):
    rows = tl.arange(0, R)
    columns = tl.arange(0, C)
    x = tl.load(x_ptr + rows[:, None] * C + columns[None, :])
    t = tl.trans(x)
    tl.static_assert(t.shape[0] == C and t.shape[1] == R)
    tl.store(t_ptr + columns[:, None] * R + rows[None, :], t)
    tl.store(flat_ptr + tl.arange(0, R * C), tl.reshape(x.T, [R * C]))
    wide = tl.reshape(t, (R // 2, 2 * C))
    tl.store(wide_ptr + tl.arange(0, R // 2)[:, None] * 2 * C + tl.arange(0, 2 * C)[None, :], wide)
)";
  auto [type, rows, columns, warps] = GetParam();
  const int count = rows * columns;
  std::vector<float> x = counting(count), transposed(count);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      transposed[c * rows + r] = x[r * columns + c];
  Buffer xb = putAs(type, x), t = zeros(type, count, "t"), flat = zeros(type, count, "flat"),
         wide = zeros(type, count, "wide");
  ASSERT_OK(run(text, "shapes", {.numWarps = uint32_t(warps)}, {{xb, t, flat, wide}, {{"R", rows}, {"C", columns}}}));
  expectSame(getFloats(t), transposed, "trans");
  expectSame(getFloats(flat), transposed, "reshape to one dimension");
  expectSame(getFloats(wide), transposed, "reshape to other rows");
}
INSTANTIATE_TEST_SUITE_P(Tiles, Shapes,
                         testing::Combine(testing::Values(DataType::F32, DataType::F16, DataType::U8, DataType::I64),
                                          testing::Values(2, 32), testing::Values(4, 64), testing::Values(1, 4)),
                         caseName);

class ShapeOperations : public KernelTest {};

/// A copy that reads rows and writes columns, so that the layouts of the two sides disagree and must be converted.
TEST_F(ShapeOperations, TransposedCopiesOfOddMatrices) {
  const char *text = R"(
@triton.jit
def transpose(x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :], mask=(rows[:, None] < M) & (columns[None, :] < N))
    tl.store(out_ptr + columns[:, None] * M + rows[None, :], tl.trans(x), mask=(columns[:, None] < N) & (rows[None, :] < M))
)";
  const int m = 97, n = 131;
  std::vector<float> x = randomFloats(m * n, 41), expected(m * n);
  for (int r = 0; r < m; ++r)
    for (int c = 0; c < n; ++c)
      expected[c * m + r] = x[r * n + c];
  for (uint32_t warps : {1u, 4u, 8u}) {
    Buffer xb = put(x), out = zeros(DataType::F32, m * n);
    ASSERT_OK(run(text, "transpose", {.grid = {(m + 31) / 32, (n + 63) / 64, 1}, .numWarps = warps},
                  {{xb, out, m, n}, {{"BLOCK_M", 32}, {"BLOCK_N", 64}}}));
    expectSame(get<float>(out), expected);
  }
}

TEST_F(ShapeOperations, BroadcastsAndDimensions) {
  const char *text = R"(
@triton.jit
def broadcasts(a_ptr, b_ptr, out_ptr, grid_ptr, R: tl.constexpr, C: tl.constexpr):
    rows = tl.arange(0, R)
    columns = tl.arange(0, C)
    a = tl.load(a_ptr + rows)
    b = tl.load(b_ptr + columns)
    at = tl.expand_dims(rows, 1) * C + tl.expand_dims(columns, 0)
    tl.store(out_ptr + at, a[:, None] * b[None, :])
    left, right = tl.broadcast(a[:, None], b[None, :])
    tl.static_assert(left.shape[0] == R and left.shape[1] == C)
    tl.store(out_ptr + R * C + at, left - right)
    tl.store(out_ptr + 2 * R * C + at, tl.broadcast_to(a[:, None], (R, C)) + b)
    tl.store(out_ptr + 3 * R * C + at, tl.full((R, C), 2.5, tl.float32) + tl.zeros((R, 1), tl.float32))
    cube = a[:, None, None] + b[None, :, None] * tl.arange(0, 2)[None, None, :]
    tl.static_assert(cube.shape[2] == 2)
    tl.store(grid_ptr + at[:, :, None] * 2 + tl.arange(0, 2), cube)
)";
  const int rows = 16, columns = 32, count = rows * columns;
  std::vector<float> a = randomFloats(rows, 42), b = randomFloats(columns, 43), expected(4 * count), cube(2 * count);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) {
      const int at = r * columns + c;
      expected[at] = a[r] * b[c];
      expected[count + at] = a[r] - b[c];
      expected[2 * count + at] = a[r] + b[c];
      expected[3 * count + at] = 2.5f;
      cube[2 * at] = a[r];
      cube[2 * at + 1] = a[r] + b[c];
    }
  for (uint32_t warps : {1u, 4u}) {
    Buffer ab = put(a, "a"), bb = put(b, "b"), out = zeros(DataType::F32, 4 * count),
           cubeOut = zeros(DataType::F32, 2 * count, "cube");
    ASSERT_OK(run(text, "broadcasts", {.numWarps = warps}, {{ab, bb, out, cubeOut}, {{"R", rows}, {"C", columns}}}));
    expectSame(get<float>(out), expected);
    expectSame(get<float>(cubeOut), cube);
  }
}

TEST_F(ShapeOperations, PermuteThreeDimensions) {
  const char *text = R"(
@triton.jit
def permute(x_ptr, out_ptr):
    a = tl.arange(0, 4)
    b = tl.arange(0, 8)
    c = tl.arange(0, 16)
    x = tl.load(x_ptr + a[:, None, None] * 128 + b[None, :, None] * 16 + c[None, None, :])
    y = tl.permute(x, (2, 0, 1))
    tl.static_assert(y.shape[0] == 16 and y.shape[1] == 4 and y.shape[2] == 8)
    tl.store(out_ptr + c[:, None, None] * 32 + a[None, :, None] * 8 + b[None, None, :], y)
)";
  std::vector<float> x = counting(512), expected(512);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 8; ++b)
      for (int c = 0; c < 16; ++c)
        expected[c * 32 + a * 8 + b] = x[a * 128 + b * 16 + c];
  Buffer xb = put(x), out = zeros(DataType::F32, 512);
  ASSERT_OK(run(text, "permute", {}, {{xb, out}, {}}));
  expectSame(get<float>(out), expected);
}

/// More than the threads hold, and fewer elements than threads: replication must neither lose nor repeat a store.
TEST_F(ShapeOperations, FewElementsOnManyThreads) {
  const char *text = R"(
@triton.jit
def few(x_ptr, out_ptr, count_ptr, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.trans(tl.trans(x) + 1))
    tl.atomic_add(count_ptr + at, 1)
)";
  for (auto [rows, columns] : {std::pair(1, 1), std::pair(2, 2), std::pair(1, 16), std::pair(4, 1)}) {
    std::vector<float> x = counting(rows * columns), expected(x);
    for (float &each : expected)
      each += 1;
    Buffer xb = put(x), out = zeros(DataType::F32, x.size()), count = zeros(DataType::I32, x.size(), "count");
    ASSERT_OK(run(text, "few", {.numWarps = 8}, {{xb, out, count}, {{"R", rows}, {"C", columns}}}));
    expectSame(get<float>(out), expected);
    expectSame(get<int32_t>(count), std::vector<int32_t>(x.size(), 1));
  }
}

/// Conversions that are undefined for an element must not touch the elements beside it (found by random_kernels_test: the
/// transpose packs several narrow elements into one word).
TEST_F(ShapeOperations, UndefinedConversionsStayWithTheirElement) {
  const char *text = R"(
@triton.jit
def convert(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    rows = tl.arange(0, R)
    columns = tl.arange(0, C)
    x = tl.load(x_ptr + rows[:, None] * C + columns[None, :])
    tl.store(out_ptr + columns[:, None] * R + rows[None, :], tl.trans(x.to(out_ptr.dtype.element_ty)))
)";
  const int rows = 32, columns = 16;
  std::vector<float> x = randomFloats(rows * columns, 44, -300000, 300000);
  for (int i = 0; i < rows * columns; i += 2)
    x[i] = static_cast<float>(i % 100) + 0.5f;
  for (DataType type : {DataType::U16, DataType::I16, DataType::U8, DataType::I8}) {
    Buffer xb = put(x), out = zeros(type, x.size());
    ASSERT_OK(run(text, "convert", {.numWarps = 1}, {{xb, out}, {{"R", rows}, {"C", columns}}}));
    std::vector<float> actual = getFloats(out);
    for (int i = 0; i < rows * columns; i += 2)
      EXPECT_EQ(actual[i % columns * rows + i / columns], i % 100) << toString(type) << ", element " << i;
  }
}

} // namespace
} // namespace ditron::e2e
