//===- LiveWaits.h - What running kernels wait for ----------------------------------------------------------*- C++ -*-===//
//
// `ditron explain --pid`: reads the boards of a process and of those that it has started, without stopping them.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TOOLS_DITRON_LIVEWAITS_H
#define DITRON_TOOLS_DITRON_LIVEWAITS_H

#include "ditron/support/Status.h"

namespace ditron::tool {

enum class LiveWaitsForm { Text, Json, Dot };

/// Prints what kernels of the process wait for.
Status explainProcess(uint32_t pid, LiveWaitsForm form);

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_LIVEWAITS_H
