//===- Channels.h - What the collectives' host and device code have in common ---------------------------------*- C++ -*-===//
//
// Sizes that kernels/collectives fixes, and the words in which blocks count their calls.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_COLLECTIVES_CHANNELS_H
#define DITRON_OPS_COLLECTIVES_CHANNELS_H

#include "ditron/ops/collectives/CollectivePlans.h"
#include "ditron/runtime/World.h"

#include <string_view>
#include <vector>

namespace ditron::ops {

/// Of a packet's 16 bytes; the others are the number of the call, twice.
inline constexpr uint32_t packetDataBytes = 8;
/// Of a Lamport packet's 16 bytes.
inline constexpr uint32_t lamportDataBytes = 16;
/// SLOTS of the device code.
inline constexpr uint32_t slotsOfRing = 4;

/// Whether so many bytes of one and of the other have a byte in common.
bool overlap(runtime::Pointer a, uint64_t bytesOfA, runtime::Pointer b, uint64_t bytesOfB);
/// The integer type as wide as the type: what code that only moves elements is compiled for.
DataType bitsOf(DataType type);
/// Elements of a cache line: pieces for rings are cut at multiples of these.
int64_t ringLineElements(DataType type);

/// How transfers between pairs of ranks are carried out, whose sizes no table can be asked for.
struct PairPlan {
  CollectivePlan rings;     ///< Of the form chunks.
  uint64_t packetBytes = 0; ///< The largest message that goes by packets.
};
/// From the table's rows of all_to_all_v for the GPU: the last of the form chunks, and the limit of the last of the form packets. Where
/// the user's table leaves none of the form chunks, from the library's alone.
Expected<PairPlan> readPairPlan(std::string_view gpu, uint32_t numRanks);

/// Plans of calls of which so many run at once on the world's GPUs, whose blocks must all find a place: no more blocks than a call's part
/// of the multiprocessors, less what other kernels of the call have `taken`, the same on all ranks. One call alone may have any number: its blocks start in
/// the order of their numbers.
void leavePlacesFor(uint32_t concurrentCalls, uint32_t taken, runtime::World &world,
                    std::vector<CollectivePlanRow> &rows);
/// For each rank of this process i64 [blocks] of its own, zeros.
Expected<std::vector<runtime::Buffer>> allocateCounters(runtime::World &world, uint32_t blocks, std::string_view name);

} // namespace ditron::ops
#endif // DITRON_OPS_COLLECTIVES_CHANNELS_H
