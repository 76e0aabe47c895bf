//===- BlockScales.h - Rows as fp8 with a scale for each block of elements ----------------------------------------*- C++ -*-===//
//
//   scale[r, i] = largest magnitude of x[r, 128 i .. 128 i + 127] / 448, 1 where it is 0;   rows[r, c] = x[r, c] / scale[r, c / 128] as e4m3
//
// What GroupedGemm takes with block scales. How many rows there are stands on the device. Device code: kernels/moe/block_scales.py.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_MOE_BLOCKSCALES_H
#define DITRON_OPS_MOE_BLOCKSCALES_H

#include "ditron/ops/KernelLaunch.h"

namespace ditron::ops {

/// x: [maxRows, columns], bf16, fp16 or fp32; count: [1] int32, how many of the rows there are; rows: [maxRows, columns] float8e4nv; scales:
/// [maxRows, ceil(columns / 128)] fp32. Rows beyond the count are not touched.
Expected<PreparedCall> prepareScaledRows(runtime::KernelProvider &kernels, runtime::Rank &rank, int64_t maxRows,
                                         int64_t columns, runtime::Pointer x, runtime::Pointer count,
                                         runtime::Pointer rows, runtime::Pointer scales);

} // namespace ditron::ops
#endif // DITRON_OPS_MOE_BLOCKSCALES_H
