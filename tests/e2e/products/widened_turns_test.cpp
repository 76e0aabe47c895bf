//===- widened_turns_test.cpp - Loops over narrow tiles, several turns of which become one --------------------------------===//
//
// Gradients of attention as loops by pointers: those of keys and values, which go through rows of queries, and those of queries, which go through
// keys. Each kernel is compiled with and without dgpu-widen-turns and must give the same bits, and about what plain loops give. Numbers of turns that
// are known and that are not, none among them; rows that are further apart than they are long; masks; counters that begin and step anyhow.
//
//===--------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include "ditron/support/TargetName.h"

#include <fmt/format.h>

#include <bit>
#include <random>

namespace ditron::e2e {
namespace {

// Own rows of a program: x and y. Others, which its loops go through: u and w. Of s = exp2(x u' - m) and t = s (y w' - d), where m and d are the
// own rows' (BY_ROWS) or those of the others, b is the sum of t u, and a that of s w.
constexpr std::string_view text = R"(
@triton.jit
def turns(a, b, x, y, u_ptr, w_ptr, m_ptr, d_ptr, own, begin, count, limit, u_stride, w_stride, N: tl.constexpr, D: tl.constexpr,
          BY_ROWS: tl.constexpr, CAUSAL: tl.constexpr):
    columns = tl.arange(0, D)
    others = begin + tl.arange(0, N)
    u_ptrs = u_ptr + others[None, :] * u_stride + columns[:, None]
    w_ptrs = w_ptr + others[:, None] * w_stride + columns[None, :]
    at = begin
    for turn in range(count):
        u = tl.load(u_ptrs)
        places = at + tl.arange(0, N)
        s = tl.dot(x, u)
        if BY_ROWS:
            s = tl.math.exp2(s - m_ptr[:, None])
        else:
            s = tl.math.exp2(s - tl.load(m_ptr + places)[None, :])
        if CAUSAL:
            if BY_ROWS:
                s = tl.where(own[:, None] >= places[None, :], s, 0.0)
            else:
                s = tl.where(own[:, None] <= places[None, :], s, 0.0)
        w = tl.load(w_ptrs)
        if not BY_ROWS:
            a += tl.dot(s.to(x.dtype), w)
        t = tl.dot(y, tl.trans(w))
        if BY_ROWS:
            t = s * (t - d_ptr[:, None])
        else:
            t = s * (t - tl.load(d_ptr + places)[None, :])
        b += tl.dot(t.to(x.dtype), tl.trans(u))
        at += N
        u_ptrs += N * u_stride
        w_ptrs += N * w_stride
    return a, b

# The same by what the counter says; rows from a limit on are masked.
@triton.jit
def counted(a, b, x, y, u_ptr, w_ptr, m_ptr, d_ptr, own, begin, count, limit, u_stride, w_stride, N: tl.constexpr, D: tl.constexpr,
            BY_ROWS: tl.constexpr, CAUSAL: tl.constexpr):
    columns = tl.arange(0, D)
    for first in range(begin, begin + count * N, N):
        places = first + tl.arange(0, N)
        w = tl.load(w_ptr + places[:, None] * w_stride + columns[None, :], mask=(places < limit)[:, None], other=0.0)
        u = tl.load(u_ptr + places[None, :] * u_stride + columns[:, None], mask=places[None, :] < limit, other=0.0)
        s = tl.dot(x, u)
        if BY_ROWS:
            s = tl.math.exp2(s - m_ptr[:, None])
        else:
            s = tl.math.exp2(s - tl.load(m_ptr + places, mask=places < limit, other=0.0)[None, :])
        keep = tl.arange(0, N)[None, :] < limit - first
        if CAUSAL:
            if BY_ROWS:
                keep = keep & (own[:, None] - first >= tl.arange(0, N)[None, :])
            else:
                keep = keep & (own[:, None] <= places[None, :])
        s = tl.where(keep, s, 0.0)
        t = tl.dot(y, tl.trans(w))
        if BY_ROWS:
            t = s * (t - d_ptr[:, None])
        else:
            t = s * (t - tl.load(d_ptr + places, mask=places < limit, other=0.0)[None, :])
            a += tl.dot(s.to(x.dtype), w)
        b += tl.dot(t.to(x.dtype), tl.trans(u))
    return a, b

@triton.jit
def kernel(x_ptr, y_ptr, u_ptr, w_ptr, m_ptr, d_ptr, a_ptr, b_ptr, begin, count, limit, x_stride, u_stride, w_stride, own_rows, other_rows,
           M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, TURNS: tl.constexpr, BY_ROWS: tl.constexpr, CAUSAL: tl.constexpr,
           COUNTED: tl.constexpr):
    head = tl.program_id(1)
    own = tl.program_id(0) * M + tl.arange(0, M)
    x_ptr += head * own_rows * x_stride
    y_ptr += head * own_rows * x_stride
    u_ptr += head * other_rows * u_stride
    w_ptr += head * other_rows * w_stride
    places = own[:, None] * x_stride + tl.arange(0, D)[None, :]
    x = tl.load(x_ptr + places)
    y = tl.load(y_ptr + places)
    a = tl.zeros((M, D), dtype=tl.float32)
    b = tl.zeros((M, D), dtype=tl.float32)
    if BY_ROWS:
        m = tl.load(m_ptr + head * own_rows + own)
        d = tl.load(d_ptr + head * own_rows + own)
    else:
        m = m_ptr + head * other_rows
        d = d_ptr + head * other_rows
    if TURNS > 0: # known ones of half as many rows first
        a, b = turns(a, b, x, y, u_ptr, w_ptr, m, d, own, begin, TURNS, limit, u_stride, w_stride, 16, D, BY_ROWS, CAUSAL)
        begin += TURNS * 16
    if COUNTED:
        a, b = counted(a, b, x, y, u_ptr, w_ptr, m, d, own, begin, count, limit, u_stride, w_stride, N, D, BY_ROWS, CAUSAL)
    else:
        a, b = turns(a, b, x, y, u_ptr, w_ptr, m, d, own, begin, count, limit, u_stride, w_stride, N, D, BY_ROWS, CAUSAL)
    out = (head * own_rows + own)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(a_ptr + out, a)
    tl.store(b_ptr + out, b)
)";

struct Form {
  DataType type = DataType::F16;
  uint32_t warps = 4, stages = 3;
  int64_t m = 64, n = 32, d = 64;
  int64_t knownTurns = 0; ///< Of 16 rows, in a loop in front.
  bool byRows = false, isCausal = false, isCounted = false;
};
struct Sizes {
  int64_t turns = 0, begin = 0, unusedRows = 0, padding = 0, heads = 1, blocks = 1;
};
void PrintTo(const Form &f, std::ostream *stream) {
  *stream << fmt::format("{} warps, {} stages, {}x{}x{}, type {}, {} known turns{}{}{}", f.warps, f.stages, f.m, f.n,
                         f.d, int(f.type), f.knownTurns, f.byRows ? ", by rows" : "", f.isCausal ? ", causal" : "",
                         f.isCounted ? ", counted" : "");
}

/// A compiler with or without the pass, and what it has told.
struct Compiler {
  explicit Compiler(bool widens) {
    Knobs knobs;
    knobs.boundWaits = !isSimulated();
    knobs.widenTurns = widens;
    auto created = jit::Jit::create(targetUnderTest(), knobs);
    EXPECT_OK(created);
    jit = std::move(created).value();
    jit->setObserver([this](const std::string &, const compiler::CompileReport *report) {
      if (report)
        remarks = report->remarks;
    });
  }
  std::unique_ptr<jit::Jit> jit;
  std::string remarks; ///< Of the last compilation.
};
Compiler &compilerThat(bool widens) {
  static Compiler widening(true), plain(false);
  return widens ? widening : plain;
}

class TurnsTest : public KernelTest {
protected:
  void compare(const Form &f, const Sizes &z, uint64_t seed) {
    SCOPED_TRACE(fmt::format("{} turns from {}, {} unused rows, padding {}, {} heads, {} blocks, seed {}", z.turns,
                             z.begin, z.unusedRows, z.padding, z.heads, z.blocks, seed));
    const int64_t ownRows = z.blocks * f.m, end = z.begin + f.knownTurns * 16 + z.turns * f.n;
    const int64_t otherRows = std::max<int64_t>(end, 1),
                  limit = f.isCounted ? end - std::min(z.unusedRows, z.turns * f.n) : end;
    const int64_t xStride = f.d + z.padding, uStride = f.d + 2 * z.padding, wStride = f.d + 16 + z.padding;
    const auto numbers = [&](int64_t count, uint64_t part, float most) {
      return randomFloats(size_t(count), seed * 16 + part, -most, most, f.type);
    };
    const auto x = numbers(z.heads * ownRows * xStride, 1, 0.5f), y = numbers(z.heads * ownRows * xStride, 2, 0.5f),
               u = numbers(z.heads * otherRows * uStride, 3, 0.5f), w = numbers(z.heads * otherRows * wStride, 4, 0.5f);
    const int64_t places = z.heads * (f.byRows ? ownRows : otherRows);
    const auto m = randomFloats(size_t(places), seed * 16 + 5, 0, 1), d = randomFloats(size_t(places), seed * 16 + 6);

    std::vector<double> a(size_t(z.heads * ownRows * f.d), 0.0), b(a.size(), 0.0);
    for (int64_t head = 0; head < z.heads; ++head)
      for (int64_t own = 0; own < ownRows; ++own)
        for (int64_t other = z.begin; other < limit; ++other) {
          if (f.isCausal && (f.byRows ? own < other : own > other))
            continue;
          const float *xs = &x[(head * ownRows + own) * xStride], *ys = &y[(head * ownRows + own) * xStride];
          const float *us = &u[(head * otherRows + other) * uStride], *ws = &w[(head * otherRows + other) * wStride];
          const int64_t place = f.byRows ? head * ownRows + own : head * otherRows + other;
          double s = -m[place], t = -d[place];
          for (int64_t c = 0; c < f.d; ++c) {
            s += double(xs[c]) * us[c];
            t += double(ys[c]) * ws[c];
          }
          s = std::exp2(s);
          t *= s;
          for (int64_t c = 0; c < f.d; ++c) {
            if (!f.byRows)
              a[(head * ownRows + own) * f.d + c] += s * ws[c];
            b[(head * ownRows + own) * f.d + c] += t * us[c];
          }
        }

    std::vector<float> results[2][2];
    for (bool widens : {false, true}) {
      start(1, seeded(seed));
      Compiler &compiler = compilerThat(widens);
      Buffer xs = putAs(f.type, x), ys = putAs(f.type, y), us = putAs(f.type, u), ws = putAs(f.type, w), ms = put(m),
             ds = put(d), as = zeros(DataType::F32, a.size()), bs = zeros(DataType::F32, b.size());
      compiler::KernelSource source{"kernel.py", std::string(kernelPrologue) + std::string(text)};
      auto function = compiler.jit->load(source, "kernel");
      ASSERT_OK(function);
      const auto before = compiler.jit->counters().compilations;
      ASSERT_OK(compiler.jit->launch(
          rank().stream(), *function, {.grid = {uint32_t(z.blocks), uint32_t(z.heads), 1}},
          {{xs, ys, us, ws, ms, ds, as, bs, z.begin, z.turns, limit, xStride, uStride, wStride, ownRows, otherRows},
           {{"M", f.m},
            {"N", f.n},
            {"D", f.d},
            {"TURNS", f.knownTurns},
            {"BY_ROWS", int64_t(f.byRows)},
            {"CAUSAL", int64_t(f.isCausal)},
            {"COUNTED", int64_t(f.isCounted)}}},
          {.numWarps = f.warps, .numStages = f.stages}));
      ASSERT_OK(world().synchronize());
      if (compiler.jit->counters().compilations > before)
        expectWidened(compiler.remarks, f, widens && (z.turns != 1 || f.knownTurns > 0));
      results[widens][0] = getFloats(as);
      results[widens][1] = getFloats(bs);
    }
    expectClose(results[0][0], a, 0.02, 0.05, "a");
    expectClose(results[0][1], b, 0.02, 0.05, "b");
    for (int sum : {0, 1}) {
      size_t different = 0;
      for (size_t i = 0; i < a.size(); ++i)
        different += std::bit_cast<uint32_t>(results[0][sum][i]) != std::bit_cast<uint32_t>(results[1][sum][i]);
      EXPECT_EQ(different, 0u) << "sum " << sum << ": so many elements have other bits in longer turns";
    }
  }

