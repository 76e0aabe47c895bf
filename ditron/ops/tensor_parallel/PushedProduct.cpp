//===- PushedProduct.cpp - Products whose tiles go to their owners as they are computed -------------------------------===//
#include "ditron/ops/tensor_parallel/PushedProduct.h"

#include "ditron/ops/KernelLaunch.h"
#include "ditron/support/TargetName.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::ops {

using runtime::Lane;

namespace {

/// A chunk's own segment is computed when the other ranks' parts of it have come: while so many launches more compute, they are on their way.
constexpr uint32_t launchesOnTheWay = 2;

/// Launches take turns in two lanes, so that multiprocessors which one of them leaves begin with the next one, whether or not its last stores have
/// gone over the link.
constexpr Lane productLanes[] = {Lane::Main, Lane::Side};
constexpr Lane fetchLane = Lane::SecondSide;

/// Rows of a tile that a block adds at a time: what of all ranks' loads fits into the registers of its threads, and no more than leaves the product's
/// operands their shared memory, for which the compiler counts what a change of layout would take.
uint32_t rowsPerAddition(const TileConfig &tile, uint32_t warpSize, uint32_t numRanks, DataType partialType) {
  constexpr int64_t bytesPerThread = 256, mostBytes = 16384;
  const auto bytesPerRow = static_cast<int64_t>(tile.blockN * sizeOf(partialType));
  const int64_t rows = std::min(bytesPerThread * tile.numWarps * warpSize / numRanks, mostBytes) / bytesPerRow;
  return std::min<uint32_t>(std::bit_floor(static_cast<uint32_t>(std::max<int64_t>(rows, 1))), tile.blockM);
}

} // namespace

PushedProduct::Cut::Cut(int64_t rows, uint32_t ranks, const TileConfig &tile, uint32_t chunks)
    : segments(rows, ranks), blockM(tile.blockM), tileRows(ceilDivide(segments.rowsPerRank, blockM)),
      chunkTileRows(ceilDivide(tileRows, chunks)), count(static_cast<uint32_t>(ceilDivide(tileRows, chunkTileRows))) {}

int64_t PushedProduct::Cut::rowsOf(uint32_t owner, uint32_t chunk) const {
  return std::clamp<int64_t>(segments.rowsOf(owner) - chunk * chunkTileRows * blockM, 0, chunkTileRows * blockM);
}

Expected<PushedProduct> PushedProduct::create(runtime::World &world, runtime::KernelProvider &kernels,
                                              const PushedProductOptions &options) {
  if (world.numRanks() > mostRanks)
    return unsupported(fmt::format("{}: form pushed among {} ranks; at most {} are accepted", options.name,
                                   world.numRanks(), mostRanks));
  PushedProduct made;
  made.options = options;
  made.world = &world;
  made.kernels = &kernels;
  made.mostChunks = CallWords::mostChunks(world);
  const bool everywhere = options.result == PushedResult::Everywhere;
  const uint32_t words = world.numRanks() * made.mostChunks;
  DITRON_ASSIGN_OR_RETURN(made.words, CallWords::create(world, options.name, words, everywhere ? 2 * words : words));
  const int64_t elements = RowShards(options.maxRows, world.numRanks()).rowsPerRank * options.columns;
  DITRON_ASSIGN_OR_RETURN(made.scatter, world.allocateSymmetric(options.partialType, world.numRanks() * elements,
                                                                fmt::format("{}_parts", options.name)));
  if (everywhere) {
    DITRON_ASSIGN_OR_RETURN(
        made.reduced, world.allocateSymmetric(options.resultType, elements, fmt::format("{}_sums", options.name)));
  }
  made.sides.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    DITRON_ASSIGN_OR_RETURN(made.sides[id],
                            runtime::SideStream::create(world.rank(id), options.name, everywhere ? 2 : 1));
  }
  return made;
}

uint32_t PushedProduct::chunksFor(int64_t rows, const TileConfig &tile, uint32_t wanted) const {
  return Cut(rows, world->numRanks(), tile, std::clamp(wanted, 1u, mostChunks)).count;
}

Expected<ProductPlan::Parts> PushedProduct::makeParts(runtime::Rank &rank, const OperandPointers &operands,
                                                      const ProductShape &shape, const TileConfig &tile,
                                                      uint32_t chunks) const {
  const Cut cut(shape.rows, rank.numRanks(), tile, std::clamp(chunks, 1u, mostChunks));
  OperandLaunch::Names names = OperandLaunch::withEpilogue(
      {{"a_ptr", Operand::A}, {"b_ptr", Operand::B}, {"out_ptr", Operand::Result}}, options.epilogue);
  ProductPlan::Parts parts;
  parts.sequence = runtime::CallSequence(sides[rank.id()]);
  auto launch = [&](Lane lane, OperandLaunch &&made) {
    parts.sequence.launch(lane, made.call.prepared());
    parts.launches.push_back(std::move(made));
  };
  DITRON_ASSIGN_OR_RETURN(OperandLaunch enter, OperandLaunch::create(*kernels, rank, words.enter(rank), {}));
  launch(Lane::Main, std::move(enter));
  if (rank.numRanks() > 1 && options.result == PushedResult::Everywhere) {
    parts.sequence.join(fetchLane);
    addFetches(rank, cut, shape.strides.c, parts.sequence);
  }
  const std::vector<Launch> launches = launchesOf(rank.id(), cut, tile);
  if (launches.size() > 1)
    parts.sequence.join(productLanes[1]);
  for (const Launch &each : launches) {
    const Lane lane = productLanes[each.index % std::size(productLanes)];
    if (each.ownTiles > 0)
      addArrivals(rank, each.ownChunk, lane, parts.sequence);
    DITRON_ASSIGN_OR_RETURN(OperandLaunch product,
                            OperandLaunch::create(*kernels, rank, call(rank, operands, shape, tile, cut, each), names));
    launch(lane, std::move(product));
  }
  parts.sequence.join(Lane::Main);
  return parts;
}

