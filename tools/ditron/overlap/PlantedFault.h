//===- PlantedFault.h - Calls that go wrong on purpose ----------------------------------------------------------*- C++ -*-===//
//
// For tests of those who must notice: `ditron bench OPERATOR --plant KIND`, which `ditron tune --plant KIND:PLAN` gives to the trials of
// one plan. Not in the help.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_PLANTEDFAULT_H
#define DITRON_TOOLS_DITRON_PLANTEDFAULT_H

#include "ditron/runtime/World.h"

#include <CLI/CLI.hpp>

namespace ditron::tool {

enum class PlantedFault {
  None,
  Fail,  ///< The last rank's call is an error.
  Hang,  ///< The last rank's stream waits for a signal that nobody raises.
  Wrong, ///< An element of a result is changed.
  Crash, ///< The process is killed.
  Sleep, ///< The host code never goes on.
};

/// The option --plant.
void addPlantOption(CLI::App *command, PlantedFault &fault);

/// Before the ranks' calls are enqueued. `word` is to live as long as they may wait.
Status plantBefore(PlantedFault fault, runtime::World &world, runtime::Buffer &word);
/// When they are done.
Status plantBehind(PlantedFault fault, runtime::Buffer &result);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_PLANTEDFAULT_H
