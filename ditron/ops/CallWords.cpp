//===- CallWords.cpp - The words that synchronise the calls of an operator --------------------------------------------===//
#include "ditron/ops/CallWords.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/KernelLaunch.h"

#include <bit>
#include <fmt/format.h>

namespace ditron::ops {

namespace {
/// One thread of `enter` serves one rank, one segment and one signal of the own rank.
constexpr uint32_t enterWarps = 4;
/// Of its copy: enough loads on their way for each thread, and enough blocks to fill a GPU's memory with them.
constexpr uint32_t copyBlockBytes = 16384, copyBlocksPerMultiprocessor = 2;
} // namespace

uint32_t CallWords::mostSegments(runtime::World &world) {
  return enterWarps * world.rank(world.localRanks().front()).attributes().warpSize;
}

uint32_t CallWords::mostChunks(runtime::World &world) {
  return std::max<uint32_t>(mostSegments(world) / world.numRanks(), 1);
}

Status CallWords::verifyChunks(runtime::World &world, std::string_view operation, uint32_t chunks) {
  if (const uint32_t most = mostChunks(world); chunks > most)
    return invalidArgument(
        fmt::format("{}: {} chunks of {} ranks; at most {} are accepted", operation, chunks, world.numRanks(), most));
  return Status::ok();
}

Expected<CallWords> CallWords::create(runtime::World &world, std::string_view name, uint32_t segments,
                                      uint32_t arrivals) {
  const uint32_t threads = mostSegments(world);
  if (world.numRanks() > threads || segments > threads)
    return unsupported(fmt::format("{}: {} ranks and {} segments; at most {} of each are accepted", name,
                                   world.numRanks(), segments, threads));
  CallWords words;
  words.segmentCount = segments;
  if (world.numNodes() > 1)
    words.nodeSize = world.ranksPerNode();
  if (arrivals > 0 || world.numNodes() > 1) {
    words.arrivalCount = arrivals;
    DITRON_ASSIGN_OR_RETURN(words.arrivalGates, world.allocateSymmetric(DataType::I64, std::max<uint32_t>(arrivals, 1),
                                                                        fmt::format("{}_arrival_gate", name)));
  }
  DITRON_ASSIGN_OR_RETURN(words.entered,
                          world.allocateSymmetric(DataType::I64, world.numRanks(), fmt::format("{}_entered", name)));
  words.ranks.resize(world.numRanks());
  for (uint32_t id : world.localRanks()) {
    runtime::Rank &rank = world.rank(id);
    PerRank &own = words.ranks[id];
    uint64_t count = std::max<uint32_t>(segments, 1);
    DITRON_ASSIGN_OR_RETURN(own.generation, rank.allocate(DataType::I64, 1, fmt::format("{}_generation", name)));
    DITRON_ASSIGN_OR_RETURN(own.counters, rank.allocate(DataType::I32, count, fmt::format("{}_tiles_done", name)));
    DITRON_ASSIGN_OR_RETURN(own.gates, rank.allocate(DataType::I64, count, fmt::format("{}_segment_gate", name)));
    if (words.nodeSize) {
      DITRON_ASSIGN_OR_RETURN(own.finished, rank.allocate(DataType::I32, 1, fmt::format("{}_enter_done", name)));
    }
  }
  return words;
}

KernelCall CallWords::enter(const runtime::Rank &rank, runtime::Pointer raised, uint32_t count,
                            const OwnCopy &copy) const {
  // Rows that are shorter than a block's share would leave threads idle.
  constexpr int64_t leastBlock = 512;
  const int64_t mostBlock = copyBlockBytes / sizeOf(copy.source.type);
  const auto block = static_cast<uint32_t>(std::clamp<int64_t>(
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(copy.columns, 1)))), leastBlock,
      mostBlock));
  const uint32_t id = rank.id();
  const int64_t copyBlocks = std::min<int64_t>(copy.rows * ceilDivide(copy.columns, block),
                                               copyBlocksPerMultiprocessor * rank.attributes().multiprocessors);
  const bool hasScales = copy.scaleSource.address != nullptr;
  KernelCall call;
  call.source = "tensor_parallel_gemm";
  call.kernel = "enter";
  call.numWarps = enterWarps;
  call.grid = {static_cast<uint32_t>(1 + copyBlocks), 1, 1};
  call.arguments = {{"generation_ptr", generation(id)},
                    {"entered_ptr", entered.on(id)},
                    {"counter_ptr", counters(id)},
                    {"gate_ptr", gates(id)},
                    {"raised_ptr", raised},
                    {"own_ptr", copy.destination},
                    {"shard_ptr", copy.source},
                    {"num_segments", segmentCount},
                    {"num_raised", count},
                    {"own_rows", copy.rows},
                    {"own_columns", copy.columns},
                    {"stride_own", copy.destinationStride},
                    {"stride_shard", copy.sourceStride},
                    {"rank", id},
                    {"world_size", rank.numRanks()},
                    {"BLOCK", block},
                    {"own_scale_ptr", orNone(hasScales, copy.scaleDestination)},
                    {"shard_scale_ptr", orNone(copy.scaleSource)},
                    {"num_scales", copy.scales},
                    {"stride_own_scale", copy.scaleStride},
                    {"SHARD_SCALES", copy.hasScaleOfEach}};
  if (arrivalGates.isValid())
    call.arguments.insert(call.arguments.end(), {{"arrival_ptr", arrivals(id)}, {"num_arrivals", arrivalCount}});
  if (nodeSize) {
    call.source = "inter_node";
    call.kernel = "enter_nodes";
    call.arguments.insert(call.arguments.end(), {{"finished_ptr", ranks[id].finished.pointer()},
                                                 {"num_sent", copy.sentElements},
                                                 {"elements_per_chunk", copy.elementsPerChunk},
                                                 {"node_size", nodeSize}});
  }
  return call;
}

KernelCall CallWords::enter(const runtime::Rank &rank) const {
  const runtime::Pointer any = generation(rank.id());
  return enter(rank, any, 0, {.destination = any, .source = any});
}

} // namespace ditron::ops
