//===- Costs.h - How long tensor copies and warpgroup multiplies take -----------------------------------*- C++ -*-===//
//
// The formulas, from the machine's cost model; who is busy until when is the units' matter.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_HOPPER_COSTS_H
#define DITRON_SIM_HOPPER_COSTS_H

#include "ditron/sim/Machine.h"

#include <cstdint>

namespace ditron::sim {

struct TensorCopyCost {
  double transferNs; ///< For which the copy unit is busy.
  double latencyNs;  ///< From then until the bytes are there.
};

/// Of a copy of so many bytes of global memory, of the own rank or of another. The blocks of an SM share its bandwidth,
/// the SMs of a rank its links.
inline TensorCopyCost tensorCopyCost(const MachineOptions &options, uint64_t bytes, bool isRemote, double slowFactor) {
  const CostModel &cost = options.cost;
  const double moved = static_cast<double>(bytes) * options.blocksPerSm;
  const double transfer = isRemote ? moved * options.smsPerRank / cost.linkBytesPerNs : moved / cost.hbmBytesPerNsPerSm;
  return {transfer * slowFactor, cost.tmaLatencyNs + (isRemote ? cost.linkLatencyNs : 0)};
}

/// Of a multiply of so many flops on operands that so many of fill 32 bits. The blocks of an SM share its tensor cores.
inline double warpgroupMultiplyNs(const MachineOptions &options, uint64_t flops, uint32_t elementsPerWord,
                                  double slowFactor) {
  const CostModel &cost = options.cost;
  const double perClock = elementsPerWord == 4   ? cost.wgmmaFlopsPerClock8
                          : elementsPerWord == 1 ? cost.wgmmaFlopsPerClockTf32
                                                 : cost.wgmmaFlopsPerClock16;
  return static_cast<double>(flops) / perClock / cost.smClockGHz * options.blocksPerSm * slowFactor;
}

} // namespace ditron::sim

#endif // DITRON_SIM_HOPPER_COSTS_H
