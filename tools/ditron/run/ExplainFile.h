//===- ExplainFile.h - Why a run did not go on, for programs --------------------------------------------*- C++ -*-===//
//
// What --explain writes: who waited for what when a simulated run ended, and who could have ended that, as text, as a graph or as JSON.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_EXPLAINFILE_H
#define DITRON_TOOLS_DITRON_EXPLAINFILE_H

#include "ditron/sim/Machine.h"

namespace ditron::tool {

/// Refuses, before anything runs, a file that could not be written, or whose ending says no form; and targets that are not simulated.
Status checkExplainFile(const std::string &path, bool isSimulated);
/// Writes how the run ended: without a wait when it did so well, or with an error that is none of waiting. An empty path is fine.
Status writeExplainFile(const std::string &path, const sim::Machine *machine, const Status &ran);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_EXPLAINFILE_H
