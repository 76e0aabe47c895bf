//===- program_loop_test.cpp - Kernels of one tile for each program, whose blocks stay -------------------------------------===//
//
// On a Hopper the blocks of such kernels take one program after the other (docs/warp-specialisation.md), and the two loops of each, one of
// which masks its tiles, are one. All programs must run once, whatever the grid and the GPU's size: small integers, so that sums are exact,
// and a value in each sum that tells the order of turns.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace ditron::e2e {
namespace {

/// Tile x of head y of batch z. With CAUSAL a tile sees the keys up to its own rows, else all; the programs then all have as much to do.
constexpr std::string_view text = R"(
@triton.jit
def turns(acc, total, q, k_desc, v_desc, row, first, last, rows, N: tl.constexpr, MASKED: tl.constexpr):
    place = row + first
    for n in tl.range(first, last, N, warp_specialize=True):
        s = tl.dot(q, k_desc.load([place, 0]).T)
        if MASKED:
            s = tl.where(rows[:, None] >= n + tl.arange(0, N)[None, :], s, 0.0)
        total = tl.sum(s, axis=1) - total
        acc = tl.dot(s.to(tl.bfloat16), v_desc.load([place, 0]), -acc)
        place += N
    return acc, total

@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, out_ptr, totals_ptr, tiles, heads, size, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
           CAUSAL: tl.constexpr):
    q_desc = tl.make_tensor_descriptor(q_ptr, [size, D], [D, 1], [M, D])
    k_desc = tl.make_tensor_descriptor(k_ptr, [size, D], [D, 1], [N, D])
    v_desc = tl.make_tensor_descriptor(v_ptr, [size, D], [D, 1], [N, D])
    out_desc = tl.make_tensor_descriptor(out_ptr, [size, D], [D, 1], [M, D])
    tile = tl.program_id(0)
    row = (tl.program_id(2) * heads + tl.program_id(1)) * tiles * M
    rows = tile * M + tl.arange(0, M)
    acc = tl.zeros((M, D), dtype=tl.float32)
    total = tl.zeros((M,), dtype=tl.float32)
    q = q_desc.load([row + tile * M, 0])
    if CAUSAL:
        acc, total = turns(acc, total, q, k_desc, v_desc, row, 0, tile * M, rows, N, False)
        acc, total = turns(acc, total, q, k_desc, v_desc, row, tile * M, (tile + 1) * M, rows, N, True)
    else:
        acc, total = turns(acc, total, q, k_desc, v_desc, row, 0, tiles * M, rows, N, False)
    tl.store(totals_ptr + row + rows, total)
    out_desc.store([row + tile * M, 0], acc)
)";

struct Grid {
  const char *name;
  std::array<uint32_t, 3> programs; ///< Tiles, heads, batches.
  uint32_t multiprocessors = 4;
  bool isCausal = true;
  int64_t m = 64, n = 32;
  uint32_t warps = 4, stages = 2;
};
void PrintTo(const Grid &grid, std::ostream *stream) { *stream << grid.name; }

class ProgramLoop : public KernelTest, public testing::WithParamInterface<Grid> {
protected:
  static constexpr int64_t d = 64;

  int64_t rowsOf(const Grid &g) { return g.programs[0] * g.programs[1] * g.programs[2] * g.m; }

  struct Data {
    std::vector<float> q, k, v, out, totals;
  };
  Data dataOf(const Grid &g, uint64_t seed) {
    const int64_t rows = rowsOf(g), rowsOfHead = g.programs[0] * g.m;
    auto digits = [&](uint64_t number) {
      return convertAll<float>(randomIntegers(rows * d, 3 * seed + number, -1, 1));
    };
    Data data = {digits(0), digits(1), digits(2), std::vector<float>(rows * d), std::vector<float>(rows)};
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t head = row / rowsOfHead * rowsOfHead, place = row - head, tile = place / g.m;
      float *out = &data.out[row * d], &total = data.totals[row];
      for (int64_t first = 0; first < (g.isCausal ? (tile + 1) * g.m : rowsOfHead); first += g.n) {
        total = -total;
        std::transform(out, out + d, out, std::negate());
        for (int64_t key = first; key < first + g.n; ++key) {
          if (g.isCausal && key > place)
            continue;
          const float *other = &data.k[(head + key) * d], *value = &data.v[(head + key) * d];
          const float s = std::inner_product(other, other + d, &data.q[row * d], 0.0f);
          total += s;
          for (int64_t i = 0; i < d; ++i)
            out[i] += s * value[i];
        }
      }
    }
    return data;
  }
};

