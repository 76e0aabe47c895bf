//===- descriptor_test.cpp - Tensor descriptors -------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ditron::e2e {
namespace {

using runtime::TensorDescriptor;

//===--------------------------------------------------------------------------------------------------------------------===//
// Tiles at any offsets of tensors of one to five dimensions
//===--------------------------------------------------------------------------------------------------------------------===//

struct Copy {
  DataType type = DataType::F32;
  std::vector<int64_t> sizes, block, offsets;
  int64_t padding = 0; ///< Elements between rows.
  bool fillNan = false;
};

void PrintTo(const Copy &c, std::ostream *stream) {
  *stream << fmt::format("{} [{}] tiles [{}] at [{}], padding {}{}", toString(c.type), fmt::join(c.sizes, ","),
                         fmt::join(c.block, ","), fmt::join(c.offsets, ","), c.padding, c.fillNan ? ", nan" : "");
}

/// x is read through a descriptor that the kernel makes, y written through one of the host; z gets the tile.
std::string copyKernel(size_t rank) {
  std::string sizes, strides, offsets, parameters;
  for (size_t dim = 0; dim < rank; ++dim) {
    parameters += fmt::format("n{0}, o{0}, ", dim);
    sizes += fmt::format("n{}, ", dim);
    offsets += fmt::format("o{}, ", dim);
    strides += dim + 1 == rank ? "1" : fmt::format("s{}, ", dim);
    if (dim + 1 < rank)
      parameters += fmt::format("s{}, ", dim);
  }
  return fmt::format(R"(
@triton.jit
def copy(x, y, z, {0}BLOCK: tl.constexpr, LENGTH: tl.constexpr, PADDING: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [{1}], [{2}], BLOCK, padding_option=PADDING)
    tile = source.load([{3}])
    y.store([{3}], tile)
    tl.store(z + tl.arange(0, LENGTH), tl.reshape(tile, [LENGTH]))
)",
                     parameters, sizes, strides, offsets);
}

class DescriptorCopy : public KernelTest, public testing::WithParamInterface<Copy> {};

TEST_P(DescriptorCopy, movesWhatIsInside) {
  const Copy &c = GetParam();
  const size_t rank = c.sizes.size();
  std::vector<int64_t> strides(rank, 1);
  for (size_t dim = rank; dim-- > 1;)
    strides[dim - 1] = strides[dim] * c.sizes[dim] + (dim + 1 == rank ? c.padding : 0);
  int64_t length = 1, count = strides[0] * c.sizes[0];
  for (int64_t size : c.block)
    length *= size;
  const std::vector<float> values = convertAll<float>(randomIntegers(count, 7, 1, 100));
  std::vector<float> tile(length, c.fillNan ? NAN : 0.0f), written(count, -1);
  const bool isSigned = isFloat(c.type) || isSignedInteger(c.type);
  if (!isSigned)
    std::fill(written.begin(), written.end(), 101);
  Buffer x = putAs(c.type, values, "x"), y = putAs(c.type, written, "y"), z = zeros(c.type, length, "z");
  for (int64_t index = 0; index < length; ++index) {
    int64_t rest = index, address = 0;
    bool isInside = true;
    for (size_t dim = rank; dim-- > 0;) {
      const int64_t at = c.offsets[dim] + rest % c.block[dim];
      rest /= c.block[dim];
      isInside &= at >= 0 && at < c.sizes[dim];
      address += at * strides[dim];
    }
    if (isInside)
      tile[index] = written[address] = values[address];
  }
  jit::CallArguments arguments;
  TensorDescriptor target = {y.pointer(), c.sizes, strides, c.block, false};
  arguments.positional = {x, target, z};
  std::string block;
  for (size_t dim = 0; dim < rank; ++dim) {
    arguments.keywords.emplace_back(fmt::format("n{}", dim), c.sizes[dim]);
    arguments.keywords.emplace_back(fmt::format("o{}", dim), c.offsets[dim]);
    if (dim + 1 < rank)
      arguments.keywords.emplace_back(fmt::format("s{}", dim), strides[dim]);
    block += fmt::format("{}, ", c.block[dim]);
  }
  arguments.keywords.emplace_back("LENGTH", length);
  arguments.keywords.emplace_back("PADDING", c.fillNan ? "nan" : "zero");
  std::string text = copyKernel(rank);
  // A tuple cannot be passed from here: it stands in the text.
  text.replace(text.find("BLOCK: tl.constexpr, "), std::string("BLOCK: tl.constexpr, ").size(), "");
  text.replace(text.find("BLOCK, padding"), 5, fmt::format("[{}]", block));
  ASSERT_OK(run(text, "copy", {}, arguments));
  expectClose(convertAll<double>(getFloats(z)), convertAll<double>(tile), 0, 0, "tile");
  expectClose(convertAll<double>(getFloats(y)), convertAll<double>(written), 0, 0, "written");
}

