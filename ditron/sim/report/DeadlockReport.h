//===- DeadlockReport.h - Who waits for what, and why nobody comes --------------------------------------*- C++ -*-===//
//
// The text of a deadlock: every wait with its place, the signal by name, the value seen and wanted, and who wrote it
// last; then, per rank, what everything else is doing.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_SIM_REPORT_DEADLOCKREPORT_H
#define DITRON_SIM_REPORT_DEADLOCKREPORT_H

#include "ditron/sim/Machine.h"

#include <string>

namespace ditron::sim {

/// "the time limit of 3 s has passed", or who interrupted the run.
std::string describeTimeLimit(const Machine::State &engine);
/// Describes a machine whose time limit has passed between two steps.
std::string describeTimeOut(Machine::State &engine);

/// Describes a machine in which nothing can run. The text names no addresses, so it is the same in every run.
std::string describeDeadlock(Machine::State &engine);

} // namespace ditron::sim

#endif // DITRON_SIM_REPORT_DEADLOCKREPORT_H
