//===- DeviceRounding.cpp - libdevice on the host: directions of rounding, integers, bits ------------------------------===//
//
// Arithmetic that rounds in a direction uses the processor's rounding modes; operands and results pass through volatile variables, so
// that the compiler neither computes them itself nor moves them out of the mode. Conversions to integers saturate, and give 0 for NaN
// (the smallest number, or half of the unsigned range, where one side has 64 bits), as cvt does.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace {

template <typename Compute> auto rounded(int mode, Compute compute) {
  int before = std::fegetround();
  std::fesetround(mode);
  volatile auto result = compute();
  std::fesetround(before);
  return static_cast<std::remove_volatile_t<decltype(result)>>(result);
}

/// A float rounded to an integral value in a direction, then to an integer type.
template <typename Int, typename Float> Int toInteger(int mode, Float x) {
  using Limits = std::numeric_limits<Int>;
  if (std::isnan(x)) {
    bool isWide = sizeof(Int) == 8 || sizeof(Float) == 8;
    return isWide && sizeof(Int) == 8 ? static_cast<Int>(uint64_t(1) << 63) : Int(0);
  }
  Float integral = mode == FE_TOWARDZERO ? std::trunc(x) : mode == FE_DOWNWARD ? std::floor(x) : mode == FE_UPWARD ? std::ceil(x) : std::nearbyint(x);
  // The upper limit plus one is a power of two and exact.
  Float above = std::ldexp(Float(1), Limits::digits);
  if (integral >= above)
    return Limits::max();
  if (integral < static_cast<Float>(Limits::min()))
    return Limits::min();
  return static_cast<Int>(integral);
}

template <typename Float, typename Int> Float fromInteger(int mode, Int x) {
  volatile Int value = x;
  return rounded(mode, [&] { return static_cast<Float>(value); });
}

} // namespace

// NOLINTBEGIN: the names are NVIDIA's.
extern "C" {

#define ARITHMETIC_2(suffix, mode, name, operation)                                                                    \
  float __nv_f##name##_##suffix(float x, float y) {                                                                    \
    volatile float a = x, b = y;                                                                                       \
    return rounded(mode, [&] { return float(a operation b); });                                                        \
  }                                                                                                                    \
  double __nv_d##name##_##suffix(double x, double y) {                                                                 \
    volatile double a = x, b = y;                                                                                      \
    return rounded(mode, [&] { return double(a operation b); });                                                       \
  }
#define ARITHMETIC_1(suffix, mode, name, expression)                                                                   \
  float __nv_f##name##_##suffix(float x) {                                                                             \
    volatile float a = x;                                                                                              \
    return rounded(mode, [&] { return float(expression); });                                                           \
  }                                                                                                                    \
  double __nv_d##name##_##suffix(double x) {                                                                           \
    volatile double a = x;                                                                                             \
    return rounded(mode, [&] { return double(expression); });                                                          \
  }
#define TO_INTEGER(suffix, mode, float_name, Float, int_name, Int)                                                     \
  Int __nv_##float_name##2##int_name##_##suffix(Float x) { return toInteger<Int>(mode, x); }
#define FROM_INTEGER(suffix, mode, int_name, Int, float_name, Float)                                                   \
  Float __nv_##int_name##2##float_name##_##suffix(Int x) { return fromInteger<Float>(mode, x); }

#define ROUNDING(suffix, mode)                                                                                         \
  ARITHMETIC_2(suffix, mode, add, +)                                                                                   \
  ARITHMETIC_2(suffix, mode, sub, -)                                                                                   \
  ARITHMETIC_2(suffix, mode, mul, *)                                                                                   \
  ARITHMETIC_2(suffix, mode, div, /)                                                                                   \
  ARITHMETIC_1(suffix, mode, rcp, 1 / a)                                                                               \
  ARITHMETIC_1(suffix, mode, sqrt, std::sqrt(a))                                                                       \
  float __nv_fmaf_##suffix(float x, float y, float z) {                                                                \
    volatile float a = x, b = y, c = z;                                                                                \
    return rounded(mode, [&] { return std::fma(float(a), float(b), float(c)); });                                      \
  }                                                                                                                    \
  double __nv_fma_##suffix(double x, double y, double z) {                                                             \
    volatile double a = x, b = y, c = z;                                                                               \
    return rounded(mode, [&] { return std::fma(double(a), double(b), double(c)); });                                   \
  }                                                                                                                    \
  float __nv_double2float_##suffix(double x) {                                                                         \
    volatile double a = x;                                                                                             \
    return rounded(mode, [&] { return static_cast<float>(a); });                                                       \
  }                                                                                                                    \
  TO_INTEGER(suffix, mode, float, float, int, int32_t)                                                                 \
  TO_INTEGER(suffix, mode, float, float, uint, uint32_t)                                                               \
  TO_INTEGER(suffix, mode, float, float, ll, int64_t)                                                                  \
  TO_INTEGER(suffix, mode, float, float, ull, uint64_t)                                                                \
  TO_INTEGER(suffix, mode, double, double, int, int32_t)                                                               \
  TO_INTEGER(suffix, mode, double, double, uint, uint32_t)                                                             \
  TO_INTEGER(suffix, mode, double, double, ll, int64_t)                                                                \
  TO_INTEGER(suffix, mode, double, double, ull, uint64_t)                                                              \
  FROM_INTEGER(suffix, mode, int, int32_t, float, float)                                                               \
  FROM_INTEGER(suffix, mode, uint, uint32_t, float, float)                                                             \
  FROM_INTEGER(suffix, mode, ll, int64_t, float, float)                                                                \
  FROM_INTEGER(suffix, mode, ull, uint64_t, float, float)                                                              \
  FROM_INTEGER(suffix, mode, ll, int64_t, double, double)                                                              \
  FROM_INTEGER(suffix, mode, ull, uint64_t, double, double)