std::vector<PushedProduct::Launch> PushedProduct::launchesOf(uint32_t rank, const Cut &cut,
                                                             const TileConfig &tile) const {
  const int64_t columns = ceilDivide(options.columns, tile.blockN), others = world->numRanks() - 1;
  std::vector<Launch> launches;
  for (uint32_t chunk = 0; chunk < cut.count + launchesOnTheWay; ++chunk) {
    Launch launch = {.index = static_cast<uint32_t>(launches.size())};
    if (chunk < cut.count) {
      launch.otherChunk = chunk;
      launch.otherTiles = cut.tileRowsOf(chunk) * others * columns;
    }
    if (const uint32_t own = chunk - launchesOnTheWay; chunk >= launchesOnTheWay && cut.rowsOf(rank, own) > 0) {
      launch.ownChunk = own;
      launch.ownTiles = cut.tileRowsOf(own) * columns;
    }
    if (launch.otherTiles + launch.ownTiles > 0)
      launches.push_back(launch);
  }
  return launches;
}

void PushedProduct::addArrivals(const runtime::Rank &rank, uint32_t chunk, Lane lane,
                                runtime::CallSequence &sequence) const {
  // In the order in which they come: the rank below has begun with this one's rows.
  const uint32_t id = rank.id(), numRanks = rank.numRanks();
  for (uint32_t step = 1; step < numRanks; ++step)
    sequence.signalWait(lane, words.arrivals(id) + partGate((id + numRanks - step) % numRanks, chunk),
                        runtime::Compare::GreaterEqual, 1);
}

void PushedProduct::addFetches(const runtime::Rank &rank, const Cut &cut, int64_t strideOut,
                               runtime::CallSequence &sequence) const {
  for (uint32_t chunk = 0; chunk < cut.count; ++chunk)
    for (uint32_t step = 1; step < rank.numRanks(); ++step) {
      const uint32_t owner = (rank.id() + step) % rank.numRanks();
      const int64_t rows = cut.rowsOf(owner, chunk);
      if (rows == 0)
        continue;
      sequence.signalWait(fetchLane, words.arrivals(rank.id()) + sumGate(owner, chunk), runtime::Compare::GreaterEqual,
                          1);
      addRowsToCaller(sequence, fetchLane, reduced.on(owner) + chunk * cut.chunkTileRows * cut.blockM * options.columns,
                      {cut.firstRowOf(owner, chunk), rows, options.columns, strideOut},
                      fmt::format("{} from {}", copyName, owner));
    }
}

KernelCall PushedProduct::call(const runtime::Rank &rank, const OperandPointers &operands, const ProductShape &shape,
                               const TileConfig &tile, const Cut &cut, const Launch &launch) const {
  const uint32_t id = rank.id(), multiprocessors = rank.attributes().multiprocessors;
  const int64_t tiles = launch.otherTiles + launch.ownTiles;
  const bool everywhere = options.result == PushedResult::Everywhere;
  KernelCall call;
  call.source = "pushed_product";
  call.kernel = kernelName;
  call.numWarps = tile.numWarps;
  call.numStages = tile.numStages;
  call.grid = {
      static_cast<uint32_t>(hasTensorCopies(rank.world().target()) ? std::min<int64_t>(tiles, multiprocessors) : tiles),
      1, 1};
  call.arguments = {{"a_ptr", operands[Operand::A]},
                    {"b_ptr", operands[Operand::B]},
                    {"scatter_ptr", scatter.on(id)},
                    {"out_ptr", operands[Operand::Result]},
                    {"counter_ptr", words.counters(id)},
                    {"arrival_ptr", words.arrivals(id) + partGate(0, 0)},
                    {"M", shape.rows},
                    {"N", options.columns},
                    {"K", shape.size},
                    {"stride_a", shape.strides.a},
                    {"stride_b", shape.strides.b},
                    {"stride_out", shape.strides.c},
                    {"rows_per_rank", cut.segments.rowsPerRank},
                    {"segment_tiles", cut.tileRows},
                    {"chunk_tiles", cut.chunkTileRows},
                    {"launch", launch.index},
                    {"tiles", tiles},
                    {"other_tiles", launch.otherTiles},
                    {"other_chunk", launch.otherChunk},
                    {"own_chunk", launch.ownChunk},
                    {"rank", id},
                    {"WORLD_SIZE", rank.numRanks()},
                    {"CHUNKS", mostChunks},
                    {"PART_M", rowsPerAddition(tile, rank.attributes().warpSize, rank.numRanks(), options.partialType)},
                    {"B_TRANSPOSED", options.weightOrder == MatrixOrder::Transposed},
                    {"reduced_ptr", orNone(everywhere ? reduced.on(id) : runtime::Pointer())},
                    {"fetch_ptr", orNone(everywhere, words.arrivals(id) + sumGate(0, 0))}};
  for (uint32_t owner = 0; owner < mostRanks; ++owner)
    call.arguments.emplace_back(fmt::format("slot{}_ptr", owner),
                                orNone(owner < rank.numRanks()
                                           ? scatter.on(owner) + id * cut.segments.rowsPerRank * options.columns
                                           : runtime::Pointer()));
  appendTileArguments(call, tile, options.precision);
  appendEpilogue(call, options.epilogue, operands.epilogue(), id == 0 ? options.columns : 0);
  return call;
}

} // namespace ditron::ops
