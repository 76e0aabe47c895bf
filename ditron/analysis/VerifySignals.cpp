//===- VerifySignals.cpp - Signals that cannot mean what they should --------------------------------------------------===//
//
// The pass dist-verify-signals (docs/verifiers.md says what is checked and why).
//
// 1. Acquire, release and atomic operations through a pointer to another rank need system scope. In a file that is written for
//    Triton-distributed this is a warning.
// 2. A signal word that is set has one owner. It has several when every block of a grid sets it, or when two blocks that are
//    told apart by their program id set the same word.
// 3. Instructions that the target does not have.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/analysis/Passes.h"
#include "ditron/analysis/Provenance.h"
#include "ditron/analysis/Uniformity.h"

#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/DiscardableAttrs.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/dialect/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ditron::analysis {
#define GEN_PASS_DEF_VERIFYSIGNALS
#include "ditron/analysis/AnalysisPasses.h.inc"
} // namespace ditron::analysis

using namespace mlir;
using namespace ditron::analysis;
namespace tile = ditron::tile;
namespace dist = ditron::dist;
namespace dgpu = ditron::dgpu;

namespace {

//===------------------------------------------------------------------------------------------------------------------===//
// Scopes
//===------------------------------------------------------------------------------------------------------------------===//

/// An operation that synchronises through memory: its pointer and scope.
struct Synchronisation {
  Value pointer;
  tile::MemoryScope scope = tile::MemoryScope::System;
  llvm::StringRef what;
};

std::optional<Synchronisation> synchronisationOf(Operation *op) {
  using Result = std::optional<Synchronisation>;
  bool isRelaxed = false;
  auto ordered = [&](auto access, llvm::StringRef what) -> Result {
    isRelaxed = access.getOrder() == tile::MemoryOrder::Relaxed;
    return isRelaxed ? Result() : Result(Synchronisation{access.getPtr(), access.getScope(), what});
  };
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<dist::LdOp, dist::LdVectorOp>([&](auto load) { return ordered(load, "this load acquires"); })
      .Case<dist::StOp, dist::StVectorOp>([&](auto store) { return ordered(store, "this store releases"); })
      .Case<dist::ThreadAtomicRmwOp, dist::ThreadAtomicCasOp, tile::AtomicRmwOp, tile::AtomicCasOp>(
          [](auto atomic) -> Result { return Synchronisation{atomic.getPtr(), atomic.getScope(), "this atomic operation works"}; })
      .Case<dist::WaitOp>([](dist::WaitOp wait) -> Result { return Synchronisation{wait.getPtr(), wait.getScope(), "this wait acquires"}; })
      .Default([](Operation *) { return Result(); });
}

void verifyScopes(func::FuncOp kernel, bool &failed) {
  PeerPointers peers(kernel);
  auto module = kernel->getParentOfType<ModuleOp>();
  const bool isWarning = module && module->hasAttr(dist::peerSourceAttrName);
  kernel.walk([&](Operation *op) {
    std::optional<Synchronisation> sync = synchronisationOf(op);
    if (!sync || sync->scope == tile::MemoryScope::System)
      return;
    Operation *source = peers.sourceOf(sync->pointer);
    if (!source)
      return;
    failed |= !isWarning;
    llvm::StringRef scope = sync->scope == tile::MemoryScope::Gpu ? "gpu" : "cta";
    InFlightDiagnostic diagnostic = isWarning ? op->emitWarning() : op->emitError();
    diagnostic << sync->what << " at scope '" << scope
               << "' through a pointer to another rank; another GPU is only reached at scope 'sys'";
    if (isWarning)
      diagnostic << ": what the signal stands for may not be visible yet";
    diagnostic.attachNote(source->getLoc()) << "the pointer comes from here";
  });
}

//===------------------------------------------------------------------------------------------------------------------===//
// Owners
//===------------------------------------------------------------------------------------------------------------------===//

/// A signal word that is set.
struct SetSignal {
  Operation *op = nullptr;
  Value pointer, rank; ///< rank is null where the pointer says it all.
};

std::optional<SetSignal> setSignalOf(Operation *op) {
  if (auto notify = dyn_cast<dist::NotifyOp>(op); notify && notify.getOp() == dist::SignalOp::Set)
    return SetSignal{op, notify.getPtr(), notify.getRank()};
  if (auto signal = dyn_cast<dist::SignalOpOp>(op); signal && signal.getOp() == dist::SignalOp::Set)
    return SetSignal{op, signal.getSignal(), signal.getPe()};
  if (auto store = dyn_cast<dist::StOp>(op); store && store.getOrder() == tile::MemoryOrder::Release)
    return SetSignal{op, store.getPtr(), Value()};
  return std::nullopt;
}

/// Whether blocks may have come to an agreement before: by atomics, waits, loops that poll.
bool mayHaveMet(Operation *op) {
  return isa<dist::WaitOp, dist::SignalWaitUntilOp, dist::TeamBarrierOp, dist::ThreadAtomicRmwOp, dist::ThreadAtomicCasOp, tile::AtomicRmwOp,
             tile::AtomicCasOp, scf::WhileOp>(op);
}

/// A pointer as a base and a number of elements; nullopt if that is not known.
std::optional<std::pair<Value, int64_t>> splitPointer(Value pointer) {
  int64_t offset = 0;
  while (auto add = pointer.getDefiningOp<tile::AddPtrOp>()) {
    APInt number;
    if (!matchPattern(add.getOffset(), m_ConstantInt(&number)))
      return std::nullopt;
    offset += number.getSExtValue();
    pointer = add.getPtr();
  }
  return std::pair{pointer, offset};
}

bool sameValue(Value a, Value b) {
  if (a == b)
    return true;
  APInt x, y;
  if (a && b && matchPattern(a, m_ConstantInt(&x)) && matchPattern(b, m_ConstantInt(&y)))
    return x.getSExtValue() == y.getSExtValue();
  return a && b && a.getDefiningOp<dist::RankOp>() && b.getDefiningOp<dist::RankOp>();
}

bool sameWord(const SetSignal &a, const SetSignal &b) {
  auto first = splitPointer(a.pointer), second = splitPointer(b.pointer);
  if (!first || !second || first->second != second->second || !a.rank != !b.rank || (a.rank && !sameValue(a.rank, b.rank)))
    return false;
  if (first->first == second->first)
    return true;
  auto x = first->first.getDefiningOp<dist::SymmAtOp>(), y = second->first.getDefiningOp<dist::SymmAtOp>();
  return x && y && x.getPtr() == y.getPtr() && sameValue(x.getRank(), y.getRank());
}

/// What conditions around an operation say of a program id: that it is a number, or that it is not.
struct Guard {
  uint32_t axis;
  int64_t number;
  bool isEqual;
};

std::optional<Guard> guardOf(scf::IfOp branch, Operation *inside) {
  auto compare = branch.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || (compare.getPredicate() != arith::CmpIPredicate::eq && compare.getPredicate() != arith::CmpIPredicate::ne))
    return std::nullopt;
  auto program = compare.getLhs().getDefiningOp<tile::ProgramIdOp>();
  APInt number;
  if (!program || !matchPattern(compare.getRhs(), m_ConstantInt(&number)))
    return std::nullopt;
  bool isThen = branch.getThenRegion().isAncestor(inside->getParentRegion());
  bool isEqual = (compare.getPredicate() == arith::CmpIPredicate::eq) == isThen;
  return Guard{static_cast<uint32_t>(program.getAxis()), number.getSExtValue(), isEqual};
}