INSTANTIATE_TEST_SUITE_P(Types, DescriptorCopy,
                         testing::Values(Copy{DataType::I8, {40, 48}, {16, 32}, {32, 32}},
                                         Copy{DataType::U8, {40, 48}, {16, 32}, {32, 32}},
                                         Copy{DataType::I16, {40, 48}, {16, 32}, {32, 32}},
                                         Copy{DataType::U16, {40, 48}, {16, 32}, {32, 32}},
                                         Copy{DataType::I32, {40, 48}, {16, 32}, {32, 32}},
                                         Copy{DataType::U32, {40, 48}, {16, 32}, {32, 32}},
                                         Copy{DataType::F16, {40, 48}, {16, 32}, {32, 32}},
                                         Copy{DataType::BF16, {40, 48}, {16, 32}, {32, 32}},
                                         Copy{DataType::F32, {40, 48}, {16, 32}, {32, 32}},
                                         Copy{DataType::F64, {40, 48}, {16, 32}, {32, 32}}));
INSTANTIATE_TEST_SUITE_P(Dimensions, DescriptorCopy,
                         testing::Values(Copy{DataType::F32, {100}, {64}, {64}},
                                         Copy{DataType::F16, {3, 20, 40}, {1, 16, 16}, {2, 16, 32}},
                                         Copy{DataType::F32, {3, 2, 12, 40}, {2, 1, 8, 16}, {2, 1, 8, 32}},
                                         Copy{DataType::I8, {2, 3, 2, 5, 40}, {1, 2, 1, 4, 32}, {1, 2, 1, 4, 32}}));
INSTANTIATE_TEST_SUITE_P(Edges, DescriptorCopy,
                         testing::Values(Copy{DataType::F16, {40, 37}, {16, 32}, {32, 32}},
                                         Copy{DataType::F16, {40, 37}, {16, 32}, {32, 32}, 11},
                                         Copy{DataType::F16, {40, 48}, {16, 32}, {-3, -5}},
                                         Copy{DataType::F16, {40, 48}, {16, 32}, {-16, 0}},
                                         Copy{DataType::F16, {40, 48}, {16, 32}, {0, 48}},
                                         Copy{DataType::F16, {5, 7}, {16, 32}, {-3, -5}},
                                         Copy{DataType::F32, {40, 37}, {16, 32}, {35, 33}, 3, true},
                                         Copy{DataType::BF16, {40, 48}, {16, 32}, {-1, 40}, 0, true},
                                         Copy{DataType::F64, {1, 1}, {16, 32}, {0, 0}, 0, true}));

//===--------------------------------------------------------------------------------------------------------------------===//
// Matrix products
//===--------------------------------------------------------------------------------------------------------------------===//

const char *const matmul = R"(
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
           BLOCK_K: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [stride_a, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [stride_b, 1], [BLOCK_N, BLOCK_K])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [stride_c, 1], [BLOCK_M, BLOCK_N])
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        acc = tl.dot(a.load([row, k * BLOCK_K]), b.load([column, k * BLOCK_K]).T, acc)
    c.store([row, column], acc.to(c.dtype))

@triton.jit
def host(a, b, c, K):
    row = tl.program_id(0) * a.block_shape[0]
    column = tl.program_id(1) * b.block_shape[1]
    acc = tl.zeros(c.block_shape, dtype=tl.float32)
    for k in range(0, K, a.block_shape[1]):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    c.store([row, column], acc.to(c.dtype))

@triton.jit
def persistent(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
               BLOCK_K: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [stride_a, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [stride_b, 1], [BLOCK_N, BLOCK_K])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [stride_c, 1], [BLOCK_M, BLOCK_N])
    columns = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * columns, tl.num_programs(0), warp_specialize=True):
        row = tile // columns * BLOCK_M
        column = tile % columns * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BLOCK_K)):
            acc = tl.dot(a.load([row, k * BLOCK_K]), b.load([column, k * BLOCK_K]).T, acc)
        c.store([row, column], acc.to(c.dtype))
)";

