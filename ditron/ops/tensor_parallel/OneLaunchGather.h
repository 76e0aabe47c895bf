//===- OneLaunchGather.h - AllGather and product of few rows in the same launch ---------------------------------*- C++ -*-===//
//
// The counterpart of OneLaunch for AllGather+GEMM: one kernel (all_gather_gemm_one_launch, which has the protocol) pushes the rank's
// rows into all ranks' workspaces, waits for everybody's, and multiplies. OneLaunchGather owns what its calls need on all ranks.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_TENSOR_PARALLEL_ONELAUNCHGATHER_H
#define DITRON_OPS_TENSOR_PARALLEL_ONELAUNCHGATHER_H

#include "ditron/ops/tensor_parallel/OneLaunch.h"

namespace ditron::ops {

/// How the rows of A lie where they are gathered: padded to whole multiples of 16 elements, which tensor copies step by. Where A has scales,
/// each row has its fp32 scale behind it, so that one copy moves both.
struct GatheredRows {
  int64_t stride = 0;      ///< Elements from row to row.
  int64_t scaleOffset = 0; ///< Bytes from a row's beginning to its scale.
  int64_t scaleStride = 0; ///< fp32 elements from scale to scale.

  GatheredRows() = default;
  GatheredRows(DataType dtype, int64_t depth, bool hasScales);
  /// The scale of the row at that address.
  runtime::Pointer scaleOf(runtime::Pointer row) const {
    return (row.as(DataType::U8) + scaleOffset).as(DataType::F32);
  }
};
/// A rank's rows, seen so that they are copied in as few rows as there can be: one, where they follow each other without a gap both in the
/// operand and where they are gathered.
struct CopiedRows {
  int64_t rows = 0, columns = 0;

  CopiedRows(int64_t rows, int64_t depth, int64_t strideFrom, int64_t strideTo);
};

class OneLaunchGather {
public:
  static constexpr std::string_view kernelName = "all_gather_gemm_one_launch";
  static constexpr int64_t mostRows = 128;

  OneLaunchGather() = default;
  /// For calls of at most `rows` rows and any number of columns; options.columns and partialType have no meaning here.
  static Expected<OneLaunchGather> create(runtime::World &world, OneLaunchOptions options, int64_t rows, int64_t depth);

  /// None where there would be too many tiles.
  std::optional<OneLaunchTile> tileFor(int64_t rows, int64_t columns) const;
  /// Of symmetric memory of a rank.
  uint64_t bytes() const { return workspace.isValid() ? workspace.bytes() : 0; }

  /// One call, with parameters shard_ptr, b_ptr, c_ptr, shard_scale_ptr, b_scale_ptr and bias_ptr. All strides are given.
  KernelCall call(const runtime::Rank &rank, runtime::Pointer shard, runtime::Pointer b, runtime::Pointer c,
                  const EpilogueOperands &extras, int64_t rows, int64_t columns, const RowStrides &strides,
                  const OneLaunchTile &shape) const;

private:
  struct PerRank {
    runtime::Buffer splitParts;    ///< Sums, a tile for each block
    runtime::Buffer splitCounters; ///< By tile: parts that are there
    runtime::Buffer call;          ///< Calls that have ended, and blocks of the present one that have
  };

  OneLaunchOptions options;
  runtime::World *world = nullptr;
  int64_t halfRows = 0, depth = 0;
  GatheredRows layout;
  runtime::SymmetricBuffer workspace; ///< [2, halfRows, layout.stride]
  runtime::SymmetricBuffer flags;     ///< [pushes, ranks] signals
  std::vector<PerRank> ranks;
};

} // namespace ditron::ops
#endif // DITRON_OPS_TENSOR_PARALLEL_ONELAUNCHGATHER_H
