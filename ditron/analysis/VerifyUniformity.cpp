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

#include "mlir/Dialect/SCF/IR/SCF.h"
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
  if (auto put = dyn_cast<dist::PutOp>(op))
    return put.getExec() == dist::ExecScope::Block;
  if (auto get = dyn_cast<dist::GetOp>(op))
    return get.getExec() == dist::ExecScope::Block;
  if (auto put = dyn_cast<dist::PutSignalOp>(op))
    return put.getExec() == dist::ExecScope::Block;
  if (auto barrier = dyn_cast<dist::TeamBarrierOp>(op))
    return barrier.getExec() == dist::ExecScope::Block;
  if (auto collective = dyn_cast<dist::CollectiveOp>(op))
    return collective.getExec() == dist::ExecScope::Block;
  return isa<tile::DotOp, tile::ReduceOp, tile::ScanOp, tile::AtomicRmwOp, tile::AtomicCasOp, tile::GatherOp, tile::BitonicOp,
             tile::HistogramOp, tile::DescriptorLoadOp, tile::DescriptorStoreOp, dgpu::ConvertLayoutOp, dgpu::BarrierOp, dist::SyncThreadsOp, dist::WaitOp,
             dist::NotifyOp>(op);
}

/// A tile that a branch or loop, which only some threads take, makes another one: which part of it would change is not the
/// kernel's to say. Gives the position among the results, or -1.
static int changedTile(Operation *op) {
  auto isTile = [](Value value) { return isa<RankedTensorType>(value.getType()); };
  for (OpResult result : op->getResults()) {
    if (!isTile(result))
      continue;
    unsigned number = result.getResultNumber();
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (branch.thenYield().getOperand(number) != branch.elseYield().getOperand(number))
        return static_cast<int>(number);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (loop.getYieldedValues()[number] != loop.getRegionIterArgs()[number])
        return static_cast<int>(number);
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      // Handed on unchanged: the condition passes an argument, and the body gives it back at the argument's place.
      auto passed = dyn_cast<BlockArgument>(loop.getConditionOp().getArgs()[number]);
      if (!passed || passed.getOwner() != loop.getBeforeBody() ||
          loop.getYieldOp().getOperand(passed.getArgNumber()) != loop.getAfterArguments()[number])
        return static_cast<int>(number);
    }
  }
  return -1;
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
      .Case<tile::BitonicOp>([](auto) { return "a sort"; })
      .Case<tile::DescriptorLoadOp>([](auto) { return "a load through a tensor descriptor"; })
      .Case<tile::DescriptorStoreOp>([](auto) { return "a store through a tensor descriptor"; })
      .Case<dist::PutOp, dist::PutSignalOp>([](auto) { return "a put of the block"; })
      .Case<dist::GetOp>([](auto) { return "a get of the block"; })
      .Case<dist::TeamBarrierOp>([](auto) { return "a barrier of ranks by the block"; })
      .Case<dist::CollectiveOp>([](auto) { return "a collective of the block"; })
      .Case<dist::LdVectorOp>([](auto) { return "ld_vector"; })
      .Case<dist::SignalWaitUntilOp>([](auto) { return "signal_wait_until"; })
      .Case<dist::IntrinsicOp>([](dist::IntrinsicOp intrinsic) { return intrinsic.getName(); })
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

/// Where the condition is, and what makes it differ.
static void explain(InFlightDiagnostic &diagnostic, const ditron::analysis::UniformityAnalysis &uniformity, Value condition) {
  diagnostic.attachNote(condition.getLoc()) << "because this condition differs between threads";
  if (Operation *source = uniformity.sourceOf(condition); source && source != condition.getDefiningOp())
    diagnostic.attachNote(source->getLoc()) << "it depends on " << languageName(source);
}

namespace {
struct VerifyUniformityPass : public ditron::analysis::impl::VerifyUniformityBase<VerifyUniformityPass> {
  void runOnOperation() override {
    const auto &uniformity = getAnalysis<ditron::analysis::UniformityAnalysis>();
    llvm::SmallPtrSet<void *, 4> reported; // one message per condition: the first operation under it
    getOperation().walk([&](Operation *op) {
      if (isa<scf::IfOp, scf::ForOp, scf::WhileOp>(op)) {
        Value condition = uniformity.ownCondition(op);
        int tile = condition ? changedTile(op) : -1;
        if (tile >= 0 && reported.insert(condition.getAsOpaquePointer()).second) {
          InFlightDiagnostic diagnostic = op->emitError() << "only some threads of the block come through here, but a tile gets another "
                                                          << "value: a tile belongs to the whole block";
          explain(diagnostic, uniformity, condition);
        }
      }
      if (!needsWholeBlock(op))
        return;
      Value condition = uniformity.divergentCondition(op);
      if (!condition || !reported.insert(condition.getAsOpaquePointer()).second)
        return;
      InFlightDiagnostic diagnostic = op->emitError() << "all threads of the block perform " << languageName(op)
                                                      << " together, but only some of them arrive here";
      explain(diagnostic, uniformity, condition);
    });
    markAllAnalysesPreserved();
    if (!reported.empty())
      signalPassFailure();
  }
};
} // namespace
