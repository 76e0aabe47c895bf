//===- AbiSymbols.cpp - The simulator's functions by name ---------------------------------------------------------===//
//
// One row per function of sim/Abi.h.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/AbiSymbols.h"

#include "ditron/sim/Abi.h"
#include "ditron/sim/DeviceFunctions.h"

#include <vector>

namespace ditron::sim {

std::span<const AbiSymbol> abiSymbols() {
#define DITRON_SIM_SYMBOL(function)                                                                                    \
  {                                                                                                                    \
    #function, reinterpret_cast<void *>(&function)                                                                     \
  }
  static const AbiSymbol engine[] = {
      DITRON_SIM_SYMBOL(ditron_sim_access),
      DITRON_SIM_SYMBOL(ditron_sim_async_commit),
      DITRON_SIM_SYMBOL(ditron_sim_async_copy),
      DITRON_SIM_SYMBOL(ditron_sim_async_wait),
      DITRON_SIM_SYMBOL(ditron_sim_atomic_cas),
      DITRON_SIM_SYMBOL(ditron_sim_atomic_rmw),
      DITRON_SIM_SYMBOL(ditron_sim_ballot),
      DITRON_SIM_SYMBOL(ditron_sim_barrier),
      DITRON_SIM_SYMBOL(ditron_sim_bulk_copy),
      DITRON_SIM_SYMBOL(ditron_sim_check_rank),
      DITRON_SIM_SYMBOL(ditron_sim_print),
      DITRON_SIM_SYMBOL(ditron_sim_assertion_failed),
      DITRON_SIM_SYMBOL(ditron_sim_fence),
      DITRON_SIM_SYMBOL(ditron_sim_fence_async),
      DITRON_SIM_SYMBOL(ditron_sim_fma_dot),
      DITRON_SIM_SYMBOL(ditron_sim_ld),
      DITRON_SIM_SYMBOL(ditron_sim_load_matrices),
      DITRON_SIM_SYMBOL(ditron_sim_map_check),
      DITRON_SIM_SYMBOL(ditron_sim_map_publish),
      DITRON_SIM_SYMBOL(ditron_sim_map_replace),
      DITRON_SIM_SYMBOL(ditron_sim_mbarrier_arrive),
      DITRON_SIM_SYMBOL(ditron_sim_mbarrier_expect_tx),
      DITRON_SIM_SYMBOL(ditron_sim_mbarrier_init),
      DITRON_SIM_SYMBOL(ditron_sim_mbarrier_invalidate),
      DITRON_SIM_SYMBOL(ditron_sim_mbarrier_test),
      DITRON_SIM_SYMBOL(ditron_sim_mbarrier_transaction),
      DITRON_SIM_SYMBOL(ditron_sim_mbarrier_wait),
      DITRON_SIM_SYMBOL(ditron_sim_mma),
      DITRON_SIM_SYMBOL(ditron_sim_named_barrier),
      DITRON_SIM_SYMBOL(ditron_sim_order_lanes),
      DITRON_SIM_SYMBOL(ditron_sim_register),
      DITRON_SIM_SYMBOL(ditron_sim_self),
      DITRON_SIM_SYMBOL(ditron_sim_setmaxnreg),
      DITRON_SIM_SYMBOL(ditron_sim_shmem_get),
      DITRON_SIM_SYMBOL(ditron_sim_shmem_order),
      DITRON_SIM_SYMBOL(ditron_sim_shmem_peer),
      DITRON_SIM_SYMBOL(ditron_sim_shmem_put),
      DITRON_SIM_SYMBOL(ditron_sim_shmem_put_signal),
      DITRON_SIM_SYMBOL(ditron_sim_shmem_signal),
      DITRON_SIM_SYMBOL(ditron_sim_shmem_value),
      DITRON_SIM_SYMBOL(ditron_sim_shuffle),
      DITRON_SIM_SYMBOL(ditron_sim_st),
      DITRON_SIM_SYMBOL(ditron_sim_store_matrices),
      DITRON_SIM_SYMBOL(ditron_sim_time_out),
      DITRON_SIM_SYMBOL(ditron_sim_tma_load),
      DITRON_SIM_SYMBOL(ditron_sim_tma_store),
      DITRON_SIM_SYMBOL(ditron_sim_tma_store_commit),
      DITRON_SIM_SYMBOL(ditron_sim_tma_store_wait),
      DITRON_SIM_SYMBOL(ditron_sim_trap),
      DITRON_SIM_SYMBOL(ditron_sim_wait_until),
      DITRON_SIM_SYMBOL(ditron_sim_warp_barrier),
      DITRON_SIM_SYMBOL(ditron_sim_wgmma),
      DITRON_SIM_SYMBOL(ditron_sim_wgmma_commit),
      DITRON_SIM_SYMBOL(ditron_sim_wgmma_fence),
      DITRON_SIM_SYMBOL(ditron_sim_wgmma_result),
      DITRON_SIM_SYMBOL(ditron_sim_wgmma_wait),
  };
#undef DITRON_SIM_SYMBOL
  static const std::vector<AbiSymbol> symbols = [] {
    std::vector<AbiSymbol> all(std::begin(engine), std::end(engine));
    all.insert(all.end(), deviceFunctions().begin(), deviceFunctions().end());
    return all;
  }();
  return symbols;
}

} // namespace ditron::sim