struct Product {
  DataType type = DataType::F16;
  int64_t m = 64, n = 64, k = 64, blockM = 32, blockN = 32, blockK = 32;
  int64_t padding = 0; ///< Elements between rows of a and b.
  uint32_t warps = 4, stages = 3;
};

void PrintTo(const Product &p, std::ostream *stream) {
  *stream << fmt::format("{} {}x{}x{}, blocks {}x{}x{}, padding {}, {} warps, {} stages", toString(p.type), p.m, p.n, p.k,
                         p.blockM, p.blockN, p.blockK, p.padding, p.warps, p.stages);
}

class DescriptorMatmul : public KernelTest, public testing::WithParamInterface<Product> {
protected:
  /// a: m x k, b: n x k (or k x n when `plain`), both with rows of `padding` more elements, which are NaN.
  void prepare(bool plain) {
    const Product &p = GetParam();
    strideA = p.k + p.padding;
    strideB = (plain ? p.n : p.k) + p.padding;
    std::vector<float> av = randomFloats(p.m * strideA, 1, -1, 1, p.type),
                       bv = randomFloats((plain ? p.k : p.n) * strideB, 2, -1, 1, p.type);
    if (p.type == DataType::F32) // so that it does not matter how the hardware rounds to tf32
      for (std::vector<float> *values : {&av, &bv})
        for (float &value : *values)
          value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xFFFFE000u);
    expected.assign(p.m * p.n, 0);
    for (int64_t m = 0; m < p.m; ++m)
      for (int64_t n = 0; n < p.n; ++n)
        for (int64_t k = 0; k < p.k; ++k)
          expected[m * p.n + n] += double(av[m * strideA + k]) * bv[plain ? k * strideB + n : n * strideB + k];
    for (size_t i = 0; i < av.size(); ++i)
      if (int64_t(i) % strideA >= p.k)
        av[i] = NAN;
    for (size_t i = 0; i < bv.size(); ++i)
      if (int64_t(i) % strideB >= (plain ? p.n : p.k))
        bv[i] = NAN;
    a = putAs(p.type, av, "a");
    b = putAs(p.type, bv, "b");
    c = zeros(p.type, p.m * p.n, "c");
  }
  jit::CallArguments kernelMade() {
    const Product &p = GetParam();
    return {{a, b, c, p.m, p.n, p.k, strideA, strideB, p.n},
            {{"BLOCK_M", p.blockM}, {"BLOCK_N", p.blockN}, {"BLOCK_K", p.blockK}}};
  }
  LaunchShape shape() const {
    const Product &p = GetParam();
    return {.grid = {uint32_t((p.m + p.blockM - 1) / p.blockM), uint32_t((p.n + p.blockN - 1) / p.blockN), 1},
            .numWarps = p.warps,
            .numStages = p.stages};
  }
  void check() {
    const double relative = GetParam().type == DataType::F32 ? 1e-4 : GetParam().type == DataType::BF16 ? 1e-2 : 2e-3;
    expectClose(convertAll<double>(getFloats(c)), expected, relative, relative * 4, "product");
  }

  int64_t strideA = 0, strideB = 0;
  Buffer a, b, c;
  std::vector<double> expected;
};

TEST_P(DescriptorMatmul, ofTheKernel) {
  prepare(false);
  ASSERT_OK(run(matmul, "matmul", shape(), kernelMade()));
  check();
}

TEST_P(DescriptorMatmul, ofTheHost) {
  const Product &p = GetParam();
  prepare(true);
  const TensorDescriptor da = {a.pointer(), {p.m, p.k}, {strideA, 1}, {p.blockM, p.blockK}, false};
  const TensorDescriptor db = {b.pointer(), {p.k, p.n}, {strideB, 1}, {p.blockK, p.blockN}, false};
  const TensorDescriptor dc = {c.pointer(), {p.m, p.n}, {}, {p.blockM, p.blockN}, false};
  ASSERT_OK(run(matmul, "host", shape(), {{da, db, dc, p.k}, {}}));
  check();
}

TEST_P(DescriptorMatmul, persistent) {
  prepare(false);
  LaunchShape blocks = shape();
  blocks.grid = {3, 1, 1};
  ASSERT_OK(run(matmul, "persistent", blocks, kernelMade()));
  check();
}

