//===- descriptor_product_test.cpp - Products of tiles that descriptors load, of all shapes ---------------------------------===//
//
// Where dots are fed by descriptors a Hopper has rings in shared memory: random shapes, types, transposes, stages and warps against
// exact products of small integers. DESCRIPTOR_PRODUCTS=1000 runs so many instead of a few dozen.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "descriptors/DescriptorKernel.h"

#include <algorithm>
#include <fmt/format.h>
#include <random>

namespace ditron::e2e {
namespace {

using runtime::TensorDescriptor;

/// A matrix in memory, and the tiles that a descriptor cuts it into.
struct Matrix {
  int64_t rows = 0, columns = 0, stride = 0, blockRows = 0, blockColumns = 0;
  bool isOfHost = false;
  std::vector<float> values;
};

struct Product {
  DataType type = DataType::F16, result = DataType::F32;
  int64_t m = 1, n = 1, k = 1, blockM = 64, blockN = 64, blockK = 64;
  bool isATransposed = false, isBTransposed = false; ///< a lies as k x m, b as n x k.
  bool isPersistent = false, isSpecialized = false;
  LaunchShape shape;
  Matrix a, b, c;
};

class Chooser {
public:
  explicit Chooser(uint64_t seed) : random(seed * 104729 + 5) {}

  Product product() {
    using enum DataType;
    Product p;
    p.type = of({F16, F16, BF16, BF16, F32, I8, F8E5});
    p.result = p.type == I8 ? I32 : of({F32, F16});
    p.shape.numWarps = of({4u, 4u, 8u, 2u});
    p.shape.numStages = 1 + below(5);
    p.blockM = 16 << below(5);
    p.blockN = 16 << below(5);
    while (p.blockM * p.blockN > 64 * 32 * int64_t(p.shape.numWarps))
      (p.blockM > p.blockN ? p.blockM : p.blockN) /= 2;
    p.blockK = std::max<int64_t>(16, 32 / sizeOf(p.type)) << below(3);
    // What the smallest of the targets has room for.
    while (p.shape.numStages * (p.blockM + p.blockN) * p.blockK * sizeOf(p.type) > 96 * 1024)
      --p.shape.numStages;
    for (auto [size, limit] :
         {std::pair(&p.m, 2 * p.blockM + 20), std::pair(&p.n, 2 * p.blockN + 20), std::pair(&p.k, 5 * p.blockK)})
      *size = below(3) == 0 ? 1 + below(limit) : (1 + below(limit / known)) * known;
    p.isATransposed = below(3) == 0;
    p.isBTransposed = below(2) == 0;
    p.isPersistent = below(2) == 0;
    p.isSpecialized = below(3) == 0;
    p.a = p.isATransposed ? matrix(p.k, p.m, p.blockK, p.blockM, p.type) : matrix(p.m, p.k, p.blockM, p.blockK, p.type);
    p.b = p.isBTransposed ? matrix(p.n, p.k, p.blockN, p.blockK, p.type) : matrix(p.k, p.n, p.blockK, p.blockN, p.type);
    p.c = matrix(p.m, p.n, p.blockM, p.blockN, p.result);
    return p;
  }

private:
  int64_t below(int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); }
  template <typename T> T of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<int64_t>(values.size()))];
  }

  /// Integers from -2 to 2; NaN or some other number where no descriptor may look.
  Matrix matrix(int64_t rows, int64_t columns, int64_t blockRows, int64_t blockColumns, DataType type) {
    constexpr int64_t unit = known;
    Matrix result = {rows, columns, columns, blockRows, blockColumns, below(3) == 0, {}};
    if (below(3) != 0) // what the copy engine can move
      result.stride = (columns + unit - 1) / unit * unit + below(2) * unit;
    result.values.assign(rows * result.stride + unit, isFloat(type) && type != DataType::F8E5 ? NAN : 7.0f);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        result.values[row * result.stride + column] = static_cast<float>(below(5) - 2);
    return result;
  }

  static constexpr int64_t known = 16; ///< What the compiler is told of arguments: that they are multiples of this.
  std::mt19937_64 random;
};

