//===- GemmReduceScatter.h - out = reduce_scatter(A * B), overlapped ------------------------------------------*- C++ -*-===//
//
// Each rank holds a slice of K: A is [M, K_r], B is [K_r, N]. The GEMM computes the segments (the rows of each rank's result, see RowShards)
// in the order in which they are sent, next rank's first and own last, and opens a gate when a segment is complete; the copy
// engine pushes it to its owner and raises a signal there; the owner adds the partial results in ascending rank order in fp32
// (DITRON, appendix E.2; the protocol: docs/memory-model.md). Device code: kernels/tensor_parallel_gemm.
//
// A Plan holds all that calls of one shape need; its enqueue exchanges pointers and launches the plan's graph, or, in a capture or
// where the plan was made by enqueue itself, appends to the two streams, and nothing else: it can be captured and replayed.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_GEMMREDUCESCATTER_H
#define DITRON_OPS_GEMMREDUCESCATTER_H

#include "ditron/ops/CallWords.h"
#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/KeptPlans.h"
#include "ditron/ops/OneLaunch.h"
#include "ditron/runtime/CallSequence.h"

#include <optional>

namespace ditron::ops {

struct GemmReduceScatterOptions {
  DataType dtype = DataType::BF16; ///< Of A, B and the result: bf16, fp16 or fp32.
  std::optional<DataType> partialType =
      std::nullopt;      ///< Of the partial results in transit; dtype when not given, or fp32.
  int64_t maxRows = 0;   ///< Largest M of any call; sizes the buffers.
  int64_t columns = 0;   ///< N.
  uint32_t numNodes = 1; ///< Must divide the number of ranks; changes the order of tiles only.
  MatrixOrder weightOrder = MatrixOrder::Plain;
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  Schedule schedule = Schedule::Overlapped;
  TileConfig tile = {};
  /// Calls of at most so many rows are one launch (OneLaunch.h), which sends parts of tiles as soon as they are computed and begins with no
  /// meeting of the ranks; at most 128. 0: none.
  int64_t oneLaunchRows = 0;
  uint32_t concurrentCalls = 2;                              ///< Of one launch: OneLaunchOptions.
  std::optional<OneLaunchTile> oneLaunchTile = std::nullopt; ///< Instead of the chosen one.
};

class GemmReduceScatter {
public:
  using Options = GemmReduceScatterOptions;
  static constexpr std::string_view kernelName = "gemm_reduce_scatter";
  static constexpr std::string_view copyName = "rs_push"; ///< Prefix of the copies' names in traces.

  /// Allocates buffers, signals and streams on all ranks. Refuses options that make no sense.
  static Expected<GemmReduceScatter> create(runtime::World &world, runtime::KernelProvider &kernels,
                                            const Options &options);

  /// One shape on one rank. Valid as long as the operator; one thread at a time. Copies share it.
  class Plan {
  public:
    Plan() = default;
    /// Enqueues one call; every rank must make the same sequence of calls, with the same `rows`. `depth` (K of this rank) may differ
    /// between ranks.
    ///   a: [rows, depth], b: [depth, columns] (weightOrder Transposed: [columns, depth]), out: [rowsOfShard(rank), columns],
    ///   row-major, of options.dtype, at addresses that are multiples of 16 bytes.
    Status enqueue(runtime::Stream &stream, runtime::Pointer a, runtime::Pointer b, runtime::Pointer out);

  private:
    friend class GemmReduceScatter;
    struct State;
    std::shared_ptr<State> state;
  };

  /// Compiles and loads what calls with this shape need on a rank, and records them as a graph: on a GPU that may wait until nothing
  /// runs there, so it must not happen when a part of a call waits for another already.
  Expected<Plan> plan(runtime::Rank &rank, int64_t rows, int64_t depth);

  /// Makes the plan that enqueue() then finds.
  Status prepare(runtime::Rank &rank, int64_t rows, int64_t depth);
  /// Plan::enqueue with the prepared plan for the shape, or with one that is made now, which a capture does not allow, and whose
  /// operations are enqueued one by one. Also takes addresses that are no multiples of 16 bytes.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer a, runtime::Pointer b,
                 runtime::Pointer out, int64_t rows, int64_t depth);

  const Options &options() const { return optionValues; }
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const { return scatter.bytes() + oneLaunch.bytes(); }

private:
  struct PerRank {
    std::shared_ptr<runtime::SideStream> side;
    runtime::Buffer partial; ///< [maxRows, columns]
    KeptPlans<Plan> plans;
  };

  DataType partialType() const { return optionValues.partialType.value_or(optionValues.dtype); }
  Status allocateOneLaunch();
  Status verifyShape(int64_t rows, int64_t depth) const;
  void addPushes(runtime::Rank &rank, int64_t rows, runtime::CallSequence &sequence) const;
  Expected<Plan> makePlan(runtime::Rank &rank, runtime::Pointer a, runtime::Pointer b, runtime::Pointer out,
                          int64_t rows, int64_t depth);
  KernelCall gemmCall(const runtime::Rank &rank, runtime::Pointer a, runtime::Pointer b, int64_t rows,
                      int64_t depth) const;
  KernelCall reduceCall(const runtime::Rank &rank, runtime::Pointer out, int64_t rows) const;

  Options optionValues;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  CallWords words;
  OneLaunch oneLaunch;
  runtime::SymmetricBuffer scatter;            ///< [ranks, rows per rank, columns]: slot s is filled by rank s
  runtime::SymmetricBuffer arrived;            ///< [ranks] signals
  std::vector<std::unique_ptr<PerRank>> ranks; ///< Where plans point to; null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_GEMMREDUCESCATTER_H