INSTANTIATE_TEST_SUITE_P(Shapes, DescriptorMatmul,
                         testing::Values(Product{}, Product{DataType::F16, 100, 72, 40},
                                         Product{DataType::F16, 130, 70, 50, 64, 64, 32, 6},
                                         Product{DataType::F16, 33, 65, 70, 64, 64, 64, 2},
                                         Product{DataType::F16, 1, 8, 8}, Product{DataType::F16, 31, 17, 13},
                                         Product{DataType::BF16, 100, 72, 40}, Product{DataType::F32, 70, 44, 36},
                                         Product{DataType::BF16, 200, 136, 200, 128, 128, 64, 0, 8, 3},
                                         Product{DataType::BF16, 200, 300, 136, 128, 256, 64, 0, 8, 3},
                                         Product{DataType::F16, 70, 40, 100, 64, 32, 64, 0, 4, 1},
                                         // Several tiles per block, and more steps than a ring has slots.
                                         Product{DataType::F16, 260, 264, 520, 128, 128, 64, 0, 8, 3},
                                         Product{DataType::F16, 130, 141, 70, 128, 128, 64, 2, 8, 3},
                                         Product{DataType::F32, 130, 140, 200, 128, 128, 32, 0, 8, 3},
                                         Product{DataType::BF16, 100, 104, 320, 64, 64, 64, 0, 4, 4},
                                         Product{DataType::BF16, 300, 256, 456, 256, 128, 64, 0, 8, 3}));

//===--------------------------------------------------------------------------------------------------------------------===//
// Held by variables, passed, waited for
//===--------------------------------------------------------------------------------------------------------------------===//

class Descriptors : public KernelTest {};

TEST_F(Descriptors, areExchangedByLoopsAndChosenByBranches) {
  const char *const text = R"(
@triton.jit
def first(pair):
    return pair[0]

@triton.jit
def kernel(p, q, n, flag):
    a = tl.make_tensor_descriptor(p, [n, 16], [16, 1], [1, 16])
    b = tl.make_tensor_descriptor(q, [n, 16], [16, 1], [1, 16])
    for i in range(n):
        a.store([i, 0], tl.full((1, 16), 1, tl.int32) * i)
        a, b = b, a
    if flag:
        c = a
    else:
        c = first((b, a))
    c.store([0, 0], c.load([0, 0]) + 100)
)";
  constexpr int64_t n = 5;
  Buffer p = put(std::vector<int32_t>(n * 16, -1), "p"), q = put(std::vector<int32_t>(n * 16, -1), "q");
  ASSERT_OK(run(text, "kernel", {}, {{p, q, n, true}, {}}));
  const std::vector<int32_t> inP = get<int32_t>(p), inQ = get<int32_t>(q);
  for (int64_t row = 0; row < n; ++row) {
    // After five exchanges `a` is the tensor at q, whose first row was not written.
    EXPECT_EQ(inP[row * 16], row % 2 == 0 ? row : -1) << row;
    EXPECT_EQ(inQ[row * 16 + 15], row == 0 ? 99 : row % 2 == 0 ? -1 : row) << row;
  }
}

TEST_F(Descriptors, seeWhatAPeerWroteAfterAWait) {
  REQUIRE_RANKS(2);
  start(2, seeded(3, 1));
  const char *const text = R"(
@triton.jit
def kernel(data, ready, out, n):
    peer = 1 - dl.rank()
    mine = tl.make_tensor_descriptor(data, [n, 32], [32, 1], [8, 32])
    theirs = tl.make_tensor_descriptor(dl.symm_at(data, peer), [n, 32], [32, 1], [8, 32])
    result = tl.make_tensor_descriptor(out, [n, 32], [32, 1], [8, 32])
    for row in range(0, n, 8):
        theirs.store([row, 0], tl.full((8, 32), 1.0, tl.float32) * (row + dl.rank()))
    dl.notify(ready, peer, signal=1, sig_op="set", comm_scope="intra_node")
    mine = dl.consume_token(mine, dl.wait(ready, 1, "sys", "acquire", waitValue=1))
    for row in range(0, n, 8):
        result.store([row, 0], mine.load([row, 0]) * 2)
)";
  constexpr int64_t n = 20;
  SymmetricBuffer data = symmetric(DataType::F32, n * 32, "data"), ready = symmetric(DataType::I32, 4, "ready");
  std::vector<Buffer> outs;
  for (uint32_t r = 0; r < 2; ++r)
    outs.push_back(zeros(DataType::F32, n * 32, "out", r));
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_OK(launch(text, "kernel", {}, {{data.on(r), ready.on(r), outs[r], n}, {}}, r));
  ASSERT_OK(world().synchronize());
  for (uint32_t r = 0; r < 2; ++r) {
    const std::vector<float> values = getFloats(outs[r]);
    for (int64_t row = 0; row < n; ++row)
      EXPECT_EQ(values[row * 32 + 5], 2.0f * float(row / 8 * 8 + (1 - r))) << "rank " << r << " row " << row;
  }
}

