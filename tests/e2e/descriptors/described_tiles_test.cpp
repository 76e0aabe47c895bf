//===- described_tiles_test.cpp - Kernels with plain pointers, whose tiles a producer fetches -------------------------------===//
//
// On a Hopper dgpu-describe-tiles makes tiles of descriptors of tiles of pointers, where that is the same: results must be those of the kernel as it
// is written, bit for bit, and those of a plain reference. With tiles that begin at other places in each program, in several heads and batches.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include "ditron/support/TargetName.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

class DescribedTilesOfDots : public KernelTest {
protected:
  /// Runs a kernel with the pass, or without. Tells how many tensor maps it has.
  size_t launchWith(bool describes, std::string_view text, const LaunchShape &shape,
                    const jit::CallArguments &arguments) {
    jit::Jit *jit = &sharedJit();
    if (!describes) {
      static const auto *plain = [] {
        Knobs knobs;
        knobs.describeTiles = false;
        knobs.boundWaits = !isSimulated();
        return new Expected<std::unique_ptr<jit::Jit>>(jit::Jit::create(targetUnderTest(), knobs));
      }();
      EXPECT_OK(*plain);
      jit = plain->value().get();
    }
    auto function = jit->load({"kernel.py", std::string(kernelPrologue) + std::string(text)}, "kernel");
    EXPECT_OK(function);
    const jit::LaunchOptions options = {.numWarps = shape.numWarps, .numStages = shape.numStages};
    auto variant = jit->specialise(*function, arguments, options);
    EXPECT_OK(variant);
    EXPECT_OK(jit->launch(rank().stream(), *function, {.grid = shape.grid}, arguments, options));
    EXPECT_OK(world().synchronize());
    return variant.isOk() ? variant->kernel.artifact().tensorMaps.size() : 0;
  }

  static bool hasTensorCopies() { return ditron::hasTensorCopies(sharedJit().target()); }
};

//===----------------------------------------------------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------------------------------------------------===//

/// Heads of batches, which lie apart by more than their size. ROWS_OF_A: A lies row by row, and so on.
constexpr std::string_view product = R"(
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, heads, depth, batch_stride, head_stride, sa, sb, sc, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
           ROWS_OF_A: tl.constexpr, ROWS_OF_B: tl.constexpr, MOVES: tl.constexpr):
    head = tl.program_id(2)
    place = head // heads * batch_stride + head % heads * head_stride
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    a = a_ptr + place + (rows[:, None] * sa + inner[None, :] if ROWS_OF_A else rows[:, None] + inner[None, :] * sa)
    b = b_ptr + place + (inner[:, None] * sb + columns[None, :] if ROWS_OF_B else inner[:, None] + columns[None, :] * sb)
    step_a = K if ROWS_OF_A else K * sa
    step_b = K * sb if ROWS_OF_B else K
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, depth, K):
        if MOVES:
            acc = tl.dot(tl.load(a), tl.load(b), acc)
            a += step_a
            b += step_b
        else:
            x = tl.load(a + k * (1 if ROWS_OF_A else sa))
            y = tl.load(b + k * (sb if ROWS_OF_B else 1))
            acc = tl.dot(x, y, acc)
    c = c_ptr + place + rows[:, None] * sc + columns[None, :]
    tl.store(c, acc)
)";

struct ProductCase {
  DataType type = DataType::F16;
  bool hasRowsOfA = true, hasRowsOfB = true, moves = true;
  int64_t blockM = 64, blockN = 64, blockK = 64;
  uint32_t warps = 4, stages = 3;
};
void PrintTo(const ProductCase &p, std::ostream *stream) {
  *stream << fmt::format("{} {} {} {}, {}x{}x{}, {} warps, {} stages", toString(p.type),
                         p.hasRowsOfA ? "rows" : "columns", p.hasRowsOfB ? "rows" : "columns",
                         p.moves ? "moves" : "counts", p.blockM, p.blockN, p.blockK, p.warps, p.stages);
}

class DescribedDotProducts : public DescribedTilesOfDots, public testing::WithParamInterface<ProductCase> {};

