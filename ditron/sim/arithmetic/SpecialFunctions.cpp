//===- SpecialFunctions.cpp - Functions that the C library lacks ---------------------------------------------------------===//
//
// Inverse error functions by Halley's method, the scaled error function by its definition and its asymptotic series, Bessel functions
// by their power and asymptotic series. In extended precision where a difference of large numbers would cost digits; relative errors
// are some 1e-14.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/arithmetic/DeviceFunctions.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace ditron::sim {

double inverseErfc(double z) {
  if (std::isnan(z) || z < 0 || z > 2)
    return std::numeric_limits<double>::quiet_NaN();
  if (z == 0 || z == 2)
    return z == 0 ? HUGE_VAL : -HUGE_VAL;
  if (z > 1)
    return -inverseErfc(2 - z);
  // A first guess from the tail, erfc(x) ~ exp(-x * x) / (x * sqrt(pi)), or from the slope at 0.
  long double guess = z < 0.5 ? std::sqrt(std::log(1.0L / z)) : (1.0L - z) * 0.9L;
  if (z < 1e-3)
    guess = std::sqrt(std::log(1.0L / (z * std::sqrt(std::numbers::pi_v<long double> * std::log(1.0L / z)))));
  for (int step = 0; step < 40; ++step) {
    long double slope = -2 * std::numbers::inv_sqrtpi_v<long double> * std::exp(-guess * guess);
    long double newton = (std::erfc(guess) - z) / slope;
    long double change = newton / (1 + guess * newton); // the second derivative is -2 x times the first
    guess -= change;
    if (std::fabs(change) <= 1e-17L * std::fabs(guess))
      break;
  }
  return static_cast<double>(guess);
}

double inverseErf(double y) {
  if (std::fabs(y) >= 0.5)
    return std::copysign(inverseErfc(1 - std::fabs(y)), y);
  long double guess = y / (2 * std::numbers::inv_sqrtpi_v<long double>);
  for (int step = 0; step < 20 && !std::isnan(y); ++step) {
    long double slope = 2 * std::numbers::inv_sqrtpi_v<long double> * std::exp(-guess * guess);
    long double newton = (std::erf(guess) - y) / slope;
    guess -= newton / (1 + guess * newton);
  }
  return std::isnan(y) ? y : static_cast<double>(guess);
}

double scaledErfc(double x) {
  if (x < 50) {
    long double wide = x;
    return static_cast<double>(std::exp(wide * wide) * std::erfc(wide));
  }
  double inverse = 1 / (2 * x * x);
  return std::numbers::inv_sqrtpi / x * (1 - inverse * (1 - 3 * inverse * (1 - 5 * inverse)));
}

double besselI(int order, double x) {
  double size = std::fabs(x), sign = order == 1 && x < 0 ? -1 : 1;
  if (std::isnan(x))
    return x;
  if (size <= 30) {
    // Sum of (x / 2)^(2k + n) / (k! (k + n)!): all terms are positive.
    double quarter = size * size / 4, term = order == 0 ? 1 : size / 2, sum = term;
    for (int k = 1; term > sum * 1e-18; ++k)
      sum += term *= quarter / (static_cast<double>(k) * (k + order));
    return sign * sum;
  }
  if (std::isinf(size))
    return sign * size;
  // exp(x) / sqrt(2 pi x) * (1 - (m - 1) / (8x) + (m - 1)(m - 9) / (2! (8x)^2) - ...), m = 4 n^2.
  double m = 4.0 * order * order, term = 1, sum = 1;
  for (int k = 1; k < 60; ++k) {
    double odd = 2 * k - 1, next = -term * (m - odd * odd) / (k * 8 * size);
    if (std::fabs(next) >= std::fabs(term))
      break;
    sum += term = next;
  }
  // In two factors, so that the exponential does not overflow before the result does.
  double half = std::exp(size / 2);
  return sign * (half / std::sqrt(2 * std::numbers::pi * size) * sum) * half;
}

} // namespace ditron::sim
