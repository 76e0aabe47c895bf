//===- Passes.h - Passes between import and lowering --------------------------------------------------------*- C++ -*-===//
//
// The passes of the pipeline that work on tile, dist and dgpu, in the order in which compiler/Pipeline.cpp runs them. What each
// does is said in Passes.td and above its implementation.
//
//===------------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_TRANSFORMS_PASSES_H
#define DITRON_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>

namespace ditron::transforms {

#define GEN_PASS_DECL
#include "ditron/transforms/TransformsPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "ditron/transforms/TransformsPasses.h.inc"

/// The alignment in bytes that every symmetric heap's base has at least; dist-lower-world promises it to the analyses.
inline constexpr int64_t symmetricHeapAlignmentBytes = 256;

} // namespace ditron::transforms

#endif // DITRON_TRANSFORMS_PASSES_H