TEST_P(DescribedDotProducts, AreThoseOfPointers) {
  const ProductCase &p = GetParam();
  const int64_t m = 2 * p.blockM, n = 2 * p.blockN, k = 3 * p.blockK, heads = 2, batches = 2;
  const int64_t side = std::max({m, n, k}) + 16; // the stride of all three, in a square of the size of a head
  const int64_t headStride = side * side, batchStride = heads * headStride + 48;
  const size_t size = batches * batchStride;
  const std::vector<float> a = convertAll<float>(randomIntegers(size, 11, -3, 3)),
                           b = convertAll<float>(randomIntegers(size, 12, -3, 3));
  std::vector<float> expected(size, NAN);
  for (int64_t head = 0; head < heads * batches; ++head) {
    const int64_t place = head / heads * batchStride + head % heads * headStride;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += a[place + (p.hasRowsOfA ? i * side + l : l * side + i)] *
                 b[place + (p.hasRowsOfB ? l * side + j : j * side + l)];
        expected[place + i * side + j] = sum;
      }
  }
  const Buffer ab = putAs(p.type, a, "a"), bb = putAs(p.type, b, "b");
  for (bool describes : {true, false}) {
    Buffer c = putAs(DataType::F32, std::vector<float>(size, NAN), "c");
    const size_t maps = launchWith(
        describes, product, {.grid = {2, 2, uint32_t(heads * batches)}, .numWarps = p.warps, .numStages = p.stages},
        {{ab, bb, c, heads, k, batchStride, headStride, side, side, side},
         {{"M", p.blockM},
          {"N", p.blockN},
          {"K", p.blockK},
          {"ROWS_OF_A", p.hasRowsOfA},
          {"ROWS_OF_B", p.hasRowsOfB},
          {"MOVES", p.moves}}});
    // One byte along anything but K is not for warpgroups to read.
    const bool canBeFetched = sizeOf(p.type) == 2 || (p.hasRowsOfA && !p.hasRowsOfB);
    EXPECT_EQ(maps, describes && hasTensorCopies() && canBeFetched ? 2 : 0);
    expectSame(getFloats(c), expected, describes ? "described" : "pointers");
  }
}

std::vector<ProductCase> productCases() {
  std::vector<ProductCase> cases;
  for (bool hasRowsOfA : {true, false})
    for (bool hasRowsOfB : {true, false})
      for (bool moves : {true, false})
        cases.push_back({.hasRowsOfA = hasRowsOfA, .hasRowsOfB = hasRowsOfB, .moves = moves});
  for (bool hasRowsOfB : {true, false})
    cases.push_back({.type = DataType::F8E5, .hasRowsOfB = hasRowsOfB});
  cases.push_back({.type = DataType::BF16, .blockM = 128, .blockN = 32, .blockK = 32, .warps = 8, .stages = 2});
  cases.push_back({.hasRowsOfA = false, .blockM = 64, .blockN = 128, .blockK = 16, .stages = 4});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, DescribedDotProducts, testing::ValuesIn(productCases()));

//===----------------------------------------------------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------------------------------------------------===//

/// Products of any size: what is missing of the last tiles is masked, or rows wrap around in one of three ways and the store is masked.
constexpr std::string_view anySize = R"(
@triton.jit
def wrapped(at, end, WRAP: tl.constexpr):
    if WRAP == 1:
        at = at % end
    elif WRAP == 2:
        at = tl.where(at < end, at, 0)
    elif WRAP == 3:
        at = tl.where(at >= end, 0, at)
    return at

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, depth, sa, sb, sc, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ROWS_OF_A: tl.constexpr,
           ROWS_OF_B: tl.constexpr, MOVES: tl.constexpr, WRAP: tl.constexpr, IS_CUT: tl.constexpr, TURNED: tl.constexpr, BAND: tl.constexpr):
    down = tl.program_id(0)
    along = tl.program_id(1)
    if BAND > 0:  # tiles in bands of so many rows, column by column
        tiles = BAND * tl.cdiv(n, N)
        first = down // tiles * BAND
        height = min(tl.cdiv(m, M) - first, BAND)
        along = down % tiles // height
        down = first + down % tiles % height
    place_of_row = down * M + tl.arange(0, M)
    place_of_column = along * N + tl.arange(0, N)
    rows = wrapped(place_of_row, m, WRAP)
    columns = wrapped(place_of_column, n, WRAP)
    inner = tl.arange(0, K)
    a = a_ptr + (rows[:, None] * sa + inner[None, :] if ROWS_OF_A else rows[:, None] + inner[None, :] * sa)
    b = b_ptr + (inner[:, None] * sb + columns[None, :] if ROWS_OF_B else inner[:, None] + columns[None, :] * sb)
    step_a = K if ROWS_OF_A else K * sa
    step_b = K * sb if ROWS_OF_B else K
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, tl.cdiv(depth, K)):
        inside_a = (inner < depth - k * K)[None, :] if not TURNED else depth > (k * K + inner)[None, :]
        inside_b = (inner < depth - k * K)[:, None] if not TURNED else (k * K + inner)[:, None] <= depth - 1
        if WRAP == 0:
            inside_a = inside_a & (place_of_row < m)[:, None]
            inside_b = (place_of_column < n)[None, :] & inside_b
        at_a = a if MOVES else a + k * step_a
        at_b = b if MOVES else b + k * step_b
        if IS_CUT or WRAP == 0:
            x = tl.load(at_a, mask=inside_a, other=0.0)
            y = tl.load(at_b, mask=inside_b)
        else:
            x = tl.load(at_a)
            y = tl.load(at_b)
        acc = tl.dot(x, y, acc)
        if MOVES:
            a += step_a
            b += step_b
    c = c_ptr + place_of_row[:, None] * sc + place_of_column[None, :]
    tl.store(c, acc * 0.5, mask=(place_of_row[:, None] < m) & (place_of_column[None, :] < n))
)";

