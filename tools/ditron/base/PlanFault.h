//===- PlanFault.h - Whose mistake a plan is ------------------------------------------------------------------*- C++ -*-===//
#ifndef DITRON_TOOLS_DITRON_PLANFAULT_H
#define DITRON_TOOLS_DITRON_PLANFAULT_H

#include "ditron/support/Status.h"

namespace ditron::tool {

/// Of a plan that the command line names: that it asks for more than a GPU has is its writer's mistake, not a lack of memory.
inline Status blamedOnPlan(const Status &status) {
  return status.code() == StatusCode::ResourceExhausted ? invalidArgument(status.message()) : status;
}

} // namespace ditron::tool
#endif // DITRON_TOOLS_DITRON_PLANFAULT_H
