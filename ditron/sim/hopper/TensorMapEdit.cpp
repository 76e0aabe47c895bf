//===- TensorMapEdit.cpp - Tensor maps that a kernel makes itself --------------------------------------------------===//
//
// A tensor map in memory has the form that the host gives it (DitronSimTensorMap). A kernel copies it to shared memory, changes its
// fields there by their numbers in the PTX ISA (tensormap.replace), and publishes it in global memory.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"
#include "ditron/sim/hopper/TensorMap.h"

#include <fmt/format.h>

#include <cstring>

using namespace ditron;
using namespace ditron::sim;

namespace {

constexpr uint32_t mapBytes = sizeof(DitronSimTensorMap);
static_assert(mapBytes == 128);

bool isShared(const Thread &thread, const void *address, uint64_t bytes) {
  auto offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(thread.sharedMemory);
  return offset < thread.sharedBytes && bytes <= thread.sharedBytes - offset;
}

[[noreturn]] void refuse(Thread &thread, const std::string &what, const DitronSimSite *site) {
  thread.block->failThread(thread, StatusCode::InvalidArgument, what, site);
}

/// A tensor map in shared memory, where it can be changed.
DitronSimTensorMap &sharedMap(Thread &thread, void *map, const DitronSimSite *site) {
  const int64_t offset = static_cast<char *>(map) - thread.sharedMemory;
  if (!isShared(thread, map, mapBytes) || offset % 128 != 0)
    refuse(thread, fmt::format("a tensor map is set up in 128 bytes of shared memory, aligned to 128; this is at shared offset {}", offset),
           site);
  thread.block->asyncUnit.proxy.noteStore(thread, map, mapBytes, site);
  return *static_cast<DitronSimTensorMap *>(map);
}

/// Bytes of an element by the number that the PTX ISA gives its type; 0 for one that there are no copies of here.
uint32_t elementBytes(uint64_t type) {
  constexpr uint32_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4}; // u8 u16 u32 s32 u64 s64 f16 f32 f32.ftz f64 bf16 tf32 tf32.ftz
  return type < std::size(bytes) ? bytes[type] : 0;
}

} // namespace

extern "C" {

void ditron_sim_map_replace(DitronSimThread *self, void *map, uint32_t field, uint32_t ordinal, uint64_t value,
                            const DitronSimSite *site) {
  Thread &thread = asThread(self);
  DitronSimTensorMap &fields = sharedMap(thread, map, site);
  const uint32_t limit = field == DITRON_SIM_MAP_STRIDE ? 4 : 5;
  if (ordinal >= limit)
    refuse(thread, fmt::format("dimension {} of a tensor map; accepted is 0 to {}", ordinal, limit - 1), site);
  auto refuseValue = [&](const char *what, const char *accepted) {
    refuse(thread, fmt::format("{} {} of a tensor map is not simulated; accepted is {}", what, value, accepted), site);
  };
  switch (field) {
  case DITRON_SIM_MAP_ADDRESS: fields.base = reinterpret_cast<void *>(value); break;
  case DITRON_SIM_MAP_DIM: fields.dims[ordinal] = static_cast<uint32_t>(value); break;
  case DITRON_SIM_MAP_STRIDE: fields.stridesBytes[ordinal] = value; break;
  case DITRON_SIM_MAP_BOX: fields.box[ordinal] = static_cast<uint32_t>(value); break;
  case DITRON_SIM_MAP_ELEMENT_STRIDE:
    if (value != 1)
      refuseValue("element stride", "1");
    break;
  case DITRON_SIM_MAP_RANK:
    if (value > 4)
      refuseValue("rank less one", "0 to 4");
    fields.rank = static_cast<uint32_t>(value) + 1;
    break;
  case DITRON_SIM_MAP_ELEMENT_TYPE:
    fields.elementBytes = elementBytes(value);
    fields.roundsTf32 = value == 11 || value == 12;
    if (fields.elementBytes == 0)
      refuseValue("element type", "0 to 12");
    break;
  case DITRON_SIM_MAP_INTERLEAVE:
    if (value != 0)
      refuseValue("interleave layout", "0 (none)");
    break;
  case DITRON_SIM_MAP_SWIZZLE:
    if (value > 3)
      refuseValue("swizzle mode", "0 to 3");
    fields.swizzleBytes = value == 0 ? 0 : 16u << value;
    break;
  default:
    if (value > 1)
      refuseValue("fill mode", "0 and 1");
    fields.fillNan = static_cast<uint32_t>(value);
    break;
  }
}

void ditron_sim_map_publish(DitronSimThread *self, void *global, const void *shared, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  if (thread.laneId != 0)
    return;
  DitronSimTensorMap &map = sharedMap(thread, const_cast<void *>(shared), site);
  if (reinterpret_cast<uintptr_t>(global) % 128 != 0)
    refuse(thread,
           fmt::format("a tensor map in global memory is aligned to 128; {} is not",
                       thread.block->engine.memory.placeText(global)),
           site);
  ditron_sim_access(self, global, mapBytes, 1, DITRON_SIM_STORE, DITRON_SIM_GLOBAL, site);
  std::memcpy(global, &map, mapBytes);
}

void ditron_sim_map_check(DitronSimThread *self, const void *map, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0)
    refuse(thread, fmt::format("the tensor map at {} is not aligned to 64", thread.block->engine.memory.placeText(map)),
           site);
  ditron_sim_access(self, map, mapBytes, 1, DITRON_SIM_LOAD, DITRON_SIM_GENERIC, site);
}

} // extern "C"
