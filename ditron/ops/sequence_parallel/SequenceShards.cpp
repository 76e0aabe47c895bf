//===- SequenceShards.cpp - Tokens of sequences dealt out to the ranks ------------------------------------------------------===//
#include "ditron/ops/sequence_parallel/SequenceShards.h"

#include "ditron/ops/SizeOptions.h"

namespace ditron::ops {

Status verifySequenceProduct(std::string_view operation, const SequenceProductOptions &options) {
  DITRON_RETURN_IF_ERROR(
      verifyEpilogue(operation, options.dtype, options.typeOfResult(), options.epilogue, /*reduces=*/false));
  DITRON_RETURN_IF_ERROR(verifySizeOptions(operation, {{"batch", options.batch}, {"maxRows", options.maxRows}}));
  if (options.tile != libraryTile)
    DITRON_RETURN_IF_ERROR(options.tile.verify().withContext(operation));
  return Status::ok();
}

} // namespace ditron::ops
