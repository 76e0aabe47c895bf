//===- Passes.cpp - All targets and their passes --------------------------------------------------------------------------===//
//
// The one place that names the target rooms.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/target/Passes.h"

#include "ditron/target/common/Passes.h"
#include "ditron/target/nvptx/NvptxTarget.h"
#include "ditron/target/nvptx/Passes.h"
#include "ditron/target/sim/SimTarget.h"

namespace ditron::target {

void registerTargets() {
  registerSimTarget();
  registerNvptxTarget();
}

void registerTargetPasses() {
  registerTargets();
  registerTargetCommonPasses();
  registerNvptxPasses();
}

} // namespace ditron::target