/// Straight, then twice from a captured graph with other values in the same memory.
TEST_P(ProgramLoop, RunsEveryProgramOnce) {
  const Grid &g = GetParam();
  WorldOptions options = seeded(7);
  options.sms = g.multiprocessors;
  start(1, options);
  const Data first = dataOf(g, 1);
  Buffer q = putAs(DataType::BF16, first.q, "q"), k = putAs(DataType::BF16, first.k, "k"),
         v = putAs(DataType::BF16, first.v, "v");
  const std::vector<float> unwritten(first.out.size(), NAN), unwrittenTotals(first.totals.size(), NAN);
  Buffer out = putAs(DataType::F32, unwritten, "out"), totals = putAs(DataType::F32, unwrittenTotals, "totals");
  const LaunchShape shape = {.grid = g.programs, .numWarps = g.warps, .numStages = g.stages};
  const jit::CallArguments arguments = {
      {q, k, v, out, totals, int64_t(g.programs[0]), int64_t(g.programs[1]), rowsOf(g)},
      {{"M", g.m}, {"N", g.n}, {"D", d}, {"CAUSAL", g.isCausal}}};
  ASSERT_OK(run(text, "kernel", shape, arguments));
  expectSame(getFloats(out), first.out, "sums");
  expectSame(getFloats(totals), first.totals, "totals");

  ASSERT_OK(rank().stream().beginCapture());
  ASSERT_OK(launch(text, "kernel", shape, arguments));
  auto graph = rank().stream().endCapture();
  ASSERT_OK(graph);
  for (uint64_t seed : {2, 3}) {
    const Data other = dataOf(g, seed);
    ASSERT_OK(q.uploadFloats(other.q));
    ASSERT_OK(k.uploadFloats(other.k));
    ASSERT_OK(v.uploadFloats(other.v));
    ASSERT_OK(out.uploadFloats(unwritten));
    ASSERT_OK(totals.uploadFloats(unwrittenTotals));
    ASSERT_OK(rank().stream().launch(*graph));
    ASSERT_OK(world().synchronize());
    expectSame(getFloats(out), other.out, "sums of a graph");
    expectSame(getFloats(totals), other.totals, "totals of a graph");
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProgramLoop,
                         testing::Values(Grid{"odd", {3, 3, 1}}, Grid{"threeAxes", {3, 2, 2}, 3},
                                         Grid{"one", {1, 1, 1}}, Grid{"fewerThanBlocks", {2, 1, 1}, 8},
                                         Grid{"oneBlock", {3, 1, 1}, 1}, Grid{"whole", {3, 1, 2}, 4, false},
                                         Grid{"oneTurn", {3, 1, 1}, 2, true, 64, 64, 4, 3},
                                         Grid{"warpgroups", {3, 1, 1}, 2, true, 128, 64, 8, 2}),
                         [](const auto &info) { return info.param.name; });

class ProgramLoopArtifact : public KernelTest {};

/// What a launch has to know is in the artifact; kernels that share out the work by themselves stay as they are.
TEST_F(ProgramLoopArtifact, IsOfKernelsThatAskForIt) {
  if (sharedJit().target().find("sm_90a") == std::string::npos)
    GTEST_SKIP() << "there are no tensor copies on " << sharedJit().target();
  const std::string source = std::string(kernelPrologue) + std::string(text);
  const std::string signature =
      "*bf16:16, *bf16:16, *bf16:16, *fp32:16, *fp32:16, i32, i32, i32, constexpr M=64, constexpr N=32, "
      "constexpr D=64, constexpr CAUSAL=True";
  auto loops = [&](const std::string &kernelText) {
    auto function = sharedJit().load({"kernel.py", kernelText}, "kernel");
    EXPECT_OK(function);
    auto kernel = sharedJit().compile(*function, signature);
    EXPECT_OK(kernel);
    return kernel->artifact().loopsOverPrograms;
  };
  EXPECT_TRUE(loops(source));
  std::string counting = source;
  const std::string call = "tl.program_id(2) * heads";
  counting.replace(counting.find(call), call.size(), "tl.program_id(2) * tl.num_programs(1)");
  EXPECT_FALSE(loops(counting));
}

} // namespace
} // namespace ditron::e2e
