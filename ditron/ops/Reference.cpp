//===- Reference.cpp - Plain references for the operators -------------------------------------------------------------===//
#include "ditron/ops/Reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ditron::ops {

std::vector<float> randomValues(DataType type, int64_t count, uint64_t seed) {
  std::vector<float> values(count);
  // SplitMix64 (Steele, Lea, Flood 2014): a full-period generator that any machine repeats exactly.
  uint64_t state = seed * 0x9E3779B97F4A7C15ull + 0x2545F4914F6CDD1Dull;
  for (float &value : values) {
    state += 0x9E3779B97F4A7C15ull;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    value = static_cast<float>(z >> 40) / static_cast<float>(1 << 24) - 0.5f;
  }
  if (isInteger(type))
    for (float &value : values)
      value = std::floor(value * 256);
  std::vector<std::byte> rounded = fromFloats(type, values.data(), values.size());
  return toFloats(type, rounded.data(), values.size());
}

double randomValuesSize(DataType type) { return (isInteger(type) ? 256 : 1) / std::sqrt(12.0); }

double roundedTo(DataType type, double value) {
  std::byte bytes[sizeof(double)];
  storeElement(type, bytes, value);
  return loadElement(type, bytes);
}

std::vector<double> referenceProduct(std::span<const float> a, std::span<const float> b, int64_t m, int64_t n,
                                     int64_t k) {
  std::vector<double> bWide(b.begin(), b.end());
  std::vector<double> c(m * n, 0.0);
  for (int64_t row = 0; row < m; ++row)
    for (int64_t depth = 0; depth < k; ++depth) {
      double factor = a[row * k + depth];
      const double *bRow = &bWide[depth * n];
      double *cRow = &c[row * n];
      for (int64_t column = 0; column < n; ++column)
        cRow[column] += factor * bRow[column];
    }
  return c;
}

Tolerance toleranceFor(DataType type, MultiplyPrecision precision) {
  switch (type) {
  case DataType::BF16: return {1.6e-2};
  case DataType::F16: return {2e-3};
  default: return {precision == MultiplyPrecision::Tf32 ? 5e-3 : 1e-5};
  }
}

void Comparison::merge(const Comparison &other) {
  double error = std::max(maxError, other.maxError);
  if (other.worstRatio > worstRatio)
    *this = other;
  maxError = error;
}

Comparison compare(std::span<const float> actual, std::span<const double> expected, Tolerance tolerance,
                   std::span<const double> usual) {
  double squares = 0;
  for (double value : expected)
    squares += value * value;
  double rootMeanSquare = expected.empty() ? 0 : std::sqrt(squares / expected.size());
  Comparison result;
  for (size_t index = 0; index < expected.size(); ++index) {
    double error = std::abs(actual[index] - expected[index]);
    if (std::isnan(error))
      error = std::numeric_limits<double>::infinity();
    const double size = usual.empty() ? rootMeanSquare : std::max(rootMeanSquare, usual[index]);
    double allowed = tolerance.relative * (std::abs(expected[index]) + size);
    result.maxError = std::max(result.maxError, error);
    double ratio = allowed > 0 ? error / allowed : (error > 0 ? std::numeric_limits<double>::infinity() : 0);
    if (ratio > result.worstRatio)
      result.worstRatio = ratio, result.allowed = allowed, result.worstIndex = static_cast<int64_t>(index);
  }
  return result;
}

} // namespace ditron::ops
