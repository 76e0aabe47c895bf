//===- ProgramLoop.cpp - The launch of kernels whose blocks run one program after the other -----------------------===//
//
// See ProgramLoop.h.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/ProgramLoop.h"

namespace ditron::runtime {

HardwareLaunch::HardwareLaunch(const Artifact &artifact, const std::array<uint32_t, 3> &asked, void *const *values,
                               uint32_t resident)
    : programs(asked), blocks(asked), given(const_cast<void **>(values)) {
  if (!artifact.loopsOverPrograms)
    return;
  const uint64_t total = uint64_t(1) * asked[0] * asked[1] * asked[2];
  blocks = {static_cast<uint32_t>(std::min<uint64_t>(total, resident)), 1, 1};
  void *const *maps = values + artifact.parameters.size();
  all.reserve(artifact.parameters.size() + programs.size() + artifact.tensorMaps.size() + 1);
  all.assign(values, maps);
  for (uint32_t &extent : programs)
    all.push_back(&extent);
  all.insert(all.end(), maps, maps + artifact.tensorMaps.size() + 1);
  given = all.data();
}

} // namespace ditron::runtime
