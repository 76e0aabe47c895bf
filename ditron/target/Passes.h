//===- Passes.h - All targets and their passes ------------------------------------------------------------*- C++ -*-===//
//
// What a program that lowers kernels calls once at start.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TARGET_PASSES_H
#define DITRON_TARGET_PASSES_H

namespace ditron::target {

/// Makes every target known to createTargetInfo.
void registerTargets();
/// The same, and registers the passes of all target rooms with the pass registry, for ditron-opt.
void registerTargetPasses();

} // namespace ditron::target

#endif // DITRON_TARGET_PASSES_H
