//===- GemmAllToAll.h - Product before attention, its columns dealt out to the ranks ----------------------------*- C++ -*-===//
//
// Every rank has some tokens of each sequence and the whole weight; of the product's columns (the projections of some heads to Q, K and V) each rank
// gets its part, of all tokens. A tile goes from the product straight into the result of its rank, while others are computed. Device code:
// kernels/sequence_parallel.
//
//   GemmAllToAll projection = *GemmAllToAll::create(world, kernels, {.maxRows = tokens, ...}, hidden, columns);
//   projection.prepare(rank, tokens);
//   projection.enqueue(rank, stream, a, b, tokens);          // then attention, on the same stream, reads projection.result(rank)
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SEQUENCE_PARALLEL_GEMMALLTOALL_H
#define DITRON_OPS_SEQUENCE_PARALLEL_GEMMALLTOALL_H

#include "ditron/ops/CallWords.h"
#include "ditron/ops/PlannedProduct.h"
#include "ditron/ops/sequence_parallel/SequenceShards.h"

namespace ditron::ops {

class GemmAllToAll : protected PlannedProduct {
public:
  using Options = SequenceProductOptions;

  /// `columns`: of all ranks together, a multiple of their number; those of rank p follow each other in B, from p * columns / ranks on.
  static Expected<GemmAllToAll> create(runtime::World &world, runtime::KernelProvider &kernels, const Options &options,
                                       int64_t depth, int64_t columns);

  /// Makes the plan of calls with so many tokens in a sequence, in the same order on all ranks.
  Status prepare(runtime::Rank &rank, int64_t rows) { return PlannedProduct::prepare(rank, rows, columnCount); }
  /// a: [batch, rowsOf(rank) of RowShards(rows), depth], b: [depth, columns] (weightOrder Transposed: [columns, depth]), scales of a: one, or one for each
  /// of its rows, scales of b and bias: one, or one for each column. All rank's calls follow each other on one stream; every rank makes the same ones.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer a, runtime::Pointer b, int64_t rows,
                 const EpilogueOperands &extras = {}) {
    DITRON_RETURN_IF_ERROR(verifyOwnRank(rank));
    return PlannedProduct::enqueue(rank, stream, a, b, result(rank.id()), rows, columnCount, extras);
  }
  /// [batch, rows, columns / ranks] of the last call, of options.resultType; there until the rank's next call begins.
  runtime::Pointer result(uint32_t rank) const { return gathered.on(rank); }

  const Options &options() const { return optionValues; }
  int64_t depth() const { return depthValue; }
  int64_t columns() const { return columnCount; }
  TileConfig tileFor(int64_t rows) const;
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const { return gathered.bytes(); }

private:
  ProductTerms terms(int64_t size) const override {
    return {optionValues.dtype, optionValues.maxRows,     size,
            depthValue,         optionValues.weightOrder, optionValues.epilogue};
  }
  runtime::Pointer anyBuffer(uint32_t rank) const override { return gathered.on(rank); }
  Expected<ProductPlan::Parts> makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                         const ProductShape &shape) override;
  std::string agreedPlan(const ProductShape &) const override { return std::string(toString(optionValues.schedule)); }
  KernelCall productCall(const runtime::Rank &rank, const OperandPointers &operands, const ProductShape &shape) const;
  void addPushes(const runtime::Rank &rank, int64_t rows, runtime::CallSequence &sequence) const;
  int64_t columnsOfRank() const { return columnCount / world->numRanks(); }

  Options optionValues;
  int64_t depthValue = 0, columnCount = 0;
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  CallWords words;                      ///< A counter for each rank's tiles, and one of programs that have ended.
  runtime::SymmetricBuffer gathered;    ///< [batch, maxRows, columns / ranks]
  runtime::SymmetricBuffer arrived;     ///< [ranks] signals
  std::vector<runtime::Buffer> staging; ///< Unfused: per rank [ranks, batch, own rows, columns / ranks]
  std::vector<std::shared_ptr<runtime::SideStream>> sides;
};

} // namespace ditron::ops
#endif // DITRON_OPS_SEQUENCE_PARALLEL_GEMMALLTOALL_H
