//===- AllReduceRmsNorm.h - AllReduce, residual and RMSNorm as one launch -------------------------------------*- C++ -*-===//
//
// What stands between two products of a tensor-parallel transformer layer:
//   residual' = sum over ranks of x + residual;   out = residual' / sqrt(mean(residual'^2) + epsilon) * weight
// row by row. The sum is rounded to the element type, then residual' is, and the norm is of that: the same values as the three steps
// one after the other. Few rows go by Lamport packets, in one shot or two; many by chunks, a row a chunk. Contracts as of Collective.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_COLLECTIVES_ALLREDUCERMSNORM_H
#define DITRON_OPS_COLLECTIVES_ALLREDUCERMSNORM_H

#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/KernelLaunch.h"
#include "ditron/ops/collectives/CollectivePlans.h"
#include "ditron/ops/plans/PlanAgreement.h"

#include <optional>

namespace ditron::ops {

struct AllReduceRmsNormOptions {
  DataType dtype = DataType::BF16; ///< bf16, fp16 or fp32.
  int64_t columns = 0;             ///< Of a row; rows are multiples of 16 bytes, of at most 32768 elements.
  int64_t maxRows = 0;             ///< Of any call; sizes the buffers.
  double epsilon = 1e-6;
  uint32_t concurrentCalls = 1; ///< As of CollectiveOptions.
  /// Instead of the table's row of all_reduce_rms_norm for so many bytes. Lamport, TwoShotLamport or Chunks, which are rows, whatever it says.
  std::optional<CollectivePlan> plan = std::nullopt;
};

class AllReduceRmsNorm {
public:
  static constexpr int64_t mostColumns = 32768;
  static constexpr int64_t rowAlignment = 16; ///< Bytes of which a row is a multiple.

  /// Addresses of one rank, each a multiple of 16 bytes: weight [columns], the others [rows, columns]. out and residualOut may be x and residual, one each;
  /// other overlaps with what is written are refused.
  struct Operands {
    runtime::Pointer x, residual, weight, out, residualOut;
  };

  static Expected<AllReduceRmsNorm> create(runtime::World &world, runtime::KernelProvider &kernels,
                                           const AllReduceRmsNormOptions &options);

  /// Compiles and loads what calls with so many rows need on a rank, before the first call on any. Every rank prepares the same rows in the
  /// same order: where ranks have operators of their own, a plan that differs is an error on all (plans/PlanAgreement.h).
  Status prepare(runtime::Rank &rank, int64_t rows);
  /// Whether enqueue() would take these. Nothing is enqueued.
  Status verifyCall(const runtime::Rank &rank, const Operands &operands, int64_t rows) const;
  /// Every rank must make the same sequence of calls, each with the same `rows`. In a capture the number of rows must have been prepared.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, const Operands &operands, int64_t rows);

  const AllReduceRmsNormOptions &options() const { return optionValues; }
  CollectivePlan planFor(int64_t rows) const;

private:
  static constexpr size_t numOperands = 5;
  struct Plan {
    PreparedCall call;
    std::array<uint32_t, numOperands> parameters = {};
  };
  /// The buffers of one form.
  struct Channel {
    runtime::SymmetricBuffer slots, signals, doubts;
    std::vector<runtime::Buffer> generations;
    uint32_t blocks = 0;
    int64_t capacity = 0; ///< Packets of a block from one source.
  };

  Status keepPlan(runtime::Rank &rank, int64_t rows);
  Status allocate();
  int64_t rowsPerBlock(const CollectivePlan &plan, int64_t rows) const;
  int64_t packetsOfRow() const;
  Expected<Plan> makePlan(runtime::Rank &rank, int64_t rows) const;

  AllReduceRmsNormOptions optionValues;
  runtime::World *world = nullptr;
  std::shared_ptr<runtime::CallAgreement> callAgreement;
  runtime::KernelProvider *kernels = nullptr;
  PlanAgreement agreement;
  std::vector<CollectivePlanRow> rowsOfTable;
  Channel packets, chunks;
  std::vector<std::unique_ptr<KeptPlans<Plan>>> kept;
};

} // namespace ditron::ops
#endif // DITRON_OPS_COLLECTIVES_ALLREDUCERMSNORM_H
