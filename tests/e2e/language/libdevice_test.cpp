//===- libdevice_test.cpp - Functions of libdevice -----------------------------------------------------------------------===//
//
// Integer, bit and rounding functions exactly; of the others one value or identity each, computed here by other means.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "KernelTest.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::e2e {
namespace {

class LibdeviceFunctions : public KernelTest {
protected:
  /// The results of one expression for each element of x (and y = the next one).
  template <typename Out, typename In> std::vector<Out> apply(const std::string &expression, const std::vector<In> &x) {
    std::string text = fmt::format(R"(
from triton.language.extra import libdevice
@triton.jit
def apply(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = tl.load(x_ptr + (i + 1) % N)
    tl.store(out_ptr + i, {})
)",
                                   expression);
    Buffer xb = put(x), out = zeros(dataTypeOf<Out>(), x.size());
    EXPECT_OK(run(text, "apply", {.numWarps = 1}, {{xb, out}, {{"N", static_cast<int64_t>(x.size())}}}));
    return get<Out>(out);
  }
  template <typename Out, typename In>
  void expect(const std::string &expression, const std::vector<In> &x, Out (*reference)(In, In)) {
    std::vector<Out> expected;
    for (size_t i = 0; i < x.size(); ++i)
      expected.push_back(reference(x[i], x[(i + 1) % x.size()]));
    expectSame(apply<Out>(expression, x), expected, expression);
  }
};

TEST_F(LibdeviceFunctions, IntegersAndBits) {
  std::vector<int32_t> x = {0, 1, -1, 0x12345678, INT32_MIN, INT32_MAX, -12345, 0x00ffffff};
  expect<int32_t, int32_t>("libdevice.clz(x)", x, [](int32_t a, int32_t) { return a == 0 ? 32 : __builtin_clz(a); });
  expect<int32_t, int32_t>("libdevice.popc(x)", x, [](int32_t a, int32_t) { return __builtin_popcount(a); });
  expect<int32_t, int32_t>("libdevice.ffs(x)", x, [](int32_t a, int32_t) { return __builtin_ffs(a); });
  expect<int32_t, int32_t>("libdevice.brev(x)", x, [](int32_t a, int32_t) {
    uint32_t r = 0;
    for (int i = 0; i < 32; ++i)
      r |= (uint32_t(a) >> i & 1) << (31 - i);
    return int32_t(r);
  });
  expect<int32_t, int32_t>("libdevice.mulhi(x, y)", x, [](int32_t a, int32_t b) { return int32_t(int64_t(a) * b >> 32); });
  expect<int32_t, int32_t>("libdevice.hadd(x, y)", x, [](int32_t a, int32_t b) { return int32_t((int64_t(a) + b) >> 1); });
  expect<int32_t, int32_t>("libdevice.rhadd(x, y)", x, [](int32_t a, int32_t b) { return int32_t((int64_t(a) + b + 1) >> 1); });
  expect<int32_t, int32_t>("libdevice.byte_perm(x, y, 0x7310)", x, [](int32_t a, int32_t b) {
    uint32_t u = a, v = b;
    return int32_t((u & 0xff) | (u >> 8 & 0xff) << 8 | (u >> 24) << 16 | (v >> 24) << 24);
  });
  expect<int32_t, int32_t>("libdevice.sad(x, y, y.to(tl.uint32))", x,
                           [](int32_t a, int32_t b) { return int32_t(uint32_t(std::abs(int64_t(a) - b)) + uint32_t(b)); });
  std::vector<int64_t> wide = {0, 1, -1, INT64_MIN, INT64_MAX, 0x123456789abcdef};
  wide.resize(8, 42);
  expect<int32_t, int64_t>("libdevice.clz(x)", wide, [](int64_t a, int64_t) { return a == 0 ? 64 : __builtin_clzll(a); });
  expect<int64_t, int64_t>("libdevice.mulhi(x, y)", wide, [](int64_t a, int64_t b) { return int64_t(__int128(a) * b >> 64); });
}

TEST_F(LibdeviceFunctions, DirectionsOfRounding) {
  std::vector<float> x = {1, 3, 1e8f, 1.5f, -2.5f, 0.1f, 1e-9f, 7};
  for (auto [suffix, sign] : {std::pair("rd", -1), std::pair("ru", 1)})
    for (std::string name : {"add", "mul", "div"}) {
      std::vector<float> down = apply<float>(fmt::format("libdevice.{}_{}(x, y)", name, suffix), x);
      for (size_t i = 0; i < x.size(); ++i) {
        long double a = x[i], b = x[(i + 1) % x.size()], exact = name == "add" ? a + b : name == "mul" ? a * b : a / b;
        // The float on that side of the exact result.
        float expected = static_cast<float>(exact);
        if (sign < 0 ? expected > exact : expected < exact)
          expected = std::nextafter(expected, static_cast<float>(sign * HUGE_VAL));
        EXPECT_EQ(down[i], expected) << name << "_" << suffix << " of " << x[i];
      }
    }
  expect<int32_t, float>("libdevice.float2int_rd(x)", {2.5f, -2.5f, 1e20f, -1e20f, NAN, 0, 1.9f, -0.1f},
                         [](float a, float) { return std::isnan(a) ? 0 : a > 2e9f ? INT32_MAX : a < -2e9f ? INT32_MIN : int32_t(std::floor(a)); });
  expect<int32_t, float>("libdevice.float2int_rn(x)", {2.5f, -2.5f, 3.5f, 0.5f, 1.4f, 0, 1.9f, -0.1f},
                         [](float a, float) { return int32_t(std::nearbyint(a)); });
  expect<float, int32_t>("libdevice.int2float_rz(x)", {16777217, -16777217, 2147483647, 5},
                         [](int32_t a, int32_t) { return a == 2147483647 ? 2147483520.0f : a > 100 ? 16777216.0f : a < 0 ? -16777216.0f : 5.0f; });
}

TEST_F(LibdeviceFunctions, PredicatesAndParts) {
  std::vector<float> x = {0, -0.0f, NAN, INFINITY, -INFINITY, 1.5f, -3.25f, 1e-40f};
  expect<int32_t, float>("libdevice.isnan(x)", x, [](float a, float) { return int32_t(std::isnan(a)); });
  expect<int32_t, float>("(libdevice.isinf(x) != 0).to(tl.int32)", x, [](float a, float) { return int32_t(std::isinf(a)); });
  expect<int32_t, float>("(libdevice.signbit(x) != 0).to(tl.int32)", x, [](float a, float) { return int32_t(std::signbit(a)); });
  expect<float, float>("libdevice.copysign(x, y)", x, [](float a, float b) { return std::copysign(a, b); });
  expect<float, float>("libdevice.saturatef(x)", x, [](float a, float) { return a > 0 ? std::min(a, 1.0f) : 0.0f; });
  expect<float, float>("libdevice.fmod(x, y)", {5, 3, -7.5f, 2, 0.3f, 0.1f, 9, 4}, [](float a, float b) { return std::fmod(a, b); });
  expect<int32_t, float>("libdevice.float_as_int(x)", x, [](float a, float) { return std::bit_cast<int32_t>(a); });
  expect<float, float>("libdevice.ldexp(x, 3)", x, [](float a, float) { return a * 8; });
}

/// Known values, from tables.
TEST_F(LibdeviceFunctions, SpecialFunctions) {
  struct Known {
    const char *expression;
    std::vector<double> expected; ///< For x = 0.25, 0.5, 1, 1.75, as many as are given.
  };
  const Known known[] = {
      {"libdevice.j0(x)", {0.98443592929585, 0.93846980724081, 0.76519768655797, 0.36903253018515}},
      {"libdevice.y0(x)", {-0.93157302493005, -0.44451873350670, 0.08825696421568}},
      {"libdevice.cyl_bessel_i0(x)", {1.0156861412236, 1.0634833707413, 1.2660658777520, 1.9252521538585}},
      {"libdevice.cyl_bessel_i1(x)", {0.12597910894546, 0.25789430539089, 0.56515910399249, 1.2555375122402}},
      {"libdevice.erfcx(x)", {0.77034654773099, 0.61569034419292, 0.42758357615580, 0.28497223473744}},
      {"libdevice.normcdf(x)", {0.59870632568292, 0.69146246127401, 0.84134474606854, 0.95994084313618}},
      {"libdevice.erfinv(x / 2)", {0.11123545184095, 0.22531205501218, 0.47693627620447, 1.0847870400693}},
      {"libdevice.erfcinv(x)", {0.81341984759762, 0.47693627620447, 0.0, -0.81341984759762}},
      {"libdevice.normcdfinv(x / 2)", {-1.1503493803760, -0.67448975019608, 0.0, 1.1503493803760}},
      {"libdevice.tgamma(x)", {3.6256099082219, 1.7724538509055, 1.0, 0.91906252684889}},
      {"libdevice.sinpi(x)", {0.70710678118655, 1.0, 0.0, -0.70710678118655}},
      {"libdevice.rcbrt(x)", {1.5874010519682, 1.2599210498949, 1.0, 0.82982653366235}},
      {"libdevice.norm3d(x, x, x)", {0.43301270189222, 0.86602540378444, 1.7320508075689, 3.0310889132455}},
      {"libdevice.exp10(x)", {1.7782794100389, 3.1622776601684, 10.0, 56.234132519035}},
  };
  for (const Known &each : known) {
    std::vector<double> x = {0.25, 0.5, 1, 1.75};
    std::vector<double> actual = apply<double>(each.expression, x);
    actual.resize(each.expected.size());
    expectClose(actual, each.expected, 1e-9, 1e-12, each.expression);
  }
}

TEST_F(LibdeviceFunctions, OtherTypesAreRefused) {
  Buffer x = zeros(DataType::F16, 16);
  Status status = run(R"(
from triton.language.extra import libdevice
@triton.jit
def refused(x_ptr):
    i = tl.arange(0, 16)
    tl.store(x_ptr + i, libdevice.tgamma(tl.load(x_ptr + i)))
)",
                      "refused", {}, {{x}, {}});
  ASSERT_FALSE(status.isOk());
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("libdevice.tgamma takes (fp32), (fp64), but got (fp16)"));
}

} // namespace
} // namespace ditron::e2e