TEST_F(Descriptors, areCapturedByGraphs) {
  // On targets with tensor copies the graph holds tensor maps.
  constexpr int64_t m = 128, n = 128, k = 64;
  const std::vector<float> av = randomFloats(m * k, 1, -1, 1, DataType::F16);
  Buffer a = putAs(DataType::F16, av, "a"), b = zeros(DataType::F16, n * k, "b"), c = zeros(DataType::F16, m * n, "c");
  const TensorDescriptor da = {a.pointer(), {m, k}, {}, {128, 64}}, db = {b.pointer(), {k, n}, {}, {64, 128}},
                         dc = {c.pointer(), {m, n}, {}, {128, 128}};
  const LaunchShape shape = {.numWarps = 8};
  ASSERT_OK(run(matmul, "host", shape, {{da, db, dc, k}, {}})); // compiled and loaded before the capture
  ASSERT_OK(rank().stream().beginCapture());
  ASSERT_OK(launch(matmul, "host", shape, {{da, db, dc, k}, {}}));
  auto graph = rank().stream().endCapture();
  ASSERT_OK(graph);
  for (int replay = 1; replay <= 3; ++replay) {
    // b selects the column `replay` of a.
    std::vector<float> bv(k * n, 0);
    for (int64_t column = 0; column < n; ++column)
      bv[replay * n + column] = 1;
    ASSERT_OK(b.uploadFloats(bv));
    ASSERT_OK(rank().stream().launch(*graph));
    ASSERT_OK(world().synchronize());
    const std::vector<float> product = getFloats(c);
    for (int64_t row = 0; row < m; ++row)
      EXPECT_EQ(product[row * n + row], av[row * k + replay]) << "replay " << replay << " row " << row;
  }
}

TEST_F(Descriptors, ofTheHostAreChecked) {
  const char *const text = R"(
@triton.jit
def kernel(d):
    d.store([0, 0], d.load([0, 0]) + 1)
)";
  Buffer x = zeros(DataType::F32, 64 * 64, "x");
  auto failure = [&](TensorDescriptor descriptor) {
    return run(text, "kernel", {}, {{std::move(descriptor)}, {}}).message();
  };
  using testing::HasSubstr;
  EXPECT_THAT(failure({x.pointer(), {64, 64}, {64, 2}, {8, 8}}), HasSubstr("the last stride is 2; only 1 is accepted"));
  EXPECT_THAT(failure({x.pointer(), {64, 64}, {64, 1}, {8, 12}}), HasSubstr("a size of the block is 12"));
  EXPECT_THAT(failure({x.pointer(), {64, 64}, {64, 1}, {8, 2}}),
              HasSubstr("the block has 8 bytes in the last dimension; at least 16 are needed"));
  EXPECT_THAT(failure({x.pointer(), {64, 64}, {64, 1}, {8}}), HasSubstr("shape has 2 dimensions"));
  EXPECT_THAT(failure({x.pointer(), {64, -1}, {64, 1}, {8, 8}}), HasSubstr("a size is -1"));
  EXPECT_THAT(failure({x.pointer(), {64, 64}, {int64_t(1) << 40, 1}, {8, 8}}), HasSubstr("a tile spans more than 2^31"));
  EXPECT_THAT(failure({x.pointer().as(DataType::I32), {64, 64}, {64, 1}, {8, 8}, true}), HasSubstr("have no NaN"));
  EXPECT_EQ(failure({x.pointer(), {64, 64}, {}, {8, 8}}), "");
  EXPECT_EQ(get<float>(x)[7], 1.0f);
  EXPECT_EQ(get<float>(x)[8], 0.0f);
}

} // namespace
} // namespace ditron::e2e