  /// The comparison would say nothing of loops that stay as they are. Tiles with masks do, which begin at an argument here: no producer fetches them.
  static void expectWidened(const std::string &remarks, const Form &f, bool widens) {
    const bool isPossible = hasTensorCopies(sharedJit().target()) && !f.isCounted;
    EXPECT_EQ(remarks.find("turns become one: tiles of") != std::string::npos, widens && isPossible) << remarks;
  }
};

class WidenedTurns : public TurnsTest, public testing::WithParamInterface<Form> {};
using WidenedTurnsAtRandom = TurnsTest;

TEST_P(WidenedTurns, GiveTheSameBits) {
  const Form &f = GetParam();
  const uint64_t seed = 7;
  for (int64_t turns = 0; turns <= 9; ++turns)
    if (turns != 1) // specialised, as every 1: the number is known
      compare(f,
              {.turns = turns,
               .begin = 16 * (turns % 3),
               .unusedRows = 5 * turns,
               .padding = 16 * (turns % 2),
               .heads = 2,
               .blocks = 2},
              seed + uint64_t(turns));
  compare(f, {.turns = 1, .begin = 16}, seed);
}

/// Shapes of every kind. WIDENED_TURNS=1000 runs so many.
TEST_F(WidenedTurnsAtRandom, GiveTheSameBits) {
  const int cases = casesWanted("WIDENED_TURNS", 12);
  std::mt19937_64 random(casesWanted("WIDENED_TURNS_FIRST", 1));
  const auto choose = [&](std::initializer_list<int64_t> from) { return from.begin()[random() % from.size()]; };
  for (int index = 0; index < cases && !HasFailure(); ++index) {
    Form f;
    f.type = random() % 2 ? DataType::F16 : DataType::BF16;
    f.warps = uint32_t(choose({4, 8}));
    f.stages = uint32_t(choose({1, 2, 3, 5}));
    f.m = choose({64, 128});
    if (f.warps == 8)
      f.m = 128;
    f.n = choose({16, 32});
    f.d = choose({16, 32, 64});
    f.knownTurns = choose({0, 2, 4, 6, 8});
    f.byRows = random() % 2;
    f.isCausal = random() % 2;
    f.isCounted = random() % 2;
    SCOPED_TRACE(testing::PrintToString(f));
    for (int launch = 0; launch < 2; ++launch)
      compare(f,
              {.turns = choose({0, 2, 3, 4, 5, 6, 7, 8, 9, 11}),
               .begin = choose({0, 16, 48}),
               .unusedRows = choose({0, 1, 17, 40}),
               .padding = choose({0, 16, 48}),
               .heads = choose({1, 2}),
               .blocks = choose({1, 2})},
              random());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, WidenedTurns,
    testing::Values(Form{}, Form{.n = 16, .isCausal = true},
                    Form{.type = DataType::BF16, .stages = 5, .knownTurns = 4, .isCausal = true},
                    Form{.warps = 8, .m = 128, .knownTurns = 2}, Form{.byRows = true},
                    Form{.type = DataType::BF16, .n = 16, .byRows = true, .isCausal = true},
                    Form{.isCausal = true, .isCounted = true},
                    Form{.stages = 2, .n = 16, .byRows = true, .isCausal = true, .isCounted = true}));

} // namespace
} // namespace ditron::e2e
