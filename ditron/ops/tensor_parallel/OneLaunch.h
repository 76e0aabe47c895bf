//===- OneLaunch.h - Products of few rows that reduce over the ranks in the same launch ------------------------*- C++ -*-===//
//
// GEMM+AllReduce and GEMM+ReduceScatter of few rows: one kernel (gemm_all_reduce_one_launch, which has the protocol) computes the tiles,
// exchanges them and adds. OneLaunch owns what its calls need on all ranks, and chooses the tiles.
//
// All blocks of a call must find a place at once, since they wait for the peers' blocks: OneLaunchOptions::concurrentCalls.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_TENSOR_PARALLEL_ONELAUNCH_H
#define DITRON_OPS_TENSOR_PARALLEL_ONELAUNCH_H

#include "ditron/ops/GemmEpilogue.h"

namespace ditron::ops {

/// How the product is cut: [rows, columns] into tiles, and the depth of each into parts that are added in order.
struct OneLaunchTile {
  TileConfig tile;
  uint32_t splits = 1; ///< Blocks of a tile. With more than one, a block has no other tile.

  bool operator==(const OneLaunchTile &) const = default;
  Status verify() const;
  /// Refuses a call whose blocks do not find places on so many multiprocessors at once.
  Status verifyPlaces(int64_t rows, int64_t columns, uint32_t multiprocessors) const;
};
/// For GPUs like this one, which must hold all blocks of so many calls at once; none where the tiles are too many. Does not depend on the
/// depth, in which ranks may differ.
std::optional<OneLaunchTile> chooseOneLaunchTile(int64_t rows, int64_t columns, DataType dtype,
                                                 const runtime::DeviceAttributes &gpu, uint32_t concurrentCalls);

/// Room for flags and counters; and the largest tile.
inline constexpr int64_t mostOneLaunchTiles = 1024, mostOneLaunchTileElements = 128 * 128;

/// Who adds, and who gets the sums.
enum class OneLaunchResult {
  Everywhere,         ///< All ranks add everything: one-shot.
  EverywhereByOwners, ///< Owners of parts of the rows add and send the sums to all: two-shot.
  Scattered,          ///< Owners add and keep their rows (RowShards); one row of tiles.
};

/// Calls with this result have at most so many rows.
struct OneLaunchCalls {
  OneLaunchResult result;
  int64_t mostRows;
};

/// The tile of calls of at most so many rows; none: the chosen one.
struct OneLaunchRows {
  int64_t mostRows = 0;
  std::optional<OneLaunchTile> tile;
};

struct OneLaunchOptions {
  std::string name; ///< Begins the names of buffers in reports.
  DataType dtype = DataType::BF16, resultType = DataType::BF16, partialType = DataType::BF16;
  GemmEpilogue epilogue = {};
  int64_t columns = 0;
  MatrixOrder weightOrder = MatrixOrder::Plain;
  MultiplyPrecision precision = MultiplyPrecision::Tf32;
  /// Calls of so many operators at once, on streams that nothing orders, must find places for all of their blocks; with 1, which lets a
  /// call have the whole GPU, such calls could wait for each other forever.
  uint32_t concurrentCalls = 2;
  std::optional<OneLaunchTile> tile = std::nullopt; ///< Instead of the chosen one.
  std::vector<OneLaunchRows> tiles = {};            ///< The same by rows, ascending, where `tile` is not given.

  std::optional<OneLaunchTile> givenTile(int64_t rows) const;
};

/// The tile that the options name or the chosen one, for the GPUs of the world; none where the tiles are too many.
std::optional<OneLaunchTile> oneLaunchTileFor(runtime::World &world, const OneLaunchOptions &options, int64_t rows,
                                              int64_t columns);
/// How many blocks a call has, and how many of them a tile.
struct OneLaunchGrid {
  uint32_t blocks, splits;
};
OneLaunchGrid oneLaunchGrid(const runtime::Rank &rank, const OneLaunchOptions &options, const OneLaunchTile &shape,
                            int64_t rows, int64_t columns, int64_t depth);
/// Adds the compile-time arguments that the kernels' products take.
void appendOneLaunchTile(KernelCall &call, const runtime::Rank &rank, const OneLaunchOptions &options,
                         const OneLaunchTile &shape);

class OneLaunch {
public:
  static constexpr std::string_view kernelName = "gemm_all_reduce_one_launch";
  static constexpr int64_t mostRows = 512;

  OneLaunch() = default;
  OneLaunch(runtime::World &world, OneLaunchOptions options) : options(std::move(options)), world(&world) {}

  /// None where there would be too many tiles.
  std::optional<OneLaunchTile> tileFor(int64_t rows) const;
  /// The most rows up to `rows` that all fewer rows, too, have tiles for.
  int64_t rowsUpTo(int64_t rows) const;

  /// On all ranks, for these calls.
  Status allocate(std::span<const OneLaunchCalls> calls);
  bool isAllocated() const { return flags.isValid(); }
  /// Of symmetric memory of a rank.
  uint64_t bytes() const;
  /// An address that stands for operands.
  runtime::Pointer any(uint32_t rank) const { return flags.on(rank).as(options.partialType); }

  /// One call, with parameters a_ptr, b_ptr and out_ptr and those of appendEpilogue. All strides are given.
  KernelCall call(const runtime::Rank &rank, OneLaunchResult result, runtime::Pointer a, runtime::Pointer b,
                  runtime::Pointer out, const EpilogueOperands &extras, int64_t rows, int64_t depth,
                  const RowStrides &strides, const OneLaunchTile &shape) const;

private:
  /// Whether tiles are sent without flags (kernels/one_launch/sent_tiles.py).
  bool sendsWithoutFlags(OneLaunchResult result, int64_t rows) const;

  struct PerRank {
    runtime::Buffer splitParts;    ///< Sums, a tile for each block
    runtime::Buffer splitCounters; ///< By tile: parts that are there
    /// Calls that have ended, and blocks of the present one that have; of calls with flags, and without.
    runtime::Buffer call, callOfElements;
  };

  OneLaunchOptions options;
  runtime::World *world = nullptr;
  int64_t slotElements = 0;
  runtime::SymmetricBuffer slots;           ///< [2, ranks, slotElements]: parts of the result
  runtime::SymmetricBuffer slotsOfElements; ///< The same of calls without flags, which leave zeros
  runtime::SymmetricBuffer sums;            ///< [2, slotElements]: the result
  runtime::SymmetricBuffer flags;           ///< [2, tiles, ranks] signals
  std::vector<PerRank> ranks;
};

} // namespace ditron::ops
#endif // DITRON_OPS_TENSOR_PARALLEL_ONELAUNCH_H
