//===- dot_scaled_test.cpp - Matrix products of block-scaled operands -------------------------------------------------------===//
#include "KernelTest.h"

#include <fmt/format.h>

namespace ditron::e2e {
namespace {

const char *const scaledText = R"(
@triton.jit
def scaled(a_ptr, as_ptr, b_ptr, bs_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A: tl.constexpr,
           B: tl.constexpr, A_SCALED: tl.constexpr, B_SCALED: tl.constexpr, K_PACK: tl.constexpr, GROUP: tl.constexpr,
           FAST: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    AM: tl.constexpr = M // 2 if A == "e2m1" and not K_PACK else M
    AK: tl.constexpr = K // 2 if A == "e2m1" and K_PACK else K
    BN: tl.constexpr = N // 2 if B == "e2m1" and not K_PACK else N
    BK: tl.constexpr = K // 2 if B == "e2m1" and K_PACK else K
    a = tl.load(a_ptr + tl.arange(0, AM)[:, None] * AK + tl.arange(0, AK)[None, :])
    b = tl.load(b_ptr + tl.arange(0, BK)[:, None] * BN + tl.arange(0, BN)[None, :])
    k = tl.arange(0, K // GROUP)
    a_scale = None
    if A_SCALED:
        a_scale = tl.load(as_ptr + m[:, None] * (K // GROUP) + k[None, :])
    b_scale = None
    if B_SCALED:
        b_scale = tl.load(bs_ptr + n[:, None] * (K // GROUP) + k[None, :])
    acc = tl.full((M, N), 1.0, tl.float32)
    c = tl.dot_scaled(a, a_scale, A, b, b_scale, B, acc, FAST, K_PACK or A != "e2m1", K_PACK or B != "e2m1")
    tl.store(out_ptr + m[:, None] * N + n[None, :], c)
)";

/// An operand with logical rows along M or N and columns along K.
struct Operand {
  std::string format;
  bool isScaled = true;
  std::vector<double> values; ///< [outer][k], scales applied.
  Buffer buffer, scale;
};

double e2m1(uint32_t code) {
  static const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

class DotScaled : public KernelTest {
protected:
  /// Random contents. `isLeft`: stored [outer][k], else [k][outer].
  Operand make(std::string format, bool isScaled, int outer, int k, bool isLeft, bool kPack, int group, uint64_t seed,
               int nanRow) {
    Operand operand{format, isScaled, std::vector<double>(outer * k), {}, {}};
    if (format == "e2m1") {
      const std::vector<int64_t> codes = randomIntegers(outer * k, seed, 0, 15);
      const int rows = isLeft ? outer : k, columns = isLeft ? k : outer;
      const bool packsColumns = isLeft == kPack;
      std::vector<uint8_t> bytes(outer * k / 2);
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c) {
          const int code = static_cast<int>(codes[r * columns + c]);
          operand.values[isLeft ? r * k + c : c * k + r] = e2m1(code);
          const int at = packsColumns ? r * (columns / 2) + c / 2 : r / 2 * columns + c;
          bytes[at] |= code << 4 * ((packsColumns ? c : r) % 2);
        }
      operand.buffer = put(bytes, "x");
    } else {
      const DataType type = format == "e4m3"   ? DataType::F8E4NV
                            : format == "e5m2" ? DataType::F8E5
                            : format == "bf16" ? DataType::BF16
                                               : DataType::F16;
      const std::vector<float> values = randomFloats(outer * k, seed, -2, 2, type);
      for (int o = 0; o < outer; ++o)
        for (int l = 0; l < k; ++l)
          operand.values[o * k + l] = values[isLeft ? o * k + l : l * outer + o];
      operand.buffer = putAs(type, values, "x");
    }
    const int groups = k / group;
    if (group == 16) {
      const std::vector<float> scales = randomFloats(outer * groups, seed + 1, 0.5f, 4, DataType::F8E4NV);
      operand.scale = putAs(DataType::F8E4NV, scales, "scale");
      for (int i = 0; i < outer * k && isScaled; ++i)
        operand.values[i] *= scales[i / k * groups + i % k / group];
      return operand;
    }
    std::vector<uint8_t> scales = convertAll<uint8_t>(randomIntegers(outer * groups, seed + 1, 124, 130));
    if (nanRow >= 0)
      scales[nanRow * groups] = 255;
    operand.scale = put(scales, "scale");
    for (int i = 0; i < outer * k && isScaled; ++i) {
      const uint8_t scale = scales[i / k * groups + i % k / group];
      operand.values[i] *= scale == 255 ? NAN : std::ldexp(1.0, scale - 127);
    }
    return operand;
  }

  void check(std::string a, std::string b, bool scaledA, bool scaledB, int m, int n, int k, bool kPack = true, int group = 32,
             int nanRow = -1, uint32_t warps = 4) {
    SCOPED_TRACE(fmt::format("{} x {}, scales {} {}, {}x{}x{}, k_pack {}, group {}", a, b, scaledA, scaledB, m, n, k, kPack, group));
    Operand x = make(a, scaledA, m, k, true, kPack, group, 111, nanRow), y = make(b, scaledB, n, k, false, kPack, group, 113, -1);
    std::vector<double> expected(m * n, 1.0);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j)
        for (int l = 0; l < k; ++l)
          expected[i * n + j] += x.values[i * k + l] * y.values[j * k + l];
    Buffer out = zeros(DataType::F32, m * n);
    ASSERT_OK(run(scaledText, "scaled", {.numWarps = warps},
                  {{x.buffer, x.scale, y.buffer, y.scale, out},
                   {{"M", m}, {"N", n}, {"K", k}, {"A", a}, {"B", b}, {"A_SCALED", scaledA}, {"B_SCALED", scaledB},
                    {"K_PACK", kPack}, {"GROUP", group}, {"FAST", false}}}));
    // Operands have at most as many bits as the type that is multiplied: the sum is all that rounds (NVFP4: products too).
    expectClose(get<float>(out), expected, group == 16 ? 1e-2 : 1e-4, group == 16 ? 0.2 : 1e-2);
  }
};

TEST_F(DotScaled, Formats) {
  for (const char *a : {"e2m1", "e4m3", "e5m2"})
    for (const char *b : {"e2m1", "e4m3", "bf16", "fp16"}) {
      const bool isNormal = std::string_view(b) == "bf16" || std::string_view(b) == "fp16";
      check(a, b, true, !isNormal, 32, 64, 64);
    }
  check("bf16", "e5m2", false, true, 32, 32, 128);
  check("e5m2", "e5m2", true, true, 128, 128, 64, true, 32, -1, 8);
}

TEST_F(DotScaled, PackingScalesAndNan) {
  check("e2m1", "e2m1", true, true, 32, 32, 64, false);
  check("e2m1", "bf16", false, false, 32, 32, 64);
  check("e4m3", "bf16", true, false, 32, 32, 64, true, 32, /*nanRow=*/5);
  check("e2m1", "e2m1", true, true, 64, 64, 64, true, 16);
}

} // namespace
} // namespace ditron::e2e
