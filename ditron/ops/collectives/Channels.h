//===- Channels.h - What the collectives' host and device code have in common ---------------------------------*- C++ -*-===//
//
// Sizes that kernels/collectives fixes, and the words in which blocks count their calls.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_OPS_COLLECTIVES_CHANNELS_H
#define DITRON_OPS_COLLECTIVES_CHANNELS_H

#include "ditron/runtime/World.h"

#include <string_view>
#include <vector>

namespace ditron::ops {

/// Of a packet's 16 bytes; the others are the number of the call, twice.
inline constexpr uint32_t packetDataBytes = 8;
/// SLOTS of the device code.
inline constexpr uint32_t slotsOfRing = 4;

/// For each rank of this process i64 [blocks] of its own, zeros.
Expected<std::vector<runtime::Buffer>> allocateCounters(runtime::World &world, uint32_t blocks, std::string_view name);

} // namespace ditron::ops
#endif // DITRON_OPS_COLLECTIVES_CHANNELS_H