SmallVector<Guard> guardsOf(Operation *op) {
  SmallVector<Guard> guards;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (auto branch = dyn_cast<scf::IfOp>(parent))
      if (std::optional<Guard> guard = guardOf(branch, op))
        guards.push_back(*guard);
  return guards;
}

/// Whether no block can reach both.
bool areDifferentBlocks(Operation *a, Operation *b) {
  for (const Guard &first : guardsOf(a))
    for (const Guard &second : guardsOf(b))
      if (first.axis == second.axis && ((first.isEqual && second.isEqual && first.number != second.number) ||
                                        (first.isEqual != second.isEqual && first.number == second.number)))
        return true;
  return false;
}

void verifyOwners(func::FuncOp kernel, bool &failed) {
  SmallVector<SetSignal> signals; // until blocks may have met
  bool hasMet = false;
  Operation *program = nullptr;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    hasMet |= mayHaveMet(op);
    if (isa<tile::ProgramIdOp>(op) && !program)
      program = op;
    if (std::optional<SetSignal> signal = setSignalOf(op); signal && !hasMet)
      signals.push_back(*signal);
  });
  if (!program || signals.empty()) // nothing tells that there is more than one block
    return;
  UniformityAnalysis blocks(kernel, UniformityOf::Blocks);
  for (const SetSignal &signal : signals) {
    if (blocks.divergentCondition(signal.op) || blocks.isVarying(signal.pointer) || (signal.rank && blocks.isVarying(signal.rank)))
      continue;
    failed = true;
    InFlightDiagnostic diagnostic = signal.op->emitError()
                                    << "every block of the grid sets this signal word: the first one to do so releases the receiver before the others "
                                       "have finished; let one block do it (if tl.program_id(0) == 0), give each its own word, or add";
    diagnostic.attachNote(program->getLoc()) << "the grid has several blocks, which differ by this program id";
  }
  for (size_t i = 0; i < signals.size(); ++i)
    for (size_t j = i + 1; j < signals.size(); ++j) {
      if (!sameWord(signals[i], signals[j]) || !areDifferentBlocks(signals[i].op, signals[j].op))
        continue;
      failed = true;
      InFlightDiagnostic diagnostic = signals[j].op->emitError() << "a signal word that is set has one owner, but another block sets this one too";
      diagnostic.attachNote(signals[i].op->getLoc()) << "here";
    }
}

//===------------------------------------------------------------------------------------------------------------------===//
// Instructions
//===------------------------------------------------------------------------------------------------------------------===//

bool needsTensorCopies(llvm::StringRef name) {
  for (llvm::StringRef family : {"mbarrier_", "tma_", "bulk_", "tensormap_", "prefetch_tensor", "fence_proxy_", "fence_async_", "fence_mbarrier_",
                                 "elect_one_sync"})
    if (name.starts_with(family))
      return true;
  return false;
}

void verifyInstructions(func::FuncOp kernel, bool &failed) {
  auto module = kernel->getParentOfType<ModuleOp>();
  if (!module || !module->hasAttr(dgpu::targetAttrName) || module->hasAttr(dgpu::tmaAttrName))
    return;
  kernel.walk([&](dist::IntrinsicOp op) {
    if (!needsTensorCopies(op.getName()) || failed)
      return;
    failed = true;
    op.emitError() << "target " << module->getAttrOfType<StringAttr>(dgpu::targetAttrName).getValue() << " has no '" << op.getName()
                   << "': it came with compute capability 9.0 (targets cuda:sm_90a and sim:sm_90a)";
  });
}

struct VerifySignalsPass : public ditron::analysis::impl::VerifySignalsBase<VerifySignalsPass> {
  void runOnOperation() override {
    bool failed = false;
    verifyInstructions(getOperation(), failed);
    verifyScopes(getOperation(), failed);
    verifyOwners(getOperation(), failed);
    markAllAnalysesPreserved();
    if (failed)
      signalPassFailure();
  }
};

} // namespace
