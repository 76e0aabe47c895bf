//===- SimSymbols.cpp - The simulator's functions by name ---------------------------------------------------------===//
//
// One row per function of sim/Abi.h.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/jit/SimSymbols.h"

#include "ditron/sim/Abi.h"

namespace ditron::jit {

std::span<const SimSymbol> simSymbols() {
#define DITRON_SIM_SYMBOL(function)                                                                                    \
  {                                                                                                                    \
    #function, reinterpret_cast<void *>(&function)                                                                     \
  }
  static const SimSymbol symbols[] = {
      DITRON_SIM_SYMBOL(ditron_sim_access),     DITRON_SIM_SYMBOL(ditron_sim_async_commit),
      DITRON_SIM_SYMBOL(ditron_sim_async_copy), DITRON_SIM_SYMBOL(ditron_sim_async_wait),
      DITRON_SIM_SYMBOL(ditron_sim_atomic_cas), DITRON_SIM_SYMBOL(ditron_sim_atomic_rmw),
      DITRON_SIM_SYMBOL(ditron_sim_ballot),     DITRON_SIM_SYMBOL(ditron_sim_barrier),
      DITRON_SIM_SYMBOL(ditron_sim_fence),      DITRON_SIM_SYMBOL(ditron_sim_fma_dot),
      DITRON_SIM_SYMBOL(ditron_sim_ld),         DITRON_SIM_SYMBOL(ditron_sim_mma),
      DITRON_SIM_SYMBOL(ditron_sim_self),       DITRON_SIM_SYMBOL(ditron_sim_shuffle),
      DITRON_SIM_SYMBOL(ditron_sim_st),         DITRON_SIM_SYMBOL(ditron_sim_trap),
      DITRON_SIM_SYMBOL(ditron_sim_wait_until), DITRON_SIM_SYMBOL(ditron_sim_warp_barrier),
  };
#undef DITRON_SIM_SYMBOL
  return symbols;
}

} // namespace ditron::jit
