//===- GemmReduceScatter.h - out = reduce_scatter(A * B), overlapped ------------------------------------------*- C++ -*-===//
//
// Each rank holds a slice of K: A is [M, K_r], B is [K_r, N]. The GEMM computes the segments (the rows of each rank's result, see RowShards)
// in the order in which they are sent, next rank's first and own last, and opens a gate when a segment is complete; the copy
// engine pushes it to its owner and raises a signal there; the owner adds the partial results in ascending rank order in fp32
// (DITRON, appendix E.2; the protocol: docs/memory-model.md). Device code: kernels/tensor_parallel_gemm. Between nodes: NodeSums.h.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_TENSOR_PARALLEL_GEMMREDUCESCATTER_H
#define DITRON_OPS_TENSOR_PARALLEL_GEMMREDUCESCATTER_H

#include "ditron/ops/CallWords.h"
#include "ditron/ops/PlannedProduct.h"
#include "ditron/ops/tensor_parallel/NodeSums.h"
#include "ditron/ops/tensor_parallel/OneLaunch.h"
#include "ditron/ops/tensor_parallel/OverlappedTail.h"
#include "ditron/ops/tensor_parallel/PushedProduct.h"
#include "ditron/ops/tensor_parallel/UnfusedProduct.h"

namespace ditron::ops {

struct GemmReduceScatterOptions {
  DataType dtype =
      DataType::BF16; ///< Of A and B: bf16, fp16, fp32, fp8 (e4m3, e5m2) or int8. Sums are fp32, of int8 int32.
  std::optional<DataType> resultType = std::nullopt; ///< bf16, fp16 or fp32; defaultResultType when not given.
  std::optional<DataType> partialType =
      std::nullopt;    ///< Of the partial results in transit; that of the result when not given, or fp32.
  int64_t maxRows = 0; ///< Largest M of any call; sizes the buffers.
  int64_t columns = 0; ///< N.
  int64_t depth = 0;   ///< K of most calls, where it is known: for the choice of plans only. The same on all ranks.
  /// For the order of tiles, never the result: 0, the nodes of the world; in a world of one node any number that divides the ranks.
  uint32_t numNodes = 0;
  MatrixOrder weightOrder = MatrixOrder::Plain;
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  Schedule schedule = Schedule::Overlapped;
  /// Scales are applied before partial results leave a rank. The bias is given on all ranks, and added once, by rank 0. No activation.
  GemmEpilogue epilogue = {};
  TileConfig tile = libraryTile;
  /// Calls of at most so many rows are one launch (OneLaunch.h), which sends parts of tiles as soon as they are computed and begins with no
  /// meeting of the ranks; at most 128. 0: none. Not given: by the tables.
  std::optional<int64_t> oneLaunchRows = std::nullopt;
  uint32_t concurrentCalls = 2; ///< Of one launch (OneLaunchOptions), and of the collective of unfused calls.
  std::optional<OneLaunchTile> oneLaunchTile = std::nullopt; ///< Instead of the chosen one.
  /// Of all calls instead of what the tables say, for tuners and tests. Every rank must give the same.
  std::optional<TensorParallelPlan> plan = std::nullopt;
  /// The device's name by which tables are read, instead of that of this process's first rank: for builds ahead of time.
  std::string gpu = {};

  DataType typeOfResult() const { return resultType.value_or(defaultResultType(dtype)); }
};

class GemmReduceScatter : public PlannedProduct {
public:
  using Options = GemmReduceScatterOptions;
  static constexpr std::string_view kernelName = "gemm_reduce_scatter";
  static constexpr std::string_view copyName = "rs_push"; ///< Prefix of the copies' names in traces.

  /// Allocates buffers, signals and streams on all ranks. Refuses options that make no sense.
  static Expected<GemmReduceScatter> create(runtime::World &world, runtime::KernelProvider &kernels,
                                            const Options &options);

