//===- NodeSums.h - The end of a GEMM+ReduceScatter between nodes ---------------------------------------------*- C++ -*-===//
//
// Where a rank's partial results go when there are several nodes (Triton-distributed, algorithm 5). For each node in the order in which
// the GEMM completes its segments:
//   - each segment is pushed, by a copy engine, to the rank of the *own* node that has its owner's place;
//   - that rank adds what the ranks of its node have pushed there, and puts the one sum to the owner, with signals.
// The own node's segments come last; the owner adds the sums of the nodes. So the network carries one sum per node.
//
// Pushes and sums are on two streams beside the GEMM's. No kernel waits for one of another stream: the stream of the sums waits, for
// gates that the pushing ranks open, and launches a sum when all its parts are there.
//
// Sums are in fp32 and in ascending order, of the ranks of a node and then of the nodes, and rounded to the type of the partial results before
// they cross the network.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_TENSOR_PARALLEL_NODESUMS_H
#define DITRON_OPS_TENSOR_PARALLEL_NODESUMS_H

#include "ditron/ops/CallSchedule.h"
#include "ditron/ops/CallWords.h"
#include "ditron/runtime/CallSequence.h"

#include <optional>

namespace ditron::ops {

/// The buffers of one operator. Its CallWords have a segment and an arrival gate for each rank.
class NodeSums {
public:
  NodeSums() = default;
  /// For results of up to [maxRows, columns]; `name` begins the buffers' names in reports.
  static Expected<NodeSums> create(runtime::World &world, std::string_view name, DataType partialType, int64_t maxRows,
                                   int64_t columns);

  /// Multiprocessors of a rank that sums take while its GEMM runs, of a GPU whose blocks stay until the GEMM ends.
  static uint32_t blocks(const runtime::Rank &rank);

  /// Appends the pushes to the Side lane and the sums for other nodes to the SecondSide lane, which both have joined the main one.
  /// `partial`: [rows, columns], what the GEMM stores.
  Status appendExchange(runtime::KernelProvider &kernels, runtime::Rank &rank, const CallWords &words,
                        runtime::Pointer partial, int64_t rows, std::string_view copyName,
                        runtime::CallSequence &sequence) const;
  /// What the main lane launches when it has joined the others, with parameter `out_ptr`; nothing for a rank without rows.
  /// `out`: [rowsOfShard(rank), columns], `outStride` elements from row to row.
  std::optional<KernelCall> resultCall(const runtime::Rank &rank, const CallWords &words, runtime::Pointer partial,
                                       runtime::Pointer out, int64_t outStride, int64_t rows) const;

  /// Bytes of symmetric memory per rank.
  uint64_t bytes() const { return scatter.bytes() + inbox.bytes() + arrived.bytes(); }

private:
  KernelCall sumCall(const runtime::Rank &rank, const CallWords &words, runtime::Pointer partial, int64_t rows,
                     uint32_t segment) const;
  int64_t rowsPerPart(int64_t segmentRows) const;
  /// Of a rank: parts [ranks of its node, rows of the segment, columns] of the segment that the rank with its place on `node` owns. In the
  /// place of the own part, which is not copied, the sum is kept until it is delivered.
  runtime::Pointer slots(uint32_t rank, uint32_t node) const;
  runtime::Pointer slot(uint32_t rank, uint32_t node, uint32_t place, int64_t segmentRows) const {
    return slots(rank, node) + place * segmentRows * columns;
  }

  runtime::World *world = nullptr;
  int64_t maxRowsPerRank = 0, columns = 0;
  runtime::SymmetricBuffer scatter; ///< [nodes, ranks of a node, maxRowsPerRank, columns]
  runtime::SymmetricBuffer inbox;   ///< [nodes, maxRowsPerRank, columns]: slot n is filled by node n
  runtime::SymmetricBuffer arrived; ///< [nodes, parts] signals
};

} // namespace ditron::ops
#endif // DITRON_OPS_TENSOR_PARALLEL_NODESUMS_H