struct AnySizeForm {
  DataType type = DataType::F16;
  bool hasRowsOfA = true, hasRowsOfB = true, moves = true;
  int64_t wrap = 0;      ///< How rows and columns wrap around; 0: they have masks.
  bool isTurned = false; ///< Masks are written the other way round.
  int64_t blockM = 64, blockN = 64, blockK = 64;
  uint32_t warps = 4, stages = 3;
  int64_t m = 0, n = 0, k = 0, padding = 16, band = 0;
};
void PrintTo(const AnySizeForm &p, std::ostream *stream) {
  *stream << fmt::format("{} {} {} {}, wraps {}, {}, {}x{}x{}, {} warps, {} stages, {}x{}x{} and {}, bands of {}",
                         toString(p.type), p.hasRowsOfA ? "rows" : "columns", p.hasRowsOfB ? "rows" : "columns",
                         p.moves ? "moves" : "counts", p.wrap, p.isTurned ? "turned" : "straight", p.blockM, p.blockN,
                         p.blockK, p.warps, p.stages, p.m, p.n, p.k, p.padding, p.band);
}

class DescribedProductsOfAnySize : public DescribedTilesOfDots {
protected:
  bool compare(const AnySizeForm &p, uint64_t seed) {
    const auto tiles = [](int64_t size, int64_t block) {
      return uint32_t(std::max<int64_t>((size + block - 1) / block, 1));
    };
    const uint32_t down = tiles(p.m, p.blockM), along = tiles(p.n, p.blockN);
    return compare(p, seed, anySize,
                   p.band ? std::array<uint32_t, 3>{down * along, 1, 1} : std::array<uint32_t, 3>{down, along, 1},
                   {{"M", p.blockM},
                    {"N", p.blockN},
                    {"K", p.blockK},
                    {"ROWS_OF_A", p.hasRowsOfA},
                    {"ROWS_OF_B", p.hasRowsOfB},
                    {"MOVES", p.moves},
                    {"WRAP", p.wrap},
                    {"IS_CUT", p.k % p.blockK != 0},
                    {"TURNED", p.isTurned},
                    {"BAND", p.band}});
  }

