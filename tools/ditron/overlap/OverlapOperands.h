//===- OverlapOperands.h - An overlapped operator with its data ----------------------------------------------*- C++ -*-===//
//
// What OverlapRun.cpp drives: the operator, the ranks' buffers, how the matrices are dealt out to them, and what each rank's result
// must be.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_OVERLAPOPERANDS_H
#define DITRON_TOOLS_DITRON_OVERLAPOPERANDS_H

#include "overlap/OverlapRun.h"

namespace ditron::tool {

/// A range of the columns or the depth: rank r of R gets [r * total / R, (r + 1) * total / R).
struct OverlapSlice {
  int64_t begin, size;
  OverlapSlice(int64_t total, uint32_t rank, uint32_t ranks)
      : begin(total * rank / ranks), size(total * (rank + 1) / ranks - begin) {}
};

/// Products of more operations than this are compared at sampled elements only.
inline constexpr double mostCheckedFlops = 4e9;
inline constexpr uint32_t samplesPerRank = 512;

/// One operator with its operands on the ranks of this process. The derived classes know how the matrices are dealt out.
///
/// Operands come in two ways. Small problems have whole matrices, which are dealt out and whose product is compared everywhere.
/// Large ones have operands of a known table on each rank, of which no host has all: sampled elements of the result are compared.
class OverlapOperands : public TimedCalls {
public:
  OverlapOperands(const OverlapRunOptions &options, runtime::World &world, runtime::KernelProvider &kernels,
                  const NormalData *data)
      : options(options), world(world), kernels(kernels), data(data) {}

  /// Makes the operator and the ranks' buffers, and compiles.
  virtual Status create() = 0;
  /// Puts the operands of one call on the ranks.
  virtual Status upload(const std::vector<float> &a, const std::vector<float> &b) = 0;
  /// Compares the ranks' results with C = A * B.
  virtual Expected<ops::Comparison> verify(const std::vector<double> &c) = 0;
  /// What the operator chose for the shape, where it chooses.
  virtual std::string plan() const { return {}; }

  /// The same for operands from the table. `call` chooses them.
  Status uploadSamples(uint32_t call);
  /// Largest error of sampled elements over the root mean square of the results; infinite when an element was never written.
  Expected<double> verifySamples(uint32_t call);

protected:
  struct Operands {
    runtime::Buffer a, b, result;
  };

  struct SampledErrors {
    double largest = 0, squares = 0; ///< Of the error, and the sum of the expected values' squares.
    uint64_t samples = 0;
  };
  /// Of one rank; infinite when an element was never written.
  Expected<SampledErrors> sampledErrors(uint32_t call, uint32_t id);

  virtual std::pair<int64_t, int64_t> resultShape(uint32_t id) const = 0;
  /// Element (row, column) of rank id's result, in double precision, for operands from the table.
  virtual double sampledSum(uint32_t call, uint32_t id, int64_t row, int64_t column) const = 0;
  static uint64_t saltOf(uint32_t call, uint32_t id, uint32_t operand) {
    return 1 + 2 * (uint64_t(call) * 1024 + id) + operand;
  }

  /// The part of `c` [options.m, options.n] that is rows [row, row + rows), columns of `slice`, against a rank's result.
  Expected<ops::Comparison> compareBlock(const std::vector<double> &c, int64_t row, int64_t rows, OverlapSlice slice,
                                         const runtime::Buffer &result);

  /// A rank may hold nothing of a matrix; its buffer then has one element, which nobody looks at.
  Expected<runtime::Buffer> allocate(runtime::Rank &rank, int64_t count, std::string_view name) {
    return rank.allocate(options.dtype, std::max<int64_t>(count, 1), name);
  }
  static Status fill(runtime::Buffer &buffer, std::span<const float> values) {
    return values.empty() ? Status::ok() : buffer.uploadFloats(values);
  }

  const OverlapRunOptions &options;
  runtime::World &world;
  runtime::KernelProvider &kernels;
  const NormalData *data; ///< Null for whole matrices.
  std::vector<Operands> operands = std::vector<Operands>(world.numRanks());
};

/// The operands of options.op. `data` makes them; null for whole matrices.
std::unique_ptr<OverlapOperands> makeOverlapOperands(const OverlapRunOptions &options, runtime::World &world,
                                                     runtime::KernelProvider &kernels, const NormalData *data);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_OVERLAPOPERANDS_H
