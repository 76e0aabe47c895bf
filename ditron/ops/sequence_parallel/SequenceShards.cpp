//===- SequenceShards.cpp - Tokens of sequences dealt out to the ranks ------------------------------------------------------===//
#include "ditron/ops/sequence_parallel/SequenceShards.h"

#include <fmt/format.h>

namespace ditron::ops {

Status verifySequenceProduct(std::string_view operation, const SequenceProductOptions &options) {
  DITRON_RETURN_IF_ERROR(
      verifyEpilogue(operation, options.dtype, options.typeOfResult(), options.epilogue, /*reduces=*/false));
  if (options.batch < 1 || options.maxRows < 1)
    return invalidArgument(fmt::format("{}: batch is {} and maxRows is {}; both must be positive", operation,
                                       options.batch, options.maxRows));
  if (options.tile != libraryTile)
    DITRON_RETURN_IF_ERROR(options.tile.verify().withContext(operation));
  return Status::ok();
}

} // namespace ditron::ops