  /// What no element of a tile is lies in NaNs, or outside of memory. True if the described kernel has tensor maps.
  bool compare(const AnySizeForm &p, uint64_t seed, std::string_view text, const std::array<uint32_t, 3> &grid,
               const std::vector<std::pair<std::string, runtime::Argument>> &constants) {
    const auto strideOf = [&](int64_t size) { return (size + 15) / 16 * 16 + p.padding; };
    const auto matrix = [&](bool hasRows, int64_t rows, int64_t columns, uint64_t valueSeed) {
      const int64_t length = hasRows ? columns : rows, count = hasRows ? rows : columns, stride = strideOf(length);
      std::vector<float> values(std::max<int64_t>(count * stride, 1), NAN);
      const std::vector<float> numbers = convertAll<float>(randomIntegers(rows * columns + 1, valueSeed, -3, 3));
      for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < length; ++j)
          values[i * stride + j] = numbers[i * length + j];
      return values;
    };
    const std::vector<float> a = matrix(p.hasRowsOfA, p.m, p.k, seed), b = matrix(p.hasRowsOfB, p.k, p.n, seed + 1);
    const int64_t sa = strideOf(p.hasRowsOfA ? p.k : p.m), sb = strideOf(p.hasRowsOfB ? p.n : p.k), sc = strideOf(p.n);
    std::vector<float> expected(std::max<int64_t>(p.m * sc, 1), NAN);
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < p.k; ++l)
          sum += a[p.hasRowsOfA ? i * sa + l : l * sa + i] * b[p.hasRowsOfB ? l * sb + j : j * sb + l];
        expected[i * sc + j] = sum * 0.5f;
      }
    const Buffer ab = putAs(p.type, a, "a"), bb = putAs(p.type, b, "b");
    bool isDescribed = false;
    for (bool describes : {true, false}) {
      Buffer c = putAs(DataType::F32, std::vector<float>(expected.size(), NAN), "c");
      const size_t maps = launchWith(describes, text, {.grid = grid, .numWarps = p.warps, .numStages = p.stages},
                                     {{ab, bb, c, p.m, p.n, p.k, sa, sb, sc}, constants});
      if (!describes)
        EXPECT_EQ(maps, 0u);
      isDescribed |= maps > 0;
      expectSame(getFloats(c), expected, describes ? "described" : "pointers");
    }
    return isDescribed;
  }
};

TEST_F(DescribedProductsOfAnySize, HaveNoMoreThanIsThere) {
  for (int64_t wrap : {0, 1, 2})
    for (bool hasRows : {true, false}) {
      const AnySizeForm form = {
          .hasRowsOfA = hasRows, .hasRowsOfB = !hasRows, .wrap = wrap, .m = 130, .n = 77, .k = 150};
      SCOPED_TRACE(testing::PrintToString(form));
      EXPECT_EQ(compare(form, 21), hasTensorCopies());
    }
}

TEST_F(DescribedProductsOfAnySize, CanBeEmpty) {
  for (int64_t wrap : {0, 1})
    for (auto [m, n, k] : {std::tuple(0, 70, 80), std::tuple(70, 0, 80), std::tuple(70, 80, 0), std::tuple(1, 1, 70)}) {
      if (wrap == 1 && (m < 2 || n < 2))
        continue; // no remainder, or always the same
      const AnySizeForm form = {.wrap = wrap, .m = m, .n = n, .k = k};
      SCOPED_TRACE(testing::PrintToString(form));
      EXPECT_EQ(compare(form, 22), hasTensorCopies());
    }
}

/// A is one row, as of a tensor that is expanded.
TEST_F(DescribedProductsOfAnySize, CanHaveOneRowManyTimes) {
  const int64_t m = 70, n = 80, k = 96;
  const std::vector<float> a = convertAll<float>(randomIntegers(k, 31, -3, 3)),
                           b = convertAll<float>(randomIntegers(k * n, 32, -3, 3));
  std::vector<float> expected(m * n);
  for (int64_t i = 0; i < m * n; ++i)
    for (int64_t l = 0; l < k; ++l)
      expected[i] += a[l] * b[l * n + i % n] * 0.5f;
  const Buffer ab = putAs(DataType::F16, a, "a"), bb = putAs(DataType::F16, b, "b");
  for (bool describes : {true, false}) {
    Buffer c = putAs(DataType::F32, std::vector<float>(m * n, NAN), "c");
    const size_t maps = launchWith(describes, anySize, {.grid = {2, 2, 1}, .numWarps = 4, .numStages = 3},
                                   {{ab, bb, c, m, n, k, int64_t(0), n, n},
                                    {{"M", int64_t(64)},
                                     {"N", int64_t(64)},
                                     {"K", int64_t(64)},
                                     {"ROWS_OF_A", true},
                                     {"ROWS_OF_B", true},
                                     {"MOVES", true},
                                     {"WRAP", int64_t(0)},
                                     {"IS_CUT", true},
                                     {"TURNED", false},
                                     {"BAND", int64_t(0)}}});
    EXPECT_EQ(maps > 0, describes && hasTensorCopies());
    expectSame(getFloats(c), expected, describes ? "described" : "pointers");
  }
}

