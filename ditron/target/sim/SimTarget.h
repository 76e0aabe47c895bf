//===- SimTarget.h - The simulated GPU as a target --------------------------------------------------------*- C++ -*-===//
//
// Offers the leaves of the `sim` family of targets, all with warps of 32, mma.sync and cp.async: "sim:sm_80" (and "sim", the
// same), and "sim:sm_90a", which has mbarriers, tensor copies and warpgroup multiplies besides.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_SIM_SIMTARGET_H
#define DITRON_TARGET_SIM_SIMTARGET_H

#include <string>
#include <string_view>

namespace ditron::target {

/// Makes "sim" and "sim:..." known to createTargetInfo. May be called again.
void registerSimTarget();

/// The name of a kernel's entry point: `void <kernel>__entry(void **arguments)`, arguments[i] pointing at the value of the
/// kernel's i-th parameter.
std::string simEntryName(std::string_view kernel);

} // namespace ditron::target

#endif // DITRON_TARGET_SIM_SIMTARGET_H
