//===- AxisInfo.h - Contiguity, divisibility and constancy of integers and pointers ---------------------*- C++ -*-===//
//
// What decides the width of memory accesses. For every integer or pointer tensor and each of its dimensions three
// powers of two are derived, besides the value itself when it is a known constant:
//
//   contiguity[d]    along d, aligned runs of this many elements hold v, v+1, v+2, ... (pointers: consecutive elements)
//   divisibility[d]  the first element of each such run is a multiple of this (pointers: the address in bytes)
//   constancy[d]     along d, aligned runs of this many elements are equal
//
// "Aligned" means that runs begin at indices that are multiples of the run's length. Example, 64 f16 elements at a
// pointer aligned to 16 bytes, at pid * 64 + arange(0, 64), where the mask is `offs < n` and n is a multiple of 8:
//
//   offs   contiguity 64, divisibility 64        ptr + offs   contiguity 64, divisibility 16 (bytes)
//   mask   constancy 8                           -> accesses of min(64, 16 / 2, 8) = 8 elements: 16 bytes
//
// The facts follow from arguments (`tile.divisibility`), arange, splat and promises (tile.hint) by a forward data-flow
// analysis; loops are fixpoints. A scalar has one dimension of size 1.
//
// Two assumptions are made as in Triton. Index arithmetic does not overflow. Dividends of signed divisions and
// remainders are not negative unless a subtraction or a negative constant made them (nonNegative): kernel arguments and
// loaded values are taken for sizes and indices. Divisors that are no constants are not negative.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_ANALYSIS_AXISINFO_H
#define DITRON_ANALYSIS_AXISINFO_H

#include "mlir/IR/Value.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace mlir {
class DataFlowSolver;
class Operation;
} // namespace mlir

namespace ditron::analysis {

/// What is known about one value; see the head of this file. Default-constructed: nothing was derived yet
/// (unreachable).
struct AxisInfo {
  /// Divisibility of zero and the limit of all others.
  static constexpr int64_t maxDivisibility = int64_t(1) << 40;

  llvm::SmallVector<int64_t, 4> contiguity, divisibility, constancy;
  std::optional<int64_t> constant; ///< The value of every element.
  bool nonNegative = false;        ///< Assumed not to be negative.

  /// The least that holds of any value of that type.
  static AxisInfo unknown(mlir::Type type);

  bool isInitialized() const { return !contiguity.empty(); }
  int rank() const { return static_cast<int>(contiguity.size()); }

  /// Divisibility of the elements at indices that are multiples of `run` along `dim`: those of contiguity[dim] for runs
  /// at least that long, less for shorter ones, since elements within a run differ by one unit (1, or a pointer's
  /// element).
  int64_t divisibilityAt(int dim, int64_t run, int64_t unitBytes = 1) const;

  /// What holds of a value that is one or the other. Not yet derived information is neutral.
  static AxisInfo join(const AxisInfo &lhs, const AxisInfo &rhs);
  bool operator==(const AxisInfo &) const = default;
  /// `contiguity = [1, 8], divisibility = [16, 16], constancy = [1, 1]`, and `constant = 3` when known.
  void print(llvm::raw_ostream &os) const;
};

/// The largest power of two that divides a number; maxDivisibility for zero.
int64_t powerOfTwoDivisor(int64_t value);

/// The facts about all values in an operation (a function or module), derived once. Suitable for getAnalysis.
class AxisInfoAnalysis {
public:
  explicit AxisInfoAnalysis(mlir::Operation *root);
  ~AxisInfoAnalysis();

  /// The facts about a value; those of AxisInfo::unknown when none were derived, as for values created since.
  AxisInfo getAxisInfo(mlir::Value value) const;

  /// How many elements along `dim` one access through these pointers may have, by contiguity and alignment. Not limited
  /// by the access width of any machine. 1 for scalars.
  unsigned contiguousElements(mlir::Value pointers, int dim) const;

  /// How many elements along `dim` always share one mask value.
  unsigned maskAlignment(mlir::Value mask, int dim) const;

private:
  std::unique_ptr<mlir::DataFlowSolver> solver;
};

} // namespace ditron::analysis

#endif // DITRON_ANALYSIS_AXISINFO_H
