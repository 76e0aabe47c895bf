//===- Reference.h - Plain references for the operators -----------------------------------------------------*- C++ -*-===//
//
// What the demo, `ditron bench --check` and the tests compare the operators with: random operands that are exactly
// representable in the operand type, a plain product in double precision, and a comparison with a tolerance per type.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_REFERENCE_H
#define DITRON_OPS_REFERENCE_H

#include "ditron/ops/GemmKernels.h"

#include <span>
#include <vector>

namespace ditron::ops {

/// Values in [-0.5, 0.5), rounded to the type; of integers the whole range of 8 bits. The same for the same seed on every machine.
std::vector<float> randomValues(DataType type, int64_t count, uint64_t seed);

/// What is read of a value that was stored as an element of the type.
double roundedTo(DataType type, double value);

/// C[m, n] = A[m, k] * B[k, n], row-major, accumulated in double.
std::vector<double> referenceProduct(std::span<const float> a, std::span<const float> b, int64_t m, int64_t n,
                                     int64_t k);

/// The root mean square of randomValues of the type.
double randomValuesSize(DataType type);

/// Allowed |actual - expected|: relative * |expected| + relative * root mean square of all expected values. The second term
/// takes the place of an absolute tolerance, scaled to the data, so that near-zero results of long sums are judged fairly. Of few results, or of
/// rows with scales of their own, it does not: there compare() is told what their sizes usually are.
struct Tolerance {
  double relative = 0;
};
/// The tolerance of a product with fp32 accumulation whose result (and partial results) are rounded to `type`.
Tolerance toleranceFor(DataType type, MultiplyPrecision precision);

struct Comparison {
  double maxError = 0;   ///< Largest |actual - expected|.
  double worstRatio = 0; ///< Largest error divided by what is allowed at that element; passes when <= 1.
  double allowed = 0;    ///< What is allowed at the element of worstRatio.
  int64_t worstIndex = 0;
  bool passed() const { return worstRatio <= 1; }
  /// The worse of the two.
  void merge(const Comparison &other);
};
/// NaN counts as infinitely wrong. `usual`: for each element how large such sums usually are, where that is more than the root mean square.
Comparison compare(std::span<const float> actual, std::span<const double> expected, Tolerance tolerance,
                   std::span<const double> usual = {});

} // namespace ditron::ops
#endif // DITRON_OPS_REFERENCE_H
