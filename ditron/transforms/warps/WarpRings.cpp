//===- WarpRings.cpp - Which tiles a producer warp fetches ----------------------------------------------------------------===//
//
// See WarpRings.h, and SpecializeWarps.cpp for the rules.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/transforms/warps/WarpRings.h"

#include "ditron/analysis/Scratch.h"
#include "ditron/dialect/dgpu/Dgpu.h"
#include "ditron/dialect/dist/Dist.h"
#include "ditron/layout/CopyBoxes.h"
#include "ditron/transforms/ProgramOrder.h"
#include "ditron/transforms/dots/WarpgroupDotRules.h"
#include "ditron/transforms/layouts/LayoutRules.h"
#include "ditron/transforms/tensor_copies/TensorMaps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace ditron::transforms {

int RingPlan::producerWarps() const {
  return llvm::any_of(plannedRings, [](const Ring &ring) { return !ring.gathers.empty(); }) ? layout::warpsPerGroup : 1;
}

bool RingPlan::run() {
  chooseResidentBlocks();
  const bool isPlanned = plan();
  warnInVain();
  return isPlanned;
}

bool RingPlan::servesLoops() {
  isSilent = true;
  return plan() &&
         llvm::any_of(plannedRings, [](const Ring &ring) { return isa<scf::ForOp>(ring.block->getParentOp()); });
}

bool RingPlan::plan() {
  findCandidates();
  if (loads.empty())
    return false;
  formRings();
  constexpr int mostWarps = 32, producerWarps = 4;
  std::string reason = collectSlice();
  if (warps > mostWarps - producerWarps)
    reason =
        llvm::formatv("{0} warps leave no room for a producer's {1} in a block of {2}", warps, producerWarps, mostWarps)
            .str();
  if (reason.empty() && !fitSlots())
    reason = "one slot of each ring does not fit shared memory";
  if (reason.empty())
    return true;
  for (Operation *load : loads)
    refuse(load, reason);
  loads.clear();
  return false;
}

void RingPlan::refuse(Operation *op, const Twine &reason) {
  refusals.push_back({op, reason.str()});
  if (!isSilent)
    remark::missed(op->getLoc(), remark::RemarkOpts::name("specialize").category("dgpu-specialize-warps"))
        << ("no producer warp loads this tile: " + reason).str();
}

std::string RingPlan::whyNotFetched(Operation *load) const {
  const auto *refusal = llvm::find_if(refusals, [&](const Refusal &refusal) { return refusal.op == load; });
  return refusal == refusals.end() ? std::string() : refusal->reason;
}

void RingPlan::warnInVain() {
  kernel.walk([&](scf::ForOp loop) {
    if (!loop->hasAttr("tile.warp_specialize") ||
        llvm::any_of(loads, [&](Operation *load) { return loop->isProperAncestor(load); }))
      return;
    InFlightDiagnostic warning = loop.emitWarning() << "the loop is not warp-specialised";
    for (const Refusal &refusal : refusals)
      if (loop->isProperAncestor(refusal.op)) {
        warning.attachNote(refusal.op->getLoc()) << "no producer warp loads this tile: " << refusal.reason;
        return;
      }
    warning.attachNote(loop.getLoc()) << "it loads no tile through a descriptor for tl.dot";
  });
}

//===--------------------------------------------------------------------------------------------------------------===//
// What can be fetched
//===--------------------------------------------------------------------------------------------------------------===//

/// Those of a load for which whyNotOperand has nothing to say. A value: a loop over it must own it.
static SmallVector<tile::DotOp> fetchedDots(Value value) { return dotsOf(value).value(); }

