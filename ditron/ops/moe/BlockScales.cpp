//===- BlockScales.cpp - Rows as fp8 with a scale for each block of elements ------------------------------------------------===//
#include "ditron/ops/moe/BlockScales.h"

#include "ditron/ops/GemmKernels.h"

#include <bit>
#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

Expected<PreparedCall> prepareScaledRows(runtime::KernelProvider &kernels, runtime::Rank &rank, int64_t maxRows,
                                         int64_t columns, runtime::Pointer x, runtime::Pointer count,
                                         runtime::Pointer rows, runtime::Pointer scales) {
  constexpr std::string_view operation = "ScaledRows";
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (maxRows < 1 || columns < 1 || maxRows > most || columns > most)
    return invalidArgument(
        fmt::format("{}: {} rows of {} columns; 1 to {} of both are accepted", operation, maxRows, columns, most));
  DITRON_RETURN_IF_ERROR(verifyOperandType(operation, x.type));
  using Operand = std::tuple<std::string_view, runtime::Pointer, DataType>;
  for (const auto &[name, pointer, type] :
       {Operand{"x", x, x.type}, Operand{"count", count, DataType::I32}, Operand{"rows", rows, DataType::F8E4NV},
        Operand{"scales", scales, DataType::F32}})
    DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, type));
  // Sixteen bytes or so of a thread, and some blocks on each multiprocessor.
  constexpr int64_t leastChunk = 128, mostChunk = 2048, blocksOfMultiprocessor = 4;
  const int64_t chunk = std::clamp<int64_t>(std::bit_ceil(static_cast<uint64_t>(columns)), leastChunk, mostChunk);
  KernelCall call;
  call.source = "moe/block_scales";
  call.kernel = "quantize_rows";
  call.grid = {static_cast<uint32_t>(std::min(maxRows * ceilDivide(columns, chunk),
                                              rank.attributes().multiprocessors * blocksOfMultiprocessor)),
               1, 1};
  call.arguments = {{"x_ptr", x},          {"rows_ptr", rows},   {"scales_ptr", scales}, {"count_ptr", count},
                    {"max_rows", maxRows}, {"columns", columns}, {"CHUNK", chunk}};
  return PreparedCall::create(kernels, rank, call);
}

} // namespace ditron::ops
