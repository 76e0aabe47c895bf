//===- CallWords.cpp - The words that synchronise the calls of an operator --------------------------------------------===//
#include "ditron/ops/CallWords.h"

#include "ditron/ops/GemmKernels.h"
#include "ditron/ops/KernelLaunch.h"

#include <fmt/format.h>

namespace ditron::ops {

namespace {
/// One thread of `enter` serves one rank, one segment and one signal of the own rank.
constexpr uint32_t enterWarps = 4;
/// Of its copy: enough loads on their way for each thread, and enough blocks to fill a GPU's memory with them.
constexpr uint32_t copyBlockBytes = 16384, copyBlocksPerMultiprocessor = 2;
} // namespace

Expected<CallWords> CallWords::create(runtime::World &world, std::string_view name, uint32_t segments,
                                      uint32_t arrivals) {
  uint32_t threads = enterWarps * world.rank(world.localRanks().front()).attributes().warpSize;
  if (world.numRanks() > threads || segments > threads)
    return unsupported(fmt::format("{}: {} ranks and {} segments; at most {} of each are accepted", name,
                                   world.numRanks(), segments, threads));
  CallWords words;
  words.segmentCount = segments;
  if (world.numNodes() > 1) {
    words.nodeSize = world.ranksPerNode();
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
  const uint32_t id = rank.id(), block = copyBlockBytes / sizeOf(copy.source.type);
  const int64_t copyBlocks = std::min<int64_t>(ceilDivide(copy.elements, block),
                                               copyBlocksPerMultiprocessor * rank.attributes().multiprocessors);
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
                    {"num_own", copy.elements},
                    {"rank", id},
                    {"world_size", rank.numRanks()},
                    {"BLOCK", block}};
  if (nodeSize) {
    call.source = "inter_node";
    call.kernel = "enter_nodes";
    call.arguments.insert(call.arguments.end(), {{"arrival_ptr", arrivals(id)},
                                                 {"finished_ptr", ranks[id].finished.pointer()},
                                                 {"num_arrivals", arrivalCount},
                                                 {"elements_per_chunk", copy.elementsPerChunk},
                                                 {"node_size", nodeSize}});
  }
  return call;
}

KernelCall CallWords::enter(const runtime::Rank &rank) const {
  const runtime::Pointer any = generation(rank.id());
  return enter(rank, any, 0, {.destination = any, .source = any, .elements = 0});
}

} // namespace ditron::ops