/// DESCRIBED_PRODUCTS=1000 runs so many.
/// Blocks stay and count their tiles a second time for what they store, as Triton's tutorial on persistent products does.
constexpr std::string_view countedTwice = R"(
@triton.jit
def tile_of(tile, N, BLOCK: tl.constexpr):
    across = tl.cdiv(N, BLOCK)
    return tile // across, tile % across

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc, BLOCK: tl.constexpr, DEPTH: tl.constexpr, PROGRAMS: tl.constexpr):
    start = tl.program_id(0)
    stored = start - PROGRAMS
    inner = tl.arange(0, DEPTH)
    for tile in tl.range(start, tl.cdiv(M, BLOCK) * tl.cdiv(N, BLOCK), PROGRAMS, flatten=True):
        row, column = tile_of(tile, N, BLOCK)
        rows = row * BLOCK + tl.arange(0, BLOCK)
        rows = tl.where(rows < M, rows, 0)
        columns = column * BLOCK + tl.arange(0, BLOCK)
        columns = tl.where(columns < N, columns, 0)
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, tl.cdiv(K, DEPTH)):
            depth = k * DEPTH + inner
            a = tl.load(a_ptr + rows[:, None] * sa + depth[None, :], mask=inner[None, :] < K - k * DEPTH, other=0.0)
            b = tl.load(b_ptr + depth[:, None] * sb + columns[None, :], mask=inner[:, None] < K - k * DEPTH, other=0.0)
            acc = tl.dot(a, b, acc)
        stored += PROGRAMS
        row, column = tile_of(stored, N, BLOCK)
        rows = row * BLOCK + tl.arange(0, BLOCK)
        columns = column * BLOCK + tl.arange(0, BLOCK)
        tl.store(c_ptr + rows[:, None] * sc + columns[None, :], acc * 0.5, mask=(rows[:, None] < M) & (columns[None, :] < N))
)";

TEST_F(DescribedProductsOfAnySize, CountTheirTilesTwice) {
  for (auto [m, n, k] :
       {std::tuple(130, 77, 150), std::tuple(64, 64, 64), std::tuple(1, 200, 33), std::tuple(300, 129, 64)}) {
    const AnySizeForm form = {.m = m, .n = n, .k = k, .padding = 0};
    SCOPED_TRACE(testing::PrintToString(form));
    const bool isDescribed = compare(form, 41, countedTwice, {3, 1, 1},
                                     {{"BLOCK", form.blockM}, {"DEPTH", form.blockK}, {"PROGRAMS", int64_t(3)}});
    EXPECT_EQ(isDescribed, hasTensorCopies());
  }
}

TEST_F(DescribedProductsOfAnySize, AtRandom) {
  const int cases = casesWanted("DESCRIBED_PRODUCTS", 12);
  std::mt19937_64 random(casesWanted("DESCRIBED_PRODUCTS_FIRST", 1));
  const auto choose = [&](std::initializer_list<int64_t> from) { return from.begin()[random() % from.size()]; };
  int described = 0;
  for (int index = 0; index < cases && !HasFailure(); ++index) {
    AnySizeForm p;
    p.type = random() % 4 == 0 ? DataType::F8E5 : random() % 2 ? DataType::F16 : DataType::BF16;
    p.hasRowsOfA = random() % 2, p.hasRowsOfB = random() % 2, p.moves = random() % 2, p.isTurned = random() % 2;
    p.wrap = choose({0, 1, 2, 3});
    p.warps = uint32_t(choose({4, 8}));
    p.blockM = p.warps == 8 ? 128 : choose({64, 128});
    p.blockN = choose({16, 32, 64, 128});
    p.blockK = choose({32, 64, 128});
    p.stages = uint32_t(choose({1, 2, 3, 4}));
    const auto size = [&] { return random() % 3 == 0 ? choose({1, 16, 64, 128, 192}) : int64_t(1 + random() % 300); };
    p.m = size(), p.n = size(), p.k = size();
    p.padding = choose({0, 16, 48});
    p.band = choose({0, 2, 8});
    SCOPED_TRACE(testing::PrintToString(p));
    described += compare(p, random());
  }
  EXPECT_EQ(described > 0, hasTensorCopies());
}

//===----------------------------------------------------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------------------------------------------------===//

