//===- DeviceFunctions.cpp - libdevice on the host: the table, functions of floats --------------------------------------===//
//
// See DeviceFunctions.h. Here is what the C library knows, and combinations of it; directions of rounding, integers and bits are in
// DeviceRounding.cpp, what the C library lacks is in SpecialFunctions.cpp.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/arithmetic/DeviceFunctions.h"

#include <climits>
#include <cmath>
#include <cstdint>
#include <numbers>

// NOLINTBEGIN: the names are NVIDIA's.
extern "C" {

/// A function of fp64 and the same of fp32, rounded once.
#define FLOATS_1(name, expression)                                                                                     \
  double __nv_##name(double x) { return expression; }                                                                  \
  float __nv_##name##f(float x) { return static_cast<float>(__nv_##name(static_cast<double>(x))); }
#define FLOATS_2(name, expression)                                                                                     \
  double __nv_##name(double x, double y) { return expression; }                                                        \
  float __nv_##name##f(float x, float y) { return static_cast<float>(__nv_##name(static_cast<double>(x), static_cast<double>(y))); }

FLOATS_1(fabs, std::fabs(x))
FLOATS_1(floor, std::floor(x))
FLOATS_1(ceil, std::ceil(x))
FLOATS_1(trunc, std::trunc(x))
FLOATS_1(round, std::round(x))
FLOATS_1(rint, std::nearbyint(x))
FLOATS_1(nearbyint, std::nearbyint(x))
FLOATS_1(sqrt, std::sqrt(x))
FLOATS_1(rsqrt, 1 / std::sqrt(x))
FLOATS_1(cbrt, std::cbrt(x))
FLOATS_1(rcbrt, 1 / std::cbrt(x))
FLOATS_1(exp, std::exp(x))
FLOATS_1(exp2, std::exp2(x))
FLOATS_1(exp10, std::pow(10.0, x))
FLOATS_1(expm1, std::expm1(x))
FLOATS_1(log, std::log(x))
FLOATS_1(log2, std::log2(x))
FLOATS_1(log10, std::log10(x))
FLOATS_1(log1p, std::log1p(x))
FLOATS_1(logb, std::logb(x))
FLOATS_1(sin, std::sin(x))
FLOATS_1(cos, std::cos(x))
FLOATS_1(tan, std::tan(x))
FLOATS_1(asin, std::asin(x))
FLOATS_1(acos, std::acos(x))
FLOATS_1(atan, std::atan(x))
FLOATS_1(sinh, std::sinh(x))
FLOATS_1(cosh, std::cosh(x))
FLOATS_1(tanh, std::tanh(x))
FLOATS_1(asinh, std::asinh(x))
FLOATS_1(acosh, std::acosh(x))
FLOATS_1(atanh, std::atanh(x))
FLOATS_1(erf, std::erf(x))
FLOATS_1(erfc, std::erfc(x))
FLOATS_1(erfcx, ditron::sim::scaledErfc(x))
FLOATS_1(erfinv, ditron::sim::inverseErf(x))
FLOATS_1(erfcinv, ditron::sim::inverseErfc(x))
FLOATS_1(normcdf, 0.5 * std::erfc(-x * (std::numbers::sqrt2 / 2)))
FLOATS_1(normcdfinv, -std::numbers::sqrt2 * ditron::sim::inverseErfc(2 * x))
FLOATS_1(lgamma, std::lgamma(x))
FLOATS_1(tgamma, std::tgamma(x))
FLOATS_1(j0, ::j0(x))
FLOATS_1(j1, ::j1(x))
FLOATS_1(y0, ::y0(x))
FLOATS_1(y1, ::y1(x))
FLOATS_1(cyl_bessel_i0, ditron::sim::besselI(0, x))
FLOATS_1(cyl_bessel_i1, ditron::sim::besselI(1, x))

FLOATS_2(copysign, std::copysign(x, y))
FLOATS_2(atan2, std::atan2(x, y))
FLOATS_2(hypot, std::hypot(x, y))
FLOATS_2(rhypot, 1 / std::hypot(x, y))
FLOATS_2(fmod, std::fmod(x, y))
FLOATS_2(remainder, std::remainder(x, y))
FLOATS_2(fdim, std::fdim(x, y))
FLOATS_2(pow, std::pow(x, y))

/// sin and cos of pi * x: the multiple of a half turn is exact, the rest is small.
double __nv_sinpi(double x) {
  if (!std::isfinite(x))
    return NAN;
  double turn = std::fmod(x, 2.0), quarter = std::nearbyint(2 * turn), rest = (turn - quarter / 2) * std::numbers::pi;
  if (turn == std::trunc(turn))
    return std::copysign(0.0, x);
  switch (static_cast<int>(quarter) & 3) {
  case 0: return std::sin(rest);
  case 1: return std::cos(rest);
  case 2: return -std::sin(rest);
  default: return -std::cos(rest);
  }
}
double __nv_cospi(double x) {
  if (!std::isfinite(x))
    return NAN;
  double turn = std::fmod(std::fabs(x), 2.0), quarter = std::nearbyint(2 * turn), rest = (turn - quarter / 2) * std::numbers::pi;
  switch (static_cast<int>(quarter) & 3) {
  case 0: return std::cos(rest);
  case 1: return 0.0 - std::sin(rest);
  case 2: return -std::cos(rest);
  default: return std::sin(rest);
  }
}
float __nv_sinpif(float x) { return static_cast<float>(__nv_sinpi(x)); }
float __nv_cospif(float x) { return static_cast<float>(__nv_cospi(x)); }

float __nv_nextafterf(float x, float y) { return std::nextafter(x, y); }
double __nv_nextafter(double x, double y) { return std::nextafter(x, y); }

double __nv_norm3d(double x, double y, double z) { return std::hypot(x, y, z); }
float __nv_norm3df(float x, float y, float z) { return static_cast<float>(__nv_norm3d(x, y, z)); }
double __nv_rnorm3d(double x, double y, double z) { return 1 / std::hypot(x, y, z); }
float __nv_rnorm3df(float x, float y, float z) { return static_cast<float>(__nv_rnorm3d(x, y, z)); }
double __nv_norm4d(double x, double y, double z, double w) { return std::hypot(std::hypot(x, y, z), w); }
float __nv_norm4df(float x, float y, float z, float w) { return static_cast<float>(__nv_norm4d(x, y, z, w)); }
double __nv_rnorm4d(double x, double y, double z, double w) { return 1 / __nv_norm4d(x, y, z, w); }
float __nv_rnorm4df(float x, float y, float z, float w) { return static_cast<float>(__nv_rnorm4d(x, y, z, w)); }

double __nv_yn(int32_t n, double x) { return ::yn(n, x); }
float __nv_ynf(int32_t n, float x) { return static_cast<float>(::yn(n, x)); }
double __nv_jn(int32_t n, double x) { return ::jn(n, x); }
float __nv_jnf(int32_t n, float x) { return static_cast<float>(::jn(n, x)); }

double __nv_ldexp(double x, int32_t n) { return std::ldexp(x, n); }
float __nv_ldexpf(float x, int32_t n) { return std::ldexp(x, n); }
double __nv_scalbn(double x, int32_t n) { return std::ldexp(x, n); }
float __nv_scalbnf(float x, int32_t n) { return std::ldexp(x, n); }
double __nv_powi(double x, int32_t n) { return std::pow(x, static_cast<double>(n)); }
float __nv_powif(float x, int32_t n) { return static_cast<float>(std::pow(static_cast<double>(x), static_cast<double>(n))); }
int32_t __nv_ilogb(double x) { return std::ilogb(x); }
int32_t __nv_ilogbf(float x) { return std::ilogb(x); }

double __nv_fma(double x, double y, double z) { return std::fma(x, y, z); }
float __nv_fmaf(float x, float y, float z) { return std::fma(x, y, z); }
float __nv_saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

float __nv_fast_fdividef(float x, float y) { return x / y; }
float __nv_fast_sinf(float x) { return __nv_sinf(x); }
float __nv_fast_cosf(float x) { return __nv_cosf(x); }
float __nv_fast_tanf(float x) { return __nv_tanf(x); }
float __nv_fast_log2f(float x) { return __nv_log2f(x); }
float __nv_fast_logf(float x) { return __nv_logf(x); }
float __nv_fast_log10f(float x) { return __nv_log10f(x); }
float __nv_fast_expf(float x) { return __nv_expf(x); }
float __nv_fast_exp10f(float x) { return __nv_exp10f(x); }
float __nv_fast_powf(float x, float y) { return __nv_powf(x, y); }

int32_t __nv_isnanf(float x) { return std::isnan(x); }
int32_t __nv_isnand(double x) { return std::isnan(x); }
int32_t __nv_isinff(float x) { return std::isinf(x); }
int32_t __nv_isinfd(double x) { return std::isinf(x); }
int32_t __nv_finitef(float x) { return std::isfinite(x); }
int32_t __nv_isfinited(double x) { return std::isfinite(x); }
int32_t __nv_signbitf(float x) { return std::signbit(x); }
int32_t __nv_signbitd(double x) { return std::signbit(x); }

// Only their addresses are wanted; those defined above keep their types.
} // extern "C"

namespace {
namespace address {
extern "C" {
#define DITRON_LIBDEVICE(name, symbol, result, operands) extern const char address_of_##symbol __asm__(#symbol);
#include "ditron/support/Libdevice.def"
}
} // namespace address
} // namespace

namespace ditron::sim {

std::span<const AbiSymbol> deviceFunctions() {
#define DITRON_LIBDEVICE(name, symbol, result, operands) {#symbol, const_cast<char *>(&address::address_of_##symbol)},
  static const AbiSymbol functions[] = {
#include "ditron/support/Libdevice.def"
  };
  return functions;
}

} // namespace ditron::sim
// NOLINTEND
