//===- NodeSums.cpp - The end of a GEMM+ReduceScatter between nodes ---------------------------------------------------===//
#include "ditron/ops/tensor_parallel/NodeSums.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {
/// A sum is made and sent in at most so many parts, of at least so many bytes, so that adding and sending overlap.
constexpr uint32_t mostParts = 16, leastPartBytes = 32768;
/// Adding takes a fraction of the time in which the network carries the sum: one multiprocessor in so many is enough
/// (Triton-distributed, section 3.5: 15 of an H800's 132).
constexpr uint32_t multiprocessorsPerBlock = 8;
} // namespace

uint32_t NodeSums::blocks(const runtime::Rank &rank) {
  return std::clamp<uint32_t>(rank.attributes().multiprocessors / multiprocessorsPerBlock, 1, mostParts);
}

Expected<NodeSums> NodeSums::create(runtime::World &world, std::string_view name, DataType partialType, int64_t maxRows,
                                    int64_t columns) {
  NodeSums sums;
  sums.world = &world;
  sums.columns = columns;
  sums.maxRowsPerRank = RowShards(maxRows, world.numRanks()).rowsPerRank;
  const int64_t shard = sums.maxRowsPerRank * columns;
  DITRON_ASSIGN_OR_RETURN(
      sums.scatter, world.allocateSymmetric(partialType, world.numRanks() * shard, fmt::format("{}_scatter", name)));
  DITRON_ASSIGN_OR_RETURN(
      sums.inbox, world.allocateSymmetric(partialType, world.numNodes() * shard, fmt::format("{}_node_sums", name)));
  DITRON_ASSIGN_OR_RETURN(sums.arrived, world.allocateSymmetric(DataType::I64, world.numNodes() * mostParts,
                                                                fmt::format("{}_node_arrived", name)));
  return sums;
}

runtime::Pointer NodeSums::slots(uint32_t rank, uint32_t node) const {
  return scatter.on(rank) + node * world->ranksPerNode() * maxRowsPerRank * columns;
}

int64_t NodeSums::rowsPerPart(int64_t segmentRows) const {
  const auto rowBytes = columns * static_cast<int64_t>(sizeOf(inbox.type()));
  return std::max(ceilDivide(segmentRows, mostParts), ceilDivide(leastPartBytes, rowBytes));
}

Status NodeSums::appendExchange(runtime::KernelProvider &kernels, runtime::Rank &rank, const CallWords &words,
                                runtime::Pointer partial, int64_t rows, std::string_view copyName,
                                runtime::CallSequence &sequence) const {
  using runtime::Lane;
  const uint32_t id = rank.id(), local = world->ranksPerNode(), place = id % local, ownNode = world->nodeOf(id);
  const RowShards shards(rows, world->numRanks());
  const auto waitFor = [&](Lane lane, runtime::Pointer gate) {
    sequence.signalWait(lane, gate, runtime::Compare::GreaterEqual, 1);
  };
  for (const auto &[segment, peer, firstRow, count] : nodeScatters(shards, id, world->numRanks(), world->numNodes())) {
    if (peer == id)
      continue;
    waitFor(Lane::Side, words.gates(id) + segment);
    sequence.copy(Lane::Side,
                  runtime::Copy::of(slot(peer, world->nodeOf(segment), place, count), partial + firstRow * columns,
                                    count * columns, fmt::format("{} to {}", copyName, peer)));
    sequence.signalWrite(Lane::Side, words.arrivals(peer) + (world->nodeOf(segment) * local + place), 1);
  }
  for (uint32_t visit = 1; visit <= world->numNodes(); ++visit) {
    const uint32_t node = (ownNode + visit) % world->numNodes(), segment = node * local + place;
    if (shards.rowsOf(segment) == 0)
      continue;
    // Of the own node's segment the sum is a part of the result, which waits for the same.
    for (uint32_t other = 0; other < local; ++other)
      waitFor(Lane::SecondSide,
              other == place ? words.gates(id) + segment : words.arrivals(id) + (node * local + other));
    if (node == ownNode)
      continue;
    DITRON_ASSIGN_OR_RETURN(const PreparedCall sum,
                            PreparedCall::create(kernels, rank, sumCall(rank, words, partial, rows, segment)));
    sequence.launch(Lane::SecondSide, sum.prepared());
  }
  return Status::ok();
}

KernelCall NodeSums::sumCall(const runtime::Rank &rank, const CallWords &words, runtime::Pointer partial, int64_t rows,
                             uint32_t segment) const {
  const RowShards shards(rows, world->numRanks());
  const uint32_t id = rank.id(), local = world->ranksPerNode(), place = id % local, node = world->nodeOf(segment);
  const int64_t segmentRows = shards.rowsOf(segment), partRows = rowsPerPart(segmentRows);
  KernelCall call;
  call.source = "inter_node";
  call.kernel = "reduce_and_send";
  call.grid = {static_cast<uint32_t>(std::min<int64_t>(ceilDivide(segmentRows, partRows), blocks(rank))), 1, 1};
  call.arguments = {{"partial_ptr", partial + shards.firstRowOf(segment) * columns},
                    {"scatter_ptr", slots(id, node)},
                    {"sum_ptr", slot(id, node, place, segmentRows)},
                    {"inbox_ptr", inbox.on(id)},
                    {"arrived_ptr", arrived.on(id)},
                    {"generation_ptr", words.generation(id)},
                    {"rows", segmentRows},
                    {"rows_per_part", partRows},
                    {"N", columns},
                    {"rank", id},
                    {"peer", segment},
                    {"NODE_SIZE", local},
                    {"MOST_PARTS", mostParts},
                    {"BLOCK_M", reduceBlockM},
                    {"BLOCK_N", reduceBlockN}};
  return call;
}

std::optional<KernelCall> NodeSums::resultCall(const runtime::Rank &rank, const CallWords &words,
                                               runtime::Pointer partial, runtime::Pointer out, int64_t outStride,
                                               int64_t rows) const {
  const RowShards shards(rows, world->numRanks());
  const uint32_t id = rank.id(), local = world->ranksPerNode(), node = world->nodeOf(id);
  const int64_t ownRows = shards.rowsOf(id);
  if (ownRows == 0)
    return std::nullopt;
  const ReduceTiles tiles = reduceTiles(ownRows, columns, rank.attributes().multiprocessors);
  KernelCall call;
  call.source = "inter_node";
  call.kernel = "reduce_nodes";
  call.numWarps = tiles.numWarps;
  call.grid = {tiles.blocks, 1, 1};
  call.arguments = {{"partial_ptr", partial + shards.firstRowOf(id) * columns},
                    {"scatter_ptr", slots(id, node)},
                    {"inbox_ptr", inbox.on(id)},
                    {"out_ptr", out},
                    {"arrived_ptr", arrived.on(id)},
                    {"generation_ptr", words.generation(id)},
                    {"rows", ownRows},
                    {"parts", ceilDivide(ownRows, rowsPerPart(ownRows))},
                    {"N", columns},
                    {"stride_out", outStride},
                    {"rank", id},
                    {"NUM_NODES", world->numNodes()},
                    {"NODE_SIZE", local},
                    {"MOST_PARTS", mostParts},
                    {"BLOCK_M", tiles.blockM},
                    {"BLOCK_N", tiles.blockN}};
  return call;
}

} // namespace ditron::ops