/// The gradients of attention by plain pointers: powers p = exp2(q k - m), d = p (g v - delta) of causal heads of HEAD_SIZE; FIRST sums over queries,
/// else over keys, the last tiles of which begin at what is left of a division. Tiles under the diagonal are narrower.
constexpr std::string_view gradients = R"(
@triton.jit
def over_queries(sum_k, sum_v, q_ptr, g_ptr, m_ptr, delta_ptr, k, v, keys, first, turns, stride, N: tl.constexpr, D: tl.constexpr,
                 MASKED: tl.constexpr):
    queries = first + tl.arange(0, N)
    inner = tl.arange(0, D)
    columns_of_q = q_ptr + queries[None, :] * stride + inner[:, None]
    rows_of_g = g_ptr + queries[:, None] * stride + inner[None, :]
    for turn in range(turns):
        q = tl.load(columns_of_q)
        at = first + turn * N + tl.arange(0, N)
        p = tl.exp2(tl.dot(k, q) - tl.load(m_ptr + at)[None, :])
        if MASKED:
            p = tl.where(at[None, :] >= keys[:, None], p, 0.0)
        g = tl.load(rows_of_g)
        sum_v += tl.dot(p.to(tl.float16), g)
        d = p * (tl.dot(v, tl.trans(g)) - tl.load(delta_ptr + at)[None, :])
        sum_k += tl.dot(d.to(tl.float16), tl.trans(q))
        columns_of_q += N * stride
        rows_of_g += N * stride
    return sum_k, sum_v

@triton.jit
def over_keys(sum_q, k_ptr, v_ptr, q, g, m, delta, queries, first, turns, stride, N: tl.constexpr, D: tl.constexpr, MASKED: tl.constexpr):
    columns = (first + tl.arange(0, N))[None, :] * stride + tl.arange(0, D)[:, None]
    columns_of_k = k_ptr + columns
    columns_of_v = v_ptr + columns
    for turn in range(turns):
        k = tl.load(columns_of_k)
        p = tl.exp2(tl.dot(q, k) - m[:, None])
        if MASKED:
            p = tl.where(queries[:, None] >= (first + turn * N + tl.arange(0, N))[None, :], p, 0.0)
        d = p * (tl.dot(g, tl.load(columns_of_v)) - delta[:, None])
        sum_q += tl.dot(d.to(tl.float16), tl.trans(k))
        columns_of_k += N * stride
        columns_of_v += N * stride
    return sum_q