ROUNDING(rn, FE_TONEAREST)
ROUNDING(rz, FE_TOWARDZERO)
ROUNDING(rd, FE_DOWNWARD)
ROUNDING(ru, FE_UPWARD)

double __nv_int2double_rn(int32_t x) { return x; }
double __nv_uint2double_rn(uint32_t x) { return x; }
float __nv_frsqrt_rn(float x) { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); }
/// The upper word of the reciprocal.
double __nv_rcp64h(double x) { return std::bit_cast<double>(std::bit_cast<uint64_t>(1 / x) & 0xffffffff00000000u); }

int64_t __nv_llrintf(float x) { return toInteger<int64_t>(FE_TONEAREST, x); }
int64_t __nv_llrint(double x) { return toInteger<int64_t>(FE_TONEAREST, x); }
int64_t __nv_llroundf(float x) { return toInteger<int64_t>(FE_TOWARDZERO, std::round(x)); }
int64_t __nv_llround(double x) { return toInteger<int64_t>(FE_TOWARDZERO, std::round(x)); }

float __nv_int_as_float(int32_t x) { return std::bit_cast<float>(x); }
int32_t __nv_float_as_int(float x) { return std::bit_cast<int32_t>(x); }
float __nv_uint_as_float(uint32_t x) { return std::bit_cast<float>(x); }
uint32_t __nv_float_as_uint(float x) { return std::bit_cast<uint32_t>(x); }
double __nv_longlong_as_double(int64_t x) { return std::bit_cast<double>(x); }
int64_t __nv_double_as_longlong(double x) { return std::bit_cast<int64_t>(x); }
double __nv_hiloint2double(int32_t high, int32_t low) {
  return std::bit_cast<double>(uint64_t(uint32_t(high)) << 32 | uint32_t(low));
}
int32_t __nv_double2loint(double x) { return int32_t(std::bit_cast<uint64_t>(x)); }
int32_t __nv_double2hiint(double x) { return int32_t(std::bit_cast<uint64_t>(x) >> 32); }

int32_t __nv_clz(int32_t x) { return std::countl_zero(uint32_t(x)); }
int32_t __nv_clzll(int64_t x) { return std::countl_zero(uint64_t(x)); }
int32_t __nv_popc(int32_t x) { return std::popcount(uint32_t(x)); }
int32_t __nv_popcll(int64_t x) { return std::popcount(uint64_t(x)); }
int32_t __nv_ffs(int32_t x) { return x == 0 ? 0 : std::countr_zero(uint32_t(x)) + 1; }
int32_t __nv_ffsll(int64_t x) { return x == 0 ? 0 : std::countr_zero(uint64_t(x)) + 1; }
int32_t __nv_brev(int32_t x) { return int32_t(__builtin_bitreverse32(uint32_t(x))); }
int64_t __nv_brevll(int64_t x) { return int64_t(__builtin_bitreverse64(uint64_t(x))); }
/// Byte i of the result is the byte of (y, x) that nibble i of the selector names; its highest bit does not count.
int32_t __nv_byte_perm(int32_t x, int32_t y, int32_t selector) {
  uint64_t bytes = uint64_t(uint32_t(y)) << 32 | uint32_t(x);
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i)
    result |= uint32_t(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return int32_t(result);
}

int32_t __nv_mulhi(int32_t x, int32_t y) { return int32_t(int64_t(x) * y >> 32); }
uint32_t __nv_umulhi(uint32_t x, uint32_t y) { return uint32_t(uint64_t(x) * y >> 32); }
int64_t __nv_mul64hi(int64_t x, int64_t y) { return int64_t(__int128(x) * y >> 64); }
uint64_t __nv_umul64hi(uint64_t x, uint64_t y) { return uint64_t((unsigned __int128)(x) * y >> 64); }
/// The product of the lower 24 bits, its lower 32 bits.
int32_t __nv_mul24(int32_t x, int32_t y) {
  return int32_t(int64_t(int32_t(uint32_t(x) << 8) >> 8) * (int32_t(uint32_t(y) << 8) >> 8));
}
uint32_t __nv_umul24(uint32_t x, uint32_t y) { return uint32_t(uint64_t(x & 0xffffff) * (y & 0xffffff)); }
int32_t __nv_sad(int32_t x, int32_t y, uint32_t z) {
  int64_t difference = int64_t(x) - y;
  return int32_t(uint32_t(difference < 0 ? -difference : difference) + z);
}
uint32_t __nv_usad(uint32_t x, uint32_t y, uint32_t z) { return (x > y ? x - y : y - x) + z; }
int32_t __nv_hadd(int32_t x, int32_t y) { return int32_t((int64_t(x) + y) >> 1); }
uint32_t __nv_uhadd(uint32_t x, uint32_t y) { return uint32_t((uint64_t(x) + y) >> 1); }
int32_t __nv_rhadd(int32_t x, int32_t y) { return int32_t((int64_t(x) + y + 1) >> 1); }
uint32_t __nv_urhadd(uint32_t x, uint32_t y) { return uint32_t((uint64_t(x) + y + 1) >> 1); }
int32_t __nv_abs(int32_t x) { return x < 0 ? int32_t(0u - uint32_t(x)) : x; }
int64_t __nv_llabs(int64_t x) { return x < 0 ? int64_t(0ull - uint64_t(x)) : x; }

} // extern "C"
// NOLINTEND
