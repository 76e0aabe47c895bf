//===- VerifyUniformity.cpp - Block-level operations need the whole block -------------------------------*- C++ -*-===//
//
// The pass dist-verify-uniformity, run after import. On hardware the mistake it finds is a hang or silent garbage; here
// it is an error at the operation, with a note at the condition and one at the operation that made the condition
// differ.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/Passes.h"
#include "ditron/analysis/Uniformity.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"

using namespace mlir;
namespace tile = ditron::tile;
namespace dist = ditron::dist;
namespace dgpu = ditron::dgpu;

namespace ditron::analysis {
#define GEN_PASS_DEF_VERIFYUNIFORMITY
#include "ditron/analysis/AnalysisPasses.h.inc"
} // namespace ditron::analysis

/// Operations that move data between threads, or synchronise them, with every thread of the block taking part.
static bool needsWholeBlock(Operation *op) {
  return isa<tile::DotOp, tile::ReduceOp, tile::ScanOp, tile::AtomicRmwOp, tile::AtomicCasOp, dgpu::ConvertLayoutOp,
             dgpu::BarrierOp, dist::SyncThreadsOp, dist::WaitOp, dist::NotifyOp>(op);
}

namespace {
struct VerifyUniformityPass : public ditron::analysis::impl::VerifyUniformityBase<VerifyUniformityPass> {
  void runOnOperation() override {
    const auto &uniformity = getAnalysis<ditron::analysis::UniformityAnalysis>();
    bool divergent = false;
    getOperation().walk([&](Operation *op) {
      if (auto wait = dyn_cast<dist::WaitOp>(op); wait && wait.getToken().use_empty())
        wait.emitWarning("the token of this wait is never consumed: pass the pointers that are loaded after it through "
                         "consume_token, so that the loads stay behind the wait");
      if (!needsWholeBlock(op))
        return;
      Value condition = uniformity.divergentCondition(op);
      if (!condition)
        return;
      divergent = true;
      InFlightDiagnostic diagnostic = op->emitError() << "all threads of the block perform '" << op->getName()
                                                      << "' together, but only some of them arrive here";
      diagnostic.attachNote(condition.getLoc()) << "because this condition differs between threads";
      if (Operation *source = uniformity.sourceOf(condition); source && source != condition.getDefiningOp())
        diagnostic.attachNote(source->getLoc()) << "it depends on '" << source->getName() << "'";
    });
    markAllAnalysesPreserved();
    if (divergent)
      signalPassFailure();
  }
};
} // namespace
