//===- SpecialRegisters.cpp - Clocks, the number of the SM, registers per thread -------------------------------------===//
//
// What a thread asks of the machine that it runs on, and asks it for.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/engine/Engine.h"

#include <fmt/format.h>

using namespace ditron;
using namespace ditron::sim;

extern "C" {

uint64_t ditron_sim_register(DitronSimThread *self, uint32_t which) {
  Thread &thread = asMeeting(self);
  Block &block = *thread.block;
  if (which == DITRON_SIM_SMID)
    return block.slot;
  noteTimePasses(thread);
  // Who reads the time often waits for it to pass.
  block.clocks += 16;
  block.yieldIfAhead(thread);
  const CostModel &cost = block.engine.options.cost;
  const double nanoseconds = static_cast<double>(block.clock) / 1000; // virtual time counts picoseconds
  return static_cast<uint64_t>(which == DITRON_SIM_CLOCK ? nanoseconds * cost.smClockGHz : nanoseconds);
}

void ditron_sim_setmaxnreg(DitronSimThread *self, uint32_t n, uint32_t increase, const DitronSimSite *site) {
  Thread &thread = asThread(self);
  if (n < 24 || n > 256 || n % 8 != 0)
    thread.block->failThread(
        thread, StatusCode::InvalidArgument,
        fmt::format("{} of the registers to {} per thread; accepted is a multiple of 8 from 24 to 256",
                    increase ? "increase" : "decrease", n),
        site);
}

} // extern "C"
