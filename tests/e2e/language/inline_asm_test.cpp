//===- inline_asm_test.cpp - Assembly on elements ------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <bit>

namespace ditron::e2e {
namespace {

class InlineAsm : public KernelTest {
protected:
  static constexpr int n = 256;
};

TEST_F(InlineAsm, IntegersPredicatesAndLocalRegisters) {
  const char *text = R"(
@triton.jit
def integers(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x_ptr + i)
    b = tl.load(y_ptr + i)
    tl.store(out_ptr + i, tl.inline_asm_elementwise("mad.lo.s32 $0, $1, $2, 7;", "=r,r,r", [a, b], tl.int32, is_pure=True, pack=1))
    total, distance = tl.inline_asm_elementwise("""
        {
            // the sum, and the distance through a predicate
            .reg .b32 t<2>;
            .reg .pred p;
            add.s32 t0, $2, $3;
            sub.s32 t1, $2, $3;
            setp.lt.s32 p, t1, 0;
            @p neg.s32 t1, t1;
            mov.b32 $0, t0;
            mov.u32 $1, t1;
        }
        """, "=r,=r,r,r", [a, b], dtype=(tl.int32, tl.int32), is_pure=True, pack=1)
    tl.store(out_ptr + N + i, total)
    tl.store(out_ptr + 2 * N + i, distance)
    mixed = tl.inline_asm_elementwise("lop3.b32 $0, $1, $2, 0xff00ff00, 0xca; prmt.b32 $0, $0, $1, 0x0123;", "=&r,r,r", [a, b],
                                      tl.int32, is_pure=True, pack=1)
    tl.store(out_ptr + 3 * N + i, mixed)
    wide = tl.inline_asm_elementwise("{ .reg .b64 w; mul.wide.s32 w, $1, $2; shr.s64 w, w, 4; cvt.u32.u64 $0, w; }", "=r,r,r",
                                     [a * 65536, b], tl.int32, is_pure=False, pack=1)
    tl.store(out_ptr + 4 * N + i, wide)
)";
  std::vector<int32_t> x = convertAll<int32_t>(randomIntegers(n, 1, -30000, 30000)), y = convertAll<int32_t>(randomIntegers(n, 2, -30000, 30000));
  std::vector<int32_t> expected(5 * n);
  for (int i = 0; i < n; ++i) {
    uint32_t a = x[i], b = y[i], mixed = (a & b) | (~a & 0xff00ff00u);
    expected[i] = x[i] * y[i] + 7;
    expected[n + i] = x[i] + y[i];
    expected[2 * n + i] = std::abs(x[i] - y[i]);
    expected[3 * n + i] = static_cast<int32_t>(__builtin_bswap32(mixed));
    expected[4 * n + i] = static_cast<int32_t>(int64_t(x[i]) * 65536 * y[i] >> 4);
  }
  for (uint32_t warps : {1u, 4u}) {
    Buffer xb = put(x), yb = put(y), out = zeros(DataType::I32, 5 * n);
    ASSERT_OK(run(text, "integers", {.numWarps = warps}, {{xb, yb, out}, {{"N", n}}}));
    expectSame(get<int32_t>(out), expected);
  }
}

TEST_F(InlineAsm, PacksOfNarrowElements) {
  const char *text = R"(
@triton.jit
def packs(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    c = tl.load(x_ptr + i)
    # four int8 of a register become two pairs of bf16
    e = tl.inline_asm_elementwise("""
        {
            .reg .f32 f<4>;
            .reg .b8 b<4>;
            mov.b32 {b0, b1, b2, b3}, $2;
            cvt.rn.f32.s8 f0, b0;
            cvt.rn.f32.s8 f1, b1;
            cvt.rn.f32.s8 f2, b2;
            cvt.rn.f32.s8 f3, b3;
            cvt.rn.bf16x2.f32 $0, f1, f0;
            cvt.rn.bf16x2.f32 $1, f3, f2;
        }
        """, "=r,=r,r", [c], dtype=tl.bfloat16, is_pure=True, pack=4)
    tl.store(out_ptr + i, e.to(tl.float32))
    h = c.to(tl.float16)
    s = tl.inline_asm_elementwise("fma.rn.f16x2 $0, $1, $1, $1;", "=r,r", [h], dtype=tl.float16, is_pure=True, pack=2)
    tl.store(out_ptr + N + i, s.to(tl.float32))
)";
  std::vector<int8_t> x = convertAll<int8_t>(randomIntegers(n, 3, -40, 40));
  std::vector<float> expected(2 * n);
  for (int i = 0; i < n; ++i) {
    expected[i] = x[i];
    expected[n + i] = float(x[i]) * x[i] + x[i];
  }
  for (uint32_t warps : {1u, 4u, 8u}) { // 8, 2 and 1 elements per thread: the last pack is not full
    Buffer xb = put(x), out = zeros(DataType::F32, 2 * n);
    ASSERT_OK(run(text, "packs", {.numWarps = warps}, {{xb, out}, {{"N", n}}}));
    expectSame(get<float>(out), expected);
  }
}

TEST_F(InlineAsm, FloatsConversionsAndMemory) {
  const char *text = R"(
@triton.jit
def floats(x_ptr, out_ptr, bits_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1))
    tl.store(out_ptr + N + i, tl.inline_asm_elementwise("{ .reg .f32 t; ex2.approx.ftz.f32 t, $1; rcp.approx.f32 $0, t; }", "=f,f",
                                                        [x], tl.float32, True, 1))
    tl.store(bits_ptr + i, tl.inline_asm_elementwise("cvt.rn.satfinite.e4m3x2.f32 $0, $2, $1;", "=h,f,f", [x, x * 100], tl.int16,
                                                     True, 1).to(tl.int32))
    tl.store(bits_ptr + N + i, tl.inline_asm_elementwise("cvt.rzi.s32.f32 $0, $1;", "=r,f", [x * 3e9], tl.int32, True, 1))
    loaded = tl.inline_asm_elementwise("ld.global.b32 $0, [$1+4];", "=r,l", [x_ptr + (i % (N - 1))], tl.int32, False, 1)
    tl.store(bits_ptr + 2 * N + i, loaded)
)";
  if (!isSimulated())
    GTEST_SKIP() << "approximations of the hardware have their own tolerance";
  std::vector<float> x = randomFloats(n, 4, -4, 4);
  x[0] = NAN;
  Buffer xb = put(x), out = zeros(DataType::F32, 2 * n), bits = zeros(DataType::I32, 3 * n);
  ASSERT_OK(run(text, "floats", {}, {{xb, out, bits}, {{"N", n}}}));
  std::vector<double> expected(2 * n);
  for (int i = 0; i < n; ++i) {
    expected[i] = std::tanh(double(x[i]));
    expected[n + i] = std::exp2(-double(x[i]));
  }
  expectClose(get<float>(out), expected, 1e-6, 0);
  std::vector<int32_t> words = get<int32_t>(bits);
  for (int i = 0; i < n; ++i) {
    uint32_t pair = words[i];
    EXPECT_EQ(pair >> 8 & 0x80, std::signbit(x[i]) && !std::isnan(x[i]) ? 0x80u : pair >> 8 & 0x80u);
    if (std::fabs(x[i]) >= 4.5)
      continue;
    if (i > 0 && std::fabs(x[i]) * 100 > 464) {
      EXPECT_EQ(pair >> 8 & 0x7f, 0x7eu) << x[i]; // 448, the largest
    }
    double product = double(x[i] * 3e9f);
    int32_t truncated = std::isnan(x[i]) ? 0 : product >= 2147483648.0 ? INT32_MAX : product < -2147483648.0 ? INT32_MIN : int32_t(product);
    EXPECT_EQ(words[n + i], truncated) << x[i];
    EXPECT_EQ(words[2 * n + i], std::bit_cast<int32_t>(x[i % (n - 1) + 1]));
  }
  EXPECT_EQ(words[0] & 0x7f, 0x7f); // NaN
}

TEST_F(InlineAsm, WhatTheSimulatorDoesNotKnowIsNamed) {
  if (!isSimulated())
    GTEST_SKIP();
  const char *text = R"(
@triton.jit
def strange(x_ptr):
    i = tl.arange(0, 32)
    x = tl.load(x_ptr + i)
    tl.store(x_ptr + i, tl.inline_asm_elementwise("vabsdiff4.u32.u32.u32 $0, $1, $1, 0;", "=r,r", [x], tl.int32, True, 1))
)";
  Buffer xb = zeros(DataType::I32, 32);
  Status status = run(text, "strange", {}, {{xb}, {}});
  ASSERT_FALSE(status.isOk());
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("the simulator cannot run this inline assembly: 'vabsdiff4.u32.u32.u32 $0, $1, $1, 0'"));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("it models mov, add"));
}

} // namespace
} // namespace ditron::e2e