@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, g_ptr, m_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, heads, length, batch_stride, head_stride, stride,
           M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, FIRST: tl.constexpr):
    head = tl.program_id(1)
    place = (head // heads * batch_stride + head % heads * head_stride).to(tl.int64)
    q_ptr += place
    k_ptr += place
    v_ptr += place
    g_ptr += place
    m_ptr += head * length
    delta_ptr += head * length
    first = tl.program_id(0) * M
    rows = first + tl.arange(0, M)
    tile = rows[:, None] * stride + tl.arange(0, D)[None, :]
    if FIRST:
        k = tl.load(k_ptr + tile)
        v = tl.load(v_ptr + tile)
        sum_k = tl.zeros((M, D), dtype=tl.float32)
        sum_v = tl.zeros((M, D), dtype=tl.float32)
        sum_k, sum_v = over_queries(sum_k, sum_v, q_ptr, g_ptr, m_ptr, delta_ptr, k, v, rows, first, M // (N // 2), stride, N // 2, D, True)
        sum_k, sum_v = over_queries(sum_k, sum_v, q_ptr, g_ptr, m_ptr, delta_ptr, k, v, rows, first + M, (length - first - M) // N, stride,
                                    N, D, False)
        tl.store(dk_ptr + place + tile, sum_k)
        tl.store(dv_ptr + place + tile, sum_v)
    else:
        q = tl.load(q_ptr + tile)
        g = tl.load(g_ptr + tile)
        m = tl.load(m_ptr + rows)
        delta = tl.load(delta_ptr + rows)
        sum_q = tl.zeros((M, D), dtype=tl.float32)
        sum_q = over_keys(sum_q, k_ptr, v_ptr, q, g, m, delta, rows, first, M // (N // 2), stride, N // 2, D, True)
        turns = first // N
        sum_q = over_keys(sum_q, k_ptr, v_ptr, q, g, m, delta, rows, first - turns * N, turns, stride, N, D, False)
        tl.store(dq_ptr + place + tile, sum_q)
)";

struct GradientCase {
  bool isFirst = true;
  int64_t m = 64, n = 32;
  uint32_t warps = 4;
};
void PrintTo(const GradientCase &c, std::ostream *stream) {
  *stream << fmt::format("{}, {}x{}, {} warps", c.isFirst ? "of keys and values" : "of queries", c.m, c.n, c.warps);
}

class DescribedDotGradients : public DescribedTilesOfDots, public testing::WithParamInterface<GradientCase> {
protected:
  static constexpr int64_t d = 64, heads = 2, batches = 2, length = 256, stride = d + 16, headStride = length * stride,
                           batchStride = heads * headStride + 48;

  struct Result {
    std::vector<double> q, k, v;
  };

  /// Without the roundings to fp16 on the way.
  static Result reference(const std::vector<float> &q, const std::vector<float> &k, const std::vector<float> &v,
                          const std::vector<float> &g, const std::vector<float> &m, const std::vector<float> &delta) {
    Result result = {std::vector<double>(q.size()), std::vector<double>(q.size()), std::vector<double>(q.size())};
    for (int64_t head = 0; head < heads * batches; ++head) {
      const int64_t place = head / heads * batchStride + head % heads * headStride;
      for (int64_t i = 0; i < length; ++i)
        for (int64_t j = 0; j <= i; ++j) {
          const int64_t query = place + i * stride, key = place + j * stride, row = head * length + i;
          double score = 0, product = 0;
          for (int64_t e = 0; e < d; ++e) {
            score += double(q[query + e]) * k[key + e];
            product += double(g[query + e]) * v[key + e];
          }
          const double power = std::exp2(score - m[row]), change = power * (product - delta[row]);
          for (int64_t e = 0; e < d; ++e) {
            result.v[key + e] += power * g[query + e];
            result.k[key + e] += change * q[query + e];
            result.q[query + e] += change * k[key + e];
          }
        }
    }
    return result;
  }
};

TEST_P(DescribedDotGradients, AreThoseOfPointers) {
  const GradientCase &c = GetParam();
  const size_t size = batches * batchStride, rows = heads * batches * length;
  const auto floats = [&](uint64_t seed, size_t count, DataType type) {
    return randomFloats(count, seed, -0.5f, 0.5f, type);
  };
  const std::vector<float> q = floats(1, size, DataType::F16), k = floats(2, size, DataType::F16),
                           v = floats(3, size, DataType::F16), g = floats(4, size, DataType::F16),
                           delta = floats(5, rows, DataType::F32);
  std::vector<float> m = floats(6, rows, DataType::F32);
  for (float &each : m)
    each += 4;
  const Result expected = reference(q, k, v, g, m, delta);
  const Buffer qb = putAs(DataType::F16, q, "q"), kb = putAs(DataType::F16, k, "k"), vb = putAs(DataType::F16, v, "v"),
               gb = putAs(DataType::F16, g, "g"), mb = put(m, "m"), db = put(delta, "delta");
  std::vector<std::vector<float>> results;
  for (bool describes : {true, false}) {
    Buffer dq = zeros(DataType::F32, size, "dq"), dk = zeros(DataType::F32, size, "dk"),
           dv = zeros(DataType::F32, size, "dv");
    const size_t maps = launchWith(
        describes, gradients,
        {.grid = {uint32_t(length / c.m), uint32_t(heads * batches), 1}, .numWarps = c.warps, .numStages = 3},
        {{qb, kb, vb, gb, mb, db, dq, dk, dv, heads, length, batchStride, headStride, stride},
         {{"M", c.m}, {"N", c.n}, {"D", d}, {"FIRST", c.isFirst}}});
    EXPECT_EQ(maps > 0, describes && hasTensorCopies()); // how many depends on how many turns are taken together
    if (c.isFirst) {
      results.push_back(get<float>(dk));
      expectClose(results.back(), expected.k, 2e-3, 2e-3, "dk");
      results.push_back(get<float>(dv));
      expectClose(results.back(), expected.v, 2e-3, 2e-3, "dv");
    } else {
      results.push_back(get<float>(dq));
      expectClose(results.back(), expected.q, 2e-3, 2e-3, "dq");
    }
  }
  const size_t half = results.size() / 2;
  for (size_t i = 0; i < half; ++i)
    expectSame(results[i], results[half + i], "described and by pointers");
}

INSTANTIATE_TEST_SUITE_P(Cases, DescribedDotGradients,
                         testing::Values(GradientCase{}, GradientCase{.m = 128, .warps = 8}, GradientCase{.n = 64},
                                         GradientCase{.isFirst = false},
                                         GradientCase{.isFirst = false, .m = 128, .n = 64, .warps = 8}));

} // namespace
} // namespace ditron::e2e