  /// A call of a Plan, or by shape, takes, row-major, of options.dtype and resultType:
  ///   a: [rows, depth], b: [depth, columns] (weightOrder Transposed: [columns, depth]), result: [rowsOfShard(rank), columns].
  /// scales of a: [rows] or [1], scales of b: [columns] or [1], bias: [columns].
  /// `depth` (K of this rank) and strides may differ between ranks.
  using Plan = ProductPlan;

  /// With what the tables have filled in.
  const Options &options() const { return optionValues; }
  /// How a rank carries out a call, in the words of TensorParallelPlan.
  std::string planText(int64_t rows, int64_t depth) const;
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const {
    return (nodes               ? nodes->bytes()
            : scatter.isValid() ? scatter.bytes()
                                : 0) +
           oneLaunch.bytes() + (pushed ? pushed->bytes() : 0) + (exchange ? exchange->workspaceBytes() : 0);
  }

private:
  struct PerRank {
    std::shared_ptr<runtime::SideStream> side;
    runtime::Buffer partial; ///< [maxRows, columns]; none where all calls are pushed
  };

  DataType partialType() const { return optionValues.partialType.value_or(optionValues.typeOfResult()); }
  bool usesOneLaunch(int64_t rows) const;
  Schedule scheduleFor(int64_t rows, int64_t depth) const;
  /// Unfused calls with as many rows for each rank are two launches, the product and a ReduceScatter. Of what all ranks know: they may have other depths.
  bool isSequence(int64_t rows) const;
  UnfusedProduct unfusedProduct(const ProductShape &shape, bool addsBias = true) const;
  OverlappedProduct overlappedProduct(const runtime::Rank &rank, const ProductShape &shape) const;
  Status makeCollective();
  Status makePushed();
  /// What all ranks find in the tables, though they may have other depths.
  std::optional<TensorParallelPlan> agreedPlanFor(int64_t rows) const;
  /// The tile and the chunks of calls that PushedProduct carries out, the same on all ranks; none of others.
  std::optional<TensorParallelPlan> pushedPlan(int64_t rows) const;
  /// For the tables, besides the rows.
  PlanSizes otherSizes() const { return knownSizes(/*m=*/0, optionValues.columns, optionValues.depth); }
  TileConfig tileFor(int64_t rows, int64_t depth) const { return choice.tileFor(rows, optionValues.columns, depth); }
  Status allocateOneLaunch();
  ProductTerms terms(int64_t size) const override {
    return {optionValues.dtype,       optionValues.maxRows, optionValues.columns, size,
            optionValues.weightOrder, optionValues.epilogue};
  }
  std::vector<Operand> dealtOperands() const override { return {Operand::Result}; }
  runtime::Pointer anyBuffer(uint32_t rank) const override {
    return ranks[rank]->partial.isValid() ? ranks[rank]->partial.pointer() : pushed->any(rank);
  }
  Expected<ProductPlan::Parts> makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                         const ProductShape &shape) override;
  std::string agreedPlan(const ProductShape &shape) const override;
  Status addExchange(runtime::Rank &rank, int64_t rows, runtime::CallSequence &sequence) const;
  KernelCall gemmCall(const runtime::Rank &rank, const OperandPointers &operands, const ProductShape &shape) const;
  KernelCall reduceCall(const runtime::Rank &rank, runtime::Pointer out, const ProductShape &shape) const;

  Options optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  TensorParallelChoice choice;
  bool isOneLaunchByTables = false; ///< Else all calls of oneLaunchRows are.
  CallWords words;
  OneLaunch oneLaunch;
  std::optional<PushedProduct> pushed;
  std::optional<Collective> exchange;          ///< Of sequences.
  std::optional<NodeSums> nodes;               ///< Of a world of several; instead of the next two.
  runtime::SymmetricBuffer scatter;            ///< [ranks, rows per rank, columns]: slot s is filled by rank s
  runtime::SymmetricBuffer arrived;            ///< [ranks] signals
  std::vector<std::unique_ptr<PerRank>> ranks; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_TENSOR_PARALLEL_GEMMREDUCESCATTER_H
