//===- OneLaunch.cpp - Products of few rows that reduce over the ranks in the same launch -------------------------------===//
#include "ditron/ops/tensor_parallel/OneLaunch.h"

#include "ditron/support/TargetName.h"

#include <bit>
#include <fmt/format.h>
#include <set>

namespace ditron::ops {

namespace {

/// Two blocks of two calls at once share a multiprocessor where they have registers enough (measured: 103 of 128
/// with tiles of 32x64; blocks that add parts up take up to 194); what shared memory each may take then, and where a block has the
/// multiprocessor for itself.
constexpr uint32_t halfSharedBytes = 108 << 10, wholeSharedBytes = 200 << 10, otherSharedBytes = 16 << 10;
bool sharesMultiprocessor(const OneLaunchTile &shape) {
  return shape.splits == 1 && shape.tile.blockM * shape.tile.blockN <= 32 * 64;
}
/// How many blocks of a call find places at once when so many calls run.
int64_t placesFor(const OneLaunchTile &shape, uint32_t multiprocessors, uint32_t concurrentCalls) {
  const int64_t blocks = int64_t(multiprocessors) * (sharesMultiprocessor(shape) ? 2 : 1);
  return std::min<int64_t>(multiprocessors, blocks / concurrentCalls);
}

/// How long so many equal pieces take that so many blocks read in turns, of what the memory needs for them. A multiprocessor draws at most `mostShares` times
/// its share of the bandwidth: behind another piece, when some have none left, about as much (H200, [13312, 16384] and [14336, 8192] weights in 208 and 224 tiles of 64
/// columns, 76 and 92 of them behind others: 1.12 and 1.06 of the time in 104 and 112 tiles of 128).
double timeOfReading(int64_t pieces, int64_t places, uint32_t multiprocessors) {
  constexpr double mostShares = 1.3;
  const auto timeOf = [&](int64_t read, int64_t blocks) {
    const double drawn = std::min(1.0, mostShares * static_cast<double>(blocks) / multiprocessors);
    return static_cast<double>(read) / static_cast<double>(pieces) / drawn;
  };
  const int64_t inLastTurn = pieces % places;
  return timeOf(pieces - inLastTurn, places) + (inLastTurn > 0 ? timeOf(inLastTurn, inLastTurn) : 0);
}

} // namespace

Status OneLaunchTile::verify() const {
  DITRON_RETURN_IF_ERROR(tile.verify());
  if (splits == 0 || splits > 64)
    return invalidArgument(fmt::format("{} parts of the depth; 1 to 64 are accepted", splits));
  return Status::ok();
}

Status OneLaunchTile::verifyPlaces(int64_t rows, int64_t columns, uint32_t multiprocessors) const {
  if (rows > OneLaunch::mostRows)
    return invalidArgument(fmt::format("one launch of {} rows; 1 to {} are accepted", rows, OneLaunch::mostRows));
  const int64_t tiles = tilesOf(tile, rows, columns);
  if (tiles > mostOneLaunchTiles)
    return invalidArgument(fmt::format("{} rows and {} columns are {} tiles of {}x{}; one launch has at most {}", rows,
                                       columns, tiles, tile.blockM, tile.blockN, mostOneLaunchTiles));
  if (splits == 1 || tiles * splits <= multiprocessors)
    return Status::ok();
  const int64_t most = std::max<int64_t>(multiprocessors / tiles, 1);
  return invalidArgument(
      fmt::format("{} rows and {} columns are {} tiles of {}x{}, whose {} blocks must all find a place "
                  "at once on {} multiprocessors; {} accepted with these tiles",
                  rows, columns, tiles, tile.blockM, tile.blockN, tiles * splits, multiprocessors,
                  most == 1 ? "1 split is" : fmt::format("1 to {} splits are", most)));
}

// The weights are read once, by as many blocks as draw all of the memory's bandwidth at any time:
//   cost = how long B takes, of what the memory needs for it,
// and a little for adding parts up, and where the rows of A, which every column of tiles reads again, come to many bytes beside B's. Many bytes
// have to be on their way to each multiprocessor: deep stages, as many as fit.
std::optional<OneLaunchTile> chooseOneLaunchTile(int64_t rows, int64_t columns, DataType dtype,
                                                 const runtime::DeviceAttributes &gpu, uint32_t concurrentCalls) {
  const uint32_t multiprocessors = gpu.multiprocessors;
  if (rows > OneLaunch::mostRows)
    return std::nullopt;
  const auto blockM = static_cast<uint32_t>(std::clamp<uint64_t>(std::bit_ceil(uint64_t(rows)), 16, 128));
  const int64_t tilesM = ceilDivide(rows, blockM);
  std::optional<OneLaunchTile> best;
  double leastCost = 0;
  for (uint32_t blockN : {64u, 128u, 256u})
    for (uint32_t splits = 1; splits <= 16; ++splits) {
      OneLaunchTile shape;
      shape.tile.blockM = blockM;
      shape.tile.blockN = blockN;
      shape.splits = splits;
      const int64_t tiles = tilesM * ceilDivide(columns, blockN),
                    places = placesFor(shape, multiprocessors, concurrentCalls);
      if (places == 0 || tiles > mostOneLaunchTiles || blockM * blockN > mostOneLaunchTileElements ||
          (splits > 1 && tiles * splits > places))
        continue;
      double cost = timeOfReading(tiles * splits, places, multiprocessors);
      cost *= 1 + 0.05 * std::max(0.0, double(blockM) / blockN - 1);
      if (splits > 1)
        cost += 0.06 + 0.02 * (splits - 1);
      if (best && cost >= leastCost)
        continue;
      best = shape;
      leastCost = cost;
    }
  if (!best)
    return std::nullopt;
  TileConfig &tile = best->tile;
  const auto elementBytes = static_cast<uint32_t>(sizeOf(dtype));
  // A row of a tile in shared memory is at least one swizzle of 128 bytes; two where four stages of them still fit.
  // Less what the epilogue turns tiles in.
  const uint32_t most = sharesMultiprocessor(*best) ? halfSharedBytes : wholeSharedBytes;
  const auto sharedBytes = static_cast<uint32_t>(std::min<uint64_t>(most, gpu.sharedBytesPerBlock - otherSharedBytes));
  tile.blockK = 128 / elementBytes;
  auto stageBytes = [&] { return (tile.blockM + tile.blockN) * tile.blockK * elementBytes; };
  // Sums of fp8 are promoted every 128 products.
  if (8 * stageBytes() <= sharedBytes && elementBytes > 1)
    tile.blockK *= 2;
  tile.numStages = std::clamp(sharedBytes / stageBytes(), 2u, 6u);
  tile.numWarps = tile.blockM * tile.blockN >= 128 * 128 ? 8 : 4;
  tile.groupM = 1;
  return best;
}

std::optional<OneLaunchTile> OneLaunchOptions::givenTile(int64_t rows) const {
  if (tile)
    return tile;
  const auto row = std::ranges::find_if(tiles, [&](const OneLaunchRows &each) { return rows <= each.mostRows; });
  return row == tiles.end() ? std::nullopt : row->tile;
}

std::optional<OneLaunchTile> oneLaunchTileFor(runtime::World &world, const OneLaunchOptions &options, int64_t rows,
                                              int64_t columns) {
  if (rows > OneLaunch::mostRows)
    return std::nullopt;
  const runtime::DeviceAttributes &gpu = world.rank(world.localRanks().front()).attributes();
  const std::optional<OneLaunchTile> given = options.givenTile(rows);
  if (given) {
    const int64_t tiles = tilesOf(given->tile, rows, columns);
    const int64_t places =
        options.tile ? gpu.multiprocessors : placesFor(*given, gpu.multiprocessors, options.concurrentCalls);
    const bool hasRoom = options.tile || given->tile.blockM * given->tile.blockN <= mostOneLaunchTileElements;
    if (tiles <= mostOneLaunchTiles && hasRoom && places > 0 && (given->splits == 1 || tiles * given->splits <= places))
      return given;
  }
  // A tile of a table that has no place here is none.
  return options.tile ? std::nullopt : chooseOneLaunchTile(rows, columns, options.dtype, gpu, options.concurrentCalls);
}

OneLaunchGrid oneLaunchGrid(const runtime::Rank &rank, const OneLaunchOptions &options, const OneLaunchTile &shape,
                            int64_t rows, int64_t columns, int64_t depth) {
  const int64_t tiles = tilesOf(shape.tile, rows, columns);
  // Parts of no step cost a block for nothing.
  const auto splits = static_cast<uint32_t>(std::min<int64_t>(shape.splits, ceilDivide(depth, shape.tile.blockK)));
  const int64_t places =
      std::max<int64_t>(placesFor(shape, rank.attributes().multiprocessors, options.concurrentCalls), 1);
  return {static_cast<uint32_t>(splits > 1 ? tiles * splits : std::min(tiles, places)), splits};
}

void appendOneLaunchTile(KernelCall &call, const runtime::Rank &rank, const OneLaunchOptions &options,
                         const OneLaunchTile &shape) {
  const TileConfig &tile = shape.tile;
  call.arguments.emplace_back("BLOCK_M", tile.blockM);
  call.arguments.emplace_back("BLOCK_N", tile.blockN);
  call.arguments.emplace_back("BLOCK_K", tile.blockK);
  call.arguments.emplace_back("TURNED", hasTensorCopies(rank.world().target()) && tile.blockN >= 64);
  call.arguments.emplace_back("B_TRANSPOSED", options.weightOrder == MatrixOrder::Transposed);
  call.arguments.emplace_back("PRECISION", std::string(toString(options.precision)));
}

std::optional<OneLaunchTile> OneLaunch::tileFor(int64_t rows) const {
  return oneLaunchTileFor(*world, options, rows, options.columns);
}

int64_t OneLaunch::rowsUpTo(int64_t rows) const {
  rows = std::min(rows, mostRows);
  while (rows > 0 && !tileFor(rows))
    rows /= 2;
  return rows;
}

/// -0 stands for what has not come, so elements are floats. Tiles of more rows are faster with flags where all ranks read and empty all of them (one shot), or few blocks
/// read much (docs/ops/gemm_all_reduce.md, "Few rows without flags").
bool OneLaunch::sendsWithoutFlags(OneLaunchResult result, int64_t rows) const {
  constexpr int64_t mostRowsInOneShot = 32, mostRowsScattered = 64;
  const auto canBeEmpty = [](DataType type) {
    return type == DataType::BF16 || type == DataType::F16 || type == DataType::F32;
  };
  if (!canBeEmpty(options.partialType) || !canBeEmpty(options.resultType))
    return false;
  switch (result) {
  case OneLaunchResult::Everywhere: return rows <= mostRowsInOneShot;
  case OneLaunchResult::EverywhereByOwners: return true;
  // A rank without rows would be told nothing, and could get two calls ahead.
  case OneLaunchResult::Scattered:
    return rows <= mostRowsScattered && RowShards(rows, world->numRanks()).rowsOf(world->numRanks() - 1) > 0;
  }
  return false;
}

Status OneLaunch::allocate(std::span<const OneLaunchCalls> calls) {
  const int64_t numRanks = world->numRanks();
  const int64_t mostRowsOfAll = std::ranges::max(calls, {}, &OneLaunchCalls::mostRows).mostRows;
  constexpr int64_t alignment = 64; // elements
  slotElements = ceilDivide(mostRowsOfAll * options.columns, alignment) * alignment;
  const auto makeSlots = [&](runtime::SymmetricBuffer &buffer, std::string_view name) -> Status {
    DITRON_ASSIGN_OR_RETURN(buffer, world->allocateSymmetric(options.partialType, 2 * numRanks * slotElements,
                                                             fmt::format("{}{}", options.name, name)));
    return Status::ok();
  };
  const auto anyCall = [&](bool withoutFlags) {
    return std::ranges::any_of(calls, [&](const OneLaunchCalls &each) {
      for (int64_t rows = 1; rows <= each.mostRows; ++rows)
        if (sendsWithoutFlags(each.result, rows) == withoutFlags)
          return true;
      return false;
    });
  };
  if (anyCall(/*withoutFlags=*/false))
    DITRON_RETURN_IF_ERROR(makeSlots(slots, "_slots"));
  if (anyCall(/*withoutFlags=*/true))
    DITRON_RETURN_IF_ERROR(makeSlots(slotsOfElements, "_slots_of_elements"));
  if (std::ranges::count(calls, OneLaunchResult::EverywhereByOwners, &OneLaunchCalls::result)) {
    DITRON_ASSIGN_OR_RETURN(sums,
                            world->allocateSymmetric(options.resultType, 2 * slotElements, options.name + "_sums"));
  }
  DITRON_ASSIGN_OR_RETURN(
      flags, world->allocateSymmetric(DataType::I64, 2 * mostOneLaunchTiles * numRanks, options.name + "_flags"));
  // Of the blocks that any number of rows has.
  int64_t partElements = 1;
  std::set<int64_t> ends = {mostRowsOfAll}; // of the numbers of rows that have a tile in common
  for (int64_t rows = 1; rows < mostRowsOfAll; rows *= 2)
    ends.insert(rows);
  for (const OneLaunchRows &each : options.tiles)
    ends.insert(std::min(each.mostRows, mostRowsOfAll));
  for (const int64_t rows : ends)
    if (const std::optional<OneLaunchTile> shape = tileFor(rows); shape && shape->splits > 1)
      partElements = std::max(partElements, tilesOf(shape->tile, rows, options.columns) * shape->splits *
                                                shape->tile.blockM * shape->tile.blockN);
  ranks.resize(world->numRanks());
  for (uint32_t id : world->localRanks()) {
    runtime::Rank &rank = world->rank(id);
    PerRank &own = ranks[id];
    DITRON_ASSIGN_OR_RETURN(own.splitParts,
                            rank.allocate(sumType(options.dtype), partElements, options.name + "_split_parts"));
    DITRON_ASSIGN_OR_RETURN(own.splitCounters,
                            rank.allocate(DataType::I32, mostOneLaunchTiles, options.name + "_split_counters"));
    DITRON_ASSIGN_OR_RETURN(own.call, rank.allocate(DataType::I64, 2, options.name + "_call"));
    DITRON_ASSIGN_OR_RETURN(own.callOfElements, rank.allocate(DataType::I64, 2, options.name + "_call_of_elements"));
  }
  return Status::ok();
}

uint64_t OneLaunch::bytes() const {
  uint64_t total = 0;
  for (const runtime::SymmetricBuffer *each : {&slots, &slotsOfElements, &sums})
    total += each->isValid() ? each->bytes() : 0;
  return total;
}

KernelCall OneLaunch::call(const runtime::Rank &rank, OneLaunchResult result, runtime::Pointer a, runtime::Pointer b,
                           runtime::Pointer out, const EpilogueOperands &extras, int64_t rows, int64_t depth,
                           const RowStrides &strides, const OneLaunchTile &shape) const {
  const TileConfig &tile = shape.tile;
  const uint32_t id = rank.id(), numRanks = rank.numRanks();
  const PerRank &own = ranks[id];
  const OneLaunchGrid grid = oneLaunchGrid(rank, options, shape, rows, options.columns, depth);
  const bool withoutFlags = sendsWithoutFlags(result, rows);
  const runtime::Pointer ownSlots = (withoutFlags ? slotsOfElements : slots).on(id);
  KernelCall call;
  call.source = "one_launch";
  call.kernel = kernelName;
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.grid = {grid.blocks, 1, 1};
  call.arguments = {
      {"a_ptr", a},
      {"b_ptr", b},
      {"out_ptr", out},
      {"split_ptr", own.splitParts.pointer()},
      {"split_counter_ptr", own.splitCounters.pointer()},
      {"slots_ptr", ownSlots},
      {"sums_ptr", result == OneLaunchResult::EverywhereByOwners ? sums.on(id) : ownSlots.as(options.resultType)},
      {"flags_ptr", flags.on(id)},
      {"call_ptr", (withoutFlags ? own.callOfElements : own.call).pointer()},
      {"M", rows},
      {"N", options.columns},
      {"K", depth},
      {"stride_a", strides.a},
      {"stride_b", strides.b},
      {"stride_out", strides.c},
      {"slot_elements", slotElements},
      {"sum_flags", mostOneLaunchTiles * numRanks},
      {"splits", grid.splits},
      {"rank", id},
      {"WORLD_SIZE", numRanks},
      {"SPLIT", grid.splits > 1},
      {"TWO_SHOT", result != OneLaunchResult::Everywhere},
      {"SCATTER", result == OneLaunchResult::Scattered},
      {"LAMPORT", withoutFlags},
      {"PART_M", std::bit_ceil((tile.blockM + numRanks - 1) / numRanks)}};
  appendOneLaunchTile(call, rank, options, shape);
  appendEpilogue(call, options.epilogue, extras, id == 0 ? options.columns : 0);
  return call;
}

} // namespace ditron::ops
