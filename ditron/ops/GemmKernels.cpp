//===- GemmKernels.cpp - Tiling shared by the overlapped GEMMs --------------------------------------------------------===//
#include "ditron/ops/GemmKernels.h"

#include "ditron/ops/KeptPlans.h"
#include "ditron/support/TargetName.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <limits>

namespace ditron::ops {

std::string_view toString(MultiplyPrecision precision) {
  return precision == MultiplyPrecision::Tf32 ? "tf32" : "ieee";
}

std::string_view toString(Schedule schedule) { return schedule == Schedule::Overlapped ? "overlapped" : "unfused"; }

Status TileConfig::verify() const {
  auto checkBlock = [](std::string_view name, uint32_t value) {
    if (!std::has_single_bit(value) || value < 16 || value > 1024)
      return invalidArgument(fmt::format("tile {} is {}; a power of two from 16 to 1024 is accepted", name, value));
    return Status::ok();
  };
  DITRON_RETURN_IF_ERROR(checkBlock("blockM", blockM));
  DITRON_RETURN_IF_ERROR(checkBlock("blockN", blockN));
  DITRON_RETURN_IF_ERROR(checkBlock("blockK", blockK));
  if (groupM == 0)
    return invalidArgument("tile groupM is 0; at least 1 is accepted");
  if (!std::has_single_bit(numWarps) || numWarps > 32)
    return invalidArgument(fmt::format("numWarps is {}; 1, 2, 4, 8, 16 or 32 is accepted", numWarps));
  if (numStages == 0 || numStages > 8)
    return invalidArgument(fmt::format("numStages is {}; 1 to 8 is accepted", numStages));
  return Status::ok();
}

Status verifyOperandType(std::string_view operation, DataType type) {
  if (type == DataType::BF16 || type == DataType::F16 || type == DataType::F32)
    return Status::ok();
  return unsupported(
      fmt::format("{}: operands of type {}; bf16, fp16 and fp32 are accepted", operation, ditron::toString(type)));
}

Status verifyProduct(std::string_view operation, int64_t m, int64_t n, int64_t k, const TileConfig &tile) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  if (m <= 0 || n <= 0 || k <= 0)
    return invalidArgument(fmt::format("{}: a product of M={}, N={}, K={}; all must be positive", operation, m, n, k));
  if (m > limit || n > limit || k > limit)
    return invalidArgument(
        fmt::format("{}: a product of M={}, N={}, K={}; each may be at most {}", operation, m, n, k, limit));
  // Kernels find a tile's corner in 64 bits and elements inside the tile in 32.
  int64_t widest = std::max({tile.blockM * std::max(k, n), tile.blockK * n});
  if (widest > limit)
    return invalidArgument(
        fmt::format("{}: N={} and K={} make a tile of {}x{}x{} span {} elements; at most {} are accepted", operation, n,
                    k, tile.blockM, tile.blockN, tile.blockK, widest, limit));
  return Status::ok();
}

Expected<uint32_t> nodesFor(std::string_view operation, const runtime::World &world, uint32_t asked) {
  if (asked == 0 || asked == world.numNodes())
    return world.numNodes();
  if (world.numNodes() > 1)
    return invalidArgument(fmt::format("{}: {} nodes for a world of {} ranks on {} nodes; 0 or {} are accepted",
                                       operation, asked, world.numRanks(), world.numNodes(), world.numNodes()));
  if (world.numRanks() % asked != 0)
    return invalidArgument(fmt::format("{}: {} nodes for {} ranks; the number of nodes must divide that of ranks",
                                       operation, asked, world.numRanks()));
  return asked;
}

Status verifyPointerType(std::string_view operation, std::string_view name, runtime::Pointer pointer, DataType type) {
  if (pointer.address == nullptr)
    return invalidArgument(fmt::format("{}: operand {} is a null pointer", operation, name));
  if (pointer.type != type)
    return invalidArgument(fmt::format("{}: operand {} is of type {}; the operator was made for {}", operation, name,
                                       ditron::toString(pointer.type), ditron::toString(type)));
  if (const uint64_t behind = reinterpret_cast<uintptr_t>(pointer.address) % sizeOf(type); behind != 0)
    return invalidArgument(fmt::format("{}: operand {} is at {}, {} behind a multiple of {}, the size of {}", operation,
                                       name, pointer.address, behind, sizeOf(type), ditron::toString(type)));
  return Status::ok();
}

Status verifyAlignedPointer(std::string_view operation, std::string_view name, runtime::Pointer pointer,
                            DataType type) {
  DITRON_RETURN_IF_ERROR(verifyPointerType(operation, name, pointer, type));
  if (alignmentOf(pointer) != planAlignment)
    return invalidArgument(fmt::format("{}: {} is at {}, which is not a multiple of {} bytes", operation, name,
                                       fmt::ptr(pointer.address), planAlignment));
  return Status::ok();
}

Status verifyRank(std::string_view operation, const runtime::World &world, const runtime::Rank &rank) {
  if (&rank.world() == &world)
    return Status::ok();
  return invalidArgument(
      fmt::format("{}: rank {} of another world (of {} ranks) than the operator was made for (of {}): "
                  "take World::rank of that one",
                  operation, rank.id(), rank.numRanks(), world.numRanks()));
}

uint32_t blocksFor(const runtime::Rank &rank, int64_t tiles, uint32_t most) {
  const bool persistent = hasTensorCopies(rank.world().target());
  return static_cast<uint32_t>(
      persistent ? std::min<int64_t>(tiles, std::clamp<uint32_t>(most, 1, rank.attributes().multiprocessors)) : tiles);
}

void appendTileArguments(KernelCall &call, const TileConfig &tile, MultiplyPrecision precision) {
  call.arguments.emplace_back("BLOCK_M", tile.blockM);
  call.arguments.emplace_back("BLOCK_N", tile.blockN);
  call.arguments.emplace_back("BLOCK_K", tile.blockK);
  call.arguments.emplace_back("GROUP_SIZE_M", tile.groupM);
  call.arguments.emplace_back("PRECISION", std::string(toString(precision)));
}

} // namespace ditron::ops
