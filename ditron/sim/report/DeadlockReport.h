//===- DeadlockReport.h - Who waits for what, and why nobody comes --------------------------------------*- C++ -*-===//
//
// What a machine knows about a run that does not go on: every wait with its place, the signal by name, the value seen and wanted, who
// wrote it last, and who could still; then, per rank, what everything else is doing. No addresses: it is the same in every run.
//
// Who could raise a word: kernels that were given a pointer to its array, also those that have not begun, operations of streams that
// write there, and host code that has not returned. Whether a kernel that has the pointer stores there is not known.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_REPORT_DEADLOCKREPORT_H
#define DITRON_SIM_REPORT_DEADLOCKREPORT_H

#include "ditron/explain/waits/WaitReport.h"
#include "ditron/sim/Machine.h"

#include <string>

namespace ditron::sim {

class Block;

/// "the time limit of 3 s has passed", or who interrupted the run.
std::string describeTimeLimit(const Machine::State &engine);
/// Of a machine whose time limit has passed, or that was interrupted.
explain::WaitReport reportTimeOut(Machine::State &engine);
/// Of a machine in which nothing can run.
explain::WaitReport reportDeadlock(Machine::State &engine);
/// Of one block whose threads wait for each other, while other blocks may go on.
explain::WaitReport reportStuckBlock(const Block &block, std::string headline);
/// Of a machine that goes on.
explain::WaitReport reportMoment(Machine::State &engine);

} // namespace ditron::sim

#endif // DITRON_SIM_REPORT_DEADLOCKREPORT_H
