//===- AttentionOperands.h - Operands of ditron bench attention ----------------------------------------------*- C++ -*-===//
//
// A problem with its operands in a GPU's memory, and the plain reference that reads the same numbers.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_BENCH_ATTENTIONOPERANDS_H
#define DITRON_TOOLS_DITRON_BENCH_ATTENTIONOPERANDS_H

#include "base/NormalData.h"
#include "bench/KernelBench.h"

#include "ditron/ops/attention/AttentionBackward.h"
#include "ditron/ops/attention/AttentionReference.h"

namespace ditron::tool {

class AttentionOperands {
public:
  /// Batches are as long as `sizes` (of the shape) say, those of packed rows from that down to half of it.
  static Expected<AttentionOperands> create(const AttentionBenchOptions &options, runtime::Rank &rank,
                                            const NormalData &data, std::span<const int64_t> sizes, DataType dtype);

  ops::AttentionOperands forward() const;
  ops::AttentionBackwardOperands backward() const;
  double flops() const;

  /// The reference; it reads `data`.
  ops::AttentionReference reference(const NormalData &data) const;
  ops::AttentionElement gradientElement(const NormalData &data) const;
  int64_t rowsOf(int64_t batch) const { return lengths.empty() ? problem.queries : lengths[batch]; }
  uint64_t queryPlace(int64_t batch, int64_t head, int64_t row, int64_t column, int64_t dim) const;
  uint64_t keyPlace(int64_t batch, int64_t head, int64_t row, int64_t column, int64_t dim) const;
  uint64_t lsePlace(int64_t batch, int64_t head, int64_t row) const;

  ops::AttentionProblem problem;
  runtime::Buffer q, k, v, out, lse;
  runtime::Buffer gradient, dq, dk, dv; ///< Of the backward.

private:
  uint64_t valuePlace(int64_t batch, int64_t head, int64_t row, int64_t column) const;
  Status allocate(const AttentionBenchOptions &options, runtime::Rank &rank, const NormalData &data);
  Status allocateOptions(const AttentionBenchOptions &options, runtime::Rank &rank);

  std::vector<int64_t> lengths, offsets; ///< Of packed rows.
  std::vector<int32_t> table;
  std::vector<double> sinkValues, slopeValues;
  std::optional<runtime::Buffer> sinks, slopes, offsetBuffer, tableBuffer;
};

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_BENCH_ATTENTIONOPERANDS_H
