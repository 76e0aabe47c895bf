//===- OneLaunchGather.h - AllGather and product of few rows in the same launch ---------------------------------*- C++ -*-===//
//
// The counterpart of OneLaunch for AllGather+GEMM: one kernel (all_gather_gemm_one_launch, which has the protocol) pushes the rank's
// rows into all ranks' workspaces, waits for everybody's, and multiplies. OneLaunchGather owns what its calls need on all ranks.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_ONELAUNCHGATHER_H
#define DITRON_OPS_ONELAUNCHGATHER_H

#include "ditron/ops/OneLaunch.h"

namespace ditron::ops {

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

  /// One call, with parameters shard_ptr, b_ptr and c_ptr.
  KernelCall call(const runtime::Rank &rank, runtime::Pointer shard, runtime::Pointer b, runtime::Pointer c,
                  int64_t rows, int64_t columns, const OneLaunchTile &shape) const;

private:
  struct PerRank {
    runtime::Buffer splitParts;    ///< fp32, a tile for each block
    runtime::Buffer splitCounters; ///< By tile: parts that are there
    runtime::Buffer call;          ///< Calls that have ended, and blocks of the present one that have
  };

  OneLaunchOptions options;
  runtime::World *world = nullptr;
  int64_t halfRows = 0, depth = 0;
  runtime::SymmetricBuffer workspace; ///< [2, halfRows, depth]
  runtime::SymmetricBuffer flags;     ///< [pushes, ranks] signals
  std::vector<PerRank> ranks;
};

} // namespace ditron::ops
#endif // DITRON_OPS_ONELAUNCHGATHER_H