/// True if a wait comes before everything that is read through the descriptor, or the pointers.
static bool consumesToken(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<dist::ConsumeTokenOp>(op))
      return true;
    if (!isa<tile::MakeDescriptorOp, tile::HintOp, tile::AddPtrOp, tile::SplatOp, tile::BroadcastOp,
             tile::ExpandDimsOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

constexpr StringLiteral mayWait =
    "a loop before it may wait for what it reads (dl.wait and consume_token would say so)";

/// A loop that polls memory orders what comes after it, whoever uses its values; a barrier alone tells nothing of other blocks, and
/// an atomic operation only to those who look at its result, which the slice does.
static bool pollsBefore(Operation *load) {
  return load->getParentOfType<func::FuncOp>()
      .walk([&](scf::WhileOp loop) {
        return !isMemoryEffectFree(loop) && mayPrecede(loop, load) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

std::string RingPlan::whyNotOperand(tile::DescriptorLoadOp load) {
  std::optional<SmallVector<tile::DotOp>> dots = dotsOf(load.getResult());
  if (!dots || dots->empty())
    return "it is not only used by tl.dot";
  return whyNotCopiedAhead(load);
}

std::string RingPlan::whyNotCopiedAhead(tile::DescriptorLoadOp load) {
  if (std::string reason = whyNoTensorCopy(load.getDescriptor(), load.getOffsets(), /*isStore=*/false); !reason.empty())
    return reason;
  if (pollsBefore(load))
    return std::string(mayWait);
  return slice.whyNotAhead(load, descriptorOf(load.getDescriptor()).getBase(), consumesToken(load.getDescriptor()));
}

std::string RingPlan::whyNotGathered(tile::LoadOp load, const analysis::AxisInfoAnalysis &axes) {
  constexpr int64_t copyBytes = 16;
  auto type = cast<RankedTensorType>(load.getType());
  if (std::optional<SmallVector<tile::DotOp>> dots = dotsOf(load.getResult()); !dots || dots->empty())
    return "it is not only used by tl.dot";
  if (!isa<scf::ForOp>(load->getParentOp()))
    return "it does not stand in a loop";
  if (load.getOther() && !matchPattern(load.getOther(), m_AnyZeroFloat()) && !matchPattern(load.getOther(), m_Zero()))
    return "`other` is not zero";
  const int64_t wanted = copyBytes / analysis::sharedElementBytes(type.getElementType());
  int64_t together = axes.contiguousElements(load.getPtr(), 1);
  if (load.getMask())
    together = std::min<int64_t>(together, axes.maskAlignment(load.getMask(), 1));
  if (together < wanted || type.getShape()[1] % wanted != 0)
    return llvm::formatv("{0} elements of a row are proved to lie together, copies of {1} bytes need {2}", together,
                         copyBytes, wanted)
        .str();
  if (pollsBefore(load))
    return std::string(mayWait);
  return slice.whyNotAhead(load, load.getPtr(), consumesToken(load.getPtr()));
}

/// True if a value is loaded and then only changed element by element: a warpgroup dot with it would wait for memory.
static bool comesFromMemory(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && isElementwise(op) && op->getNumOperands() == 1)
    op = op->getOperand(0).getDefiningOp();
  return !op || isa<tile::LoadOp, tile::DescriptorLoadOp>(op);
}

bool RingPlan::isFetched(Value operand) const {
  Operation *definition = rootOf(operand).value.getDefiningOp();
  return definition && loads.contains(definition);
}

std::string RingPlan::whyNotMultiplied(tile::DotOp dot) {
  if (std::string reason = whyNoWarpgroupDot(dot, warps); !reason.empty())
    return reason;
  for (OpOperand &operand : dot->getOpOperands().take_front(2)) {
    const bool isA = operand.getOperandNumber() == 0;
    OperandRoot root = rootOf(operand.get());
    if (isFetched(operand.get())) {
      if (!canReadOperand(bufferOf(root.value.getDefiningOp(), 1), root.isTransposed,
                          isA ? layout::DotOperand::A : layout::DotOperand::B))
        return "elements of this type can only be read along K";
    } else if (!isA || comesFromMemory(root.value)) {
      return "another operand is not fetched";
    }
  }
  return {};
}

/// True if `op` stands in `block` or in loops and branches inside it.
static bool isInsideForAndIf(Operation *op, Block *block) {
  for (; op && op->getBlock() != block; op = op->getParentOp())
    if (!isa<scf::ForOp, scf::IfOp>(op->getParentOp()))
      return false;
  return op != nullptr;
}

/// Loads through pointers whose loop's author asks for a producer.
void RingPlan::findGathers() {
  SmallVector<tile::LoadOp> asked;
  kernel.walk([&](tile::LoadOp load) {
    bool isAsked = false;
    for (Operation *around = load->getParentOp(); around != kernel; around = around->getParentOp())
      isAsked |= around->hasAttr("tile.warp_specialize");
    auto type = dyn_cast<RankedTensorType>(load.getType());
    if (isAsked && type && type.getRank() == 2)
      asked.push_back(load);
  });
  if (asked.empty())
    return;
  const analysis::AxisInfoAnalysis axes(kernel);
  for (tile::LoadOp load : asked)
    if (std::string reason = whyNotGathered(load, axes); reason.empty())
      loads.insert(load);
    else
      refuse(load, reason);
}

/// A row that something else than a dot uses, as factors of the columns of what dots give.
static bool isRow(tile::DescriptorLoadOp load) {
  const ArrayRef<int64_t> shape = cast<RankedTensorType>(load.getType()).getShape();
  return shape.size() >= 2 && llvm::all_of(shape.drop_back(), [](int64_t size) { return size == 1; });
}

void RingPlan::findCandidates() {
  kernel.walk([&](tile::DescriptorLoadOp load) {
    if (isRow(load))
      rows.push_back(load);
    else if (std::string reason = whyNotOperand(load); reason.empty())
      loads.insert(load);
    else
      refuse(load, reason);
  });
  if (!loads.empty())
    findGathers();
  // A dot takes its operands from rings or not at all: repeat until what is left agrees.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : SmallVector<Operation *>(loads.begin(), loads.end())) {
      for (tile::DotOp dot : fetchedDots(op->getResult(0))) {
        std::string reason = whyNotMultiplied(dot);
        if (reason.empty() && !isInsideForAndIf(dot, op->getBlock()))
          reason = "it is in another loop";
        if (reason.empty())
          continue;
        refuse(op, "tl.dot: " + reason);
        loads.remove(op);
        changed = true;
        break;
      }
    }
  }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Rings
//===--------------------------------------------------------------------------------------------------------------===//

/// True if the producer may have to wait for the consumer between two operations of a block, as in a loop over other tiles. A ring is copied at
/// the last of its loads and waited for at the first of its reads: if that stands between, neither goes on.
static bool mayWaitBetween(Operation *from, Operation *to) {
  if (to->isBeforeInBlock(from))
    std::swap(from, to);
  const auto mayWait = [](Operation *op) {
    return isa<LoopLikeOpInterface, dist::WaitOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
  };
  for (; from != to; from = from->getNextNode())
    if (from->walk(mayWait).wasInterrupted())
      return true;
  return false;
}

/// Tiles of one dot come together, but where something between them keeps the producer waiting.
void RingPlan::formRings() {
  llvm::EquivalenceClasses<Operation *> together;
  llvm::MapVector<Operation *, SmallVector<Operation *>> byDot;
  for (Operation *load : loads) {
    together.insert(load);
    for (tile::DotOp dot : fetchedDots(load->getResult(0)))
      byDot[dot].push_back(load);
  }
  for (auto &[dot, operands] : byDot)
    for (Operation *other : operands)
      if (other->getBlock() == operands.front()->getBlock() && !mayWaitBetween(operands.front(), other))
        together.unionSets(operands.front(), other);
  llvm::MapVector<Operation *, Ring> byLeader;
  for (Operation *load : loads) {
    Ring &ring = byLeader[together.getLeaderValue(load)];
    ring.block = load->getBlock();
    if (auto gather = dyn_cast<tile::LoadOp>(load))
      ring.gathers.push_back(gather);
    else
      ring.loads.push_back(cast<tile::DescriptorLoadOp>(load));
  }
  for (auto &[leader, ring] : byLeader) {
    llvm::SmallPtrSet<Operation *, 4> dots;
    for (Operation *load : loads)
      if (together.getLeaderValue(load) == leader)
        for (tile::DotOp dot : fetchedDots(load->getResult(0)))
          dots.insert(dot);
    kernel.walk([&, &ring = ring](tile::DotOp dot) {
      if (dots.contains(dot))
        ring.dots.push_back(dot);
    });
    plannedRings.push_back(std::move(ring));
  }
  addRows();
  for (Ring &ring : plannedRings)
    ring.slots = slotsWanted(ring);
  for (Ring &ring : plannedRings)
    ring.isAsync = ring.slots > 1 && dotsMayStayInFlight(ring.block);
  groupRings(/*inOneBlock=*/false);
}

/// What the producer must compute for a copy. Why it cannot, or nothing.
static std::string addOffsets(ProducerSlice &slice, tile::DescriptorLoadOp load) {
  for (Value offset : load.getOffsets())
    if (std::string reason = slice.addValue(offset); !reason.empty())
      return "its offset cannot be computed ahead: " + reason;
  if (std::string reason = slice.addTokensOf(load.getDescriptor()); !reason.empty())
    return "its wait cannot be run ahead: " + reason;
  return {};
}

/// Why a row cannot come with the tiles of a ring, or nothing.
std::string RingPlan::whyNotCopiedWith(tile::DescriptorLoadOp row, const Ring &ring) {
  if (std::string reason = whyNotCopiedAhead(row); !reason.empty())
    return reason;
  if (bufferOf(row, 1).getSlotBytes() % layout::copyAlignment(/*swizzleBytes=*/0) != 0)
    return "rows of less than 128 bytes do not lie one behind the other in a ring";
  ProducerSlice trial = slice; // what a row needs must not keep the tiles from their ring
  if (std::string reason = addOffsets(trial, row); !reason.empty())
    return reason;
  Ring both = ring;
  both.rows.push_back(row);
  if (both.firstRead()->isBeforeInBlock(both.lastLoad()) && mayWaitBetween(both.firstRead(), both.lastLoad()))
    return "a loop or wait stands between it and the tiles of its block";
  return {};
}

/// Rows come with tiles of their block that are waited for no later than the row is read, with the last of those if there are several.
void RingPlan::addRows() {
  for (tile::DescriptorLoadOp row : rows) {
    Ring *with = nullptr;
    for (Ring &ring : plannedRings) {
      if (ring.block != row->getBlock())
        continue;
      const bool isBefore = ring.block->findAncestorOpInBlock(*ring.dots.front())->isBeforeInBlock(row);
      if (!with || isBefore)
        with = &ring;
    }
    std::string reason = with ? whyNotCopiedWith(row, *with) : "no tile of a dot is fetched beside it";
    if (!reason.empty()) {
      refuse(row, reason);
      continue;
    }
    with->rows.push_back(row);
    loads.insert(row);
  }
}

SmallVector<tile::DotOp> RingPlan::ringDotsIn(Block *block) const {
  llvm::SmallPtrSet<Operation *, 8> ofRings;
  for (const Ring &ring : plannedRings)
    ofRings.insert(ring.dots.begin(), ring.dots.end());
  SmallVector<tile::DotOp> dots;
  for (tile::DotOp dot : block->getOps<tile::DotOp>())
    if (ofRings.contains(dot))
      dots.push_back(dot);
  return dots;
}

/// True if all dots of a loop body only accumulate: each takes a carried value or the result of another dot, and gives its own to
/// another dot or to the next iteration, at the place where the chain began. Operands in registers would have to stay, too; sums that
/// are promoted are read at once.
bool RingPlan::dotsMayStayInFlight(Block *block) const {
  auto loop = dyn_cast<scf::ForOp>(block->getParentOp());
  SmallVector<tile::DotOp> dots = ringDotsIn(block);
  if (!loop || dots.empty())
    return false;
  llvm::SmallDenseMap<Value, unsigned> chain; // the result of a dot -> the carried value it accumulates
  for (tile::DotOp dot : dots) {
    Value c = dot.getC();
    if (!c.hasOneUse() || !dot.getResult().hasOneUse() || !isFetched(dot.getA()) || promotionOf(dot))
      return false;
    unsigned index;
    if (auto argument = dyn_cast<BlockArgument>(c); argument && argument.getOwner() == block)
      index = argument.getArgNumber() - loop.getNumInductionVars();
    else if (auto before = chain.find(c); before != chain.end())
      index = before->second;
    else
      return false;
    chain[dot.getResult()] = index;
    OpOperand &use = *dot.getResult().use_begin();
    const bool isCarriedOn = use.getOwner() == block->getTerminator() && use.getOperandNumber() == index;
    const bool isAccumulated = llvm::is_contained(dots, use.getOwner()) && use.getOperandNumber() == 2;
    if (!isCarriedOn && !isAccumulated)
      return false;
  }
  return true;
}

std::string RingPlan::collectSlice() {
  for (const Ring &ring : plannedRings)
    for (tile::LoadOp load : ring.gathers) {
      if (ring.loads.empty())
        return "no tile of the dot comes through a descriptor";
      for (Value tile : {load.getPtr(), load.getMask()})
        if (std::string reason = tile ? slice.addElements(tile) : std::string(); !reason.empty())
          return "its addresses cannot be computed ahead: " + reason;
      if (std::string reason = slice.addControlAround(load); !reason.empty())
        return "its control flow cannot be run ahead: " + reason;
    }
  for (Operation *op : loads) {
    auto load = dyn_cast<tile::DescriptorLoadOp>(op);
    if (!load)
      continue;
    if (std::string reason = addOffsets(slice, load); !reason.empty())
      return reason;
    if (std::string reason = slice.addControlAround(load); !reason.empty())
      return "its control flow cannot be run ahead: " + reason;
  }
  std::string failure;
  kernel.walk([&](dist::WaitOp wait) {
    if (failure.empty() && wait.getToken().use_empty())
      if (failure = slice.addWait(wait); !failure.empty())
        failure = "a wait cannot be run ahead: " + failure;
  });
  return failure;
}

} // namespace ditron::transforms
