//===- AllToAllGemm.h - Product behind attention whose heads are dealt out to the ranks -------------------------*- C++ -*-===//
//
// Attention has left all tokens of some heads on each rank; the output projection wants some tokens of all heads. Copy engines push each rank's tokens
// to it, a signal behind each chunk, while the product adds the ranks' parts of the depth as they come, the own one first. Device code:
// kernels/sequence_parallel.
//
//   AllToAllGemm projection = *AllToAllGemm::create(world, kernels, {.maxRows = tokens, ...}, heads * headDim);
//   projection.prepare(rank, tokens, hidden);
//   attention(..., projection.operand(rank));                // [batch, tokens, own heads, headDim]
//   projection.enqueue(rank, stream, b, result, tokens, hidden);
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SEQUENCE_PARALLEL_ALLTOALLGEMM_H
#define DITRON_OPS_SEQUENCE_PARALLEL_ALLTOALLGEMM_H

#include "ditron/ops/CallWords.h"
#include "ditron/ops/PlannedProduct.h"
#include "ditron/ops/sequence_parallel/SequenceShards.h"

namespace ditron::ops {

class AllToAllGemm : protected PlannedProduct {
public:
  using Options = SequenceProductOptions;

  /// `depth`: of all ranks together; a rank's part is a multiple of 16, of 8-bit operands of 32. `chunks`: signals for the tokens that a rank gives another of a sequence;
  /// 0: the library's choice.
  static Expected<AllToAllGemm> create(runtime::World &world, runtime::KernelProvider &kernels, const Options &options,
                                       int64_t depth, uint32_t chunks = 0);

  /// Makes the plan of calls with so many tokens in a sequence, in the same order on all ranks.
  Status prepare(runtime::Rank &rank, int64_t rows, int64_t columns) {
    return PlannedProduct::prepare(rank, rows, columns);
  }
  /// What the rank gives to its next call: [batch, rows, depth / ranks] of options.dtype, rows those of that call. May be written when the last call's
  /// work on the stream has run.
  runtime::Pointer operand(uint32_t rank) const { return given.on(rank); }
  /// b: [depth, columns] (weightOrder Transposed: [columns, depth]), its rows for rank p from p * depth / ranks on; result: [batch, rowsOf(rank) of
  /// RowShards(rows), columns] ([..., columns / 2] with SwiGlu); scales of b and bias: one, or one for each column.
  Status enqueue(runtime::Rank &rank, runtime::Stream &stream, runtime::Pointer b, runtime::Pointer result,
                 int64_t rows, int64_t columns, const EpilogueOperands &extras = {}) {
    DITRON_RETURN_IF_ERROR(verifyOwnRank(rank));
    return PlannedProduct::enqueue(rank, stream, operand(rank.id()), b, result, rows, columns, extras);
  }

  const Options &options() const { return optionValues; }
  int64_t depth() const { return depthValue; }
  TileConfig tileFor(int64_t rows, int64_t columns) const;
  /// Bytes of symmetric memory per rank.
  uint64_t workspaceBytes() const { return given.bytes() + workspace.bytes(); }

private:
  ProductTerms terms(int64_t size) const override {
    return {optionValues.dtype, optionValues.maxRows,     size,
            depthValue,         optionValues.weightOrder, optionValues.epilogue};
  }
  runtime::Pointer anyBuffer(uint32_t rank) const override { return given.on(rank); }
  Expected<ProductPlan::Parts> makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                         const ProductShape &shape) override;
  std::string agreedPlan(const ProductShape &) const override { return std::string(toString(optionValues.schedule)); }
  KernelCall productCall(const runtime::Rank &rank, const OperandPointers &operands, const ProductShape &shape) const;
  void addPushes(const runtime::Rank &rank, int64_t rows, runtime::CallSequence &sequence) const;
  int64_t depthOfRank() const { return depthValue / world->numRanks(); }
  /// Of a rank's part of the workspace, in the largest call.
  int64_t mostSlotRows() const {
    return optionValues.batch * RowShards(optionValues.maxRows, world->numRanks()).rowsPerRank;
  }
  int64_t rowsOfChunk(const RowShards &shards) const {
    return std::max<int64_t>(ceilDivide(shards.rowsPerRank, chunkCount), 1);
  }

  Options optionValues;
  int64_t depthValue = 0;
  uint32_t chunkCount = 1; ///< As chosen.
  runtime::World *world = nullptr;
  runtime::KernelProvider *kernels = nullptr;
  CallWords words;
  runtime::SymmetricBuffer given;                          ///< [batch, maxRows, depth / ranks]
  runtime::SymmetricBuffer workspace;                      ///< [ranks, batch, rows of a rank, depth / ranks]
  runtime::SymmetricBuffer ready;                          ///< [ranks, batch, chunks] signals
  std::vector<std::shared_ptr<runtime::SideStream>> sides; ///< Null for ranks of other processes.
};

} // namespace ditron::ops
#endif // DITRON_OPS_SEQUENCE_PARALLEL_ALLTOALLGEMM_H
