//===- AllGatherGemm.h - C = allgather(A) * B, overlapped ----------------------------------------------------*- C++ -*-===//
//
// Each rank holds a shard of the rows of A (see RowShards) and its own B. The copy engines push the shards into every peer's
// workspace and raise a signal per chunk; the GEMM's tiles wait for the chunks with their rows and are ordered as the chunks
// arrive (DITRON, appendix E.1; the protocol and why it is right: docs/memory-model.md). The own shard is in the workspace
// before the GEMM begins, put there by the kernel that begins the call: GPUs make copies inside one memory by a kernel, for
// which a GEMM whose blocks wait leaves no place. The pushes read it there, so that only kernels know the caller's addresses.
// Device code: kernels/tensor_parallel_gemm.
//
// Between nodes (kernels/inter_node, docs/ops/inter_node.md) a shard is put to the rank with the same place on each other node,
// which pushes it on to its node's ranks: the network carries it to a node once.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_TENSOR_PARALLEL_ALLGATHERGEMM_H
#define DITRON_OPS_TENSOR_PARALLEL_ALLGATHERGEMM_H

#include "ditron/ops/CallWords.h"
#include "ditron/ops/PlannedProduct.h"
#include "ditron/ops/tensor_parallel/OneLaunchGather.h"
#include "ditron/ops/tensor_parallel/OverlappedTail.h"
#include "ditron/ops/tensor_parallel/UnfusedProduct.h"

namespace ditron::ops {

struct AllGatherGemmOptions {
  DataType dtype =
      DataType::BF16; ///< Of A and B: bf16, fp16, fp32, fp8 (e4m3, e5m2) or int8. Sums are fp32, of int8 int32.
  std::optional<DataType> resultType = std::nullopt; ///< Of C: bf16, fp16 or fp32; defaultResultType when not given.
  int64_t maxRows = 0;                               ///< Largest M (gathered rows) of any call; sizes the workspace.
  int64_t depth = 0;                                 ///< K.
  /// N, where it is the same in all calls of all ranks: rows of the tables that ask for it then count in what ranks must agree on. 0: not known.
  int64_t columns = 0;
  /// Signals per shard: more let tiles start earlier and cost more copies. 0: as the tables say for maxRows, or 1.
  uint32_t chunksPerRank = 0;
  /// For the order of tiles, never the result: 0, the nodes of the world; in a world of one node any number that divides the ranks.
  uint32_t numNodes = 0;
  MatrixOrder weightOrder = MatrixOrder::Plain;
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  Schedule schedule = Schedule::Overlapped;
  TileConfig tile = libraryTile;
  /// scalesA: of the rows that a rank gives, or one for them all; they are gathered with the rows. SwiGlu: a rank's columns are pairs.
  GemmEpilogue epilogue = {};
  /// Calls of at most so many rows are one launch (OneLaunchGather.h), which begins with no meeting of the ranks; at most 128. 0: none. Where
  /// a rank's columns are too many tiles for that, the call is an error: all ranks make calls of the same kind. Not given: by the tables.
  std::optional<int64_t> oneLaunchRows = std::nullopt;
  uint32_t concurrentCalls = 2; ///< Of one launch (OneLaunchOptions), and of the collective of unfused calls.
  std::optional<OneLaunchTile> oneLaunchTile = std::nullopt; ///< Instead of the chosen one.
  /// Of all calls instead of what the tables say, for tuners and tests. Every rank must give the same.
  std::optional<TensorParallelPlan> plan = std::nullopt;
  /// The device's name by which tables are read, instead of that of this process's first rank: for builds ahead of time.
  std::string gpu = {};

  DataType typeOfResult() const { return resultType.value_or(defaultResultType(dtype)); }
};

class AllGatherGemm : public PlannedProduct {
public:
  using Options = AllGatherGemmOptions;
  static constexpr std::string_view kernelName = "all_gather_gemm";
  static constexpr std::string_view copyName = "ag_push"; ///< Prefix of the copies' names in traces.

  /// Allocates workspaces, signals and streams on all ranks. Refuses options that make no sense.
  static Expected<AllGatherGemm> create(runtime::World &world, runtime::KernelProvider &kernels,
                                        const Options &options);

  /// A call of a Plan, or by shape, takes, row-major, of options.dtype and resultType:
  ///   a: [rowsOfShard(rank), depth], b: [depth, columns] (weightOrder Transposed: [columns, depth]), result: [rows, columns]
  ///   ([rows, columns / 2] with SwiGlu), scales of a: [rowsOfShard(rank)] or [1], scales of b: [columns] or [1], bias: [columns].
  /// `columns` and strides may differ between ranks.
  using Plan = ProductPlan;

  /// With what the tables have filled in.
  const Options &options() const { return optionValues; }
  /// How a rank carries out a call, in the words of TensorParallelPlan.
  std::string planText(int64_t rows, int64_t columns) const;
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const {
    return workspace.bytes() + oneLaunch.bytes() + (exchange ? exchange->workspaceBytes() : 0);
  }

private:
  /// Fills in what the options leave to the tables.
  void chooseOptions();
  bool usesOneLaunch(int64_t rows) const;
  Schedule scheduleFor(int64_t rows, int64_t columns) const;
  /// Whether calls are the library's AllGather, then the product: two launches, no copies and no meeting.
  bool isSequence(int64_t rows) const;
  Status makeCollective();
  PlanSizes otherSizes() const { return knownSizes(/*m=*/0, optionValues.columns, optionValues.depth); }
  UnfusedProduct unfusedProduct(const ProductShape &shape) const;
  OverlappedProduct overlappedProduct(const runtime::Rank &rank, const ProductShape &shape) const;
  TileConfig tileFor(int64_t rows, int64_t columns) const { return choice.tileFor(rows, columns, optionValues.depth); }
  Status allocateOneLaunch();
  ProductTerms terms(int64_t size) const override {
    return {optionValues.dtype, optionValues.maxRows,     size,
            optionValues.depth, optionValues.weightOrder, optionValues.epilogue};
  }
  std::vector<Operand> dealtOperands() const override { return {Operand::A, Operand::ScalesA}; }
  runtime::Pointer anyBuffer(uint32_t rank) const override { return workspace.on(rank); }
  Expected<ProductPlan::Parts> makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                         const ProductShape &shape) override;
  std::string agreedPlan(const ProductShape &shape) const override;
  void addPushes(runtime::Rank &rank, int64_t rows, runtime::CallSequence &sequence) const;
  KernelCall enterCall(const runtime::Rank &rank, const OperandPointers &operands, const ProductShape &shape) const;
  /// The rank's own signals: those of its chunks.
  runtime::Pointer ownSignals(uint32_t rank) const { return ready.on(rank) + rank * optionValues.chunksPerRank; }
  KernelCall gemmCall(const runtime::Rank &rank, const OperandPointers &operands, const ProductShape &shape) const;

  Options optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  TensorParallelChoice choice;
  bool isOneLaunchByTables = false; ///< Else all calls of oneLaunchRows are.
  CallWords words;
  GatheredRows layout;
  OneLaunchGather oneLaunch;
  std::optional<Collective> exchange;                      ///< Of unfused calls.
  runtime::SymmetricBuffer workspace;                      ///< [maxRows, layout.stride]
  runtime::SymmetricBuffer ready;                          ///< [ranks * chunksPerRank] signals
  std::vector<std::shared_ptr<runtime::SideStream>> sides; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_TENSOR_PARALLEL_ALLGATHERGEMM_H