std::string textOf(const Product &p) {
  auto descriptor = [](std::string_view name, const Matrix &matrix, std::string_view rows, std::string_view columns) {
    return matrix.isOfHost ? std::string()
                           : fmt::format("    {0} = tl.make_tensor_descriptor({0}, [{1}, {2}], [s{0}, 1], [{3}, {4}])\n", name,
                                         rows, columns, matrix.blockRows, matrix.blockColumns);
  };
  std::string text = "\n@triton.jit\ndef kernel(a, b, c, M, N, K, sa, sb, sc):\n";
  text += descriptor("a", p.a, p.isATransposed ? "K" : "M", p.isATransposed ? "M" : "K");
  text += descriptor("b", p.b, p.isBTransposed ? "N" : "K", p.isBTransposed ? "K" : "N");
  text += descriptor("c", p.c, "M", "N");
  const std::string options = p.isSpecialized ? ", warp_specialize=True" : "";
  text += fmt::format("    columns = tl.cdiv(N, {})\n", p.blockN);
  text += p.isPersistent
              ? fmt::format("    for tile in tl.range(tl.program_id(0), tl.cdiv(M, {}) * columns, tl.num_programs(0){}):\n",
                            p.blockM, options)
              : "    tile = tl.program_id(0)\n    if True:\n";
  text += fmt::format("        row = tile // columns * {}\n        column = tile % columns * {}\n", p.blockM, p.blockN);
  text += fmt::format("        acc = tl.zeros(({}, {}), dtype=tl.{})\n", p.blockM, p.blockN,
                      p.type == DataType::I8 ? "int32" : "float32");
  text += fmt::format("        for k in tl.range(0, tl.cdiv(K, {}){}):\n", p.blockK, p.isPersistent ? "" : options);
  text += fmt::format("            x = a.load([{}]){}\n",
                      p.isATransposed ? fmt::format("k * {}, row", p.blockK) : fmt::format("row, k * {}", p.blockK),
                      p.isATransposed ? ".T" : "");
  text += fmt::format("            y = b.load([{}]){}\n",
                      p.isBTransposed ? fmt::format("column, k * {}", p.blockK) : fmt::format("k * {}, column", p.blockK),
                      p.isBTransposed ? ".T" : "");
  text += "            acc = tl.dot(x, y, acc)\n        c.store([row, column], acc.to(c.dtype))\n";
  return text;
}

/// c with the product in it.
std::vector<float> expectedOf(const Product &p) {
  std::vector<float> result = p.c.values;
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t n = 0; n < p.n; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum += p.a.values[p.isATransposed ? k * p.a.stride + m : m * p.a.stride + k] *
               p.b.values[p.isBTransposed ? n * p.b.stride + k : k * p.b.stride + n];
      result[m * p.c.stride + n] = sum;
    }
  return result;
}

class RandomDescriptorProducts : public KernelTest, public testing::WithParamInterface<int> {
protected:
  Argument argumentFor(const Matrix &matrix, const Buffer &memory) {
    if (matrix.isOfHost)
      return TensorDescriptor{
          memory.pointer(), {matrix.rows, matrix.columns}, {matrix.stride, 1}, {matrix.blockRows, matrix.blockColumns}, false};
    return memory;
  }
};

TEST_P(RandomDescriptorProducts, areExact) {
  Product p = Chooser(GetParam()).product();
  const std::string text = textOf(p);
  const int64_t tiles = (p.m + p.blockM - 1) / p.blockM * ((p.n + p.blockN - 1) / p.blockN);
  p.shape.grid = {static_cast<uint32_t>(p.isPersistent ? (tiles + 1) / 2 : tiles), 1, 1};
  SCOPED_TRACE(fmt::format("{}x{}x{} of {}, strides {} {} {}, {} warps, {} stages, host {} {} {}{}", p.m, p.n, p.k,
                           toString(p.type), p.a.stride, p.b.stride, p.c.stride, p.shape.numWarps, p.shape.numStages,
                           p.a.isOfHost, p.b.isOfHost, p.c.isOfHost, text));
  Buffer a = putAs(p.type, p.a.values, "a"), b = putAs(p.type, p.b.values, "b"), c = putAs(p.result, p.c.values, "c");
  ASSERT_OK(
      run(text, "kernel", p.shape,
          {{argumentFor(p.a, a), argumentFor(p.b, b), argumentFor(p.c, c), p.m, p.n, p.k, p.a.stride, p.b.stride, p.c.stride},
           {}}));
  expectSame(getFloats(c), expectedOf(p), "product");
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDescriptorProducts, testing::Range(0, casesWanted("DESCRIPTOR_PRODUCTS", 40)));

} // namespace
} // namespace ditron::e2e
