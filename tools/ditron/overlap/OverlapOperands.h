//===- OverlapOperands.h - An overlapped operator with its data ----------------------------------------------*- C++ -*-===//
//
// What OverlapRun.cpp drives: the operator, the ranks' buffers, how the matrices are dealt out to them, and what each rank's result
// must be.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_OVERLAPOPERANDS_H
#define DITRON_TOOLS_DITRON_OVERLAPOPERANDS_H

#include "base/PlanFault.h"
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
  /// How the first rank of this process carries out the calls.
  virtual std::string plan() const = 0;
  /// That of the first rank of this process.
  runtime::Buffer &firstResult() { return operands[world.localRanks().front()].result; }

  /// The same for operands from the table. `call` chooses them.
  Status uploadSamples(uint32_t call);
  /// Largest error of sampled elements over the root mean square of the results; infinite when an element was never written.
  Expected<double> verifySamples(uint32_t call);

protected:
  struct Operands {
    runtime::Buffer a, b, result;
    runtime::Buffer scalesA, scalesB, bias; ///< Not allocated where there are none.
  };

  struct SampledErrors {
    double largest = 0, squares = 0; ///< Of the error, and the sum of the expected values' squares.
    uint64_t samples = 0;
  };
  /// Of one rank; infinite when an element was never written.
  Expected<SampledErrors> sampledErrors(uint32_t call, uint32_t id);
  /// What the epilogue makes of an element of the whole product; `row` and `column` are those of the whole result. The scales and the
  /// bias of a row or column are the same on all ranks and in all calls.
  template <typename Sum> double finished(const Sum &sum, int64_t row, int64_t column) const {
    auto value = [&](int64_t at) {
      return sum(at) * scaleOf(row, rowSalt) * scaleOf(at, columnSalt) + (options.bias ? biasOf(at) : 0.0f);
    };
    return options.activation == ops::Activation::SwiGlu
               ? activated(ops::Activation::Silu, value(2 * column)) * value(2 * column + 1)
               : activated(options.activation, value(column));
  }
  /// How large the sums behind an element of the result usually are, for operands of ops::randomValues.
  template <typename Sum> double usualSize(const Sum &sum, int64_t row, int64_t column) const {
    const double operand = ops::randomValuesSize(options.dtype);
    auto scaled = [&](double size, int64_t at) {
      return std::abs(size * scaleOf(row, rowSalt) * scaleOf(at, columnSalt));
    };
    const double size = std::sqrt(static_cast<double>(options.k)) * operand * operand;
    if (options.activation != ops::Activation::SwiGlu)
      return scaled(size, column);
    const int64_t gate = 2 * column, through = gate + 1;
    return scaled(size, gate) * scaled(sum(through), through) + scaled(sum(gate), gate) * scaled(size, through);
  }
  int64_t resultColumns(int64_t columns) const { return options.epilogue().resultColumns(columns); }
  ops::RowStrides strides(int64_t columnsA, int64_t depth, int64_t columns) const;

  /// What is wrong with a product, or with the plan or tile that was given for it.
  Status blamed(const Status &status) const {
    return options.plan || options.tile != ops::libraryTile ? blamedOnPlan(status) : status;
  }

  virtual std::pair<int64_t, int64_t> resultShape(uint32_t id) const = 0;
  /// The row and column of the whole result at which rank id's result begins.
  virtual std::pair<int64_t, int64_t> resultBegin(uint32_t id) const = 0;
  /// Element (row, column) of rank id's product, in double precision, for operands from the table.
  virtual double sampledSum(uint32_t call, uint32_t id, int64_t row, int64_t column) const = 0;
  static uint64_t saltOf(uint32_t call, uint32_t id, uint32_t operand) {
    return 1 + 2 * (uint64_t(call) * 1024 + id) + operand;
  }

  /// The results of all ranks of this process against the sums `c` [options.m, options.n].
  Expected<ops::Comparison> compareResults(const std::vector<double> &c);

  /// The matrices of a rank, and what its epilogue reads: rowsA x depth times depth x columns, where A begins at a row and B at a column
  /// of the whole problem. A rank may hold nothing of a matrix; its buffer then has one element, which nobody looks at.
  Status allocate(runtime::Rank &rank, int64_t rowsA, int64_t depth, int64_t columns, int64_t beginA, int64_t beginB);
  /// Rows of A or, by B's order, of B, with the padding.
  Status fill(runtime::Buffer &buffer, std::span<const float> values, int64_t rows, int64_t columns) const;
  Status fillWeights(runtime::Buffer &buffer, std::span<const float> values, int64_t depth, int64_t columns) const;
  ops::EpilogueOperands extras(uint32_t id) const;
  /// Where a table's element of A (row, k) and of B (k, column) is.
  int64_t placeA(int64_t row, int64_t k, int64_t depth) const { return row * (depth + options.padding) + k; }
  int64_t placeB(int64_t k, int64_t column, int64_t depth, int64_t columns) const {
    return options.weights == ops::MatrixOrder::Plain ? k * (columns + options.padding) + column
                                                      : column * (depth + options.padding) + k;
  }
  template <typename Options> Options commonOptions() const {
    Options config;
    config.dtype = options.dtype;
    config.resultType = options.resultType;
    config.epilogue = options.epilogue();
    config.maxRows = options.m;
    config.weightOrder = options.weights;
    config.precision = options.precision;
    config.tile = options.tile;
    config.plan = options.plan;
    config.concurrentCalls = options.concurrentCalls;
    return config;
  }

  static constexpr uint64_t rowSalt = 1, columnSalt = 2, biasSalt = 3;
  /// Between 0.5 and 1.5; of int8 a 64th of that.
  float scaleOf(int64_t index, uint64_t salt) const;
  float biasOf(int64_t column) const;
  static double activated(ops::Activation activation, double value);

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
