//===- descriptor_access_test.cpp - Atomics, gather, scatter and ranks of tensor descriptors ------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

class DescriptorAccess : public KernelTest {};

std::string atomicText(std::string_view kind) {
  return fmt::format(R"(
@triton.jit
def update(x_ptr, v_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN])
    v = tl.make_tensor_descriptor(v_ptr, [M, N], [N, 1], [BM, BN])
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    x.atomic_{}(at, v.load(at))
)",
                     kind);
}

TEST_F(DescriptorAccess, AtomicsOnIntegers) {
  const int m = 18, n = 48;
  const std::vector<uint32_t> x = convertAll<uint32_t>(randomIntegers(m * n, 101, 0, 1 << 30)),
                              v = convertAll<uint32_t>(randomIntegers(m * n, 102, 0, 1 << 30));
  for (std::string_view kind : {"add", "min", "max", "and", "or", "xor"}) {
    Buffer xb = put(x, "x"), vb = put(v, "v");
    ASSERT_OK(run(atomicText(kind), "update", {.grid = {2, 2, 1}}, {{xb, vb, m, n}, {{"BM", 16}, {"BN", 32}}}));
    std::vector<uint32_t> expected(m * n);
    for (int i = 0; i < m * n; ++i)
      expected[i] = kind == "add"   ? x[i] + v[i]
                    : kind == "min" ? std::min(x[i], v[i])
                    : kind == "max" ? std::max(x[i], v[i])
                    : kind == "and" ? x[i] & v[i]
                    : kind == "or"  ? x[i] | v[i]
                                    : x[i] ^ v[i];
    expectSame(get<uint32_t>(xb), expected, kind);
  }
}

TEST_F(DescriptorAccess, AtomicsOnFloats) {
  const int m = 18, n = 48;
  for (DataType type : {DataType::F16, DataType::BF16, DataType::F32})
    for (std::string_view kind : {"add", "min", "max"}) {
      if (type == DataType::F32 && kind != "add")
        continue;
      const std::vector<float> x = randomFloats(m * n, 103, -1, 1, type), v = randomFloats(m * n, 104, -1, 1, type);
      Buffer xb = putAs(type, x, "x"), vb = putAs(type, v, "v");
      ASSERT_OK(run(atomicText(kind), "update", {.grid = {2, 2, 1}}, {{xb, vb, m, n}, {{"BM", 16}, {"BN", 32}}}));
      std::vector<double> expected(m * n);
      for (int i = 0; i < m * n; ++i)
        expected[i] = kind == "add" ? x[i] + v[i] : kind == "min" ? std::min(x[i], v[i]) : std::max(x[i], v[i]);
      expectClose(getFloats(xb), expected, kind == "add" ? 1e-2 : 0, kind == "add" ? 1e-2 : 0,
                  fmt::format("{} {}", toString(type), kind));
    }
}

TEST_F(DescriptorAccess, GatherAndScatter) {
  const char *text = R"(
@triton.jit
def rows(x_ptr, index_ptr, out_ptr, back_ptr, M, N, y):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [1, 32])
    index = tl.load(index_ptr + tl.arange(0, 16))
    v = x.gather(index, y)
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :], v)
    back = tl.make_tensor_descriptor(back_ptr, [M, N], [N, 1], [1, 32])
    back.scatter(v * 2, index, y)
)";
  const int m = 40, n = 80;
  const std::vector<float> x = randomFloats(m * n, 105);
  const std::vector<int32_t> index = {3, 0, 39, 40, -1, 7, 8, 9, 22, 21, 20, 1, 2, 30, 38, 11};
  for (int y : {0, 16, 60}) {
    Buffer xb = put(x, "x"), ib = put(index, "index"), out = zeros(DataType::F32, 16 * 32), back = zeros(DataType::F32, m * n);
    ASSERT_OK(run(text, "rows", {}, {{xb, ib, out, back, m, n, y}, {}}));
    std::vector<float> expected(16 * 32), written(m * n);
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 32; ++j)
        if (index[i] >= 0 && index[i] < m && y + j < n) {
          expected[i * 32 + j] = x[index[i] * n + y + j];
          written[index[i] * n + y + j] = 2 * x[index[i] * n + y + j];
        }
    expectSame(get<float>(out), expected, fmt::format("gather at {}", y));
    expectSame(get<float>(back), written, fmt::format("scatter at {}", y));
  }
}

/// Five dimensions, and a load that reshapes leading dimensions of one away.
TEST_F(DescriptorAccess, RanksAndReduction) {
  const char *text = R"(
@triton.jit
def ranks(x_ptr, out_ptr, flat_ptr, A, B, C, D, E, z):
    strides = [B * C * D * E, C * D * E, D * E, E, 1]
    x = tl.make_tensor_descriptor(x_ptr, [A, B, C, D, E], strides, [1, 2, 4, 2, 8])
    y = tl.make_tensor_descriptor(out_ptr, x.shape, strides, x.block_shape)
    y.store([z, 0, 1, 0, 3], x.load([z, 0, 1, 0, 3]))
    rows = tl.make_tensor_descriptor(x_ptr, [A, B, C, D, E], strides, [1, 1, 1, 4, 8], padding_option="nan")
    tile = tl.load_tensor_descriptor(rows, [1, 2, z, 0, 2]).reshape(4, 8)
    tl.store(flat_ptr + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :], tile)
)";
  const int a = 2, b = 3, c = 4, d = 3, e = 9, count = a * b * c * d * e, z = 1;
  const std::vector<float> x = randomFloats(count, 106);
  Buffer xb = put(x, "x"), out = zeros(DataType::F32, count), flat = zeros(DataType::F32, 32);
  ASSERT_OK(run(text, "ranks", {}, {{xb, out, flat, a, b, c, d, e, z}, {}}));
  auto at = [&](int i, int j, int k, int l, int m) { return (((i * b + j) * c + k) * d + l) * e + m; };
  std::vector<float> expected(count), tile(32, NAN);
  for (int j = 0; j < 2; ++j)
    for (int k = 1; k < std::min(5, c); ++k)
      for (int l = 0; l < 2; ++l)
        for (int m = 3; m < e; ++m)
          expected[at(z, j, k, l, m)] = x[at(z, j, k, l, m)];
  for (int l = 0; l < d; ++l)
    for (int m = 2; m < e; ++m)
      tile[l * 8 + m - 2] = x[at(1, 2, z, l, m)];
  expectSame(get<float>(out), expected);
  expectSame(get<float>(flat), tile);
}

} // namespace
} // namespace ditron::e2e
