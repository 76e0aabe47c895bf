//===- TuneSpace.h - The plans that are worth a trial ---------------------------------------------------------*- C++ -*-===//
//
// All plans of an operator are hundreds; a trial takes seconds. A model of the machine says how long a call would take by each, and the
// best tens are tried. The model counts what no plan can hide:
//
//   product    waves of tiles over the multiprocessors that communication leaves it, each tile bound by multiplying, by its operands or
//              by its share of the memory's bandwidth (ditron/predict/ProductModel.h)
//   exchange   bytes that a rank sends over its link, at the share of it that copy engines, or so many blocks, reach
//   overlap    the longer of both, and what of the shorter one cannot begin before or end after it
//   the rest   launches, signals, copies: a constant each
//
// Only the order of its times counts, so that a machine that is described roughly is enough.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_TUNESPACE_H
#define DITRON_TOOLS_DITRON_TUNESPACE_H

#include "ditron/ops/collectives/CollectivePlans.h"
#include "ditron/ops/plans/PlanTable.h"
#include "ditron/predict/MachineDescription.h"
#include "ditron/runtime/Device.h"
#include "ditron/support/TargetName.h"

#include <vector>

namespace ditron::tool {

/// One shape, as `ditron bench` takes it.
struct TuneProblem {
  std::string op; ///< Of ops::plannedOperators().
  uint32_t ranks = 1;
  DataType dtype = DataType::BF16;
  int64_t m = 0, n = 0, k = 0; ///< Of products: of the whole; of grouped ones m is the number of tokens.
  int64_t bytes = 0; ///< Of collectives; of all_reduce_rms_norm those of its rows, which have so many columns.
  int64_t columns = 0;
  int64_t experts = 0, topK = 0;                                   ///< Of grouped products.
  int64_t queries = 0, batch = 1, heads = 0, kvHeads = 0, dim = 0; ///< Of attention, with as many keys as queries.

  bool isCollective() const { return bytes > 0; }
  bool isRmsNorm() const { return op == ops::rmsNormOperator; }
  int64_t rowsOfNorm() const { return bytes / (columns * static_cast<int64_t>(sizeOf(dtype))); }
  bool isGrouped() const { return experts > 0; }
  bool isAttention() const { return queries > 0; }
  bool isCausal() const { return op == "causal_attention"; }
  bool isGathered() const { return op == "gathered_gemm"; }
  /// Whose benchmark takes several plans and times them in turns.
  bool comparesPlans() const { return op == "gemm" || isAttention(); }
  /// The size that tuned shapes differ in, by which rows are found: rows, bytes or queries.
  int64_t firstSize() const;
  /// What the library asks the tables for, that size first.
  ops::PlanSizes sizes() const;
  /// Of a rank's product: ag_gemm deals the columns out, gemm_rs and gemm_ar the depth.
  int64_t ownColumns() const;
  int64_t ownDepth() const;
  /// "m 64 n 8192 k 28672", "bytes 65536", "tokens 64 n 4096 k 2048 experts 64 top 2".
  std::string text() const;
};

struct TuneMachine {
  TargetName target;
  runtime::DeviceAttributes gpu;
  predict::MachineDescription model; ///< With the GPU's multiprocessors.
};
/// The description of the GPU by its name, or of the H100 for one that has none.
Expected<TuneMachine> tuneMachine(const TargetName &target, const runtime::DeviceAttributes &gpu);

struct Candidate {
  std::string plan;
  double predictedMicroseconds = 0;
};

/// At most `most`, the best predicted first; but what the library does now is the first of all. Never empty.
Expected<std::vector<Candidate>> candidatesFor(const TuneProblem &problem, const TuneMachine &machine, size_t most);
/// The plan with all its words, as tables have it.
Expected<std::string> canonicalPlan(const std::string &op, const std::string &plan);
/// What the model says of a plan.
Expected<double> predictedMicroseconds(const TuneProblem &problem, const TuneMachine &machine, const std::string &plan);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_TUNESPACE_H
