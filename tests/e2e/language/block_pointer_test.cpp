//===- block_pointer_test.cpp - Block pointers -----------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

class BlockPointer : public KernelTest {};

TEST_F(BlockPointer, MatmulWithBoundaries) {
  const char *text = R"(
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr):
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    a = tl.make_block_ptr(a_ptr, (M, K), (stride_am, stride_ak), (row, 0), (BM, BK), (1, 0))
    b = tl.make_block_ptr(base=b_ptr, shape=(K, N), strides=(stride_bk, stride_bn), offsets=(0, column),
                          block_shape=(BK, BN), order=(1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(b, boundary_check=(0, 1))
        acc = tl.dot(x, y, acc)
        a = tl.advance(a, (0, BK))
        b = b.advance([BK, 0])
    c = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (row, column), (BM, BN), (1, 0))
    tl.store(c, acc.to(c.dtype.element_ty), boundary_check=(0, 1))
)";
  const int m = 77, n = 45;
  for (bool transposed : {false, true})
    for (int k : {32, 130}) {
      std::vector<float> a = randomFloats(m * k, 91, -1, 1, DataType::F16), b = randomFloats(k * n, 92, -1, 1, DataType::F16);
      std::vector<double> expected(m * n);
      const int bk = transposed ? 1 : n, bn = transposed ? k : 1;
      for (int i = 0; i < m; ++i)
        for (int l = 0; l < k; ++l)
          for (int j = 0; j < n; ++j)
            expected[i * n + j] += double(a[i * k + l]) * b[l * bk + j * bn];
      Buffer ab = putAs(DataType::F16, a, "a"), bb = putAs(DataType::F16, b, "b"), c = zeros(DataType::F32, m * n, "c");
      ASSERT_OK(run(text, "matmul", {.grid = {2, 2, 1}},
                    {{ab, bb, c, m, n, k, k, 1, bk, bn}, {{"BM", 64}, {"BN", 32}, {"BK", 32}}}));
      expectClose(get<float>(c), expected, 1e-4, 1e-4, fmt::format("K={} {}", k, transposed));
    }
}

/// Dimensions that are checked and those that are not, both ends of a tensor, and what stands in place of what is missing.
TEST_F(BlockPointer, PaddingAndBothEnds) {
  const char *text = R"(
@triton.jit
def padded(x_ptr, out_ptr, ROWS, COLUMNS, row, column, PADDING: tl.constexpr):
    p = tl.make_block_ptr(x_ptr, (ROWS, COLUMNS), (COLUMNS, 1), (row, column), (8, 16), (0, 1))
    v = tl.load(p, boundary_check=(0, 1), padding_option=PADDING)
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out_ptr + at, v)
    # What is written outside is dropped: the tensor's own elements change sign.
    tl.store(p, -v, boundary_check=(1, 0))
)";
  const int rows = 9, columns = 20;
  const std::vector<float> x = randomFloats(rows * columns, 93);
  for (const char *padding : {"zero", "nan", ""})
    for (auto [row, column] : {std::pair(0, 0), std::pair(4, 12), std::pair(-3, -5), std::pair(8, 19), std::pair(100, 0)}) {
      Buffer xb = put(x, "x"), out = zeros(DataType::F32, 128);
      ASSERT_OK(run(text, "padded", {}, {{xb, out, rows, columns, row, column}, {{"PADDING", padding}}}));
      std::vector<float> expected(128, std::string_view(padding) == "nan" ? NAN : 0.0f), after = x;
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 16; ++j)
          if (int r = row + i, c = column + j; r >= 0 && r < rows && c >= 0 && c < columns) {
            expected[i * 16 + j] = x[r * columns + c];
            after[r * columns + c] = -x[r * columns + c];
          }
      expectSame(get<float>(out), expected, fmt::format("'{}' at {}, {}", padding, row, column));
      expectSame(get<float>(xb), after, "written");
    }
}

/// Block pointers in tuples, functions, branches and a loop in a loop; one and three dimensions.
TEST_F(BlockPointer, AreValues) {
  const char *text = R"(
@triton.jit
def step(pair, by):
    a, b = pair
    return tl.advance(a, (by,)), b

@triton.jit
def values(x_ptr, out_ptr, n):
    pair = (tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (16,), (0,)), 7)
    acc = tl.zeros((16,), tl.int32)
    for i in range(2):
        for j in range(2):
            acc += tl.load(pair[0], boundary_check=(0,))
            pair = step(pair, 16)
    p = pair[0]
    if n > 1000:
        p = tl.advance(p, (16,))
    else:
        p = tl.advance(p, (-64,))
    acc += tl.load(p, boundary_check=(0,))
    tl.store(out_ptr + tl.arange(0, 16), acc)
    cube = tl.make_block_ptr(x_ptr, (4, 4, 4), (16, 4, 1), (1, 0, 2), (2, 4, 2), (2, 1, 0))
    tl.static_assert(cube.dtype == tl.pointer_type(tl.int32))
    tl.store(out_ptr + 16 + tl.arange(0, 16), tl.load(cube).reshape(16))
)";
  std::vector<int32_t> x(64);
  for (int i = 0; i < 64; ++i)
    x[i] = i * i;
  Buffer xb = put(x, "x"), out = zeros(DataType::I32, 32);
  ASSERT_OK(run(text, "values", {}, {{xb, out, 60}, {}}));
  std::vector<int32_t> expected(32);
  for (int i = 0; i < 16; ++i) {
    for (int block = 0; block < 4; ++block)
      expected[i] += block * 16 + i < 60 ? x[block * 16 + i] : 0;
    expected[i] += x[i];
    expected[16 + i] = x[(1 + i / 8) * 16 + i / 2 % 4 * 4 + 2 + i % 2];
  }
  expectSame(get<int32_t>(out), expected);
}

} // namespace
} // namespace ditron::e2e
