//===- SequenceShards.h - Tokens of sequences dealt out to the ranks --------------------------------------------*- C++ -*-===//
//
// Around attention whose heads are dealt out to the ranks (Ulysses): everywhere else a rank has some tokens of each sequence, with all heads; in
// attention it has all tokens, with some heads. What products before and after attention have in common on the host.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_SEQUENCE_PARALLEL_SEQUENCESHARDS_H
#define DITRON_OPS_SEQUENCE_PARALLEL_SEQUENCESHARDS_H

#include "ditron/ops/GemmEpilogue.h"

namespace ditron::ops {

/// What both products' options say.
struct SequenceProductOptions {
  DataType dtype = DataType::BF16; ///< Of A and B: bf16, fp16, fp8 (e4m3, e5m2) or int8. Sums are fp32, of int8 int32.
  std::optional<DataType> resultType = std::nullopt; ///< bf16 or fp16 or fp32; defaultResultType when not given.
  int64_t batch = 1;                                 ///< Sequences of a call.
  int64_t maxRows = 0; ///< Tokens of a sequence in any call, of all ranks together; sizes the buffers.
  MatrixOrder weightOrder = MatrixOrder::Plain;
  Schedule schedule = Schedule::Overlapped;
  TileConfig tile = libraryTile;
  GemmEpilogue epilogue = {};

  DataType typeOfResult() const { return resultType.value_or(defaultResultType(dtype)); }
};

/// Batch, rows and types of the options; `operation` begins messages.
Status verifySequenceProduct(std::string_view operation, const SequenceProductOptions &options);

/// Of a rank's tokens of all sequences.
inline int64_t ownTokens(const RowShards &shards, uint32_t rank, int64_t batch) { return shards.rowsOf(rank) * batch; }

} // namespace ditron::ops
#endif // DITRON_OPS_SEQUENCE_PARALLEL_SEQUENCESHARDS_H
