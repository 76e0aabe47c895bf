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

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace tile = ditron::tile;
namespace dist = ditron::dist;
namespace dgpu = ditron::dgpu;

namespace ditron::analysis {
#define GEN_PASS_DEF_VERIFYUNIFORMITY
#include "ditron/analysis/AnalysisPasses.h.inc"
} // namespace ditron::analysis

/// Operations that move data between threads, or synchronise them, with every thread of the block taking part; and accesses of
/// whole tiles, of which each thread does its share.
static bool needsWholeBlock(Operation *op) {
  if (isa<tile::LoadOp, tile::StoreOp>(op))
    return isa<RankedTensorType>(op->getOperand(0).getType());
  return isa<tile::DotOp, tile::ReduceOp, tile::ScanOp, tile::AtomicRmwOp, tile::AtomicCasOp, tile::GatherOp, tile::HistogramOp,
             dgpu::ConvertLayoutOp,
             dgpu::BarrierOp, dist::SyncThreadsOp, dist::WaitOp, dist::NotifyOp>(op);
}

/// What the user wrote for an operation.
static llvm::StringRef languageName(Operation *op) {
  return llvm::TypeSwitch<Operation *, llvm::StringRef>(op)
      .Case<tile::LoadOp>([](auto) { return "tl.load of a block"; })
      .Case<tile::StoreOp>([](auto) { return "tl.store of a block"; })
      .Case<tile::DotOp>([](auto) { return "tl.dot"; })
      .Case<tile::ReduceOp>([](auto) { return "a reduction"; })
      .Case<tile::ScanOp>([](auto) { return "a scan"; })
      .Case<tile::GatherOp>([](auto) { return "tl.gather"; })
      .Case<tile::HistogramOp>([](auto) { return "tl.histogram"; })
      .Case<tile::AtomicRmwOp, tile::AtomicCasOp>([](auto) { return "tl.atomic"; })
      .Case<dist::SyncThreadsOp, dgpu::BarrierOp>([](auto) { return "__syncthreads"; })
      .Case<dist::WaitOp>([](auto) { return "dl.wait"; })
      .Case<dist::NotifyOp>([](auto) { return "dl.notify"; })
      .Case<dist::ThreadIdOp>([](auto) { return "tid"; })
      .Case<dist::LaneIdOp>([](auto) { return "laneid"; })
      .Case<dist::LdOp>([](auto) { return "ld"; })
      .Case<dist::ShuffleOp>([](auto) { return "a shuffle"; })
      .Case<dist::BallotOp>([](auto) { return "__ballot_sync"; })
      .Case<dist::ThreadAtomicRmwOp>([](auto) { return "atomic_add"; })
      .Case<dist::ThreadAtomicCasOp>([](auto) { return "atomic_cas"; })
      .Default([](Operation *other) { return other->getName().getStringRef(); });
}

namespace {
struct VerifyUniformityPass : public ditron::analysis::impl::VerifyUniformityBase<VerifyUniformityPass> {
  void runOnOperation() override {
    const auto &uniformity = getAnalysis<ditron::analysis::UniformityAnalysis>();
    llvm::SmallPtrSet<void *, 4> reported; // one message per condition: the first operation under it
    getOperation().walk([&](Operation *op) {
      if (auto wait = dyn_cast<dist::WaitOp>(op); wait && wait.getToken().use_empty())
        wait.emitWarning("the token of this wait is never consumed: pass the pointers that are loaded after it through "
                         "consume_token, so that the loads stay behind the wait");
      if (!needsWholeBlock(op))
        return;
      Value condition = uniformity.divergentCondition(op);
      if (!condition || !reported.insert(condition.getAsOpaquePointer()).second)
        return;
      InFlightDiagnostic diagnostic = op->emitError() << "all threads of the block perform " << languageName(op)
                                                      << " together, but only some of them arrive here";
      diagnostic.attachNote(condition.getLoc()) << "because this condition differs between threads";
      if (Operation *source = uniformity.sourceOf(condition); source && source != condition.getDefiningOp())
        diagnostic.attachNote(source->getLoc()) << "it depends on " << languageName(source);
    });
    markAllAnalysesPreserved();
    if (!reported.empty())
      signalPassFailure();
  }
};
} // namespace
